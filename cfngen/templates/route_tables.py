"""Route tables of private subnets, with the way out through NAT gateways and the endpoint for S3, and further routes.

The further routes are the cluster file's, to networks such as an office network behind a transit gateway.

With VPC routes the private subnets share one table, because the cloud controller manager writes the pods' routes into
one. Otherwise each zone has a table, also with a single NAT gateway: moving to a NAT gateway in each zone then changes
only the target of routes, without moving a subnet to another table.
"""

from __future__ import annotations

from collections.abc import Mapping

from troposphere import GetAtt, Ref, Sub, ec2

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import EndpointId
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, zone_id
from cfngen.cluster.network import endpoints
from cfngen.cluster.network.existing_parts import ROUTE_TARGETS
from cfngen.cluster.network.routes import PUBLIC_TABLE, SHARED_PRIVATE_TABLE, private_table, route_ids, target_ids
from cfngen.cluster.network.topology import (
    created_subnets,
    is_private,
    nat_gateway_zone,
    nat_gateway_zones,
    public_subnets,
)
from cfngen.templates.network_references import nat_gateway_parameter, public_subnet_parameter
from cfngen.templates.references import part_value
from cfngen.templates.stack import NETWORK, PropertyValue, Stack
from cfngen.templates.tagging import tags

_SHARED_ROUTE = "NatRoute"


def add_route_tables(stack: Stack, cluster: Cluster, vpc: PropertyValue) -> Mapping[str, PropertyValue]:
    """Add the private route tables with their routes, the NAT gateways, and the endpoint for S3.

    Returns:
        A reference to the route table by zone, for each created subnet without an existing route table.
    """
    zones = [subnet.zone for subnet in created_subnets(cluster) if not subnet.route_table]
    gateways = {zone: _nat_gateway(stack, cluster, zone) for zone in nat_gateway_zones(cluster)}
    tables: dict[str, ec2.RouteTable] = {}
    table_by_zone: dict[str, PropertyValue] = {}
    for zone in zones:
        table_id = private_table(cluster, zone)
        if table_id not in tables:
            tables[table_id] = _add_table(stack, cluster, vpc, table_id, zone, gateways)
        table_by_zone[zone] = Ref(tables[table_id])
    if tables and endpoints.has_s3_endpoint(cluster):
        stack.add(
            ec2.VPCEndpoint(
                str(EndpointId.of(endpoints.S3)),
                VpcEndpointType="Gateway",
                VpcId=vpc,
                ServiceName=Sub("com.amazonaws.${AWS::Region}.s3"),
                RouteTableIds=[Ref(table) for table in tables.values()],
                Tags=tags(cluster, f"{cluster.name}-s3"),
            )
        )
    return table_by_zone


def way_out(cluster: Cluster, zone: str) -> tuple[str, ...]:
    """Return the logical ids of the resources through which instances in a zone reach other networks.

    Instances may only be launched once those that cfngen creates are complete; the others do not exist.
    """
    short_zone = zone_id(zone)
    table = private_table(cluster, zone) if is_private(cluster) else PUBLIC_TABLE
    return (
        "InternetRoute",
        _SHARED_ROUTE,
        str(ZonalId("NatRoute", short_zone)),
        *(str(route_id) for route_id, _ in route_ids(cluster, table)),
        str(EndpointId.of(endpoints.S3)),
        *(str(EndpointId.of(endpoint.service)) for endpoint in endpoints.interface_endpoints(cluster)),
        str(SubnetId(short_zone, "RouteTableAssociation")),
    )


def _add_table(
    stack: Stack, cluster: Cluster, vpc: PropertyValue, table_id: str, zone: str, gateways: Mapping[str, PropertyValue]
) -> ec2.RouteTable:
    """Add the route table of a zone, or of all zones, and its route to a NAT gateway if the zone uses one."""
    is_shared = table_id == SHARED_PRIVATE_TABLE
    name = f"{cluster.name}-private" if is_shared else f"{cluster.name}-private-{zone_id(zone).lower()}"
    table = stack.add(ec2.RouteTable(table_id, VpcId=vpc, Tags=tags(cluster, name)))
    gateway_zone = nat_gateway_zone(cluster, zone)
    if gateway_zone:
        stack.add(
            ec2.Route(
                _SHARED_ROUTE if is_shared else str(ZonalId("NatRoute", zone_id(zone))),
                RouteTableId=Ref(table),
                DestinationCidrBlock="0.0.0.0/0",
                NatGatewayId=gateways[gateway_zone],
            )
        )
    add_routes(stack, cluster, table)
    return table


def _nat_gateway(stack: Stack, cluster: Cluster, zone: str) -> PropertyValue:
    """Return a reference to the NAT gateway in a zone: the existing one, or a new one in the zone's public subnet."""
    short_zone = zone_id(zone)
    subnet = next(candidate for candidate in cluster.network.subnets if candidate.zone == zone)
    if subnet.nat_gateway:
        return nat_gateway_parameter(stack, zone, subnet.nat_gateway)
    public = public_subnets(cluster)[zone]
    name = f"{cluster.name}-nat-{short_zone.lower()}"
    # CloudFormation's reference of AWS::EC2::EIP requires the dependency on the gateway's attachment; a NAT gateway
    # works only once its subnet has a route to the internet gateway.
    attachment = [] if cluster.network.vpc.id else ["InternetGatewayAttachment"]
    route = [] if public.id else ["InternetRoute", str(SubnetId(short_zone, "RouteTableAssociation", is_public=True))]
    elastic_ip = stack.add(
        ec2.EIP(
            str(ZonalId("NatElasticIp", short_zone)),
            Domain="vpc",
            Tags=tags(cluster, name),
            **({"DependsOn": attachment} if attachment else {}),
        )
    )
    gateway = stack.add(
        ec2.NatGateway(
            str(ZonalId("NatGateway", short_zone)),
            AllocationId=GetAtt(elastic_ip, "AllocationId"),
            SubnetId=public_subnet_parameter(stack, zone, public.id)
            if public.id
            else Ref(str(SubnetId(short_zone, is_public=True))),
            Tags=tags(cluster, name),
            **({"DependsOn": route} if route else {}),
        )
    )
    return Ref(gateway)


# The property of AWS::EC2::Route for each kind of target. A virtual private gateway is a gateway of the VPC, as an
# internet gateway is.
_TARGET_PROPERTIES = {
    "transitGateway": "TransitGatewayId",
    "peeringConnection": "VpcPeeringConnectionId",
    "vpnGateway": "GatewayId",
    "networkInterface": "NetworkInterfaceId",
}


def add_routes(stack: Stack, cluster: Cluster, table: ec2.RouteTable) -> None:
    """Add the routes of the cluster file that a route table has."""
    for route_id, route in route_ids(cluster, table.title):
        destination_key = "DestinationPrefixListId" if route.destination.startswith("pl-") else "DestinationCidrBlock"
        targets = {
            _TARGET_PROPERTIES[key]: part_value(stack, target, ROUTE_TARGETS[key], parameter_group=NETWORK)
            for key, target in target_ids(route).items()
        }
        stack.add(ec2.Route(str(route_id), RouteTableId=Ref(table), **{destination_key: route.destination}, **targets))
