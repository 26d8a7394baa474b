"""Checks of the keys that name an existing VPC, its subnets and gateway: which of them need or exclude each other."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import VPC_CIDR_PATH
from cfngen.cluster.checks.sections import subnet_path
from cfngen.cluster.checks.vpc_ranges import no_room, size_paths
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.topology import uses_internet_gateway

_VPC_ID_PATH: Path = ("network", "vpc", "id")


def _check_vpc_range_known(cluster: Cluster) -> Iterator[Problem]:
    """Check that the CIDR of an existing VPC is in the file: cfngen does not request it from AWS."""
    vpc = cluster.network.vpc
    # `model_fields_set` has the keys that are set, as opposed to the model's defaults.
    if vpc.id and "cidr" not in vpc.model_fields_set:
        message = (
            f"is missing; enter the range of {vpc.id} (or set KUBE_VPC_CIDR_BASE): cfngen does not request it from AWS"
        )
        yield Problem(VPC_CIDR_PATH, message)


def _check_subnet_ranges_known(cluster: Cluster) -> Iterator[Problem]:
    """Check that each subnet has a CIDR, from the file or derived from the VPC's."""
    vpc = cluster.network.vpc
    for index, subnet in enumerate(cluster.network.subnets):
        # `cfngen.cluster.network_defaults` has filled in every CIDR that it can derive, which counts as set.
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
            message = no_room(cluster)
        yield Problem(subnet_path(index), message, related_paths=(subnet_path(index, "id"), *size_paths(cluster)))


def _check_subnets_have_vpc(cluster: Cluster) -> Iterator[Problem]:
    """Check that existing subnets are only named together with their VPC."""
    if cluster.network.vpc.id:
        return
    for index, subnet in enumerate(cluster.network.subnets):
        if subnet.id:
            message = f"{subnet.id} is in an existing VPC; set network.vpc.id (or VPC_ID) to the id of that VPC"
            yield Problem(subnet_path(index, "id"), message, related_paths=(_VPC_ID_PATH,))


def check_subnets_distinct(cluster: Cluster) -> Iterator[Problem]:
    """Check that no existing subnet is named twice, be it for instances or as a public one."""
    first_paths: dict[str, Path] = {}
    for index, subnet in enumerate(cluster.network.subnets):
        public_id = subnet.public.id if subnet.public else None
        for path, subnet_id in (
            (subnet_path(index, "id"), subnet.id),
            ((*subnet_path(index, "public"), "id"), public_id),
        ):
            if not subnet_id:
                continue
            first_path = first_paths.setdefault(subnet_id, path)
            if first_path != path:
                message = f"{subnet_id} appears twice, first as {dotted(first_path)}; each key needs its own subnet"
                yield Problem(path, message, related_paths=(first_path,))


def _check_route_table(cluster: Cluster) -> Iterator[Problem]:
    """Check that a route table is only named for existing subnets."""
    network = cluster.network
    if network.route_table and not any(subnet.id for subnet in network.subnets):
        message = "subnets that cfngen creates get a new route table; remove the key, or list existing subnets by id"
        yield Problem(("network", "routeTable"), message, related_paths=(("network", "subnets"),))


def _check_internet_gateway(cluster: Cluster) -> Iterator[Problem]:
    """Check that an internet gateway is only named if a route to it is created in an existing VPC."""
    network = cluster.network
    path: Path = ("network", "internetGateway")
    if not network.internet_gateway:
        return
    if not network.vpc.id:
        yield Problem(
            path,
            "a VPC that cfngen creates gets a new gateway; remove the key, or set network.vpc.id",
            related_paths=(_VPC_ID_PATH,),
        )
    elif not uses_internet_gateway(cluster):
        message = "no subnet that is created needs a route to it; remove the key"
        yield Problem(path, message, related_paths=(("network", "subnets"),))


def _check_tags_of_existing_subnets(cluster: Cluster) -> Iterator[Problem]:
    """Check that there are existing subnets if they are to be tagged."""
    network = cluster.network
    existing = [subnet.id or (subnet.public and subnet.public.id) for subnet in network.subnets]
    if network.tag_existing and not any(existing):
        message = "subnets that cfngen creates have the tags; remove the key, or list existing subnets by id"
        yield Problem(("network", "tagExisting"), message, related_paths=(("network", "subnets"),))


def _check_dhcp_options(cluster: Cluster) -> Iterator[Problem]:
    """Check that DHCP options are only named for a VPC that cfngen creates."""
    network = cluster.network
    if network.dhcp_options and network.vpc.id:
        message = f"{network.vpc.id} is an existing VPC and keeps its DHCP options; remove the key"
        yield Problem(("network", "dhcpOptions"), message, related_paths=(_VPC_ID_PATH,))


PROBLEM_CHECKS = (
    _check_subnets_have_vpc,
    _check_vpc_range_known,
    _check_subnet_ranges_known,
    check_subnets_distinct,
    _check_route_table,
    _check_internet_gateway,
    _check_dhcp_options,
    _check_tags_of_existing_subnets,
)
