"""Checks of EBS volumes: size, IOPS and throughput, and the device names and mount points of further ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from cfngen.cluster.checks.sections import all_machines, extra_volumes
from cfngen.cluster.instances.group_types import types_key, types_of
from cfngen.cluster.instances.instance_types import facts_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.instances import Volume

# A gp3 volume has 3,000 IOPS if the user sets no number.
_GP3_BASE_IOPS = 3000
# A gp3 volume has at most 0.25 MiB/s for each IOPS: 1 MiB/s needs four.
_IOPS_PER_MIB_PER_SECOND = 4
# The distributions' images have snapshots of 8 GiB, which was the root volume of kube-up's master.
_MIN_ROOT_SIZE_GIB = 8
# Folders that nothing may be mounted over, nor below: an empty volume would hide what the operating system, cloud-init
# or cfngen keep there, before or after a reboot ("Filesystem Hierarchy Standard 3.0", and systemd's file-hierarchy(7)).
_SYSTEM_TREES = (
    *(f"/{name}" for name in ("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "proc", "root", "run")),
    *(f"/{name}" for name in ("sbin", "snap", "sys", "tmp", "usr")),
    *(f"/var/{name}" for name in ("cache", "lock", "log/journal", "run", "snap", "tmp")),
    *(f"/var/lib/{name}" for name in ("amazon", "apt", "cfngen", "cloud", "dbus", "dnf", "dpkg", "rpm", "snapd")),
    *("/var/lib/systemd", "/mnt/instance-storage", "/opt/cfngen", "/opt/cni"),
)
# Folders that nothing may be mounted over; new folders below them are free.
_SYSTEM_FOLDERS = ("/home", "/mnt", "/opt", "/var", "/var/lib", "/var/log", "/var/spool")
# Folders of programs that take a whole volume, but not a part of theirs on another one: they move files within.
_WHOLE_FOLDERS = ("/var/lib/containerd", "/var/lib/kubelet")
INSTANCE_STORAGE_FOLDERS = ("/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods")
"""The folders that `instanceStorage: raid0` moves to the local disks of an instance type."""


@dataclass(frozen=True)
class VolumeType:
    """Limits of an EBS volume type.

    Attributes:
        size_gib: minimum and maximum size in GiB.
        iops: minimum and maximum provisioned IOPS; None if IOPS of this type cannot be chosen.
        iops_per_gib: maximum ratio of provisioned IOPS to GiB; 0 if IOPS of this type cannot be chosen.
        needs_iops: whether CreateVolume requires a number of IOPS.
    """

    size_gib: tuple[int, int]
    iops: tuple[int, int] | None
    iops_per_gib: int
    needs_iops: bool


# The limits of each volume type, by its name in the EC2 API, from CreateVolume in the Amazon EC2 API Reference and
# https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html, November 2026. gp3 reaches 64 TiB, 80,000 IOPS
# and 2,000 MiB/s since September 2025
# (https://aws.amazon.com/about-aws/whats-new/2025/09/amazon-ebs-size-provisioned-performance-gp3-volumes/). A test
# compares them with CloudFormation's schemas.
VOLUME_TYPES = {
    "gp2": VolumeType(size_gib=(1, 16384), iops=None, iops_per_gib=0, needs_iops=False),
    "gp3": VolumeType(size_gib=(1, 65536), iops=(3000, 80000), iops_per_gib=500, needs_iops=False),
    "io1": VolumeType(size_gib=(4, 16384), iops=(100, 64000), iops_per_gib=50, needs_iops=True),
    "io2": VolumeType(size_gib=(4, 65536), iops=(100, 256000), iops_per_gib=1000, needs_iops=True),
}


def _all_volumes(cluster: Cluster) -> Iterator[tuple[Path, Volume]]:
    yield ("controlPlane", "volume"), cluster.control_plane.volume
    for path, instances in all_machines(cluster):
        yield (*path, "rootVolume"), instances.root_volume
    yield from extra_volumes(cluster)


def _check_volume_sizes(cluster: Cluster) -> Iterator[Problem]:
    for path, volume in _all_volumes(cluster):
        min_size, max_size = VOLUME_TYPES[volume.type].size_gib
        if not min_size <= volume.size <= max_size:
            message = f"{volume.size} GiB is outside the {min_size} to {max_size} GiB of a {volume.type} volume"
            yield Problem((*path, "size"), message, related_paths=((*path, "type"),))


def _check_root_volume_sizes(cluster: Cluster) -> Iterator[Problem]:
    for path, instances in all_machines(cluster):
        has_own_image = bool(instances.image.id or instances.image.ssm_parameter)
        if instances.root_volume.size < _MIN_ROOT_SIZE_GIB and not has_own_image:
            size_gib = instances.root_volume.size
            message = f"the distributions' images need {_MIN_ROOT_SIZE_GIB} GiB or more, not {size_gib}"
            yield Problem((*path, "rootVolume", "size"), message, related_paths=((*path, "image"),))


def _check_iops(cluster: Cluster) -> Iterator[Problem]:
    for path, volume in _all_volumes(cluster):
        message = _why_iops_unsuitable(volume)
        if message:
            yield Problem((*path, "iops"), message, related_paths=((*path, "type"), (*path, "size")))


def _why_iops_unsuitable(volume: Volume) -> str:
    limits = VOLUME_TYPES[volume.type]
    if volume.iops is None and limits.needs_iops:
        return f"is missing; a volume of type {volume.type} needs a number of IOPS"
    if volume.iops is None:
        return ""
    if limits.iops is None:
        return f"a {volume.type} volume has no provisioned IOPS; remove the key or use gp3"
    min_iops, max_iops = limits.iops
    if not min_iops <= volume.iops <= max_iops:
        return f"{volume.iops} is outside the {min_iops} to {max_iops} IOPS of a {volume.type} volume"
    max_iops_of_size = limits.iops_per_gib * volume.size
    # The type's minimum is allowed for a volume of any size.
    if volume.iops > max(max_iops_of_size, min_iops):
        return (
            f"{volume.size} GiB of {volume.type} carry at most {max_iops_of_size} IOPS ({limits.iops_per_gib} for each "
            f"GiB), not {volume.iops}; enlarge the volume or lower the number"
        )
    return ""


def _check_throughput(cluster: Cluster) -> Iterator[Problem]:
    for path, volume in _all_volumes(cluster):
        if volume.throughput is None:
            continue
        throughput_path = (*path, "throughput")
        iops = volume.iops or _GP3_BASE_IOPS
        needed_iops = volume.throughput * _IOPS_PER_MIB_PER_SECOND
        if volume.type != "gp3":
            message = f"only gp3 volumes have a provisioned throughput, not {volume.type}; remove the key or use gp3"
            yield Problem(throughput_path, message, related_paths=((*path, "type"),))
        elif needed_iops > iops:
            message = (
                f"{volume.throughput} MiB/s need {needed_iops} IOPS "
                f"({_IOPS_PER_MIB_PER_SECOND} for each MiB/s), not {iops}; raise iops or lower throughput"
            )
            yield Problem(throughput_path, message, related_paths=((*path, "iops"), (*path, "type")))


def _check_device_names(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        first_paths: dict[str, Path] = {}
        for position, volume in enumerate(group.volumes):
            path: Path = ("nodeGroups", index, "volumes", position, "device")
            first_path = first_paths.setdefault(volume.device, path)
            if volume.device == group.image.root_device:
                message = f"{volume.device} is the root device of the image; use another name, or remove the key"
                yield Problem(path, message, related_paths=(("nodeGroups", index, "image", "rootDevice"),))
            elif first_path != path:
                message = f"{dotted(first_path)} is {volume.device} already; use another name, or remove the key"
                yield Problem(path, message, related_paths=(first_path,))


def _check_file_systems(cluster: Cluster) -> Iterator[Problem]:
    for path, volume in extra_volumes(cluster):
        if volume.file_system and volume.mount_path is None:
            message = "a volume is formatted only to be mounted; add mountPath, or remove the key"
            yield Problem((*path, "fileSystem"), message)


def _check_mount_paths(cluster: Cluster) -> Iterator[Problem]:
    for path, volume in extra_volumes(cluster):
        reason = _why_unsuitable(volume.mount_path or "")
        if reason:
            yield Problem((*path, "mountPath"), reason)


def _why_unsuitable(folder: str) -> str:
    """Return why a volume cannot be mounted at a folder; empty if it can, or if the folder is empty."""
    if {".", ".."} & set(folder.split("/")):
        return f"{folder} has a part . or ..; write the path without it"
    for tree in _SYSTEM_TREES:
        if _is_within(folder, tree):
            return f"{tree} belongs to the operating system or to cfngen; mount the volume elsewhere, e.g. at /data"
    if folder in _SYSTEM_FOLDERS:
        return f"an empty volume would hide what the image has in {folder}; mount it at a folder below, or at /data"
    for whole_folder in _WHOLE_FOLDERS:
        if _is_within(folder, whole_folder) and folder != whole_folder:
            return f"{whole_folder} must be on one volume; mount the volume at {whole_folder} itself, or elsewhere"
    return ""


def _check_nested_mount_paths(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        mounted = [(position, volume.mount_path) for position, volume in enumerate(group.volumes) if volume.mount_path]
        for (first, first_folder), (second, second_folder) in combinations(mounted, 2):
            first_path: Path = ("nodeGroups", index, "volumes", first, "mountPath")
            second_path: Path = ("nodeGroups", index, "volumes", second, "mountPath")
            if first_folder == second_folder:
                message = f"{dotted(first_path)} is {first_folder} already; use another folder"
                yield Problem(second_path, message, related_paths=(first_path,))
            elif _is_within(second_folder, first_folder) or _is_within(first_folder, second_folder):
                message = (
                    f"{second_folder} and {first_folder} of {dotted(first_path)} lie in each other, so that one would "
                    "hide the other; use folders side by side"
                )
                yield Problem(second_path, message, related_paths=(first_path,))


def _check_instance_storage(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        mount_paths = [
            (position, volume.mount_path)
            for position, volume in enumerate(group.volumes)
            if volume.mount_path in INSTANCE_STORAGE_FOLDERS
        ]
        if group.instance_storage == "none" or not mount_paths:
            continue
        types_with_disks = (
            name for name in types_of(cluster, group) if (facts := facts_of(name)) and facts.local_disk_gb
        )
        instance_type = next(types_with_disks, None)
        if instance_type is None:
            continue
        group_path: Path = ("nodeGroups", index)
        other_types = ""
        if group.instance_requirements:
            instance_type += ", which the requirements allow,"
            other_types = "instanceRequirements.localStorage: excluded, or "
        for position, mount_path in mount_paths:
            message = (
                f"{instance_type} has disks of its own, on which instanceStorage: raid0 puts {mount_path}; set "
                f"{other_types}instanceStorage: none, or mount the volume elsewhere"
            )
            related_paths = ((*group_path, "instanceStorage"), (*group_path, types_key(group)))
            yield Problem((*group_path, "volumes", position, "mountPath"), message, related_paths=related_paths)


def _is_within(folder: str, outer_folder: str) -> bool:
    return folder == outer_folder or folder.startswith(outer_folder + "/")


PROBLEM_CHECKS = (
    _check_volume_sizes,
    _check_root_volume_sizes,
    _check_iops,
    _check_throughput,
    _check_device_names,
    _check_file_systems,
    _check_mount_paths,
    _check_nested_mount_paths,
    _check_instance_storage,
)
