"""Patches of moto's instances, and of what they are launched from: launch templates, images, disks and offerings."""

from __future__ import annotations

import functools
import json
from importlib import resources

from moto.autoscaling.models import InstanceState
from moto.core.responses import ActionResult
from moto.ec2.models.amis import Ami
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS
from moto.ec2.models.instances import Instance, InstanceBackend
from moto.ec2.models.launch_templates import LaunchTemplate
from moto.ec2.responses.amis import AmisResponse
from moto.ec2.responses.launch_templates import LaunchTemplates
from moto.ec2.utils import parse_user_data

from cfngen.sandbox.moto_patches.registry import patches, patches_property, sets
from cfngen.sandbox.untyped import JsonDict, MotoModel, MotoResponse, Original

DEFAULT_ROOT_DISK_GIB = 8  # as for the images of most publishers


@functools.cache
def offer_instance_types_everywhere() -> None:
    """Offer instance types in the regions for which moto 5.2.5 has none, such as those of GovCloud and China.

    They are those of AWS's price list, as cfn-lint has them. The list is by region; each zone gets all of them.
    """
    file = resources.files("cfnlint") / "data/schemas/extensions/aws_ec2_instance/instancetype_enum.json"
    types_by_region = json.loads(file.read_text("utf-8"))
    for region in RegionsAndZonesBackend.zones.keys() & types_by_region.keys():
        zones = RegionsAndZonesBackend.zones[region]
        locations_by_type = {
            "region": [region],
            "availability-zone": [zone.name for zone in zones],
            "availability-zone-id": [zone.zone_id for zone in zones],
        }
        for location_type, locations in locations_by_type.items():
            if region not in INSTANCE_TYPE_OFFERINGS[location_type]:
                INSTANCE_TYPE_OFFERINGS[location_type][region] = [
                    {"InstanceType": instance_type, "LocationType": location_type, "Location": location}
                    for location in locations
                    for instance_type in types_by_region[region]["enum"]
                ]


@patches(LaunchTemplate, "create_version")
def _parse_user_data_of_version(original: Original, self: MotoModel, data: JsonDict, description: str) -> MotoModel:
    """Allow groups to launch from launch template versions that have user data.

    moto 5.2.5 parses the user data of CreateLaunchTemplate but not of CreateLaunchTemplateVersion; a group that
    launches from such a version fails with an AssertionError (moto/ec2/models/launch_templates.py, `user_data`).
    """
    if isinstance(data.get("UserData"), str):
        data = {**data, "UserData": parse_user_data(data["UserData"])}
    return original(self, data, description)


@patches(LaunchTemplate, "create_version")
def _keep_own_tags_out_of_version(original: Original, self: MotoModel, data: JsonDict, description: str) -> MotoModel:
    """Keep the tags of a launch template itself out of its first version.

    moto 5.2.5 copies them to the instances that it launches (moto/ec2/responses/launch_templates.py,
    `create_launch_template`).
    """
    specifications_for_launches = [
        tag_specification
        for tag_specification in data.get("TagSpecifications", [])
        if tag_specification["ResourceType"] != "launch-template"
    ]
    version_data = {key: value for key, value in data.items() if key != "TagSpecifications"}
    if specifications_for_launches:
        version_data["TagSpecifications"] = specifications_for_launches
    return original(self, version_data, description)


# The latest tags of a launch template: moto 5.2.5 always shows those from its creation, which its constructor sets
# (moto/ec2/models/launch_templates.py).
sets(LaunchTemplate, "tags", property(lambda self: self.get_tags(), lambda self, tags: None))


def _delete_newest_version(self: MotoResponse) -> ActionResult:
    """DeleteLaunchTemplateVersions, which moto 5.2.5 lacks; of the newest version only: its lists have no gaps."""
    template = self.ec2_backend.get_launch_template(self._get_param("LaunchTemplateId"))
    newest = template.latest_version_number
    if self._get_param("Versions") != [str(newest)] or newest == template.default_version_number:
        raise NotImplementedError("deleting other versions of a launch template than the newest")
    template.versions.pop()
    deleted = {"LaunchTemplateId": template.id, "LaunchTemplateName": template.name, "VersionNumber": newest}
    return ActionResult({"SuccessfullyDeletedLaunchTemplateVersions": [deleted]})


sets(LaunchTemplates, "delete_launch_template_versions", _delete_newest_version)


@patches(Instance, "add_block_device")
def _allow_io1_and_io2_disks(original: Original, self: MotoModel, *arguments: object, **options: object) -> MotoModel:
    """Allow instances to be launched with disks of the types io1 and io2.

    moto 5.2.5 drops the IOPS of block devices, and then refuses such a disk because they are missing
    (moto/ec2/models/instances.py, `run_instances` and `add_block_device`). Here the disk is created as gp3 and then
    gets its type, but no IOPS.
    """
    volume_type = options.get("volume_type")
    if volume_type not in ("io1", "io2"):
        return original(self, *arguments, **options)
    block_device = original(self, *arguments, **{**options, "volume_type": "gp3"})
    device_path = arguments[1] if len(arguments) > 1 else options["device_path"]
    volume = self.ec2_backend.volumes[self.block_device_mapping[device_path].volume_id]
    volume.volume_type = volume_type
    return block_device


@patches(InstanceState, "__init__")
def _keep_template_version(original: Original, self: MotoModel, *arguments: object, **options: object) -> None:
    """Keep the launch template version that an instance of a group was launched from.

    moto 5.2.5 shows the template's default version, which is always the first one (moto/autoscaling/models.py,
    `InstanceState.launch_template`): after a rolling update, all instances would look outdated.
    """
    original(self, *arguments, **options)
    self.template, self.version = _launch_source(self.instance)
    if self.version:
        self.instance.add_tags({"aws:ec2launchtemplate:version": str(self.version)})


@patches_property(InstanceState, "launch_template")
def _show_template_version(original: Original, self: MotoModel) -> JsonDict | None:
    if not original(self):
        return None
    return {"LaunchTemplateId": self.template.id, "LaunchTemplateName": self.template.name, "Version": self.version}


def _launch_source(instance: MotoModel) -> tuple[MotoModel, int | None]:
    """The launch template and the version of it that an instance of a group is launched from."""
    if hasattr(instance, "launched_from"):  # a mixed instances policy may have several launch templates
        template, version = instance.launched_from
        return template, int(version)
    group = instance.autoscaling_group
    template = group.ec2_launch_template
    return template, template.get_version(group.launch_template_version).number if template else None


@patches(InstanceState, "__init__")
def _launch_with_groups_of_template(original: Original, self: MotoModel, *arguments: object, **options: object) -> None:
    """Give the new primary interface of a group's instance the security groups that the launch template names for it.

    moto 5.2.5 ignores the network interfaces of launch templates (moto/ec2/models/instances.py, `run_instances`). While
    an interface uses a security group, EC2 does not delete the group ("Delete a security group", VPC User Guide).
    """
    original(self, *arguments, **options)
    template, version = _launch_source(self.instance)
    data = template.get_version(str(version)).data if template else {}
    interfaces = data.get("NetworkInterfaces", [])
    group_ids = interfaces[0].get("Groups", []) if interfaces else []
    if group_ids and not interfaces[0].get("NetworkInterfaceId"):
        backend = self.instance.ec2_backend
        groups = [backend.get_security_group_from_id(group_id) for group_id in group_ids]
        self.instance.nics[0]._group_set = [each for each in groups if each]  # noqa: SLF001 - no other way


@patches(InstanceState, "__init__")
def _show_profile_of_template(original: Original, self: MotoModel, *arguments: object, **options: object) -> None:
    """Show in DescribeInstances the instance profile of a group's instance, if its launch template names one by ARN.

    moto 5.2.5 shows none (moto/ec2/models/instances.py, `iam_instance_profile`).
    """
    original(self, *arguments, **options)
    template, version = _launch_source(self.instance)
    profile = template.get_version(str(version)).data.get("IamInstanceProfile") if template else None
    self.instance.iam_instance_profile = profile or None


@patches(InstanceBackend, "run_instances")
def _launch_without_default_vpc(
    original: Original, self: MotoModel, *arguments: object, **options: object
) -> MotoModel:
    """Allow a group without a default VPC to launch on the network interface of its launch template.

    "AvailabilityZones: Used for launching into the default VPC subnet in each Availability Zone when not using the
    VPCZoneIdentifier property, or for attaching a network interface when an existing network interface ID is specified
    in a launch template" (AWS::AutoScaling::AutoScalingGroup, CloudFormation reference): we assume that
    the second use needs no default VPC. moto 5.2.5 requires one in both cases (moto/ec2/models/instances.py,
    `prep_nics`).
    """
    if options.get("launch_template") and not options.get("subnet_id") and self.get_default_vpc() is None:
        template_data = self._get_template_from_args(options["launch_template"]).data
        interfaces = template_data.get("NetworkInterfaces", [])
        first_interface_id = interfaces[0].get("NetworkInterfaceId") if interfaces else None
        if first_interface_id in self.enis:
            options["subnet_id"] = self.enis[first_interface_id].subnet.id
    return original(self, *arguments, **options)


@patches(AmisResponse, "register_image")
def _keep_image_settings(original: Original, self: MotoResponse) -> MotoResponse:
    """Keep the architecture and root device of RegisterImage.

    moto 5.2.5 keeps only name and description (moto/ec2/responses/amis.py, `register_image`), and gives every image a
    snapshot of 15 GiB.
    """
    response = original(self)
    image = self.ec2_backend.amis[response.result["ImageId"]]
    image.architecture = self._get_param("Architecture")
    image.root_device_name = self._get_param("RootDeviceName") or image.root_device_name
    mappings = self._get_param("BlockDeviceMappings") or []
    root_disks = [
        mapping["Ebs"]
        for mapping in mappings
        if mapping.get("DeviceName") == image.root_device_name and "Ebs" in mapping
    ]
    root_disk = root_disks[0] if root_disks else {}
    image.ebs_snapshot.volume.size = int(root_disk.get("VolumeSize", DEFAULT_ROOT_DISK_GIB))
    return response


@patches_property(Ami, "block_device_mappings")
def _show_size_of_root_disk(original: Original, self: MotoModel) -> list[JsonDict]:
    [root_mapping] = original(self)
    return [{**root_mapping, "Ebs": {**root_mapping["Ebs"], "VolumeSize": self.ebs_snapshot.volume.size}}]
