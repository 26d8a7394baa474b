"""The kubelet's settings that differ between instances, and the marker that an instance is set up."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..machine import HOME, Machine

if TYPE_CHECKING:
    from ..state import Boot

# File with the instance's id, which exists once a boot has set up the instance.
SET_UP_FILE = HOME + "/established"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
# The folder from which the kubelet, as kubeadm configures it, reads the manifests of static pods.
MANIFESTS_FOLDER = "/etc/kubernetes/manifests"
# The resolver configuration of systemd-resolved with the network's DNS servers, on distributions that use it.
RESOLVED_CONF = "/run/systemd/resolve/resolv.conf"


def is_set_up(machine: Machine, boot: Boot) -> bool:
    """Return whether this instance was set up by an earlier boot.

    SET_UP_FILE contains the id of the instance that wrote it, since an AMI may contain another instance's file.
    """
    return machine.read(SET_UP_FILE) == boot.facts["instanceId"] and machine.exists(KUBELET_CONF)


def mark_set_up(machine: Machine, boot: Boot) -> None:
    """Record that this instance is set up: later boots only start its services."""
    machine.write(SET_UP_FILE, boot.facts["instanceId"])


def stop_and_remove_files(machine: Machine) -> None:
    """Stop the kubelet; remove files of an earlier attempt, or of the instance from which the AMI was created."""
    machine.run("systemctl", "stop", "kubelet")
    # containerd would keep an existing CNI configuration, with the pod CIDR of another node.
    leftovers = ("/etc/kubernetes/*.conf", f"{MANIFESTS_FOLDER}/*", "/var/lib/kubelet/pki/*", "/etc/cni/net.d/*")
    machine.remove(*leftovers)


def write_patch(machine: Machine, boot: Boot) -> None:
    """Write this instance's kubelet settings as a patch for kubeadm (`patches.directory`).

    `kubeadm join` takes the cluster-wide settings from a ConfigMap and merges the patch over them; settings that depend
    on the instance or its distribution must be in the patch.
    """
    configured = boot.config["kubeletPatch"]
    settings: dict[str, object] = {"resolvConf": RESOLVED_CONF if machine.exists(RESOLVED_CONF) else "/etc/resolv.conf"}
    if "kubeReserved" not in configured and "systemReserved" not in configured:
        settings["kubeReserved"] = reserved_resources(machine)
    settings.update(configured)
    if boot.max_pods:
        settings["maxPods"] = boot.max_pods
    settings["providerID"] = boot.facts["providerId"]
    machine.write(HOME + "/patches/kubeletconfiguration+merge.json", json.dumps(settings))


def reserved_resources(machine: Machine) -> dict[str, str]:
    """Return `kubeReserved`: the resources for the kubelet, the container runtime and the operating system.

    They are 80 millicores and 1 % of the CPUs, and 330 MiB and 5 % of the memory: the formula of Google Distributed
    Cloud ("Resources available for your workloads"). A gibibyte of disk is reserved for logs and for unpacking images.
    """
    mebibytes = int(re.findall(r"MemTotal:\s+(\d+) kB", machine.read("/proc/meminfo"))[0]) // 1024
    vcpus = len(re.findall(r"(?m)^processor\s*:", machine.read("/proc/cpuinfo")))
    return {
        "cpu": f"{80 + vcpus * 10}m",
        "memory": f"{330 + mebibytes // 20}Mi",
        "ephemeral-storage": "1Gi",
    }
