"""References to VPC, subnets and route table, for the stacks that use them.

Each function adds a parameter to the stack and returns the reference to the parameter. If cfngen creates the resource,
the parameter takes an output of the VPC stack. If the resource exists already, the parameter's default is the id in the
cluster file.
"""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, zone_id
from cfngen.cluster.network.existing_parts import ROUTE_TABLE, SUBNET
from cfngen.cluster.network.topology import public_subnets
from cfngen.templates.existing_network import public_subnet_parameter, vpc_parameter
from cfngen.templates.property_value import PropertyValue
from cfngen.templates.references import part_parameter
from cfngen.templates.stack import NETWORK, Stack


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
        parameter_group=NETWORK,
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
        parameter_group=NETWORK,
        description="Route table of the subnets; the cloud controller manager adds a route for each node to it",
        AllowedPattern="^rtb-[0-9a-f]{8,17}$",
        ConstraintDescription="must be the id of a route table, rtb-…",
    )
