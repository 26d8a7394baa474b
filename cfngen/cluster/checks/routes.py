"""Checks of the routes to networks beyond the VPC."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import POD_CIDR_PATH, SERVICE_CIDR_PATH, vpc_ranges_by_path
from cfngen.cluster.checks.topology import WHY_PUBLIC_SUBNETS
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.routes import (
    DEFAULT_DESTINATION,
    PUBLIC_TABLE,
    destination_range,
    private_tables,
    public_tables,
    table_of_pods,
    tables_of,
    target_ids,
)
from cfngen.cluster.network.topology import is_private, nat_gateway_zones
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.network import Route

_ROUTES_PATH: Path = ("network", "routes")
_TOPOLOGY_PATH: Path = ("network", "topology")
_TARGET_KEYS = "transitGateway, peeringConnection, vpnGateway or networkInterface"


def _check_one_target(cluster: Cluster) -> Iterator[Problem]:
    for index, route in enumerate(cluster.network.routes):
        keys = list(target_ids(route))
        if not keys:
            yield Problem((*_ROUTES_PATH, index), f"has no target; add one of {_TARGET_KEYS}")
        elif len(keys) > 1:
            yield Problem((*_ROUTES_PATH, index), f"has several targets ({', '.join(keys)}); keep one of them")


def _check_tables(cluster: Cluster) -> Iterator[Problem]:
    for index, route in enumerate(cluster.network.routes):
        if tables_of(cluster, route):
            continue
        path: Path = (*_ROUTES_PATH, index, "tables")
        if not private_tables(cluster) and not public_tables(cluster):
            message = "no route table is created: add the route to the existing ones yourself, and remove it here"
            yield Problem((*_ROUTES_PATH, index), message, related_paths=(("network", "subnets"),))
        elif route.tables == "public":
            message = "no route table of public subnets is created; set it to private, or remove the route"
            yield Problem(path, message, related_paths=(_TOPOLOGY_PATH, ("network", "nat"), ("api", "public")))
        else:
            instead = "set it to public" if not is_private(cluster) else "set it to public, or remove the route"
            message = f"no route table of private subnets is created; {instead}"
            yield Problem(path, message, related_paths=(_TOPOLOGY_PATH, ("network", "subnets")))


def _check_destinations(cluster: Cluster) -> Iterator[Problem]:
    """Check that no route leads away from what is in the VPC, or takes addresses of pods and services.

    A default route may: routes to smaller ranges win over it.
    """
    pods_and_services = [(SERVICE_CIDR_PATH, cluster.network.service_cidr, "services")]
    if network_plugin(cluster).uses_pod_cidr:
        pods_and_services.insert(0, (POD_CIDR_PATH, cluster.network.pod_cidr, "pods"))
    for index, route in enumerate(cluster.network.routes):
        path: Path = (*_ROUTES_PATH, index, "destination")
        destination = destination_range(route)
        if destination is None or route.destination == DEFAULT_DESTINATION:
            continue
        for vpc_path, vpc_range in vpc_ranges_by_path(cluster):
            if destination.subnet_of(vpc_range):
                message = f"{destination} is inside {dotted(vpc_path)} ({vpc_range}), which has a route already"
                yield Problem(path, f"{message}; remove the route", related_paths=(vpc_path,))
        for range_path, cidr, what in pods_and_services:
            if destination.overlaps(cidr):
                message = (
                    f"{destination} overlaps {dotted(range_path)} ({cidr}), so {what} would hide those addresses; list "
                    f"only the ranges that are in use there, or choose another {dotted(range_path)}"
                )
                yield Problem(path, message, related_paths=(range_path,))


def _check_distinct(cluster: Cluster) -> Iterator[Problem]:
    routes = cluster.network.routes
    for index, route in enumerate(routes):
        path: Path = (*_ROUTES_PATH, index, "destination")
        for other_index, other in enumerate(routes[:index]):
            if other.destination == route.destination and set(tables_of(cluster, other)) & set(
                tables_of(cluster, route)
            ):
                other_key = dotted((*_ROUTES_PATH, other_index))
                message = f"{other_key} leads to {route.destination} already, in the same route tables; remove one"
                yield Problem(path, message, related_paths=((*_ROUTES_PATH, other_index),))
                break
        if route.destination == DEFAULT_DESTINATION:
            yield from _check_only_default_route(cluster, route, path)


def _check_only_default_route(cluster: Cluster, route: Route, path: Path) -> Iterator[Problem]:
    tables = tables_of(cluster, route)
    related_paths = ((*path[:-1], "tables"), *WHY_PUBLIC_SUBNETS)
    if PUBLIC_TABLE in tables:
        instead = "remove the route" if not is_private(cluster) else "set tables to private"
        message = f"the route table of public subnets has a default route to the internet gateway; {instead}"
        yield Problem(path, message, related_paths=related_paths)
    elif tables and nat_gateway_zones(cluster):
        message = (
            "the route tables of private subnets have a default route to a NAT gateway; set network.nat to none, or "
            "remove the route"
        )
        yield Problem(path, message, related_paths=related_paths)


def _check_pods_table(cluster: Cluster) -> Iterator[Problem]:
    """Check that the table with the pods' routes has no other route to a network interface.

    Cloud controller manager takes each route to an instance for a node's, and stops writing routes if the instance
    is not a node ("node with instanceID … not found", kubernetes/cloud-provider-aws#627).
    """
    table = table_of_pods(cluster)
    for index, route in enumerate(cluster.network.routes):
        if route.network_interface and table in tables_of(cluster, route):
            is_only_there = tables_of(cluster, route) == (table,)
            instead = "" if is_only_there or not is_private(cluster) else "set tables to public, "
            message = (
                "with vpc-routes, cloud controller manager would take the interface for that of a missing node and "
                f"stop writing the pods' routes; {instead}use a transitGateway, or choose another network.plugin"
            )
            related_paths = (("network", "plugin"), _TOPOLOGY_PATH)
            yield Problem((*_ROUTES_PATH, index, "networkInterface"), message, related_paths=related_paths)


def _warn_of_target_before_vpc(cluster: Cluster) -> Iterator[Problem]:
    if cluster.network.vpc.id:
        return
    steps = {
        "transitGateway": "attach the VPC to it (one subnet in each zone)",
        "peeringConnection": "connect the VPC with it and have the connection accepted",
        "vpnGateway": "attach it to the VPC",
        "networkInterface": "create the interface in the VPC",
    }
    for index, route in enumerate(cluster.network.routes):
        for key, target in target_ids(route).items():
            remedy = f"deploy the cluster without this route, {steps[key]}, and deploy again with the route"
            if route.destination == DEFAULT_DESTINATION:
                remedy = (
                    "instances need this route at their first boot, so create the VPC and its connection yourself, and "
                    "enter its id as network.vpc.id"
                )
            message = f"{target} cannot lead out of a VPC that does not exist yet: {remedy}"
            yield Problem((*_ROUTES_PATH, index, key), message)


PROBLEM_CHECKS = (_check_one_target, _check_tables, _check_destinations, _check_distinct, _check_pods_table)
WARNING_CHECKS = (_warn_of_target_before_vpc,)
