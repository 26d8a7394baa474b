"""Checks of the further volumes of node groups: their device names, and where nodes mount them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from cfngen.cluster.checks.sections import extra_volumes
from cfngen.cluster.group_types import types_key, types_of
from cfngen.cluster.instance_type_facts import facts_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem

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
    _check_device_names,
    _check_file_systems,
    _check_mount_paths,
    _check_nested_mount_paths,
    _check_instance_storage,
)
