"""The configuration of each role, packed with the program that acts on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.instance_types import architecture
from cfngen.cluster.model import Cluster, Instances, NodeGroup, Slot
from cfngen.cluster.names import auto_scaling_group, group_id, slot_id
from cfngen.releases import release
from cfngen.userdata import cloud_controller, files, kubeadm
from cfngen.userdata.pack import UNIT, UserData, pack

# Programs that a distribution's image may lack, with apt's and dnf's package. kubeadm, the kubelet and the portmap
# plugin call iptables. kubeadm 1.32 and newer asks neither for conntrack nor for crictl, and containerd forwards ports
# without socat.
PACKAGES = {"iptables": ("iptables", "iptables-nft")}
MASTER_PACKAGES = {"mkfs.ext4": ("e2fsprogs", "e2fsprogs")}
FOLDERS = {"containerd": "/usr/local", "cni-plugins": "/opt/cni/bin"}
FILES = {"runc": "/usr/local/sbin/runc"}

# What each role does, in order, after the first stage's own steps: `module.function` of cfngen.boot by title.
COMMON_STEPS = {
    "settings": "system.settings",
    "downloads": "system.downloads",
    "services": "system.services",
}
MASTER_STEPS = {
    **COMMON_STEPS,
    "volume": "volume.volume",
    "authorities": "control_plane.prepare",
    "control plane": "control_plane.start",
    "add-ons": "control_plane.addons",
    "join information": "join_information.publish",
}
NODE_STEPS = {**COMMON_STEPS, "join": "node.join", "ready": "node.ready"}
# What timers do: `python3 -m boot <task>`.
MASTER_TASKS = {"join": {"join information": "join_information.publish"}}


def master(cluster: Cluster, slot: Slot, references: Mapping[str, Any]) -> UserData:
    """Return the user data of a slot's instances.

    Args:
        cluster: the cluster.
        slot: the master's slot; all slots' configurations are alike, what differs are the references.
        references: `stack`, `resource` (logical id of the Auto Scaling group), `volumeId`, `privateAddress`,
            `caSecretArn`, `joinSecretArn`, `routeTableId`, and `publicAddress` if the API is public.

    Raises:
        UserDataTooLargeError: it is larger than EC2 allows.
    """
    config = {
        "role": "master",
        **_common(cluster, cluster.control_plane),
        "steps": MASTER_STEPS,
        "tasks": MASTER_TASKS,
        "endpoint": kubeadm.endpoint(cluster),
        "kubeadm": kubeadm.init(cluster),
        "manifests": cloud_controller.manifests(cluster),
    }
    config["packages"].update(MASTER_PACKAGES)
    placed = _placed(files.common(cluster, master=True), files.of_master(cluster))
    return pack("master", "Master", config, placed, references)


def node(cluster: Cluster, group: NodeGroup, references: Mapping[str, Any]) -> UserData:
    """Return the user data of a node group's instances.

    Args:
        cluster: the cluster.
        group: the node group.
        references: `stack`, `resource` (logical id of the Auto Scaling group) and `joinSecretArn`.

    Raises:
        UserDataTooLargeError: it is larger than EC2 allows.
    """
    config = {"role": "node", **_common(cluster, group), "steps": NODE_STEPS, "tasks": {}, "join": kubeadm.join()}
    placed = _placed(files.common(cluster, master=False))
    return pack(f"nodes-{group.name}", group_id(group.name), config, placed, references)


def roles(cluster: Cluster) -> tuple[UserData, ...]:
    """Return the user data of every role, with parameters in the place of the stacks' references."""
    from troposphere import Ref

    names = ["stack", "volumeId", "privateAddress", "caSecretArn", "joinSecretArn", "routeTableId"]
    names += ["publicAddress"] if cluster.api.public else []
    of_master = {name: Ref(name) for name in names}
    of_node = {name: Ref(name) for name in ("stack", "joinSecretArn")}
    slot = cluster.slots[0]
    return (
        master(cluster, slot, {"resource": auto_scaling_group(slot_id(slot.letter)), **of_master}),
        *(
            node(cluster, group, {"resource": auto_scaling_group(group_id(group.name)), **of_node})
            for group in cluster.node_groups
        ),
    )


def _common(cluster: Cluster, instances: Instances) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        "region": cluster.region,
        "timeout": instances.creation_timeout,
        "packages": dict(PACKAGES),
        "assets": _assets(cluster, instances),
        "services": ["containerd", "cfngen-masquerade"],
        "kubelet": kubeadm.kubelet(cluster),
    }


def _assets(cluster: Cluster, instances: Instances) -> list[dict[str, str]]:
    """Return what to download: url, sha256, and the `file` it becomes or the `folder` it is unpacked in."""
    found = []
    for asset in release(cluster.kubernetes_version, architecture(instances.instance_type)).assets:
        place = {"folder": FOLDERS[asset.name]} if asset.name in FOLDERS else {}
        if not place:
            place = {"file": FILES.get(asset.name, f"{files.BIN}/{asset.name}")}
        url = asset.url
        if cluster.assets.mirror:
            url = f"{cluster.assets.mirror.rstrip('/')}/{url.partition('://')[2]}"
        found.append({"url": url, "sha256": asset.sha256, **place})
    return found


def _placed(*groups: Mapping[str, str]) -> dict[str, str]:
    """Return files for an instance's / by the path they are unpacked to, and the boot program's own unit."""
    return {UNIT: files.BOOT_UNIT, **{f"files{path}": text for group in groups for path, text in group.items()}}
