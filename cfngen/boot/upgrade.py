"""Changes of Kubernetes' version: refused before anything is changed, and what an upgrade does beyond a boot.

An instance never changes its version; a new one takes over the slot. So of `kubeadm upgrade` (1.36) little is left:
`upgrade apply` runs preflight, control-plane, upload-config, kubelet-config, bootstrap-token, addon and post-upgrade;
`upgrade node` does control-plane, kubelet-config, addon and post-upgrade on the other masters. The manifests, kubelet
configuration and certificates of the new version are what the phases of `kubeadm init` write at every boot,
upload-config and bootstrap-token too are the same functions, and post-upgrade tidies files of the old version, which a
new root disk does not have. What remains is an order: the ConfigMaps are written by the first master of the new version
and never by one of an older version; CoreDNS and kube-proxy follow with the last master, for kube-proxy may not be
newer than any API server (kubeadm does likewise since 1.28).
"""

from __future__ import annotations

import json
import re
from typing import Any

from . import peers
from .certificate_authorities import KUBEADM
from .etcd_data import VOLUME
from .kubectl import ADMIN, kubectl
from .machine import BootError, Machine
from .versions import minor, numbers

# Kubernetes' version that last worked on this volume.
RECORD = VOLUME + "/kubernetes-version"
SKEW_POLICY_URL = "https://kubernetes.io/releases/version-skew-policy/"
# kubeadm makes it beside admin.conf; its rights come from its certificate and not from an object in the cluster.
SUPER_ADMIN = "/etc/kubernetes/super-admin.conf"


def check(machine: Machine, config: dict[str, Any]) -> None:
    """Compare this instance's version with what ran here before and with what the other masters run.

    Raises:
        BootError: this version must not start here. Nothing was changed.
    """
    own_version = config["kubernetesVersion"]
    versions = {"this volume": machine.read(RECORD)}
    if len(config["masters"]) > 1:
        versions.update(_other_masters(machine, config))
    for place, version in versions.items():
        if not version:
            continue
        step = minor(own_version) - minor(version)
        if step < 0 and place == "this volume":
            raise BootError(
                f"{place} was run by Kubernetes {version}, and minor versions do not go back to {own_version}",
                f"set kubernetesVersion to {version} or newer and update the stack, or restore a snapshot of etcd",
            )
        if abs(step) > 1:
            raise BootError(
                f"{place} runs Kubernetes {version}, and {own_version} is more than one minor version away",
                f"update through {_next_minor(own_version, version)} first ({SKEW_POLICY_URL})",
            )


def _next_minor(own_version: str, version: str) -> str:
    step = 1 if minor(own_version) > minor(version) else -1
    return f"1.{minor(version) + step}"


def _other_masters(machine: Machine, config: dict[str, Any]) -> dict[str, str]:
    """Return the other masters' versions, or nothing if none of them answers: then etcd's members decide alone."""
    if not machine.exists(ADMIN):
        machine.run("kubeadm", "init", "phase", "kubeconfig", "admin", "--config", KUBEADM)
    try:
        versions = peers.masters(machine, config)
    except BootError:
        return {}
    return {f"master {name}": version for name, version in versions.items() if name != config["facts"]["instanceId"]}


def behind(machine: Machine, config: dict[str, Any]) -> bool:
    """Return whether the cluster's ConfigMaps are of a newer minor version than this master; they stay so then.

    Raises:
        BootError: the API server does not answer.
    """
    query = ("get", "configmap", "kubeadm-config", "--namespace=kube-system", "--ignore-not-found", "-o", "json")
    _, text = kubectl(machine, *query, kubeconfig=SUPER_ADMIN)
    cluster_configuration = json.loads(text or "{}").get("data", {}).get("ClusterConfiguration", "")
    match = re.search(r"(?m)^kubernetesVersion: *\"?(v?[\d.]+)", cluster_configuration)
    return bool(match and minor(match[1]) > minor(config["kubernetesVersion"]))


def last(machine: Machine, config: dict[str, Any]) -> bool:
    """Return whether no master is older than this one any more: only then kube-proxy may be of this version."""
    own = minor(config["kubernetesVersion"])
    return all(minor(version) >= own for version in peers.masters(machine, config).values())


def oldest(machine: Machine, config: dict[str, Any]) -> str:
    """Return the oldest master's version, this one's included."""
    own: str = config["kubernetesVersion"]
    return min([own, *peers.masters(machine, config).values()], key=numbers)


def record(machine: Machine, config: dict[str, Any]) -> None:
    """Note on the volume that this version works here."""
    machine.write(RECORD, config["kubernetesVersion"])
