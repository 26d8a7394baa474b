"""Checks of the keys that name an existing VPC, its subnets and gateway, or a reference to what exists."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import no_room, size_paths
from cfngen.cluster.checks.sections import KeyCheck, subnet_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import referenced_parts
from cfngen.cluster.network.topology import uses_internet_gateway
from cfngen.cluster.paths import Path, dotted
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.references import StackOutput

_VPC_ID_PATH: Path = ("network", "vpc", "id")


def _check_subnet_ranges_known(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc
    for index, subnet in enumerate(cluster.network.subnets):
        # `cfngen.cluster.defaults.network_defaults` has filled in every CIDR that it can derive, which counts as set.
        if "cidr" in subnet.model_fields_set:
            continue
        related_paths: tuple[Path, ...] = (subnet_path(index, "id"), *size_paths(cluster))
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
        if not subnet.id:
            related_paths = (*related_paths, ("network", "vpc", "id" if vpc.id else "cidr"))
        yield Problem(subnet_path(index), message, related_paths=related_paths)


def _check_subnets_have_vpc(cluster: Cluster) -> Iterator[Problem]:
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


def _check_other_stacks(cluster: Cluster) -> Iterator[Problem]:
    """Check that no reference names the cluster's own stack, or one of its nested stacks.

    Its root stack is named after the cluster unless `--stack-name` says otherwise; a deployment looks at stacks' tags.
    """
    for part in referenced_parts(cluster):
        if isinstance(part.reference, StackOutput) and part.reference.stack == cluster.name:
            yield Problem(
                part.path,
                f"{part.reference} is an output of this cluster's own stack, which does not exist before the cluster; "
                f"name another stack, or leave the key out if cfngen creates the {part.kind.noun}",
                related_paths=(("name",),),
            )


PROBLEM_CHECKS = (
    _check_subnets_have_vpc,
    KeyCheck(
        "network.vpc.cidr",
        when=lambda cluster: cluster.network.vpc.id and "cidr" not in cluster.network.vpc.model_fields_set,
        message="is missing; enter the range of {cluster.network.vpc.id} (or set KUBE_VPC_CIDR_BASE): cfngen does not "
        "request it from AWS",
    ),
    _check_subnet_ranges_known,
    check_subnets_distinct,
    KeyCheck(
        "network.routeTable",
        when=lambda cluster: cluster.network.route_table and not any(subnet.id for subnet in cluster.network.subnets),
        message="subnets that cfngen creates get a new route table; remove the key, or list existing subnets by id",
        related=("network.subnets",),
    ),
    KeyCheck(
        "network.internetGateway",
        when=lambda cluster: cluster.network.internet_gateway and not cluster.network.vpc.id,
        message="a VPC that cfngen creates gets a new gateway; remove the key, or set network.vpc.id",
        related=("network.vpc.id",),
    ),
    KeyCheck(
        "network.internetGateway",
        when=lambda cluster: (
            cluster.network.internet_gateway and cluster.network.vpc.id and not uses_internet_gateway(cluster)
        ),
        message="no subnet that is created needs a route to it; remove the key",
        related=("network.subnets",),
    ),
    KeyCheck(
        "network.dhcpOptions",
        when=lambda cluster: cluster.network.dhcp_options and cluster.network.vpc.id,
        message="{cluster.network.vpc.id} is an existing VPC and keeps its DHCP options; remove the key",
        related=("network.vpc.id",),
    ),
    KeyCheck(
        "network.tagExisting",
        when=lambda cluster: (
            cluster.network.tag_existing
            and not any(subnet.id or (subnet.public and subnet.public.id) for subnet in cluster.network.subnets)
        ),
        message="subnets that cfngen creates have the tags; remove the key, or list existing subnets by id",
        related=("network.subnets",),
    ),
    _check_other_stacks,
)
