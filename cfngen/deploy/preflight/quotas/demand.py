"""The AWS resources that a cluster needs, counted from its templates and parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from cfngen.cluster.naming.network_ids import ZonalId, ZoneId
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, StackTree
from cfngen.deploy.aws.templates import nested_template_names, templates_by_stack
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount, instance_counts
from cfngen.templates.document import Document
from cfngen.templates.evaluation import evaluate_stacks, known_value
from cfngen.templates.expressions import reference

LOAD_BALANCER = "AWS::ElasticLoadBalancingV2::LoadBalancer"
VPC_ENDPOINT = "AWS::EC2::VPCEndpoint"


@dataclass(frozen=True)
class Demand:
    """The AWS resources that a cluster needs.

    Attributes:
        count_by_resource_type: number of resources by CloudFormation type, e.g. `AWS::EC2::EIP`.
        instances: the instances of each Auto Scaling group.
        reservations: the capacity reservations, each with its instances.
        gib_by_volume_type: GiB of EBS volumes by volume type, with every Auto Scaling group at its initial size.
        max_gib_by_volume_type: GiB of EBS volumes by volume type, with every Auto Scaling group at its maximum size.
        public_addresses: number of public addresses of nodes and of a load balancer, without Elastic IPs.
        max_public_addresses: the same with every Auto Scaling group at its maximum size.
        prefix_lists_by_security_group: for each security group, by its logical id, the sources of its ingress rules: a
            mapping from each rule's logical id to the prefix list that is its source, or to "" for any other source.
        max_groups_per_interface: number of security groups of the network interface that has the most.
        max_policies_per_role: number of managed policies of the role that has the most.
        vpc_id: id of the VPC; empty if it has yet to be created.
        nat_gateway_zones: the zones with a NAT gateway, by their part of logical ids
            (`cfngen.cluster.naming.network_ids`); an empty text if the templates do not name the zone.
        gateway_endpoints: number of gateway endpoints, which are free.
        interface_endpoints: number of interface endpoints.
        endpoint_interfaces: number of network interfaces of interface endpoints: one in each zone of each.
    """

    count_by_resource_type: Mapping[str, int] = field(default_factory=dict)
    instances: tuple[InstanceCount, ...] = ()
    reservations: tuple[InstanceCount, ...] = ()
    gib_by_volume_type: Mapping[str, int] = field(default_factory=dict)
    max_gib_by_volume_type: Mapping[str, int] = field(default_factory=dict)
    public_addresses: int = 0
    max_public_addresses: int = 0
    prefix_lists_by_security_group: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    max_groups_per_interface: int = 0
    max_policies_per_role: int = 0
    vpc_id: str = ""
    nat_gateway_zones: Mapping[str, str] = field(default_factory=dict)
    gateway_endpoints: int = 0
    interface_endpoints: int = 0
    endpoint_interfaces: int = 0


class _IngressRule(NamedTuple):
    """An ingress rule of a security group.

    Attributes:
        security_group: logical id of the security group; empty if the rule does not refer to one in its template.
        logical_id: logical id of the rule.
        prefix_list: id of the prefix list that is the source of the rule; empty for any other source.
    """

    security_group: str
    logical_id: str
    prefix_list: str


@dataclass(frozen=True)
class _TemplateWithValues:
    """The evaluated resources of a template, and the known values of its parameters.

    Parameters that take outputs of other stacks have no values here, since outputs are unknown before a deployment.
    """

    resources: Mapping[str, TemplatePart]
    values: Mapping[str, object]

    def properties_of_type(self, resource_type: str) -> Iterator[TemplatePart]:
        """Yield the properties of each resource of this CloudFormation type."""
        for resource in self.resources.values():
            if resource["Type"] == resource_type:
                yield resource.get("Properties", {})

    def text_if_known(self, value: object) -> str:
        """Return a value as text, or an empty text if it is not known."""
        return str(known_value(value) or "")

    def number_or_zero(self, value: object) -> int:
        """Return a value as a number, or 0 if it is not known."""
        text = self.text_if_known(value)
        return int(text) if text.isdigit() else 0

    def launch_template_data(self, auto_scaling_group: TemplatePart) -> TemplatePart:
        """Return the LaunchTemplateData that an Auto Scaling group uses, given the group's properties."""
        mixed = auto_scaling_group.get("MixedInstancesPolicy", {}).get("LaunchTemplate", {})
        specification = auto_scaling_group.get("LaunchTemplate") or mixed.get("LaunchTemplateSpecification", {})
        launch_template = reference(specification.get("LaunchTemplateId"))
        logical_id = launch_template.name if launch_template else ""
        data: TemplatePart = self.resources.get(logical_id, {}).get("Properties", {}).get("LaunchTemplateData", {})
        return data

    def initial_size(self, auto_scaling_group: TemplatePart) -> int:
        """Return the initial number of instances of an Auto Scaling group, given the group's properties."""
        return self.number_or_zero(auto_scaling_group.get("DesiredCapacity", auto_scaling_group.get("MinSize")))

    def ingress_rules(self) -> Iterator[_IngressRule]:
        """Yield each ingress rule of a security group."""
        for logical_id, resource in self.resources.items():
            properties = resource.get("Properties", {})
            if resource["Type"] == "AWS::EC2::SecurityGroupIngress":
                security_group = reference(properties.get("GroupId"))
                yield _IngressRule(
                    security_group=security_group.name if security_group else "",
                    logical_id=logical_id,
                    prefix_list=str(properties.get("SourcePrefixListId", "")),
                )

    def nat_gateway_zones(self) -> dict[str, str]:
        """Return the zones with a NAT gateway, as in `Demand.nat_gateway_zones`."""
        parsed_ids = (
            ZonalId.parse(logical_id)
            for logical_id, resource in self.resources.items()
            if resource["Type"] == "AWS::EC2::NatGateway"
        )
        short_zones = [parsed.zone for parsed in parsed_ids if parsed]
        return {short_zone: self.text_if_known(self.values.get(str(ZoneId(short_zone)))) for short_zone in short_zones}

    def security_groups_of_interfaces(self) -> Iterator[Sequence[object]]:
        """Yield the list of security groups of each network interface, load balancer and launch template."""
        for interface in self.properties_of_type("AWS::EC2::NetworkInterface"):
            yield interface.get("GroupSet", ())
        for load_balancer in self.properties_of_type(LOAD_BALANCER):
            yield load_balancer.get("SecurityGroups", ())
        for launch_template in self.properties_of_type("AWS::EC2::LaunchTemplate"):
            for interface in launch_template.get("LaunchTemplateData", {}).get("NetworkInterfaces", ()):
                yield interface.get("Groups", ())


def count_demand(documents: Sequence[Document], values: Mapping[str, str]) -> Demand:
    """Return the AWS resources that a cluster needs."""
    return _count_demand(templates_by_stack(documents), values)


def _count_demand(templates: Mapping[str, TemplatePart], values: Mapping[str, str]) -> Demand:
    count = _Count()
    for evaluated in evaluate_stacks(templates, values).values():
        template = _TemplateWithValues(evaluated.resources, evaluated.values)
        count.by_resource_type.update(resource["Type"] for resource in template.resources.values())
        count.add_instances(template)
        count.add_volumes(template)
        count.add_network(template)
        count.add_rules_and_policies(template)
    return count.demand(vpc_id=values.get("VpcId", ""))


@dataclass
class _Count:
    """What has been counted so far; see `Demand`."""

    by_resource_type: Counter[str] = field(default_factory=Counter)
    gib: Counter[str] = field(default_factory=Counter)
    max_gib: Counter[str] = field(default_factory=Counter)
    instances: list[InstanceCount] = field(default_factory=list)
    reservations: list[InstanceCount] = field(default_factory=list)
    prefix_lists: dict[str, dict[str, str]] = field(default_factory=dict)
    nat_gateway_zones: dict[str, str] = field(default_factory=dict)
    gateway_endpoints: int = 0
    interface_endpoints: int = 0
    endpoint_interfaces: int = 0
    public_addresses: int = 0
    max_public_addresses: int = 0
    max_groups: int = 0
    max_policies: int = 0

    def add_instances(self, template: _TemplateWithValues) -> None:
        """Count the instances of Auto Scaling groups, with their volumes and addresses, and reserved capacity."""
        for auto_scaling_group in template.properties_of_type(AUTO_SCALING_GROUP):
            data = template.launch_template_data(auto_scaling_group)
            count = template.initial_size(auto_scaling_group)
            max_count = template.number_or_zero(auto_scaling_group.get("MaxSize"))
            self.instances += instance_counts(auto_scaling_group, data, (count, max_count), known_value)
            has_public_address = any(
                network_interface.get("AssociatePublicIpAddress") is True
                for network_interface in data.get("NetworkInterfaces", ())
            )
            if has_public_address:
                self.public_addresses += count
                self.max_public_addresses += max(max_count, count)
            for block_device in data.get("BlockDeviceMappings", ()):
                volume = block_device.get("Ebs", {})
                volume_type = template.text_if_known(volume.get("VolumeType"))
                gib = template.number_or_zero(volume.get("VolumeSize"))
                self.gib[volume_type] += count * gib
                self.max_gib[volume_type] += max(max_count, count) * gib
        for reservation in template.properties_of_type("AWS::EC2::CapacityReservation"):
            reserved_type = template.text_if_known(reservation.get("InstanceType"))
            reserved_count = template.number_or_zero(reservation.get("InstanceCount"))
            self.reservations.append(InstanceCount(reserved_type, reserved_count, is_spot=False))

    def add_volumes(self, template: _TemplateWithValues) -> None:
        """Count volumes of their own, which do not grow with an Auto Scaling group."""
        for volume in template.properties_of_type("AWS::EC2::Volume"):
            volume_type = template.text_if_known(volume.get("VolumeType"))
            gib = template.number_or_zero(volume.get("Size"))
            self.gib[volume_type] += gib
            self.max_gib[volume_type] += gib

    def add_network(self, template: _TemplateWithValues) -> None:
        """Count the addresses of load balancers, NAT gateways and endpoints."""
        for load_balancer in template.properties_of_type(LOAD_BALANCER):
            # A load balancer that faces the internet has one public address in each of its subnets.
            if load_balancer.get("Scheme") == "internet-facing":
                zone_count = len(load_balancer.get("Subnets", ()))
                self.public_addresses += zone_count
                self.max_public_addresses += zone_count
        self.nat_gateway_zones.update(template.nat_gateway_zones())
        for endpoint in template.properties_of_type(VPC_ENDPOINT):
            if endpoint.get("VpcEndpointType") == "Interface":
                self.interface_endpoints += 1
                self.endpoint_interfaces += len(endpoint.get("SubnetIds", ()))
            else:
                self.gateway_endpoints += 1

    def add_rules_and_policies(self, template: _TemplateWithValues) -> None:
        """Count what limits each security group, network interface and role by itself."""
        for rule in template.ingress_rules():
            self.prefix_lists.setdefault(rule.security_group, {})[rule.logical_id] = rule.prefix_list
        for security_groups in template.security_groups_of_interfaces():
            self.max_groups = max(self.max_groups, len(security_groups))
        for role in template.properties_of_type("AWS::IAM::Role"):
            # The managed policies that templates create are attached to the masters' role.
            policy_count = len(role.get("ManagedPolicyArns", ())) + self.by_resource_type["AWS::IAM::ManagedPolicy"]
            self.max_policies = max(self.max_policies, policy_count)

    def demand(self, *, vpc_id: str) -> Demand:
        """Return what was counted."""
        return Demand(
            count_by_resource_type=self.by_resource_type,
            instances=tuple(self.instances),
            reservations=tuple(self.reservations),
            gib_by_volume_type=_without_unknown(self.gib),
            max_gib_by_volume_type=_without_unknown(self.max_gib),
            public_addresses=self.public_addresses,
            max_public_addresses=self.max_public_addresses,
            prefix_lists_by_security_group=self.prefix_lists,
            max_groups_per_interface=self.max_groups,
            max_policies_per_role=self.max_policies,
            vpc_id=vpc_id,
            nat_gateway_zones=self.nat_gateway_zones,
            gateway_endpoints=self.gateway_endpoints,
            interface_endpoints=self.interface_endpoints,
            endpoint_interfaces=self.endpoint_interfaces,
        )


def _without_unknown(gib_by_volume_type: Mapping[str, int]) -> dict[str, int]:
    """Return GiB by volume type without unknown volume types (an empty text) and unknown sizes (0)."""
    return {volume_type: gib for volume_type, gib in gib_by_volume_type.items() if volume_type and gib}


def read_deployed_demand(deployed: StackTree) -> Demand:
    """Return the AWS resources that a deployed cluster needs, from the templates and parameters of its stacks.

    Raises:
        cfngen.deploy.aws.errors.AwsError: the stacks cannot be read.
    """
    root = deployed.root
    with translate_aws_errors():
        root_template = deployed.template(root.id)
        physical_ids = {
            resource.view.logical_id: resource.view.physical_id
            for resource in deployed.resources
            if resource.stack_id == root.id and resource.view.physical_id
        }
        # Nested stacks that were never created have no physical id.
        nested = {
            logical_id: deployed.template(physical_ids[logical_id])
            for logical_id in nested_template_names(root_template)
            if logical_id in physical_ids
        }
    # The root outputs the id of a VPC that it has created.
    vpc_id = root.values.get("VpcId") or root.outputs.get("VpcId", "")
    return replace(_count_demand({"": root_template, **nested}, root.parameters), vpc_id=vpc_id)
