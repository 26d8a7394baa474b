"""EBS volumes: size, IOPS and throughput, attachment, modification, and those that a launch template describes.

moto 5.2.5 gives an instance of a group the block devices of the template's default version, which is the first one,
instead of the group's version; it tags no volume, drops IOPS and throughput, and leaves a volume of 8 GiB behind that
it makes first (moto/ec2/models/instances.py, `run_instances` and `setup_defaults`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from moto.autoscaling.models import InstanceState

from cfngen.sandbox.moto_patches.registry import patches
from cfngen.sandbox.services.networks import is_true, zones
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule
from cfngen.sandbox.untyped import JsonObject, MotoModel, Original

DAY_SECONDS = 24 * 3600.0
MAX_MODIFICATIONS_PER_DAY = 4  # API reference: ModifyVolume
# How long a modified volume is `optimizing`, during which it cannot be modified again: "a fully used 1-TiB volume can
# take about 6 hours" (EBS user guide, "Monitor the progress of EBS volume modifications"); at least a minute.
OPTIMIZING_SECONDS_PER_GIB = 6 * 3600.0 / 1024
MIN_OPTIMIZING_SECONDS = 60.0
ATTACHABLE_STATES = ("pending", "running", "stopping", "stopped")
DEVICE_PREFIX = "/dev/"
GP3_BASE_IOPS = 3000  # IOPS that a gp3 volume of any size has without provisioned ones
MAX_MIB_PER_IOPS = 0.25  # maximum ratio of throughput in MiB/s to IOPS


@dataclass(frozen=True)
class VolumeLimits:
    """The limits of volumes of one type (EBS user guide, "Amazon EBS volume types", as of September 2025).

    Attributes:
        size_gib: minimum and maximum size.
        iops: minimum and maximum provisioned IOPS; None if IOPS cannot be provisioned.
        iops_per_gib: maximum ratio of IOPS to size.
        throughput_mib: minimum and maximum provisioned throughput in MiB/s; None if it cannot be provisioned.
    """

    size_gib: tuple[int, int]
    iops: tuple[int, int] | None = None
    iops_per_gib: int = 0
    throughput_mib: tuple[int, int] | None = None


VOLUME_TYPES: Mapping[str, VolumeLimits] = {
    "gp2": VolumeLimits(size_gib=(1, 16384)),
    "gp3": VolumeLimits(size_gib=(1, 65536), iops=(3000, 80000), iops_per_gib=500, throughput_mib=(125, 2000)),
    "io1": VolumeLimits(size_gib=(4, 16384), iops=(100, 64000), iops_per_gib=50),
    "io2": VolumeLimits(size_gib=(4, 65536), iops=(100, 256000), iops_per_gib=1000),
}


def check_volume_settings(volume_type: str, *, size: int | None, iops: int | None, throughput: int | None) -> None:
    """Refuse size in GiB, IOPS and throughput in MiB/s outside of a volume type's limits, or in an invalid ratio.

    Args:
        size: None for the snapshot's size.
    """
    limits = VOLUME_TYPES[volume_type]
    if size is not None:
        min_size, max_size = limits.size_gib
        if size < min_size:
            raise invalid_value(
                f"Volume of {size}GiB is too small for volume type {volume_type}; minimum is {min_size}GiB."
            )
        if size > max_size:
            raise invalid_value(
                f"Volume of {size}GiB is too large for volume type {volume_type}; maximum is {max_size}GiB."
            )
    if iops is not None:
        _check_iops(volume_type, limits, iops, size)
    elif limits.iops and volume_type != "gp3":
        raise Refused("MissingParameter", f"The request must contain the parameter iops for {volume_type} volumes")
    if throughput is not None:
        _check_throughput(volume_type, limits, throughput, iops)


def _check_iops(volume_type: str, limits: VolumeLimits, iops: int, size: int | None) -> None:
    if limits.iops is None:
        raise Refused("InvalidParameterCombination", f"The parameter iops is not supported for {volume_type} volumes.")
    min_iops, max_iops = limits.iops
    if iops < min_iops:
        raise invalid_value(f"Volume iops of {iops} is too low; minimum is {min_iops}.")
    if iops > max_iops:
        raise invalid_value(f"Volume iops of {iops} is too high; maximum is {max_iops}.")
    base_iops = GP3_BASE_IOPS if volume_type == "gp3" else 0
    if size and iops > max(limits.iops_per_gib * size, base_iops):
        raise invalid_value(
            f"Iops to volume size ratio of {iops / size:f} is too high; maximum is {limits.iops_per_gib}"
        )


def _check_throughput(volume_type: str, limits: VolumeLimits, throughput: int, iops: int | None) -> None:
    if limits.throughput_mib is None:
        raise Refused(
            "InvalidParameterCombination", f"The parameter throughput is not supported for {volume_type} volumes."
        )
    min_throughput, max_throughput = limits.throughput_mib
    if throughput < min_throughput:
        raise invalid_value(f"Volume throughput of {throughput} is too low; minimum is {min_throughput}.")
    if throughput > max_throughput:
        raise invalid_value(f"Volume throughput of {throughput} is too high; maximum is {max_throughput}.")
    mib_per_iops = throughput / (iops or GP3_BASE_IOPS)
    if mib_per_iops > MAX_MIB_PER_IOPS:
        raise invalid_value(
            f"Throughput (MiBps) to iops ratio of {mib_per_iops:f} is too high; maximum is {MAX_MIB_PER_IOPS:f} MiBps "
            "per iops"
        )


@rule("ec2", "CreateVolume")
def check_valid_volume(call: PendingCall) -> None:
    """Refuse a volume in an unknown zone, or with invalid settings."""
    zone = call.get("AvailabilityZone")
    if zone and zone not in zones(call.region):
        raise Refused("InvalidZone.NotFound", f"The zone '{zone}' does not exist.")
    check_volume_settings(
        call.get("VolumeType", "gp2"), size=call.get("Size"), iops=call.get("Iops"), throughput=call.get("Throughput")
    )


def check_root_volume(image: MotoModel, size: int | None) -> None:
    """Refuse a root volume smaller than the snapshot of the image; None is the snapshot's size, in GiB."""
    snapshot_size = image.ebs_snapshot.volume.size
    if size is not None and size < snapshot_size:
        raise Refused(
            "InvalidBlockDeviceMapping",
            f"Volume of size {size}GB is smaller than snapshot '{image.ebs_snapshot.id}', expect size >= "
            f"{snapshot_size}GB",
        )


@rule("ec2", "AttachVolume")
def check_valid_attachment(call: PendingCall) -> None:
    """Refuse a volume in another zone or in use, a device name in use, and a terminated instance."""
    volume = call.backend.get_volume(call.get("VolumeId"))
    instance = call.backend.get_instance(call.get("InstanceId"))
    if volume.zone.name != instance.placement.zone:
        raise Refused(
            "InvalidVolume.ZoneMismatch",
            f"The volume '{volume.id}' is not in the same availability zone as instance '{instance.id}'",
        )
    device = str(call.get("Device", ""))
    if instance.state not in ATTACHABLE_STATES:
        raise Refused("IncorrectState", f"Instance '{instance.id}' is not 'running'.")
    if volume.attachment:
        raise Refused("VolumeInUse", f"{volume.id} is already attached to an instance")
    if not device.startswith(DEVICE_PREFIX) and not device.startswith("xvd"):
        raise invalid_value(
            f"Value ({device}) for parameter device is invalid. {device} is not a valid EBS device name."
        )
    if device in instance.block_device_mapping:
        raise invalid_value(f"Invalid value '{device}' for unixDevice. Attachment point {device} is already in use")


@rule("ec2", "DetachVolume")
def check_attached_volume(call: PendingCall) -> None:
    """Refuse to detach a volume that is not attached; moto refuses a wrong device only."""
    volume = call.backend.volumes.get(call.get("VolumeId"))
    if volume and not volume.attachment:
        raise Refused("IncorrectState", f"Volume '{volume.id}' is in the 'available' state.")


@rule("ec2", "ModifyVolume")
def check_valid_modification(call: PendingCall) -> None:
    """Refuse a smaller size, invalid settings, and a modification too soon after the last one."""
    volume = call.backend.get_volume(call.get("VolumeId"))
    new_size, new_type = call.get("Size", volume.size), call.get("VolumeType", volume.volume_type)
    if new_size < volume.size:
        raise invalid_value("New size cannot be smaller than existing size")
    new_iops, new_throughput = call.get("Iops"), call.get("Throughput")
    if new_type == volume.volume_type:  # with another type, the volume gets that type's defaults
        new_iops, new_throughput = new_iops or volume.iops, new_throughput or volume.throughput
    check_volume_settings(new_type, size=new_size, iops=new_iops, throughput=new_throughput)
    modified_at: list[float] = getattr(volume, "modified", [])  # set below: the times of all modifications
    optimizing_seconds = max(MIN_OPTIMIZING_SECONDS, OPTIMIZING_SECONDS_PER_GIB * volume.size)
    if modified_at and call.time < modified_at[-1] + optimizing_seconds:
        raise Refused(
            "IncorrectModificationState", f"Volume {volume.id} cannot be modified in modification state OPTIMIZING"
        )
    modifications_today = sum(call.time < time + DAY_SECONDS for time in modified_at)
    if modifications_today >= MAX_MODIFICATIONS_PER_DAY:
        raise Refused(
            "VolumeModificationRateExceeded",
            "You've reached the maximum modification rate per volume limit. Wait before you modify this volume again.",
        )
    volume.modified = [*modified_at, call.time]


@patches(InstanceState, "__init__")
def _launch_with_volumes_of_template(
    original: Original, self: MotoModel, *arguments: object, **options: object
) -> None:
    original(self, *arguments, **options)
    group = self.instance.autoscaling_group
    template = group.ec2_launch_template
    data = template.get_version(group.launch_template_version).data if template else {}
    if data.get("BlockDeviceMappings"):
        _replace_volumes(self.instance, data)


def _replace_volumes(instance: MotoModel, data: JsonObject) -> None:
    """Give a new instance the volumes of its launch template in place of moto's."""
    backend = instance.ec2_backend
    attached = [volume for volume in backend.volumes.values() if _is_attached_to(volume, instance)]
    # Not by detaching them: of two at the root device, moto knows only the second.
    instance.block_device_mapping.clear()
    for volume in attached:
        volume.attachment = None
        backend.delete_volume(volume.id)
    mappings: Sequence[JsonObject] = data["BlockDeviceMappings"]
    image = backend.amis.get(instance.image_id)
    if image and image.root_device_name not in [mapping["DeviceName"] for mapping in mappings]:
        instance.add_block_device(
            size=image.ebs_snapshot.volume.size,
            device_path=image.root_device_name,
            snapshot_id=None,
            encrypted=False,
            delete_on_termination=True,
            kms_key_id=None,
            volume_type="gp2",
        )
    for mapping in mappings:
        if mapping.get("Ebs"):
            _add_volume(instance, mapping["DeviceName"], mapping["Ebs"])
    # "Tag resources on creation": a template's tags for volumes go to all volumes of an instance (EC2 API
    # reference, LaunchTemplateTagSpecificationRequest).
    for specification in data.get("TagSpecifications", ()):
        if specification.get("ResourceType") == "volume":
            tags = {tag["Key"]: tag["Value"] for tag in specification.get("Tags", ())}
            for device in instance.block_device_mapping.values():
                backend.volumes[device.volume_id].add_tags(tags)


def _is_attached_to(volume: MotoModel, instance: MotoModel) -> bool:
    return bool(volume.attachment and volume.attachment.instance is instance)


def _add_volume(instance: MotoModel, device: str, ebs: JsonObject) -> None:
    instance.add_block_device(
        size=int(ebs["VolumeSize"]) if ebs.get("VolumeSize") else None,
        device_path=device,
        snapshot_id=None,
        encrypted=is_true(ebs.get("Encrypted")),
        # "Preserve data when an instance is terminated", EC2 User Guide: volumes at launch are deleted by default.
        delete_on_termination=is_true(ebs.get("DeleteOnTermination", True)),
        kms_key_id=ebs.get("KmsKeyId"),
        volume_type=ebs.get("VolumeType"),
    )
    volume = instance.ec2_backend.volumes[instance.block_device_mapping[device].volume_id]
    if ebs.get("Iops"):
        volume.iops = int(ebs["Iops"])
    if ebs.get("Throughput"):
        volume.throughput = int(ebs["Throughput"])
