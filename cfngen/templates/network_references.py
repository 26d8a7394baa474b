"""References to, and parameters for, parts of the network that exist already or come from another stack.

Each function adds a parameter to the stack and returns the reference to the parameter. If cfngen creates the resource,
the parameter takes an output of the VPC stack. If the resource exists already, the parameter's default is the id in the
cluster file, or it is a reference.

CloudFormation checks the patterns of parameters before it creates any resource. Without a pattern, EC2 would reject a
malformed range only while the stack is being created.
"""

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
from cfngen.cluster.network.topology import public_subnets
from cfngen.templates.references import part_parameter
from cfngen.templates.stack import NETWORK, PropertyValue, Stack


def vpc_id(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Return a reference to the id of the VPC."""
    if cluster.network.vpc.id:
        return vpc_parameter(stack, cluster)
    return stack.parameter_from_other_stack("VpcId", description="VPC of the cluster")


def subnet_id(stack: Stack, cluster: Cluster, zone: str) -> PropertyValue:
    """Return a reference to the id of the cluster's subnet in a zone."""
    subnet = next(candidate for candidate in cluster.network.subnets if candidate.zone == zone)
    name = str(SubnetId(zone_id(zone), "Id"))
    if not subnet.id:
        return stack.parameter_from_other_stack(name, description=f"Subnet in zone {zone_id(zone)}")
    return part_parameter(
        stack,
        name,
        subnet.id,
        SUBNET,
        label=f"Subnet in zone {zone_id(zone)}",
        description=f"Existing subnet in {zone}",
    )


def public_subnet_id(stack: Stack, cluster: Cluster, zone: str) -> PropertyValue:
    """Return a reference to the id of a private cluster's public subnet in a zone."""
    public_subnet = public_subnets(cluster)[zone]
    if public_subnet.id:
        return public_subnet_parameter(stack, zone, public_subnet.id)
    name = str(SubnetId(zone_id(zone), "Id", is_public=True))
    return stack.parameter_from_other_stack(name, description=f"Public subnet in zone {zone_id(zone)}")


def route_table_id(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Return a reference to the id of the route table with the pods' routes."""
    if not any(subnet.id for subnet in cluster.network.subnets):
        return stack.parameter_from_other_stack("RouteTableId", description="Route table with the routes to pods")
    return part_parameter(
        stack,
        "RouteTableId",
        cluster.network.route_table,
        ROUTE_TABLE,
        label="Route table",
        description="Route table of the subnets; the cloud controller manager adds a route for each node to it",
        AllowedPattern="^rtb-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of a route table, rtb-…",
    )


def vpc_parameter(stack: Stack, cluster: Cluster) -> PropertyValue:
    """Add the parameter for an existing VPC and return the reference to it."""
    return part_parameter(
        stack,
        "VpcId",
        cluster.network.vpc.id,
        VPC,
        label="VPC",
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
        description=f"Existing {label[0].lower()}{label[1:]}; `cfngen config --security-group-rules` lists the rules "
        "that it needs",
    )


_NUMBER_TO_255 = "(25[0-5]|2[0-4][0-9]|1[0-9][0-9]|[1-9]?[0-9])"
_ADDRESS = rf"({_NUMBER_TO_255}\.){{3}}{_NUMBER_TO_255}"

IPV4_PATTERN = f"^{_ADDRESS}$"
"""Matches an IPv4 address."""

CIDR_PATTERN = f"^{_ADDRESS}/(3[0-2]|[12]?[0-9])$"
"""Matches an IPv4 range of any size."""

VPC_CIDR_PATTERN = f"^{_ADDRESS}/(1[6-9]|2[0-8])$"
"""Matches an IPv4 range of a VPC or a subnet: /16 to /28 ("VPC CIDR blocks", Amazon VPC User Guide)."""
