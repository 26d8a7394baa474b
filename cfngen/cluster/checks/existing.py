"""Checks of an existing VPC and its subnets: which keys go together."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import VPC, subnet_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

_VPC_ID: Path = ("network", "vpc", "id")


def _vpc_range_known(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc
    if vpc.id and "cidr" not in vpc.model_fields_set:
        message = (
            f"is missing; enter the range of {vpc.id} (or set KUBE_VPC_CIDR_BASE): cfngen does not request it from AWS"
        )
        yield Problem(VPC, message)


def _subnet_ranges_known(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc
    for index, subnet in enumerate(cluster.network.subnets):
        if "cidr" in subnet.model_fields_set:
            continue
        if subnet.id:
            message = (
                f"is missing; enter the range of {subnet.id} (or set KUBE_SUBNET_CIDR): cfngen does not request it "
                "from AWS"
            )
        elif vpc.id:
            message = (
                f"is missing; enter a free range of {vpc.id} for the subnet: cfngen does not request free ranges "
                "from AWS"
            )
        else:
            message = f"is missing, and {vpc.cidr} has no room for another subnet; enlarge network.vpc.cidr"
        yield Problem(subnet_path(index), message, (subnet_path(index, "id"),))


def _subnets_need_vpc(cluster: Cluster) -> Iterator[Problem]:
    if cluster.network.vpc.id:
        return
    for index, subnet in enumerate(cluster.network.subnets):
        if subnet.id:
            message = f"{subnet.id} is in an existing VPC; set network.vpc.id (or VPC_ID) to the id of that VPC"
            yield Problem(subnet_path(index, "id"), message, (_VPC_ID,))


def _all_subnets_or_none(cluster: Cluster) -> Iterator[Problem]:
    subnets = cluster.network.subnets
    if not any(subnet.id for subnet in subnets):
        return
    for index, subnet in enumerate(subnets):
        if not subnet.id:
            message = "is missing; either all subnets are existing ones (with an id) or none is"
            yield Problem(subnet_path(index, "id"), message, (("network", "subnets"),))


def _same_subnet_twice(cluster: Cluster) -> Iterator[Problem]:
    ids = [subnet.id for subnet in cluster.network.subnets]
    for index, subnet_id in enumerate(ids):
        if subnet_id and subnet_id in ids[:index]:
            yield Problem(subnet_path(index, "id"), f"{subnet_id} appears twice; each zone needs its own subnet")


def _route_table(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    if network.route_table and not any(subnet.id for subnet in network.subnets):
        message = "subnets that cfngen creates get a new route table; remove the key, or list existing subnets by id"
        yield Problem(("network", "routeTable"), message, (("network", "subnets"),))


def _internet_gateway(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    path: Path = ("network", "internetGateway")
    if not network.internet_gateway:
        return
    if not network.vpc.id:
        yield Problem(
            path, "a VPC that cfngen creates gets a new gateway; remove the key, or set network.vpc.id", (_VPC_ID,)
        )
    elif any(subnet.id for subnet in network.subnets):
        message = "existing subnets have their own routes to the internet; remove the key"
        yield Problem(path, message, (("network", "subnets"),))


def _dhcp_options(cluster: Cluster) -> Iterator[Problem]:
    network = cluster.network
    if network.dhcp_options and network.vpc.id:
        message = f"{network.vpc.id} is an existing VPC and keeps its DHCP options; remove the key"
        yield Problem(("network", "dhcpOptions"), message, (_VPC_ID,))


PROBLEMS = (
    _subnets_need_vpc,
    _all_subnets_or_none,
    _vpc_range_known,
    _subnet_ranges_known,
    _same_subnet_twice,
    _route_table,
    _internet_gateway,
    _dhcp_options,
)
