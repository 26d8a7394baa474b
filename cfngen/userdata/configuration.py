"""The configuration of each role, packed with the boot program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.instance_types import architecture
from cfngen.cluster.logical_ids import auto_scaling_group, group_id, slot_id, wait_condition
from cfngen.cluster.model import Cluster, Instances, NodeGroup, Slot
from cfngen.cluster.names import api_host
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.upgrade_timeouts import master_upgrade_wait
from cfngen.releases import PAUSE, Asset, exact_version, master_tools, release
from cfngen.userdata import addons, cloud_controller, files, instances, kubeadm, node_rights, pod_network
from cfngen.userdata.mirror import mirrored
from cfngen.userdata.pack import UNIT, UserData, pack

# Programs that a distribution's image may lack, with apt's and dnf's package. kubeadm, the kubelet and the portmap
# plugin call iptables. kubeadm 1.32 and newer asks neither for conntrack nor for crictl, and containerd forwards ports
# without socat.
PACKAGES = {"iptables": ("iptables", "iptables-nft")}
MASTER_PACKAGES = {
    "mkfs.ext4": ("e2fsprogs", "e2fsprogs"),
    "openssl": ("openssl", "openssl"),
    "pgrep": ("procps", "procps-ng"),
}
ARCHIVE_FOLDERS = {"containerd": "/usr/local", "cni-plugins": "/opt/cni/bin"}
ASSET_FILES = {"runc": "/usr/local/sbin/runc"}
# Files to unpack from an archive into the folder of programs.
MEMBERS = {"helm": ["*/helm"], "etcd": ["*/etcdctl", "*/etcdutl"]}

# What each role does, in order, after the first stage's own steps: `module.function` of cfngen.boot by title.
COMMON_STEPS = {
    "settings": "system.settings",
    "downloads": "system.downloads",
    "services": "system.services",
}
MASTER_STEPS = {
    "volume": "volume.volume",
    "names": "hosts.of_master",
    "authorities": "control_plane.prepare",
    "control plane": "control_plane.start",
    "add-ons": "addons.essentials",
    "join information": "join_information.publish",
    "certificates": "certificates.schedule",
    "serving certificates": "csr_approval.start",
}
NODE_STEPS = {
    "masters": "version_skew.wait",
    "join": "node.join",
    "ready": "node.ready",
    "first pod": "first_pod.run",
    "addresses": "node.follow",
}
# What timers do: `python3 -m boot <task>`.
MASTER_TASKS = {
    "join": {"join information": "join_information.publish"},
    "certificates": {"certificates": "certificates.renew"},
    "approve": {"serving certificates": "csr_approval.approve"},
    "addons": {"add-ons": "addons.apply"},
}
NODE_TASKS = {"addresses": {"addresses": "node.addresses"}}


def master(
    cluster: Cluster, slot: Slot, references: Mapping[str, Any], *, rehearsal: Mapping[str, Any] | None = None
) -> UserData:
    """Return the user data of a slot's instances.

    Args:
        cluster: the cluster.
        slot: the master's slot; all slots' configurations are alike, what differs are the references.
        references: `stack`, `resource` (logical id of the Auto Scaling group), `volumeId`, `slot` (its letter),
            `privateAddress`, each slot's `address_reference`, `caSecretArn`, `joinSecretArn`, `routeTableId` if pods
            have VPC routes, `publicAddress` if the API is public or there are several masters, `condition` (logical id
            of the slot's wait condition), `conditionStack` that has it, and `bucket` if snapshots of etcd are taken.
        rehearsal: if given, the instances only fetch their whole program and signal success; it becomes part of their
            configuration. None for real masters.

    Raises:
        UserDataTooLargeError: it is larger than EC2 allows.
    """
    config = {
        "role": "master",
        **_common_settings(cluster, cluster.control_plane),
        "steps": pod_network.steps(cluster, instances.steps(cluster.control_plane, COMMON_STEPS, MASTER_STEPS)),
        "tasks": MASTER_TASKS,
        "endpoint": kubeadm.endpoint(cluster),
        "kubelet": kubeadm.kubelet(cluster),
        "kubeadm": kubeadm.init(cluster),
        "apiHost": api_host(cluster),
        "masters": {master_slot.letter: f"${{{address_reference(master_slot)}}}" for master_slot in cluster.slots},
        "manifests": [*node_rights.manifests(cluster), *cloud_controller.manifests(cluster)],
        "addons": addons.releases(cluster),
    }
    config["assets"] += _assets_with_targets(cluster, master_tools(architecture(cluster.control_plane.instance_type)))
    config["packages"].update(MASTER_PACKAGES)
    if cluster.certificate_authority.secret:
        config["ownCa"] = cluster.certificate_authority.secret
    if cluster.etcd.backups.enabled:
        config["backups"] = {"interval": cluster.etcd.backups.interval}
        config["steps"] = {**config["steps"], "backups": "backup.schedule"}
        config["tasks"] = {**config["tasks"], "backup": {"backup": "backup.backup"}}
    config["steps"] = instances.last(cluster.control_plane, config["steps"])
    if rehearsal is not None:
        # As a task that no timer runs, so that the program still contains the steps' modules.
        config = {**config, "steps": {}, "tasks": {**config["tasks"], "steps": config["steps"]}, "rehearsal": rehearsal}
    unpacked_files = _unpacked_files(
        files.common(cluster, master=True),
        files.of_master(cluster),
        instances.files(cluster, cluster.control_plane),
    )
    return pack("master", "Master", config, unpacked_files, references, cluster.control_plane.cloud_config)


def node(cluster: Cluster, group: NodeGroup, references: Mapping[str, Any]) -> UserData:
    """Return the user data of a node group's instances.

    Args:
        cluster: the cluster.
        group: the node group.
        references: `stack`, `resource` (logical id of the Auto Scaling group) and `joinSecretArn`.

    Raises:
        UserDataTooLargeError: it is larger than EC2 allows.
    """
    config = {
        "role": "node",
        **_common_settings(cluster, group),
        "steps": instances.last(group, pod_network.steps(cluster, instances.steps(group, COMMON_STEPS, NODE_STEPS))),
        "tasks": {**NODE_TASKS, **instances.tasks(group)},
        "join": kubeadm.join(group),
        "pause": PAUSE,
        "upgradeWait": master_upgrade_wait(cluster, group),
    }
    unpacked_files = _unpacked_files(
        files.common(cluster, master=False), files.of_node(), instances.files(cluster, group)
    )
    return pack(f"nodes-{group.name}", group_id(group.name), config, unpacked_files, references, group.cloud_config)


def address_reference(slot: Slot) -> str:
    """Return the name of the reference to a slot's private address."""
    return f"address{slot.letter.upper()}"


def roles(cluster: Cluster) -> tuple[UserData, ...]:
    """Return the user data of every role, with parameters in the place of the stacks' references."""
    from troposphere import Ref

    names = ["stack", "volumeId", "privateAddress", "caSecretArn", "joinSecretArn"]
    names += ["slot", *(address_reference(master_slot) for master_slot in cluster.slots)]
    names += ["routeTableId"] if network_plugin(cluster).routes else []
    names += ["publicAddress"] if cluster.api.public or len(cluster.slots) > 1 else []
    names += ["bucket"] if cluster.etcd.backups.enabled else []
    master_references = {name: Ref(name) for name in names}
    node_references = {name: Ref(name) for name in ("stack", "joinSecretArn")}
    slot = cluster.slots[0]
    prefix = slot_id(slot.letter)
    wait_references = {"condition": wait_condition(prefix), "conditionStack": Ref("ClusterStackName")}
    return (
        master(cluster, slot, {"resource": auto_scaling_group(prefix), **master_references, **wait_references}),
        *(
            node(cluster, group, {"resource": auto_scaling_group(group_id(group.name)), **node_references})
            for group in cluster.node_groups
        ),
    )


def _common_settings(cluster: Cluster, group: Instances) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "region": cluster.region,
        "timeout": group.creation_timeout,
        "packages": dict(PACKAGES),
        "assets": _common_assets(cluster, group),
        "services": ["containerd", *pod_network.services(cluster)],
        "podNetwork": pod_network.configuration(cluster),
        "kubernetesVersion": f"v{exact_version(cluster.kubernetes_version)}",
        **instances.settings(cluster, group),
    }


def _common_assets(cluster: Cluster, group: Instances) -> list[dict[str, Any]]:
    """Return what every instance downloads."""
    return _assets_with_targets(cluster, release(cluster.kubernetes_version, architecture(group.instance_type)).assets)


def _assets_with_targets(cluster: Cluster, assets: tuple[Asset, ...]) -> list[dict[str, Any]]:
    """Return the downloads: `url`, `sha256`, and either `file` or the `folder` to unpack (only `members`) in."""
    downloads = []
    for asset in assets:
        target: dict[str, Any] = {"folder": ARCHIVE_FOLDERS[asset.name]} if asset.name in ARCHIVE_FOLDERS else {}
        if asset.name in MEMBERS:
            target = {"folder": files.BIN, "members": MEMBERS[asset.name]}
        if not target:
            target = {"file": ASSET_FILES.get(asset.name, f"{files.BIN}/{asset.name}")}
        downloads.append({"url": mirrored(cluster, asset.url), "sha256": asset.sha256, **target})
    return downloads


def _unpacked_files(*groups: Mapping[str, str]) -> dict[str, str]:
    """Return the files by the path below /opt/cfngen they are unpacked to, with the boot program's own unit."""
    return {UNIT: files.BOOT_UNIT, **{f"files{path}": text for group in groups for path, text in group.items()}}
