"""The types of the settings in a node's configuration that only some groups of nodes have (see `contract`)."""

from __future__ import annotations

from typing import List, TypedDict


class MountedVolume(TypedDict):
    """A further volume of a node, which the boot program formats and mounts.

    Attributes:
        device: the volume's device name in EC2, e.g. `/dev/sdf`; the kernel gives the disk another name.
        folder: the folder at which it is mounted.
        fileSystem: `ext4` or `xfs`.
    """

    device: str
    folder: str
    fileSystem: str


class Images(TypedDict):
    """Images that a node pulls before pods need them.

    Attributes:
        references: the images, each with registry, and with a tag or a digest.
        snapshotter: name of containerd's snapshotter, which unpacks them.
    """

    references: List[str]
    snapshotter: str


class Gpu(TypedDict):
    """Settings of a node with GPUs.

    Attributes:
        releaseDisks: whether instance store disks that the image's own service has claimed are released, so that the
            kubelet and containerd use them.
    """

    releaseDisks: bool
