"""Checks of EBS volumes: size, IOPS and throughput must suit the volume type and each other.

Limits: https://docs.aws.amazon.com/ebs/latest/userguide/ebs-volume-types.html and CreateVolume in the Amazon EC2 API
Reference, as of November 2026. gp3 reaches 64 TiB, 80,000 IOPS and 2,000 MiB/s since September 2025
(https://aws.amazon.com/about-aws/whats-new/2025/09/amazon-ebs-size-provisioned-performance-gp3-volumes/). A test
compares the limits below with CloudFormation's schemas.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cfngen.cluster.checks.sections import all_machines, extra_volumes
from cfngen.cluster.model import Cluster, Volume
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem


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


# The limits of each volume type, by the name of the type in the EC2 API.
VOLUME_TYPES = {
    "gp2": VolumeType(size_gib=(1, 16384), iops=None, iops_per_gib=0, needs_iops=False),
    "gp3": VolumeType(size_gib=(1, 65536), iops=(3000, 80000), iops_per_gib=500, needs_iops=False),
    "io1": VolumeType(size_gib=(4, 16384), iops=(100, 64000), iops_per_gib=50, needs_iops=True),
    "io2": VolumeType(size_gib=(4, 65536), iops=(100, 256000), iops_per_gib=1000, needs_iops=True),
}
# A gp3 volume has 3,000 IOPS if the user sets no number.
_GP3_BASE_IOPS = 3000
# A gp3 volume has at most 0.25 MiB/s for each IOPS: 1 MiB/s needs four.
_IOPS_PER_MIB_PER_SECOND = 4
# The distributions' images have snapshots of 8 GiB, which was the root volume of kube-up's master.
_MIN_ROOT_SIZE_GIB = 8


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
            yield Problem(throughput_path, message, related_paths=((*path, "iops"),))


PROBLEM_CHECKS = (_check_volume_sizes, _check_root_volume_sizes, _check_iops, _check_throughput)
