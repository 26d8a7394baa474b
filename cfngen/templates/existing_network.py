"""The parts of a network that exist already: parameters with ids of the cluster file as defaults, or references."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, ZoneId, zone_id
from cfngen.cluster.network.existing_parts import (
    INTERNET_GATEWAY,
    NAT_GATEWAY,
    ROUTE_TABLE,
    SECURITY_GROUP,
    SUBNET,
    VPC,
    GroupRole,
    group_parameter,
)
from cfngen.templates.property_value import PropertyValue
from cfngen.templates.references import part_parameter
from cfngen.templates.stack import NETWORK, Stack


def vpc_parameter(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Add the parameter for an existing VPC and return the reference to it."""
    return part_parameter(
        stack,
        "VpcId",
        cluster.network.vpc.id,
        VPC,
        label="VPC",
        parameter_group=NETWORK,
        description="Existing VPC for the cluster",
    )


def zone_parameter(stack: Stack, zone: str) -> PropertyValue:
    """Add the parameter for an Availability Zone and return the reference to it."""
    short_zone = zone_id(zone)
    return stack.parameter(
        str(ZoneId(short_zone)),
        type="AWS::EC2::AvailabilityZone::Name",
        label=f"Availability Zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Availability Zone of the subnet and other resources with {short_zone} in their names",
        default=zone,
    )


def internet_gateway_parameter(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Add the parameter for the internet gateway of an existing VPC and return the reference to it."""
    return part_parameter(
        stack,
        "InternetGatewayId",
        cluster.network.internet_gateway,
        INTERNET_GATEWAY,
        label="Internet gateway",
        parameter_group=NETWORK,
        description="Internet gateway that is attached to the VPC",
        AllowedPattern="^igw-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of an internet gateway, igw-…",
    )


def route_table_parameter(stack: Stack, zone: str, route_table_id: str) -> PropertyValue:
    """Add the parameter for the existing route table of a created subnet and return the reference to it."""
    short_zone = zone_id(zone)
    return part_parameter(
        stack,
        str(ZonalId("RouteTable", short_zone, is_parameter=True)),
        route_table_id,
        ROUTE_TABLE,
        label=f"Route table of subnet {short_zone}",
        parameter_group=NETWORK,
        description=f"Existing route table for the subnet in zone {short_zone}",
        AllowedPattern="^rtb-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of a route table, rtb-…",
    )


def nat_gateway_parameter(stack: Stack, zone: str, nat_gateway_id: str) -> PropertyValue:
    """Add the parameter for the existing NAT gateway in a zone and return the reference to it."""
    short_zone = zone_id(zone)
    return part_parameter(
        stack,
        str(ZonalId("NatGateway", short_zone, is_parameter=True)),
        nat_gateway_id,
        NAT_GATEWAY,
        label=f"NAT gateway in zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Existing NAT gateway in zone {short_zone}",
        AllowedPattern="^nat-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of a NAT gateway, nat-…",
    )


def public_subnet_parameter(stack: Stack, zone: str, existing_id: str) -> PropertyValue:
    """Add the parameter for an existing public subnet and return the reference to it."""
    short_zone = zone_id(zone)
    return part_parameter(
        stack,
        str(SubnetId(short_zone, "Id", is_public=True)),
        existing_id,
        SUBNET,
        label=f"Public subnet in zone {short_zone}",
        parameter_group=NETWORK,
        description=f"Existing public subnet in {zone}, for the NAT gateway and load balancers",
    )


def security_group_parameter(stack: Stack, role: GroupRole, group_id: str, label: str) -> PropertyValue:
    """Add the parameter for the existing security group of a role and return the reference to it."""
    return part_parameter(
        stack,
        group_parameter(role),
        group_id,
        SECURITY_GROUP,
        label=label,
        parameter_group=NETWORK,
        description=f"Existing {label[0].lower()}{label[1:]}; `cfngen config --security-group-rules` lists the rules "
        "that it needs",
    )
