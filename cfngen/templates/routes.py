"""Routes of the cluster file to networks beyond the VPC, such as an office network behind a transit gateway."""

from __future__ import annotations

from troposphere import Ref, ec2

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import ROUTE_TARGETS
from cfngen.cluster.network.routes import route_ids, target_ids
from cfngen.templates.references import part_value
from cfngen.templates.stack import NETWORK, Stack

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
