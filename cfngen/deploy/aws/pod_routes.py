"""Reads the routes to pods that the cloud controller manager adds to a route table, and those that are left of them.

The cloud controller manager reads the whole route table first. If a route leads to an existing instance without a Node,
it fails (`ListRoutes`, cloud-provider-aws v1.36.1, pkg/providers/v1/aws_routes.go), and no Node gets a route. It
removes routes to terminated instances (blackholes) itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Network, ip_network

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.private_network import PUBLIC_TABLE
from cfngen.deploy.aws.stacks import ResourceView, StackView
from cfngen.deploy.aws.types import AwsObject

ROUTE_TABLE = "AWS::EC2::RouteTable"


@dataclass(frozen=True)
class InstanceRoute:
    """A route that leads to an instance."""

    table: str
    destination: str
    instance: str


def find_instance_routes(
    account: Account, cluster: Cluster, stack: StackView, resources: Iterable[ResourceView]
) -> tuple[InstanceRoute, ...]:
    """Return the routes to existing instances in the route table of the pods; none if the network plug-in needs none.

    Args:
        stack: the root stack; its parameter RouteTableId names the route table of an existing VPC.
    """
    if not network_plugin(cluster).uses_vpc_routes:
        return ()
    table_ids = {
        resource.physical_id
        for resource in resources
        if resource.type == ROUTE_TABLE and resource.physical_id and resource.status != "DELETE_COMPLETE"
        # The route table of a private cluster's public subnets has no routes to pods.
        if resource.logical_id != PUBLIC_TABLE or not is_private(cluster)
    }
    if existing_route_table := stack.values.get("RouteTableId", ""):
        table_ids.add(existing_route_table)
    filters = {"route-table-id": sorted(table_ids)}
    with translate_aws_errors():
        route_tables = list(account.items("ec2.describe_route_tables", "RouteTables", filters=filters))
    return tuple(
        InstanceRoute(
            table=table["RouteTableId"], destination=route["DestinationCidrBlock"], instance=route["InstanceId"]
        )
        for table in route_tables
        for route in table["Routes"]
        if route.get("InstanceId") and route.get("DestinationCidrBlock") and route.get("State") != "blackhole"
    )


def find_orphaned_routes(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the routes within the pods' range whose target is an instance of the cluster, or no longer exists."""
    if not inventory.pod_cidr:
        return ()
    pod_range = IPv4Network(inventory.pod_cidr)
    filters = {"route-table-id": inventory.route_tables}
    route_tables = account.items("ec2.describe_route_tables", "RouteTables", filters=filters)
    return tuple(
        OrphanedResource(
            kind="route",
            id=route["DestinationCidrBlock"],
            name=route["DestinationCidrBlock"],
            where=route_table["RouteTableId"],
        )
        for route_table in route_tables
        for route in route_table["Routes"]
        if _is_in_pod_range(route, pod_range) and _belongs_to_cluster(route, inventory)
    )


def _is_in_pod_range(route: AwsObject, pod_range: IPv4Network) -> bool:
    destination = ip_network(route.get("DestinationCidrBlock") or "0.0.0.0/0")
    return isinstance(destination, IPv4Network) and destination.subnet_of(pod_range)


def _belongs_to_cluster(route: AwsObject, inventory: Inventory) -> bool:
    """Return whether a route's target is an instance of the cluster, or no longer exists (`blackhole`)."""
    return route.get("State") == "blackhole" or route.get("InstanceId") in inventory.instances
