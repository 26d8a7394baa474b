"""Patches moto, for the rest of the process, where it lacks or contradicts AWS's behaviour that the emulator needs.

Each function below replaces methods of one of moto's classes; `original` is the replaced method.
"""

from __future__ import annotations

import functools
import json
from importlib import resources
from typing import Any

from cfngen.sandbox.json_types import JsonDict
from cfngen.sandbox.moto_types import MotoModel, MotoResponse
from cfngen.sandbox.services import (
    capacity_reservations,
    distributions,
    flow_logs,
    launch_templates,
    nat_gateways,
    policy_simulation,
    scaling_patches,
    volumes,
    vpc_endpoints,
    web_identity,
)


@functools.cache
def apply() -> None:
    """Apply all patches, once per process."""
    _parse_user_data_of_versions()
    _show_template_version_of_instances()
    _update_launch_template_tags()
    _tag_dhcp_options()
    _allow_io1_and_io2_disks()
    _launch_without_default_vpc()
    _launch_with_groups_of_template()
    volumes.apply()
    _reassociate_elastic_ips()
    _ignore_tls_only_policies()
    scaling_patches.apply()
    nat_gateways.apply()
    vpc_endpoints.apply()
    policy_simulation.apply()
    flow_logs.apply()
    capacity_reservations.apply()
    launch_templates.apply()
    distributions.apply()
    web_identity.add_client_id_operations()
    web_identity.apply()
    _keep_image_settings()
    _show_blackhole_routes()
    _allow_single_subnet()
    _allow_an_hour_of_draining()
    _name_hosted_zones()
    _offer_instance_types_everywhere()


def _offer_instance_types_everywhere() -> None:
    """Offer instance types in the regions for which moto 5.2.5 has none, such as those of GovCloud and China.

    They are those of AWS's price list, as cfn-lint has them. The list is by region; each zone gets all of them.
    """
    from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend
    from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS

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


def _name_hosted_zones() -> None:
    """Give hosted zones ids that begin with Z, such as Z1D633PJN98FT9 (API reference of Route 53, HostedZone).

    moto 5.2.5 makes them of any letters and digits (moto/route53/models.py, `create_route53_zone_id`).
    """
    from moto.route53.models import HostedZoneIdentifier

    original = HostedZoneIdentifier.generate

    def generate(self: MotoModel, existing_ids: Any = None, tags: Any = None) -> str:
        return f"Z{original(self, existing_ids, tags)[1:]}"

    setattr(HostedZoneIdentifier, "generate", generate)  # noqa: B010


def _allow_an_hour_of_draining() -> None:
    """Allow a deregistration delay of 3,600 seconds, the maximum (API reference, TargetGroupAttribute).

    moto 5.2.5 allows at most 3,599 seconds (moto/elbv2/models.py, `modify_target_group_attributes`).
    """
    from moto.elbv2.models import ELBv2Backend

    original = ELBv2Backend.modify_target_group_attributes

    def modify_target_group_attributes(self: MotoModel, target_group_arn: str, attributes: JsonDict) -> None:
        attributes_for_moto = dict(attributes)
        if attributes.get("deregistration_delay.timeout_seconds") == "3600":
            del attributes_for_moto["deregistration_delay.timeout_seconds"]
        original(self, target_group_arn, attributes_for_moto)
        self.target_groups[target_group_arn].attributes.update(attributes)

    setattr(ELBv2Backend, "modify_target_group_attributes", modify_target_group_attributes)  # noqa: B010


def _allow_single_subnet() -> None:
    """Allow SetSubnets to leave a network load balancer with a single subnet.

    moto 5.2.5 requires two Availability Zones for all load balancers (moto/elbv2/models.py, `set_subnets`); Elastic
    Load Balancing does so for application load balancers only (API reference, SetSubnets).
    """
    from moto.elbv2.models import AvailabilityZone, ELBv2Backend

    original = ELBv2Backend.set_subnets

    def set_subnets(self: MotoModel, arn: str, subnets: list[str], subnet_mappings: list[JsonDict]) -> MotoModel:
        subnet_ids = [*subnets, *(subnet_mapping["SubnetId"] for subnet_mapping in subnet_mappings)]
        load_balancer = self.load_balancers.get(arn)
        if load_balancer is None or load_balancer.type != "network" or len(subnet_ids) != 1:
            return original(self, arn, subnets, subnet_mappings)
        subnet = self.ec2_backend.get_subnet(subnet_ids[0])
        load_balancer.subnets = [subnet]
        return [AvailabilityZone(subnet)]

    setattr(ELBv2Backend, "set_subnets", set_subnets)  # noqa: B010


def _ignore_tls_only_policies() -> None:
    """Allow requests to buckets whose policy denies connections without TLS.

    moto 5.2.5 ignores conditions in bucket policies, so the denial would apply to all requests.
    """
    from moto.iam.access_control import IAMPolicyStatement, PermissionResult

    original = IAMPolicyStatement.is_action_permitted

    def is_action_permitted(self: MotoModel, *arguments: Any, **options: Any) -> PermissionResult:
        if self._statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}:
            return PermissionResult.NEUTRAL
        return original(self, *arguments, **options)

    setattr(IAMPolicyStatement, "is_action_permitted", is_action_permitted)  # noqa: B010


def _parse_user_data_of_versions() -> None:
    """Allow groups to launch from launch template versions that have user data.

    moto 5.2.5 parses the user data of CreateLaunchTemplate but not of CreateLaunchTemplateVersion; a group that
    launches from such a version fails with an AssertionError (moto/ec2/models/launch_templates.py, `user_data`).
    """
    from moto.ec2.models.launch_templates import LaunchTemplate
    from moto.ec2.utils import parse_user_data

    original = LaunchTemplate.create_version

    def create_version(self: MotoModel, data: JsonDict, description: str) -> MotoModel:
        if isinstance(data.get("UserData"), str):
            data = {**data, "UserData": parse_user_data(data["UserData"])}
        return original(self, data, description)

    setattr(LaunchTemplate, "create_version", create_version)  # noqa: B010


def _update_launch_template_tags() -> None:
    """Show the latest tags of a launch template, and keep them out of its first version.

    moto 5.2.5 always shows the tags from creation, and copies them to the instances that it launches
    (moto/ec2/models/launch_templates.py and moto/ec2/responses/launch_templates.py, `create_launch_template`).
    """
    from moto.ec2.models.launch_templates import LaunchTemplate

    original = LaunchTemplate.create_version

    def create_version(self: MotoModel, data: JsonDict, description: str) -> MotoModel:
        specifications_for_launches = [
            tag_specification
            for tag_specification in data.get("TagSpecifications", [])
            if tag_specification["ResourceType"] != "launch-template"
        ]
        version_data = {key: value for key, value in data.items() if key != "TagSpecifications"}
        if specifications_for_launches:
            version_data["TagSpecifications"] = specifications_for_launches
        return original(self, version_data, description)

    def ignore_tags(self: MotoModel, tags: object) -> None:
        """Ignore the tags that moto's constructor sets: `get_tags` has the latest ones."""

    setattr(LaunchTemplate, "create_version", create_version)  # noqa: B010
    setattr(LaunchTemplate, "tags", property(lambda self: self.get_tags(), ignore_tags))  # noqa: B010


def _tag_dhcp_options() -> None:
    """Tag DHCP options on creation; moto 5.2.5 ignores these tags."""
    from moto.ec2.responses.dhcp_options import DHCPOptions

    original = DHCPOptions.create_dhcp_options

    def create_dhcp_options(self: MotoResponse) -> MotoResponse:
        response: MotoResponse = original(self)
        tags = self._parse_tag_specification().get("dhcp-options", {})
        response.result["DhcpOptions"].add_tags(tags)
        return response

    setattr(DHCPOptions, "create_dhcp_options", create_dhcp_options)  # noqa: B010


def _allow_io1_and_io2_disks() -> None:
    """Allow instances to be launched with disks of the types io1 and io2.

    moto 5.2.5 drops the IOPS of block devices, and then refuses such a disk because they are missing
    (moto/ec2/models/instances.py, `run_instances` and `add_block_device`). Here the disk is created as gp3 and then
    gets its type, but no IOPS.
    """
    from moto.ec2.models.instances import Instance

    original = Instance.add_block_device

    def add_block_device(self: MotoModel, *arguments: Any, **options: Any) -> MotoModel:
        volume_type = options.get("volume_type")
        if volume_type not in ("io1", "io2"):
            return original(self, *arguments, **options)
        block_device = original(self, *arguments, **{**options, "volume_type": "gp3"})
        device_path = arguments[1] if len(arguments) > 1 else options["device_path"]
        volume = self.ec2_backend.volumes[self.block_device_mapping[device_path].volume_id]
        volume.volume_type = volume_type
        return block_device

    setattr(Instance, "add_block_device", add_block_device)  # noqa: B010


def _reassociate_elastic_ips() -> None:
    """Disassociate the old Elastic IP of a network interface when another one is associated.

    "If you associate an Elastic IP address with an instance that has an existing Elastic IP address, the existing
    address is disassociated" (EC2 API reference, AssociateAddress). moto 5.2.5 keeps both, and disassociating the old
    one also removes the new one (moto/ec2/models/elastic_ip_addresses.py, `associate_address`).
    """
    from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend

    original = ElasticAddressBackend.associate_address

    def associate_address(self: MotoModel, *arguments: Any, **options: Any) -> MotoModel:
        new_address = original(self, *arguments, **options)
        for address in self.addresses:
            if new_address.eni and address is not new_address and address.eni is new_address.eni:
                address.instance = address.eni = address.association_id = None
        return new_address

    setattr(ElasticAddressBackend, "associate_address", associate_address)  # noqa: B010


def _show_template_version_of_instances() -> None:
    """Show the launch template version that an instance of a group was launched from.

    moto 5.2.5 shows the template's default version, which is always the first one (moto/autoscaling/models.py,
    `InstanceState.launch_template`): after a rolling update, all instances would look outdated.
    """
    from moto.autoscaling.models import InstanceState

    original = InstanceState.__init__
    original_property: Any = vars(InstanceState)["launch_template"]

    def __init__(self: MotoModel, *arguments: Any, **options: Any) -> None:  # noqa: N807
        original(self, *arguments, **options)
        self.template, self.version = _launch_source(self.instance)
        if self.version:
            self.instance.add_tags({"aws:ec2launchtemplate:version": str(self.version)})

    def launch_template(self: MotoModel) -> JsonDict | None:
        described_template: JsonDict | None = original_property.fget(self)
        if not described_template:
            return described_template
        identity = {"LaunchTemplateId": self.template.id, "LaunchTemplateName": self.template.name}
        return {**identity, "Version": self.version}

    setattr(InstanceState, "__init__", __init__)  # noqa: B010
    setattr(InstanceState, "launch_template", property(launch_template))  # noqa: B010


def _launch_source(instance: MotoModel) -> tuple[MotoModel, int | None]:
    """Return the launch template and the version of it that an instance of a group is launched from."""
    if hasattr(instance, "launched_from"):  # a mixed instances policy may have several launch templates
        template, version = instance.launched_from
        return template, int(version)
    group = instance.autoscaling_group
    template = group.ec2_launch_template
    return template, template.get_version(group.launch_template_version).number if template else None


def _keep_image_settings() -> None:
    """Keep the architecture and root device of RegisterImage.

    moto 5.2.5 keeps only name and description (moto/ec2/responses/amis.py, `register_image`), and gives every image a
    snapshot of 15 GiB. Here the default is 8 GiB, as for the images of most publishers.
    """
    from moto.ec2.models.amis import Ami
    from moto.ec2.responses.amis import AmisResponse

    original = AmisResponse.register_image
    original_property: Any = vars(Ami)["block_device_mappings"]
    default_gib = 8

    def register_image(self: MotoResponse) -> MotoResponse:
        response: MotoResponse = original(self)
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
        image.ebs_snapshot.volume.size = int(root_disk.get("VolumeSize", default_gib))
        return response

    def block_device_mappings(self: MotoModel) -> list[JsonDict]:
        [root_mapping] = original_property.fget(self)
        root_disk = {**root_mapping["Ebs"], "VolumeSize": self.ebs_snapshot.volume.size}
        return [{**root_mapping, "Ebs": root_disk}]

    setattr(AmisResponse, "register_image", register_image)  # noqa: B010
    setattr(Ami, "block_device_mappings", property(block_device_mappings))  # noqa: B010


def _launch_without_default_vpc() -> None:
    """Allow a group without a default VPC to launch on the network interface of its launch template.

    "AvailabilityZones: Used for launching into the default VPC subnet in each Availability Zone when not using the
    VPCZoneIdentifier property, or for attaching a network interface when an existing network interface ID is specified
    in a launch template" (AWS::AutoScaling::AutoScalingGroup, CloudFormation reference): we assume that
    the second use needs no default VPC. moto 5.2.5 requires one in both cases (moto/ec2/models/instances.py,
    `prep_nics`).
    """
    from moto.ec2.models.instances import InstanceBackend

    original = InstanceBackend.run_instances

    def run_instances(self: MotoModel, *arguments: Any, **options: Any) -> MotoModel:
        if options.get("launch_template") and not options.get("subnet_id") and self.get_default_vpc() is None:
            template_data = self._get_template_from_args(options["launch_template"]).data
            interfaces = template_data.get("NetworkInterfaces", [])
            first_interface_id = interfaces[0].get("NetworkInterfaceId") if interfaces else None
            if first_interface_id in self.enis:
                options["subnet_id"] = self.enis[first_interface_id].subnet.id
        return original(self, *arguments, **options)

    setattr(InstanceBackend, "run_instances", run_instances)  # noqa: B010


def _launch_with_groups_of_template() -> None:
    """Give the new primary interface of a group's instance the security groups that the launch template names for it.

    moto 5.2.5 ignores the network interfaces of launch templates (moto/ec2/models/instances.py, `run_instances`). While
    an interface uses a security group, EC2 does not delete the group ("Delete a security group", VPC User Guide).
    """
    from moto.autoscaling.models import InstanceState

    original = InstanceState.__init__

    def __init__(self: MotoModel, *arguments: Any, **options: Any) -> None:  # noqa: N807
        original(self, *arguments, **options)
        template, version = _launch_source(self.instance)
        data = template.get_version(str(version)).data if template else {}
        interfaces = data.get("NetworkInterfaces", [])
        group_ids = interfaces[0].get("Groups", []) if interfaces else []
        if group_ids and not interfaces[0].get("NetworkInterfaceId"):
            backend = self.instance.ec2_backend
            groups = [backend.get_security_group_from_id(group_id) for group_id in group_ids]
            self.instance.nics[0]._group_set = [each for each in groups if each]  # noqa: SLF001 - no other way

    setattr(InstanceState, "__init__", __init__)  # noqa: B010


def _show_blackhole_routes() -> None:
    """Show a route whose target is gone as a blackhole.

    moto 5.2.5 shows every route as active (moto/ec2/models/route_tables.py, `Route.state`). EC2 API, Route: "blackhole
    indicates that the route's target isn't available (for example, the specified gateway isn't attached to the VPC, or
    the specified NAT instance has been terminated)". A terminated instance is not shown as the target any more.
    """
    from moto.ec2.models.route_tables import Route

    def is_blackhole(route: MotoModel) -> bool:
        instance, interface, gateway = route.instance, route.interface, route.gateway
        if instance:
            return bool(instance.state != "running")
        if interface:
            return interface.id not in interface.ec2_backend.enis
        if gateway and gateway.id.startswith("igw-"):
            return not gateway.vpc or gateway.vpc.id != route.route_table.vpc_id
        return bool(route.nat_gateway and route.nat_gateway.state != "available")

    def instance_id(route: MotoModel) -> str | None:
        is_shown = route.instance and route.instance.state != "terminated"
        return route.instance.id if is_shown else None

    setattr(Route, "state", property(lambda self: "blackhole" if is_blackhole(self) else "active"))  # noqa: B010
    setattr(Route, "instance_id", property(instance_id))  # noqa: B010
