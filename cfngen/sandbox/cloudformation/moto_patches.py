"""The faults of moto that the double cannot live with, put right where they are."""

from __future__ import annotations

import functools
from typing import Any

from cfngen.sandbox.services import scaling_activities


@functools.cache
def repair() -> None:
    """Put them right, for as long as the process lasts."""
    _user_data_of_versions()
    _versions_of_instances()
    _tags_of_launch_templates()
    _tags_of_dhcp_options()
    _provisioned_disks()
    _default_vpc()
    _addresses_of_interfaces()
    _transport()
    scaling_activities.model()
    _images()
    _routes()
    _subnets_of_balancers()
    _longest_draining()


def _longest_draining() -> None:
    """Let targets be drained for an hour, which is the most there is (API reference, TargetGroupAttribute).

    moto 5.2.5 takes 3,599 seconds at most (moto/elbv2/models.py, `modify_target_group_attributes`).
    """
    from moto.elbv2.models import ELBv2Backend

    original = ELBv2Backend.modify_target_group_attributes
    key, most = "deregistration_delay.timeout_seconds", "3600"

    def modify_target_group_attributes(self: Any, target_group_arn: str, attributes: dict[str, Any]) -> None:
        original(
            self, target_group_arn, {name: each for name, each in attributes.items() if (name, each) != (key, most)}
        )
        self.target_groups[target_group_arn].attributes.update(attributes)

    setattr(ELBv2Backend, "modify_target_group_attributes", modify_target_group_attributes)  # noqa: B010


def _subnets_of_balancers() -> None:
    """Let a network load balancer have a single subnet after a change too.

    moto 5.2.5 wants two Availability Zones of any load balancer (moto/elbv2/models.py, `set_subnets`), as Elastic Load
    Balancing does of application load balancers alone (API reference, SetSubnets).
    """
    from moto.elbv2.models import AvailabilityZone, ELBv2Backend

    original = ELBv2Backend.set_subnets

    def set_subnets(self: Any, arn: str, subnets: list[str], subnet_mappings: list[dict[str, Any]]) -> Any:
        chosen = [*subnets, *(subnet_mapping["SubnetId"] for subnet_mapping in subnet_mappings)]
        balancer = self.load_balancers.get(arn)
        if balancer is None or balancer.type != "network" or len(chosen) != 1:
            return original(self, arn, subnets, subnet_mappings)
        balancer.subnets = [self.ec2_backend.get_subnet(chosen[0])]
        return [AvailabilityZone(subnet) for subnet in balancer.subnets]

    setattr(ELBv2Backend, "set_subnets", set_subnets)  # noqa: B010


def _transport() -> None:
    """Let buckets be used whose policy refuses connections without TLS.

    moto 5.2.5 reads no condition of a bucket's policy: the refusal would hold for every request.
    """
    from moto.iam.access_control import IAMPolicyStatement, PermissionResult

    original = IAMPolicyStatement.is_action_permitted

    def is_action_permitted(self: Any, *arguments: Any, **options: Any) -> PermissionResult:
        if self._statement.get("Condition") == {"Bool": {"aws:SecureTransport": "false"}}:
            return PermissionResult.NEUTRAL
        return original(self, *arguments, **options)

    setattr(IAMPolicyStatement, "is_action_permitted", is_action_permitted)  # noqa: B010


def _user_data_of_versions() -> None:
    """Let versions of launch templates that have user data launch instances.

    moto 5.2.5 parses the user data of CreateLaunchTemplate but not of CreateLaunchTemplateVersion; a group that then
    launches from the version fails with an AssertionError (moto/ec2/models/launch_templates.py, `user_data`).
    """
    from moto.ec2.models.launch_templates import LaunchTemplate
    from moto.ec2.utils import parse_user_data

    original = LaunchTemplate.create_version

    def create_version(self: Any, data: dict[str, Any], description: str) -> Any:
        if isinstance(data.get("UserData"), str):
            data = {**data, "UserData": parse_user_data(data["UserData"])}
        return original(self, data, description)

    setattr(LaunchTemplate, "create_version", create_version)  # noqa: B010


def _tags_of_launch_templates() -> None:
    """Let a launch template have the tags that it was given last, and its first version none of them.

    moto 5.2.5 shows those of the creation for good, and copies them into what the template launches
    (moto/ec2/models/launch_templates.py and moto/ec2/responses/launch_templates.py, `create_launch_template`).
    """
    from moto.ec2.models.launch_templates import LaunchTemplate

    original = LaunchTemplate.create_version

    def create_version(self: Any, data: dict[str, Any], description: str) -> Any:
        launched = [
            tag_specification
            for tag_specification in data.get("TagSpecifications", [])
            if tag_specification["ResourceType"] != "launch-template"
        ]
        rest = {key: value for key, value in data.items() if key != "TagSpecifications"}
        return original(self, {**rest, "TagSpecifications": launched} if launched else rest, description)

    setattr(LaunchTemplate, "create_version", create_version)  # noqa: B010
    setattr(LaunchTemplate, "tags", property(lambda self: self.get_tags(), lambda self, tags: None))  # noqa: B010


def _tags_of_dhcp_options() -> None:
    """Let DHCP options have the tags that they are made with, which moto 5.2.5 passes over."""
    from moto.ec2.responses.dhcp_options import DHCPOptions

    original = DHCPOptions.create_dhcp_options

    def create_dhcp_options(self: Any) -> Any:
        answer: Any = original(self)
        tags = self._parse_tag_specification().get("dhcp-options", {})
        answer.result["DhcpOptions"].add_tags(tags)
        return answer

    setattr(DHCPOptions, "create_dhcp_options", create_dhcp_options)  # noqa: B010


def _provisioned_disks() -> None:
    """Let instances be launched with disks of the types io1 and io2.

    moto 5.2.5 drops the IOPS of block devices and refuses such a disk for want of them (moto/ec2/models/instances.py,
    `run_instances` and `add_block_device`). The disk has the type, and none of the IOPS.
    """
    from moto.ec2.models.instances import Instance

    original = Instance.add_block_device

    def add_block_device(self: Any, *arguments: Any, **options: Any) -> Any:
        kind = options.get("volume_type")
        if kind not in ("io1", "io2"):
            return original(self, *arguments, **options)
        made = original(self, *arguments, **{**options, "volume_type": "gp3"})
        path = arguments[1] if len(arguments) > 1 else options["device_path"]
        volume = self.ec2_backend.volumes[self.block_device_mapping[path].volume_id]
        volume.volume_type = kind
        return made

    setattr(Instance, "add_block_device", add_block_device)  # noqa: B010


def _addresses_of_interfaces() -> None:
    """Let an Elastic IP take the place of the one that a network interface has had.

    "If you associate an Elastic IP address with an instance that has an existing Elastic IP address, the existing
    address is disassociated" (EC2 API reference, AssociateAddress). moto 5.2.5 keeps both, and to end the former
    association takes the address of the new one away (moto/ec2/models/elastic_ip_addresses.py, `associate_address`).
    """
    from moto.ec2.models.elastic_ip_addresses import ElasticAddressBackend

    original = ElasticAddressBackend.associate_address

    def associate_address(self: Any, *arguments: Any, **options: Any) -> Any:
        made = original(self, *arguments, **options)
        for other in self.addresses:
            if made.eni and other is not made and other.eni is made.eni:
                other.instance = other.eni = other.association_id = None
        return made

    setattr(ElasticAddressBackend, "associate_address", associate_address)  # noqa: B010


def _versions_of_instances() -> None:
    """Let an instance of a group tell the version of the launch template that it was launched from.

    moto 5.2.5 names the template's default version, which stays the first (moto/autoscaling/models.py,
    `InstanceState.launch_template`): after an update that replaced them, all instances would seem outdated.
    """
    from moto.autoscaling.models import InstanceState

    original = InstanceState.__init__
    described: Any = vars(InstanceState)["launch_template"]

    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        original(self, *arguments, **options)
        group = self.auto_scaling_group
        template = group.ec2_launch_template
        self.version = template.get_version(group.launch_template_version).number if template else None

    def launch_template(self: Any) -> dict[str, Any] | None:
        described_template: dict[str, Any] | None = described.fget(self)
        return described_template and {**described_template, "Version": self.version}

    setattr(InstanceState, "__init__", __init__)  # noqa: B010
    setattr(InstanceState, "launch_template", property(launch_template))  # noqa: B010


def _images() -> None:
    """Let an image have the architecture and the root device that it was registered with.

    moto 5.2.5 takes its name and its description (moto/ec2/responses/amis.py, `register_image`), and gives every image
    a snapshot of 15 GiB. Without a size it gets 8 here, as those of most publishers have.
    """
    from moto.ec2.models.amis import Ami
    from moto.ec2.responses.amis import AmisResponse

    original = AmisResponse.register_image
    described: Any = vars(Ami)["block_device_mappings"]

    def register_image(self: Any) -> Any:
        answer: Any = original(self)
        image = self.ec2_backend.amis[answer.result["ImageId"]]
        image.architecture = self._get_param("Architecture")
        image.root_device_name = self._get_param("RootDeviceName") or image.root_device_name
        mappings = self._get_param("BlockDeviceMappings") or []
        root = [
            mapping["Ebs"]
            for mapping in mappings
            if mapping.get("DeviceName") == image.root_device_name and "Ebs" in mapping
        ]
        image.ebs_snapshot.volume.size = int(root[0].get("VolumeSize", 8)) if root else 8
        return answer

    def block_device_mappings(self: Any) -> list[dict[str, Any]]:
        [mapping] = described.fget(self)
        return [{**mapping, "Ebs": {**mapping["Ebs"], "VolumeSize": self.ebs_snapshot.volume.size}}]

    setattr(AmisResponse, "register_image", register_image)  # noqa: B010
    setattr(Ami, "block_device_mappings", property(block_device_mappings))  # noqa: B010


def _default_vpc() -> None:
    """Let a group launch on the interface that its launch template names where there is no default VPC.

    "AvailabilityZones: Used for launching into the default VPC subnet in each Availability Zone when not using the
    VPCZoneIdentifier property, or for attaching a network interface when an existing network interface ID is specified
    in a launch template" (AWS::AutoScaling::AutoScalingGroup, CloudFormation reference): that the second takes no
    default VPC is assumed. moto 5.2.5 asks for one in either case (moto/ec2/models/instances.py, `prep_nics`).
    """
    from moto.ec2.models.instances import InstanceBackend

    original = InstanceBackend.run_instances

    def run_instances(self: Any, *arguments: Any, **options: Any) -> Any:
        if options.get("launch_template") and not options.get("subnet_id") and self.get_default_vpc() is None:
            data = self._get_template_from_args(options["launch_template"]).data
            named = [
                network_interface.get("NetworkInterfaceId") for network_interface in data.get("NetworkInterfaces", [])
            ]
            if named and named[0] in self.enis:
                options["subnet_id"] = self.enis[named[0]].subnet.id
        return original(self, *arguments, **options)

    setattr(InstanceBackend, "run_instances", run_instances)  # noqa: B010


def _routes() -> None:
    """Let a route whose target is gone be a blackhole.

    moto 5.2.5 calls every route active (moto/ec2/models/route_tables.py, `Route.state`). EC2 API, Route: "blackhole
    indicates that the route's target isn't available (for example, the specified gateway isn't attached to the VPC, or
    the specified NAT instance has been terminated)". The terminated instance is not named any more.
    """
    from moto.ec2.models.route_tables import Route

    def lost(route: Any) -> bool:
        instance, interface, gateway = route.instance, route.interface, route.gateway
        if instance:
            return bool(instance.state != "running")
        if interface:
            return interface.id not in interface.ec2_backend.enis
        if gateway and gateway.id.startswith("igw-"):
            return not gateway.vpc or gateway.vpc.id != route.route_table.vpc_id
        return bool(route.nat_gateway and route.nat_gateway.state != "available")

    def instance_id(route: Any) -> str | None:
        living = route.instance and route.instance.state != "terminated"
        return route.instance.id if living else None

    setattr(Route, "state", property(lambda self: "blackhole" if lost(self) else "active"))  # noqa: B010
    setattr(Route, "instance_id", property(instance_id))  # noqa: B010
