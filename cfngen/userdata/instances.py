"""Turns the cluster file's settings of an instance group (the masters, or a node group) into configuration and files.

The settings are those of the kubelet and containerd, and the user's files, systemd units and commands. Node groups also
have a time-out for draining.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.instances import ControlPlane, Instances, NodeGroup
from cfngen.userdata import containerd, kubeadm, pod_network
from cfngen.userdata.deep_merge import merge
from cfngen.userdata.files import UNITS_FOLDER
from cfngen.userdata.lines import text_of
from cfngen.userdata.steps import drain_minutes, rebalance_action

if TYPE_CHECKING:
    from cfngen.boot.contract import Hooks, JsonObject, MountedVolume


_SECONDS_PER_UNIT = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def hooks(instances: Instances) -> Hooks:
    """Return the user's files, systemd units and post-boot commands for a group, from the cluster file."""
    return {
        "files": [{"path": file.path, "content": file.content, "mode": file.mode} for file in instances.files],
        "units": [{"name": unit.name, "content": unit.content, "enable": unit.enable} for unit in instances.units],
        "after": list(instances.post_boot_commands),
    }


def kubelet_configuration(cluster: Cluster, instances: Instances) -> JsonObject:
    """Return the kubelet's settings for a group: the group's override the cluster's, which override cfngen's."""
    own_settings = instances.kubelet_configuration
    if isinstance(instances, NodeGroup) and instances.max_pods is not None:
        own_settings = {**own_settings, "maxPods": instances.max_pods}
    return merge(kubeadm.kubelet_configuration(cluster), own_settings)


def files(cluster: Cluster, instances: Instances) -> dict[str, str]:
    """Return the configuration files that depend on a group's settings, by path."""
    files_by_path = {
        "/etc/containerd/config.toml": containerd.configuration(instances, pod_network.containerd(cluster)),
        **containerd.mirrors(instances),
        **_inhibit_delay_file(kubelet_configuration(cluster, instances)),
    }
    if drain_minutes(instances):
        unit = _service_unit("Moves pods elsewhere before this instance is terminated", "drain")
        files_by_path[f"{UNITS_FOLDER}/cfngen-drain.service"] = unit
    if isinstance(instances, NodeGroup) and instances.pre_pulled_images:
        files_by_path[f"{UNITS_FOLDER}/cfngen-images.service"] = IMAGES_UNIT
    if rebalance_action(instances) != "ignore":
        unit = _service_unit("Acts on EC2's recommendation to rebalance this Spot Instance", "rebalance")
        files_by_path[f"{UNITS_FOLDER}/cfngen-rebalance.service"] = unit
    if isinstance(instances, ControlPlane) and cluster.control_plane.count > 1:
        unit = _service_unit("Keeps this master while etcd would lose its quorum with it", "termination")
        files_by_path[f"{UNITS_FOLDER}/cfngen-termination.service"] = unit
    return files_by_path


def _inhibit_delay_file(kubelet: JsonObject) -> dict[str, str]:
    """Return the file, by path, that has logind let the kubelet delay a shutdown by its `shutdownGracePeriod`.

    The kubelet itself writes 99-kubelet.conf. But logind uses the file whose name sorts last, and unattended-upgrades
    of Debian and Ubuntu installs one whose name starts with a letter (kubernetes/kubernetes#102818).
    """
    seconds = duration_seconds(str(kubelet.get("shutdownGracePeriod", "0s")))
    if not seconds:
        return {}
    return {"/etc/systemd/logind.conf.d/zz-cfngen.conf": text_of("[Login]", f"InhibitDelayMaxSec={seconds}")}


def duration_seconds(text: str) -> int:
    """Return the seconds of a duration as Kubernetes writes it, e.g. `1m30s`, rounded up; 0 for any other text."""
    parts = re.findall(r"([0-9]*\.?[0-9]+)(ms|[hms])", text)
    seconds = sum(float(number) * _SECONDS_PER_UNIT[unit] for number, unit in parts)
    return math.ceil(seconds)


# The systemd unit that pulls images in the background. The boot program starts it and does not wait for it.
IMAGES_UNIT = text_of(
    "[Unit]",
    "Description=Pulls images before pods need them",
    "Wants=network-online.target",
    "After=network-online.target containerd.service",
    "",
    "[Service]",
    "Type=oneshot",
    "WorkingDirectory=/opt/cfngen",
    "ExecStart=/usr/bin/python3 -m boot images",
    "StandardOutput=journal+console",
)


def _service_unit(description: str, task: str) -> str:
    """Return the systemd unit of a service that runs a task of the boot program until the instance ends.

    It does not depend on the unit of the boot program, so that the termination of an instance is also completed if its
    boot has failed.
    """
    return text_of(
        "[Unit]",
        f"Description={description}",
        "Wants=network-online.target",
        "After=network-online.target",
        "",
        "[Service]",
        "WorkingDirectory=/opt/cfngen",
        f"ExecStart=/usr/bin/python3 -m boot {task}",
        "Restart=on-failure",
        "RestartSec=10",
        "StandardOutput=journal+console",
        "",
        "[Install]",
        "WantedBy=multi-user.target",
    )


# By file system, the program that makes it, with the names of its package for apt and for dnf.
_PACKAGES = {"ext4": ("mkfs.ext4", ("e2fsprogs", "e2fsprogs")), "xfs": ("mkfs.xfs", ("xfsprogs", "xfsprogs"))}


def mounted_volumes(group: Instances) -> list[MountedVolume]:
    """Return the volumes that the instances of a group format and mount; empty for masters."""
    volumes = group.volumes if isinstance(group, NodeGroup) else ()
    return [
        {"device": volume.device, "folder": volume.mount_path, "fileSystem": volume.file_system or "ext4"}
        for volume in volumes
        if volume.mount_path
    ]


def file_system_packages(group: Instances) -> dict[str, tuple[str, str]]:
    """Return the programs that make the file systems of a group's volumes, each with its two packages."""
    return dict(_PACKAGES[volume["fileSystem"]] for volume in mounted_volumes(group))
