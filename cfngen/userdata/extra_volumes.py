"""The further volumes that nodes mount, as the boot program reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.sections.instances import Instances, NodeGroup

if TYPE_CHECKING:
    from cfngen.boot.contract import MountedVolume

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


def packages(group: Instances) -> dict[str, tuple[str, str]]:
    """Return the programs that make the file systems of a group's volumes, each with its two packages."""
    return dict(_PACKAGES[volume["fileSystem"]] for volume in mounted_volumes(group))
