"""The kubelet's settings that differ from instance to instance, and whether this instance was set up before."""

from __future__ import annotations

import json
from typing import Any

from .machine import HOME, Machine

ESTABLISHED = HOME + "/established"
KUBELET_CONF = "/etc/kubernetes/kubelet.conf"
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
    old = ("/etc/kubernetes/*.conf", "/etc/kubernetes/manifests/*", "/var/lib/kubelet/pki/*", "/etc/cni/net.d/*")
    machine.remove(*old)


def patch(machine: Machine, config: dict[str, Any]) -> None:
    """Write the kubelet's settings as a patch, which kubeadm merges into what the cluster says.

    `kubeadm join` takes the cluster's settings from a ConfigMap; instances of other distributions, and their identity,
    need a patch (kubeadm's `patches.directory`).
    """
    resolver = RESOLVED if machine.exists(RESOLVED) else "/etc/resolv.conf"
    settings = {"resolvConf": resolver, **config["kubelet"], "providerID": config["facts"]["providerId"]}
    machine.write(HOME + "/patches/kubeletconfiguration+merge.json", json.dumps(settings, indent=1))
