"""Routes of the cluster file to networks beyond the VPC: which created route tables have them, and where they lead."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import RouteId, ZonalId, zone_id
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import created_subnets, has_one_route_table, is_private, uses_internet_gateway
from cfngen.cluster.sections.network import Route

# Logical ids: the table with the route to the internet gateway, and the one that all private subnets share.
PUBLIC_TABLE = "RouteTable"
SHARED_PRIVATE_TABLE = "PrivateRouteTable"
DEFAULT_DESTINATION = "0.0.0.0/0"


def private_table(cluster: Cluster, zone: str) -> str:
    """Return the logical id of the route table of the created private subnet in a zone."""
    if has_one_route_table(cluster):
        return SHARED_PRIVATE_TABLE
    return str(ZonalId("PrivateRouteTable", zone_id(zone)))


def private_tables(cluster: Cluster) -> tuple[str, ...]:
    """Return the logical ids of the route tables that are created for private subnets."""
    if not is_private(cluster):
        return ()
    zones = (subnet.zone for subnet in created_subnets(cluster) if not subnet.route_table)
    return tuple(dict.fromkeys(private_table(cluster, zone) for zone in zones))


def public_tables(cluster: Cluster) -> tuple[str, ...]:
    """Return the logical id of the route table that is created for public subnets, if there is one."""
    return (PUBLIC_TABLE,) if uses_internet_gateway(cluster) else ()


def tables_of(cluster: Cluster, route: Route) -> tuple[str, ...]:
    """Return the logical ids of the created route tables that have a route."""
    public = public_tables(cluster) if route.tables in ("all", "public") else ()
    private = private_tables(cluster) if route.tables in ("all", "private") else ()
    return (*public, *private)


def table_of_pods(cluster: Cluster) -> str | None:
    """Return the logical id of the created table that holds the routes to pods; None if no created table does."""
    if not network_plugin(cluster).uses_vpc_routes or any(subnet.id for subnet in cluster.network.subnets):
        return None
    return SHARED_PRIVATE_TABLE if is_private(cluster) else PUBLIC_TABLE


def target_ids(route: Route) -> dict[str, str]:
    """Return the target of a route by its key in the cluster file; a valid route has one."""
    targets = {
        "transitGateway": route.transit_gateway,
        "peeringConnection": route.peering_connection,
        "vpnGateway": route.vpn_gateway,
        "networkInterface": route.network_interface,
    }
    return {key: target for key, target in targets.items() if target}


def destination_range(route: Route) -> IPv4Network | None:
    """Return the address range to which a route leads, or None if it leads to a prefix list."""
    return None if route.destination.startswith("pl-") else IPv4Network(route.destination)


def route_ids(cluster: Cluster, table: str) -> Iterator[tuple[RouteId, Route]]:
    """Yield the logical id of each route of a created table, and the route."""
    for route in cluster.network.routes:
        if table in tables_of(cluster, route):
            yield RouteId(route.destination, table), route


def has_default_route(cluster: Cluster, zone: str) -> bool:
    """Return whether a route of the cluster file leads from the created subnet in a zone to everywhere else."""
    table = private_table(cluster, zone) if is_private(cluster) else PUBLIC_TABLE
    return any(route.destination == DEFAULT_DESTINATION for _, route in route_ids(cluster, table))
