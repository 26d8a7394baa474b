"""Routes to pods in an existing route table that the cluster uses.

The cloud controller manager adds a route for each node, and removes it when the node is deleted. When the whole cluster
is deleted, the controller stops before it has removed the routes of the last nodes. If the stack created the route
table, the routes are deleted together with the route table.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Network, ip_network

from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, remove_each


def find_orphaned_routes(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the routes within the pods' range whose target is an instance of the cluster, or no longer exists."""
    if not inventory.route_tables or not inventory.pod_cidr:
        return ()
    pod_range = IPv4Network(inventory.pod_cidr)
    filters = [{"Name": "route-table-id", "Values": list(inventory.route_tables)}]
    route_tables = account.client("ec2").describe_route_tables(Filters=filters)["RouteTables"]
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


def remove(account: Account, routes: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete routes; return the deleted ones."""
    ec2 = account.client("ec2")
    return remove_each(routes, lambda route: ec2.delete_route(RouteTableId=route.where, DestinationCidrBlock=route.id))


def _is_in_pod_range(route: AwsObject, pod_range: IPv4Network) -> bool:
    """Return whether a route's destination is a part of the pods' address range."""
    destination = ip_network(route.get("DestinationCidrBlock") or "0.0.0.0/0")
    return isinstance(destination, IPv4Network) and destination.subnet_of(pod_range)


def _belongs_to_cluster(route: AwsObject, inventory: Inventory) -> bool:
    """Return whether a route's target is an instance of the cluster, or no longer exists (`blackhole`)."""
    return route.get("State") == "blackhole" or route.get("InstanceId") in inventory.instances
