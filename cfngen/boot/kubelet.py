"""The kubelet's settings that differ from instance to instance, and whether this instance was set up before."""

from __future__ import annotations

import json
import re
from typing import Any

from .machine import HOME, Machine

ESTABLISHED = HOME + "/established"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
# Where kubeadm's configuration of the kubelet has it look for static pods.
MANIFESTS = "/etc/kubernetes/manifests"
RESOLVED = "/run/systemd/resolve/resolv.conf"


def established(machine: Machine, config: dict[str, Any]) -> bool:
    """Return whether this very instance (not the one an image was made of) was set up to the end before."""
    return machine.read(ESTABLISHED) == config["facts"]["instanceId"] and machine.exists(KUBELET_CONF)


def establish(machine: Machine, config: dict[str, Any]) -> None:
    """Note that this instance is set up: from now on a reboot changes nothing."""
    machine.write(ESTABLISHED, config["facts"]["instanceId"])


def clear(machine: Machine) -> None:
    """Remove what an earlier attempt, or the instance that an image was made of, left behind."""
    machine.run("systemctl", "stop", "kubelet")
    # containerd keeps a CNI configuration that it finds, and with it another node's range of pods.
    old = ("/etc/kubernetes/*.conf", f"{MANIFESTS}/*", "/var/lib/kubelet/pki/*", "/etc/cni/net.d/*")
    machine.remove(*old)


def patch(machine: Machine, config: dict[str, Any]) -> None:
    """Write the kubelet's settings as a patch, which kubeadm merges into what the cluster says.

    `kubeadm join` takes the cluster's settings from a ConfigMap; instances of other distributions, and their identity,
    need a patch (kubeadm's `patches.directory`).
    """
    resolver = RESOLVED if machine.exists(RESOLVED) else "/etc/resolv.conf"
    overrides = config["kubeletPatch"]
    reserved = {} if {"kubeReserved", "systemReserved"} & set(overrides) else {"kubeReserved": reservation(machine)}
    settings = {"resolvConf": resolver, **reserved, **overrides, "providerID": config["facts"]["providerId"]}
    machine.write(HOME + "/patches/kubeletconfiguration+merge.json", json.dumps(settings))


def reservation(machine: Machine) -> dict[str, str]:
    """Return what pods may not have: the share of the kubelet, the container runtime and the operating system.

    80 millicores and 1 % of the CPUs, 330 MiB and 5 % of the memory: the formula of Google Distributed Cloud
    ("Resources available for your workloads"), and a gibibyte of disk for logs and images' unpacking.
    """
    mebibytes = int(re.findall(r"MemTotal:\s+(\d+) kB", machine.read("/proc/meminfo"))[0]) // 1024
    vcpus = len(re.findall(r"(?m)^processor\s*:", machine.read("/proc/cpuinfo")))
    return {
        "cpu": f"{80 + vcpus * 10}m",
        "memory": f"{330 + mebibytes // 20}Mi",
        "ephemeral-storage": "1Gi",
    }
