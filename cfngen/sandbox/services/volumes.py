"""Volumes of EBS: their sizes and speeds, where they can be attached, and when they can be modified."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.sandbox.services.networks import zones
from cfngen.sandbox.services.rules import Attempt, Refused, rule

DAY = 24 * 3600.0
MOST_MODIFICATIONS = 4  # in a day (API: ModifyVolume)
# Seconds for each GiB: "a fully used 1-TiB volume can take about 6 hours" (EBS user guide, "Monitor the progress of EBS
# volume modifications"); a minute at least.
OPTIMIZING = 6 * 3600.0 / 1024
LEAST_OPTIMIZING = 60.0
ATTACHABLE = ("pending", "running", "stopping", "stopped")
NAME = "/dev/"


@dataclass(frozen=True)
class Kind:
    """What a type of volume can be (EBS user guide, "Amazon EBS volume types", as of September 2025).

    Attributes:
        size: least and greatest, in GiB.
        iops: least and greatest that can be provisioned; None if none can.
        iops_per_gib: greatest ratio of IOPS to GiB.
        throughput: least and greatest that can be provisioned, in MiB/s; None if none can.
    """

    size: tuple[int, int]
    iops: tuple[int, int] | None = None
    iops_per_gib: int = 0
    throughput: tuple[int, int] | None = None


KINDS: Mapping[str, Kind] = {
    "gp2": Kind((1, 16384)),
    "gp3": Kind((1, 65536), (3000, 80000), 500, (125, 2000)),
    "io1": Kind((4, 16384), (100, 64000), 50),
    "io2": Kind((4, 65536), (100, 256000), 1000),
    "st1": Kind((125, 16384)),
    "sc1": Kind((125, 16384)),
    "standard": Kind((1, 1024)),
}
BASE_IOPS = 3000  # of gp3, at any size
MIB_FOR_AN_IOPS = 0.25


def check_settings(kind: str, size: int | None, iops: int | None, throughput: int | None) -> None:
    """Refuse sizes and speeds that a type of volume does not have, or not together.

    Args:
        kind: e.g. `gp3`.
        size: in GiB; None if a snapshot's.
        iops: that are provisioned; None if not said.
        throughput: in MiB/s; None if not said.

    Raises:
        Refused: as EC2 does
    """
    if kind not in KINDS:
        raise Refused("InvalidParameterValue", f"Unknown volume type: {kind}")
    limits = KINDS[kind]
    if size is not None:
        if size < limits.size[0]:
            raise _refused(f"Volume of {size}GiB is too small for volume type {kind}; minimum is {limits.size[0]}GiB.")
        if size > limits.size[1]:
            raise _refused(f"Volume of {size}GiB is too large for volume type {kind}; maximum is {limits.size[1]}GiB.")
    if iops is not None:
        if limits.iops is None:
            raise Refused("InvalidParameterCombination", f"The parameter iops is not supported for {kind} volumes.")
        if iops < limits.iops[0]:
            raise _refused(f"Volume iops of {iops} is too low; minimum is {limits.iops[0]}.")
        if iops > limits.iops[1]:
            raise _refused(f"Volume iops of {iops} is too high; maximum is {limits.iops[1]}.")
        if size and iops > max(limits.iops_per_gib * size, BASE_IOPS if kind == "gp3" else 0):
            ratio = iops / size
            raise _refused(f"Iops to volume size ratio of {ratio:f} is too high; maximum is {limits.iops_per_gib}")
    elif limits.iops and kind != "gp3":
        raise Refused("MissingParameter", f"The request must contain the parameter iops for {kind} volumes")
    if throughput is not None:
        if limits.throughput is None:
            raise Refused(
                "InvalidParameterCombination", f"The parameter throughput is not supported for {kind} volumes."
            )
        if throughput < limits.throughput[0]:
            raise _refused(f"Volume throughput of {throughput} is too low; minimum is {limits.throughput[0]}.")
        if throughput > limits.throughput[1]:
            raise _refused(f"Volume throughput of {throughput} is too high; maximum is {limits.throughput[1]}.")
        ratio = throughput / (iops or BASE_IOPS)
        if ratio > MIB_FOR_AN_IOPS:
            raise _refused(
                f"Throughput (MiBps) to iops ratio of {ratio:f} is too high; maximum is {MIB_FOR_AN_IOPS:f} MiBps per "
                "iops"
            )


def _refused(message: str) -> Refused:
    return Refused("InvalidParameterValue", message)


@rule("ec2", "CreateVolume")
def volume_that_can_be(attempt: Attempt) -> None:
    """Refuse a volume in an unknown zone, below its snapshot, or of settings that do not go together."""
    zone = attempt.get("AvailabilityZone")
    if zone and zone not in zones(attempt.region):
        raise Refused("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
    size, snapshot = attempt.get("Size"), attempt.get("SnapshotId")
    if snapshot:
        check_snapshot(attempt.backend, snapshot, size)
    check_settings(attempt.get("VolumeType", "gp2"), size, attempt.get("Iops"), attempt.get("Throughput"))
    if attempt.get("KmsKeyId") and attempt.get("Encrypted") is False:
        raise Refused(
            "InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted to be set."
        )


def check_snapshot(backend: Any, snapshot: str, size: int | None) -> None:
    """Refuse a snapshot that there is not, or one larger than the volume."""
    if snapshot not in backend.snapshots:
        raise Refused("InvalidSnapshot.NotFound", f"The snapshot '{snapshot}' does not exist.")
    minimum = backend.snapshots[snapshot].volume.size
    if size is not None and size < minimum:
        raise Refused(
            "InvalidBlockDeviceMapping",
            f"Volume of size {size}GB is smaller than snapshot '{snapshot}', expect size >= {minimum}GB",
        )


@rule("ec2", "AttachVolume")
def attachment_that_can_be(attempt: Attempt) -> None:
    """Refuse a volume of another zone or that an instance has, a device in use, and an instance that is gone."""
    volume = attempt.backend.get_volume(attempt.get("VolumeId"))
    instance = attempt.backend.get_instance(attempt.get("InstanceId"))
    if volume.zone.name != instance.placement.zone:
        raise Refused(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{volume.id}' is not in the same availability zone as instance '{instance.id}'",
        )
    device = str(attempt.get("Device", ""))
    if instance.state not in ATTACHABLE:
        raise Refused("IncorrectState", f"Instance '{instance.id}' is not 'running'.")
    if volume.attachment:
        raise Refused("VolumeInUse", f"{volume.id} is already attached to an instance")
    if not device.startswith(NAME) and not device.startswith("xvd"):
        raise _refused(f"Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name.")
    if device in instance.block_device_mapping:
        raise _refused(f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use")


@rule("ec2", "DetachVolume")
def attached_at_all(attempt: Attempt) -> None:
    """Refuse to detach what is not attached; moto says so of another device only."""
    volume = attempt.backend.volumes.get(attempt.get("VolumeId"))
    if volume and not volume.attachment:
        raise Refused("IncorrectState", f"Volume '{volume.id}' is in the 'available' state.")


@rule("ec2", "ModifyVolume")
def modification_that_can_be(attempt: Attempt) -> None:
    """Refuse a smaller volume, settings that do not go together, and a modification too soon after another."""
    volume = attempt.backend.get_volume(attempt.get("VolumeId"))
    size, kind = attempt.get("Size", volume.size), attempt.get("VolumeType", volume.volume_type)
    if size < volume.size:
        raise _refused("New size cannot be smaller than existing size")
    iops, throughput = attempt.get("Iops"), attempt.get("Throughput")
    if kind == volume.volume_type:
        iops, throughput = iops or volume.iops, throughput or volume.throughput
    check_settings(kind, size, iops, throughput)
    earlier: list[float] = getattr(volume, "modified", [])
    if earlier and attempt.time < earlier[-1] + max(LEAST_OPTIMIZING, OPTIMIZING * volume.size):
        raise Refused(
            "IncorrectModificationState", f"Volume {volume.id} cannot be modified in modification state OPTIMIZING"
        )
    if sum(attempt.time < time + DAY for time in earlier) >= MOST_MODIFICATIONS:
        raise Refused(
            "VolumeModificationRateExceeded",
            "You've reached the maximum modification rate per volume limit. Wait before you modify this volume again.",
        )
    volume.modified = [*earlier, attempt.time]
