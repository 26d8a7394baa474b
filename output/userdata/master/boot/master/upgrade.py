"""Checks a change of the Kubernetes version before a master starts, and tells which phases of an upgrade it may run.

An instance never changes its version: a new instance takes over the slot. So little of `kubeadm upgrade` (1.36) is
needed. `upgrade apply` runs preflight, control-plane, upload-config, kubelet-config, bootstrap-token, addon and
post-upgrade; `upgrade node` runs control-plane, kubelet-config, addon and post-upgrade on the other masters. The phases
of `kubeadm init`, which run at every boot, write the same manifests, kubelet configuration and certificates, and
include upload-config and bootstrap-token. post-upgrade only removes old files, and a new root volume has none.

Only the order remains. The first master of the new version writes the ConfigMaps, and a master of an older version
never does. The last master updates CoreDNS and kube-proxy, as kube-proxy must not be newer than any API server (kubeadm
does the same since 1.28).
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ..host.kubectl import ADMIN_KUBECONFIG, kubectl
from ..host.versions import minor_number, version_numbers
from ..machine import BootError, Machine
from . import peers
from .certificate_authorities import KUBEADM_CONFIG
from .etcd_data import VOLUME_MOUNT

if TYPE_CHECKING:
    from ..contract import MasterBoot

# File with the Kubernetes version that last ran with this volume's data.
VERSION_FILE = VOLUME_MOUNT + "/kubernetes-version"
SKEW_POLICY_URL = "https://kubernetes.io/releases/version-skew-policy/"
# Kubeconfig file that kubeadm writes beside admin.conf. Its certificate is in the group system:masters, so it needs no
# role binding.
SUPER_ADMIN_KUBECONFIG = "/etc/kubernetes/super-admin.conf"


def check_version_skew(machine: Machine, boot: MasterBoot) -> None:
    """Check this instance's Kubernetes version against the version recorded on this volume and those of other masters.

    Raises:
        BootError: the version skew is not supported, so this master must not start; nothing was changed.
    """
    own_version = boot.config["kubernetesVersion"]
    versions_by_subject = {"this volume": machine.read(VERSION_FILE)}
    if len(boot.config["masters"]) > 1:
        versions_by_subject.update(_other_masters_versions(machine, boot))
    for subject, version in versions_by_subject.items():
        if not version:
            continue
        minor_difference = minor_number(own_version) - minor_number(version)
        if minor_difference < 0 and subject == "this volume":
            raise BootError(
                f"{subject} was last used by Kubernetes {version}; a downgrade to {own_version} is not supported",
                f"set kubernetesVersion to {version} or newer and update the stack, or restore a snapshot of etcd",
            )
        if abs(minor_difference) > 1:
            raise BootError(
                f"{subject} has Kubernetes {version}; {own_version} is more than one minor version away",
                f"update to {_next_minor(own_version, version)} first ({SKEW_POLICY_URL})",
            )


def _next_minor(own_version: str, version: str) -> str:
    """Return the minor version to update to first: one step from `version` towards `own_version`, e.g. `1.35`."""
    step = 1 if minor_number(own_version) > minor_number(version) else -1
    return f"1.{minor_number(version) + step}"


def _other_masters_versions(machine: Machine, boot: MasterBoot) -> dict[str, str]:
    """Return the Kubernetes version of each other master, by `master <instance id>`.

    The result is empty if no API server answers: a master can also start while all others are down.
    """
    if not machine.exists(ADMIN_KUBECONFIG):
        machine.run("kubeadm", "init", "phase", "kubeconfig", "admin", "--config", KUBEADM_CONFIG)
    try:
        versions = peers.master_versions(machine, boot)
    except BootError:
        return {}  # The other versions are unknown: only the version recorded on the volume is checked.
    return {
        f"master {instance_id}": version
        for instance_id, version in versions.items()
        if instance_id != boot.facts["instanceId"]
    }


def is_older_than_cluster(machine: Machine, boot: MasterBoot) -> bool:
    """Return whether a master of a newer minor version wrote kubeadm's ConfigMap, which must then not be overwritten.

    Raises:
        BootError: the API server does not answer.
    """
    query = ("get", "configmap", "kubeadm-config", "--namespace=kube-system", "--ignore-not-found", "-o", "json")
    _, text = kubectl(machine, *query, kubeconfig=SUPER_ADMIN_KUBECONFIG)
    cluster_configuration = json.loads(text or "{}").get("data", {}).get("ClusterConfiguration", "")
    match = re.search(r"(?m)^kubernetesVersion: *\"?(v?[\d.]+)", cluster_configuration)
    return bool(match and minor_number(match[1]) > minor_number(boot.config["kubernetesVersion"]))


def is_last_to_upgrade(machine: Machine, boot: MasterBoot) -> bool:
    """Return whether no master has an older minor version than this one, which then updates kube-proxy and CoreDNS."""
    own_minor = minor_number(boot.config["kubernetesVersion"])
    return all(minor_number(version) >= own_minor for version in peers.master_versions(machine, boot).values())


def oldest_version(machine: Machine, boot: MasterBoot) -> str:
    """Return the version of the oldest master, including this one."""
    own_version: str = boot.config["kubernetesVersion"]
    return min([own_version, *peers.master_versions(machine, boot).values()], key=version_numbers)


def record_version(machine: Machine, boot: MasterBoot) -> None:
    """Record on the volume which Kubernetes version has run with the volume's data."""
    machine.write(VERSION_FILE, boot.config["kubernetesVersion"])
