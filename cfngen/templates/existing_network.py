"""Parameters for the parts of a network that exist already: their defaults are the ids in the cluster file."""

from __future__ import annotations

from cfngen.cluster.existing_security_groups import GroupRole, group_parameter
from cfngen.cluster.model import Cluster
from cfngen.cluster.subnet_ids import SubnetId, ZonalId, ZoneId, zone_id
from cfngen.templates.property_value import PropertyValue
from cfngen.templates.stack import NETWORK, Stack


def vpc_parameter(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Add the parameter for an existing VPC and return the reference to it."""
    return stack.parameter(
        "VpcId",
        type="AWS::EC2::VPC::Id",
        label="VPC",
        parameter_group=NETWORK,
        description="Existing VPC to run the cluster in",
        default=cluster.network.vpc.id,
    )


def zone_parameter(stack: Stack, zone: str) -> PropertyValue:
    """Add the parameter for an Availability Zone and return the reference to it."""
    short_zone = zone_id(zone)
    return stack.parameter(
        str(ZoneId(short_zone)),
        type="AWS::EC2::AvailabilityZone::Name",
        label=f"Availability Zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Availability Zone of what is named {short_zone} in this cluster",
        default=zone,
    )


def internet_gateway_parameter(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Add the parameter for the internet gateway of an existing VPC and return the reference to it."""
    return stack.parameter(
        "InternetGatewayId",
        label="Internet gateway",
        parameter_group=NETWORK,
        description="Internet gateway that is attached to the VPC",
        default=cluster.network.internet_gateway,
        AllowedPattern="^igw-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of an internet gateway, igw-…",
    )


def route_table_parameter(stack: Stack, zone: str, route_table_id: str) -> PropertyValue:
    """Add the parameter for the existing route table of a created subnet and return the reference to it."""
    short_zone = zone_id(zone)
    return stack.parameter(
        str(ZonalId("RouteTable", short_zone, is_parameter=True)),
        label=f"Route table of subnet {short_zone}",
        parameter_group=NETWORK,
        description=f"Existing route table for the subnet in zone {short_zone}",
        default=route_table_id,
        AllowedPattern="^rtb-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of a route table, rtb-…",
    )


def nat_gateway_parameter(stack: Stack, zone: str, nat_gateway_id: str) -> PropertyValue:
    """Add the parameter for the existing NAT gateway in a zone and return the reference to it."""
    short_zone = zone_id(zone)
    return stack.parameter(
        str(ZonalId("NatGateway", short_zone, is_parameter=True)),
        label=f"NAT gateway in zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Existing NAT gateway in zone {short_zone}",
        default=nat_gateway_id,
        AllowedPattern="^nat-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of a NAT gateway, nat-…",
    )


def public_subnet_parameter(stack: Stack, zone: str, existing_id: str) -> PropertyValue:
    """Add the parameter for an existing public subnet and return the reference to it."""
    short_zone = zone_id(zone)
    return stack.parameter(
        str(SubnetId(short_zone, "Id", is_public=True)),
        type="AWS::EC2::Subnet::Id",
        label=f"Public subnet in zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Existing public subnet in {zone}, for the NAT gateway and load balancers",
        default=existing_id,
    )


def security_group_parameter(stack: Stack, role: GroupRole, group_id: str, label: str) -> PropertyValue:
    """Add the parameter for the existing security group of a role and return the reference to it."""
    return stack.parameter(
        group_parameter(role),
        type="AWS::EC2::SecurityGroup::Id",
        label=label,
        parameter_group=NETWORK,
        description=f"{label}: an existing one, with the rules that `cfngen config --security-group-rules` lists",
        default=group_id,
    )
