"""Routes of pods in a route table that the cluster was lent.

The cloud controller manager writes one for each node, and removes it as long as it runs: those of the last nodes stay.
In a table of the cluster's own they go with the table.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from ipaddress import IPv4Network, ip_network
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, remove_each
from cfngen.deploy.deletion.scope import Scope


def find(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return the routes within the pods' range that lead to the cluster's instances, or nowhere any more."""
    if not scope.route_tables or not scope.pod_cidr:
        return ()
    pods = IPv4Network(scope.pod_cidr)
    filters = [{"Name": "route-table-id", "Values": list(scope.route_tables)}]
    tables = account.client("ec2").describe_route_tables(Filters=filters)["RouteTables"]
    return tuple(
        OrphanedResource(
            "route", route["DestinationCidrBlock"], route["DestinationCidrBlock"], where=table["RouteTableId"]
        )
        for table in tables
        for route in table["Routes"]
        if _within(route, pods) and _of_the_cluster(route, scope)
    )


def remove(account: Account, found: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete routes; return those deleted."""
    ec2 = account.client("ec2")
    return remove_each(found, lambda each: ec2.delete_route(RouteTableId=each.where, DestinationCidrBlock=each.id))


def _within(route: Mapping[str, Any], pods: IPv4Network) -> bool:
    destination = ip_network(route.get("DestinationCidrBlock") or "0.0.0.0/0")
    return isinstance(destination, IPv4Network) and destination.subnet_of(pods)


def _of_the_cluster(route: Mapping[str, Any], scope: Scope) -> bool:
    return route.get("State") == "blackhole" or route.get("InstanceId") in scope.instances
