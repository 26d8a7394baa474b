"""The configuration of each role, packed with the boot program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.instances.rolling_updates import QUORUM_WAIT_MINUTES, master_upgrade_wait
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import auto_scaling_group_id, master_prefix, node_group_prefix, wait_condition_id
from cfngen.cluster.naming.names import api_host
from cfngen.cluster.sections.instances import Instances, NodeGroup, Slot
from cfngen.cluster.sections.services import Backups
from cfngen.releases import PAUSE_IMAGE, exact_version
from cfngen.releases import Asset as PinnedAsset
from cfngen.userdata import (
    addons,
    cloud_controller,
    files,
    instances,
    kubeadm,
    node_rights,
    pod_identity_webhook,
    pod_network,
    proxy,
)
from cfngen.userdata import references as reference_names
from cfngen.userdata.containerd import pulled_reference
from cfngen.userdata.downloads import instance_downloads, master_downloads
from cfngen.userdata.mirror import mirrored
from cfngen.userdata.pack import BOOT_UNIT_NAME, UserData, pack
from cfngen.userdata.steps import drain_minutes, first_stage_steps, rebalance_action, steps, tasks

if TYPE_CHECKING:
    from cfngen.boot.contract import Asset, Config, JsonObject, MasterConfig, NodeConfig
    from cfngen.boot.contract import Backups as BackupSchedule


# Programs that a distribution's image may lack, each with the names of its package for apt and for dnf. kubeadm, the
# kubelet and the portmap plug-in call iptables. Since version 1.32, kubeadm needs neither conntrack nor crictl,
# and containerd forwards ports without socat.
PACKAGES = {"iptables": ("iptables", "iptables-nft")}
MASTER_PACKAGES = {
    "mkfs.ext4": ("e2fsprogs", "e2fsprogs"),
    "openssl": ("openssl", "openssl"),
    "pgrep": ("procps", "procps-ng"),
}
# The folder that each archive is unpacked to, by the download's name.
ARCHIVE_FOLDERS = {"containerd": "/usr/local", "cni-plugins": "/opt/cni/bin"}
# Paths of downloaded programs that are not stored in `files.BIN_FOLDER`, by the download's name.
ASSET_FILES = {"runc": "/usr/local/sbin/runc"}
# Archives of which only some files are unpacked, to `files.BIN_FOLDER`: by the download's name, shell patterns of these
# files' paths in the archive.
ARCHIVE_MEMBERS = {"helm": ["*/helm"], "etcd": ["*/etcdctl", "*/etcdutl"]}


def master(
    cluster: Cluster, slot: Slot, references: Mapping[str, object], *, rehearsal: JsonObject | None = None
) -> UserData:
    """Return the user data of a slot's instances.

    Args:
        slot: the master's slot (its place, kept over replacements); slots differ only in their references.
        references: the value for each name in `references.of_master`: a troposphere expression, or a string.
        rehearsal: if given, the instances only fetch their whole program and signal success; it becomes part of their
            configuration. None for real masters.

    Raises:
        UserDataTooLargeError: the user data is larger than EC2 allows.
    """
    reference_names.check_names(references, reference_names.of_master(cluster))
    control_plane = cluster.control_plane
    config = _master_config(cluster)
    if rehearsal is not None:
        # All steps become a task that no timer runs, so that the program still contains their modules.
        config["tasks"] = {**config["tasks"], "steps": config["steps"]}
        config["steps"] = first_stage_steps(config["steps"])
        config["rehearsal"] = rehearsal
    unpacked_files = _unpacked_files(
        cluster,
        files.common(cluster, master=True),
        files.of_master(cluster),
        instances.files(cluster, control_plane),
        proxy.files(cluster, control_plane),
    )
    return pack(
        role="master",
        prefix="Master",
        config=config,
        files=unpacked_files,
        references=references,
        cloud_config=control_plane.cloud_config,
    )


def _master_config(cluster: Cluster) -> MasterConfig:
    config: MasterConfig = {
        **_common_config(cluster, cluster.control_plane, "master"),
        "endpoint": kubeadm.endpoint(cluster),
        "kubelet": kubeadm.kubelet_configuration(cluster),
        "kubeadm": kubeadm.init_documents(cluster),
        "apiHost": api_host(cluster),
        "masters": {
            # A placeholder such as `${addressA}`, which the boot program replaces by the address.
            master_slot.letter: f"${{{reference_names.address_reference(master_slot)}}}"
            for master_slot in cluster.slots
        },
        "manifests": [
            *node_rights.manifests(cluster),
            *cloud_controller.manifests(cluster),
            *pod_identity_webhook.manifests(cluster),
        ],
        "addons": addons.releases(cluster),
    }
    config["assets"] += _assets(cluster, master_downloads(cluster))
    config["packages"] = {**PACKAGES, **MASTER_PACKAGES}
    if cluster.control_plane.count > 1:
        config["quorumWait"] = QUORUM_WAIT_MINUTES
    if cluster.certificate_authority.secret:
        config["ownCa"] = cluster.certificate_authority.secret
    if cluster.addons.pod_identity_webhook.enabled:
        config["podIdentityWebhook"] = pod_identity_webhook.configuration(cluster)
    if cluster.etcd.backups.enabled:
        config["backups"] = _backup_schedule(cluster.etcd.backups)
    return config


def _backup_schedule(backups: Backups) -> BackupSchedule:
    """Return when masters take snapshots of etcd, and how long each is locked: no longer than it is kept."""
    schedule: BackupSchedule = {"interval": backups.interval}
    if lock := backups.object_lock:
        days = {period: min(lock.days, kept_days) for period, kept_days in backups.days_by_period.items()}
        schedule["lock"] = {"mode": lock.mode.upper(), "days": days}
    return schedule


def node(cluster: Cluster, group: NodeGroup, references: Mapping[str, object]) -> UserData:
    """Return the user data of a node group's instances.

    Args:
        references: the value for each name in `references.of_node`: a troposphere expression, or a string.
    """
    reference_names.check_names(references, reference_names.of_node())
    unpacked_files = _unpacked_files(
        cluster,
        files.common(cluster, master=False),
        files.of_node(),
        instances.files(cluster, group),
        proxy.files(cluster, group),
    )
    return pack(
        role=f"nodes-{group.name}",
        prefix=node_group_prefix(group.name),
        config=_node_config(cluster, group),
        files=unpacked_files,
        references=references,
        cloud_config=group.cloud_config,
    )


def _node_config(cluster: Cluster, group: NodeGroup) -> NodeConfig:
    config: NodeConfig = {
        **_common_config(cluster, group, "node"),
        "join": kubeadm.join_configuration(group),
        "pause": PAUSE_IMAGE,
        "upgradeWait": master_upgrade_wait(cluster, group),
    }
    if group.pre_pulled_images:
        config["images"] = {
            "references": [pulled_reference(reference) for reference in group.pre_pulled_images],
            "snapshotter": group.containerd.snapshotter,
        }
    if group.gpu:
        config["releaseDisks"] = group.instance_storage != "none"
    if group.update.pause:
        config["updatePause"] = group.update.pause
    return config


def roles(cluster: Cluster) -> tuple[UserData, ...]:
    """Return the user data of every role, with a stack parameter as the value of most references."""
    from troposphere import Ref

    slot = cluster.slots[0]
    prefix = master_prefix(slot.letter)
    master_references = {name: Ref(name) for name in reference_names.of_master(cluster)}
    master_references.update(
        resource=auto_scaling_group_id(prefix),
        condition=wait_condition_id(prefix),
        conditionStack=Ref("ClusterStackName"),
    )
    node_references = {name: Ref(name) for name in reference_names.of_node()}
    return (
        master(cluster, slot, master_references),
        *(
            node(cluster, group, {**node_references, "resource": auto_scaling_group_id(node_group_prefix(group.name))})
            for group in cluster.node_groups
        ),
    )


def _common_config(cluster: Cluster, group: Instances, role: str) -> Config:
    """Return the keys that are in the configuration of both masters and nodes."""
    config: Config = {
        "role": role,
        "cluster": cluster.name,
        "region": cluster.region,
        "timeout": group.creation_timeout,
        "packages": PACKAGES,
        "steps": steps(cluster, group),
        "tasks": tasks(cluster, group),
        "assets": _assets(cluster, instance_downloads(cluster, group)),
        "services": ["containerd", *pod_network.services(cluster)],
        "podNetwork": pod_network.configuration(cluster),
        "kubernetesVersion": f"v{exact_version(cluster.kubernetes_version)}",
        "kubeletPatch": instances.kubelet_configuration(cluster, group),
    }
    hooks = instances.hooks(group)
    if hooks["files"] or hooks["units"] or hooks["after"]:
        config["hooks"] = hooks
    if group.pre_boot_commands:
        config["before"] = list(group.pre_boot_commands)
    if proxy.image_services(cluster, group):
        config["proxyServices"] = list(proxy.image_services(cluster, group))
    if instances.mounted_volumes(group):
        config["packages"] = {**PACKAGES, **instances.file_system_packages(group)}
        config["volumes"] = instances.mounted_volumes(group)
    if drain_minutes(group):
        config["drain"] = drain_minutes(group)
    if rebalance_action(group) != "ignore":
        config["rebalance"] = rebalance_action(group)
    return config


def _assets(cluster: Cluster, pinned_assets: tuple[PinnedAsset, ...]) -> list[Asset]:
    """Return downloads as the boot program reads them, with the file or folder on the instance to write."""
    assets: list[Asset] = []
    for pinned in pinned_assets:
        asset: Asset = {"url": mirrored(cluster, pinned.url), "sha256": pinned.sha256}
        if pinned.name in ARCHIVE_MEMBERS:
            asset["folder"] = files.BIN_FOLDER
            asset["members"] = ARCHIVE_MEMBERS[pinned.name]
        elif pinned.name in ARCHIVE_FOLDERS:
            asset["folder"] = ARCHIVE_FOLDERS[pinned.name]
        else:
            asset["file"] = ASSET_FILES.get(pinned.name, f"{files.BIN_FOLDER}/{pinned.name}")
        assets.append(asset)
    return assets


def _unpacked_files(cluster: Cluster, *file_groups: Mapping[str, str]) -> dict[str, str]:
    """Return the given files and the unit of the boot program, by the path below /opt/cfngen to unpack them to.

    The boot program copies the files in /opt/cfngen/files to their final paths, the keys of these mappings.
    """
    unpacked = {BOOT_UNIT_NAME: files.boot_unit(cluster)}
    for texts_by_path in file_groups:
        unpacked.update({f"files{path}": text for path, text in texts_by_path.items()})
    return unpacked
