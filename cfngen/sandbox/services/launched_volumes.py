"""Patches moto's Auto Scaling groups: an instance gets the EBS volumes that its launch template describes.

moto 5.2.5 takes the block devices of the template's default version, which is the first one, instead of the group's
version; it tags no volume, drops IOPS and throughput, and leaves a volume of 8 GiB behind that it makes first
(moto/ec2/models/instances.py, `run_instances` and `setup_defaults`).
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoModel
from cfngen.sandbox.services.networks import is_true


@functools.cache
def apply() -> None:
    """Patch moto's Auto Scaling groups, for the rest of the process."""
    from moto.autoscaling.models import InstanceState

    original = InstanceState.__init__

    def __init__(self: MotoModel, *arguments: MotoModel, **options: MotoModel) -> None:  # noqa: N807
        original(self, *arguments, **options)
        group = self.instance.autoscaling_group
        template = group.ec2_launch_template
        data = template.get_version(group.launch_template_version).data if template else {}
        if data.get("BlockDeviceMappings"):
            _replace_volumes(self.instance, data)

    setattr(InstanceState, "__init__", __init__)  # noqa: B010


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
    # "Tag resources on creation": a template's tags for volumes are those of all volumes of an instance (EC2 API
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
