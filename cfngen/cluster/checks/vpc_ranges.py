"""Checks of the VPC's further ranges, and of the sizes of subnets whose ranges are derived."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network
from itertools import combinations

from cfngen.cluster.checks.addresses import ADDITIONAL_CIDRS_PATH, VPC_CIDR_PATH, vpc_ranges_by_path
from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.topology import is_private

_SUBNET_SIZES_PATH: Path = ("network", "subnetSizes")
_VPC_ID_PATH: Path = ("network", "vpc", "id")
# The quota "IPv4 CIDR blocks per VPC" (L-83CA0A9D) is five with the primary one, unless AWS has raised it
# (https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html).
_MAX_ADDITIONAL_RANGES = 4
# Restrictions after the table "IPv4 CIDR block association restrictions" of the Amazon VPC User Guide
# (https://docs.aws.amazon.com/vpc/latest/userguide/vpc-cidr-blocks.html, November 2026).
_RFC_1918_NETWORKS = tuple(map(IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))
_NEVER_ADDED = IPv4Network("198.19.0.0/16")
_NOT_ADDED_TO_172_16 = IPv4Network("172.31.0.0/16")
_FIRST_OF_10 = IPv4Network("10.0.0.0/16")
_FIRST_TWO_OF_10 = IPv4Network("10.0.0.0/15")


def no_room(cluster: Cluster) -> str:
    """Return the message for a subnet without a CIDR, for which the VPC's range has no room."""
    network = cluster.network
    remedies = ["enlarge network.vpc.cidr"]
    if network.subnet_sizes.model_fields_set:
        remedies.append("choose smaller subnets in network.subnetSizes (a longer prefix)")
    if network.vpc.additional_cidrs:
        remedies.append("give the subnet a range in network.vpc.additionalCidrs")
    return f"is missing, and {network.vpc.cidr} has no room for another subnet; {', or '.join(remedies)}"


def size_paths(cluster: Cluster) -> tuple[Path, ...]:
    """Return the path of `network.subnetSizes` if the cluster file has it."""
    return (_SUBNET_SIZES_PATH,) if cluster.network.subnet_sizes.model_fields_set else ()


def _check_number_of_ranges(cluster: Cluster) -> Iterator[Problem]:
    vpc = cluster.network.vpc
    if not vpc.id and len(vpc.additional_cidrs) > _MAX_ADDITIONAL_RANGES:
        message = (
            f"{len(vpc.additional_cidrs)} ranges, but AWS allows {_MAX_ADDITIONAL_RANGES} besides network.vpc.cidr; "
            "use fewer and larger ones"
        )
        yield Problem(ADDITIONAL_CIDRS_PATH, message)


def _check_associations(cluster: Cluster) -> Iterator[Problem]:
    """Check that AWS associates the further ranges with a created VPC; an existing VPC has its ranges already."""
    if cluster.network.vpc.id:
        return
    for (first_path, first), (path, cidr) in combinations(vpc_ranges_by_path(cluster), 2):
        # `cfngen.cluster.checks.addresses` reports ranges that overlap.
        reason = (
            None if first.overlaps(cidr) else _why_not_associated(first, cidr, is_primary=first_path == VPC_CIDR_PATH)
        )
        if reason:
            yield Problem(path, reason, related_paths=(first_path,))


def _why_not_associated(first: IPv4Network, added: IPv4Network, *, is_primary: bool) -> str | None:
    """Return why AWS does not associate `added` with a VPC that has the range `first`, or None if it does."""
    remedy = "use a range of 100.64.0.0/10, or one near the VPC's"
    if not is_primary:
        # Ranges are compared with the primary one; only these two need to be compared with each other.
        return _why_not_beside_first_of_10(first, added)
    private_network = next((network for network in _RFC_1918_NETWORKS if first.subnet_of(network)), None)
    other_networks = [
        network for network in _RFC_1918_NETWORKS if added.subnet_of(network) and network != private_network
    ]
    if other_networks:
        own_network = str(private_network) if private_network else "no private network of RFC 1918"
        return f"{added} is in {other_networks[0]}, but the VPC's {first} is in {own_network}: AWS refuses it; {remedy}"
    if added.subnet_of(_NEVER_ADDED):
        return f"{added} is in {_NEVER_ADDED}, which AWS adds to no VPC; {remedy}"
    if private_network == _RFC_1918_NETWORKS[1] and added.subnet_of(_NOT_ADDED_TO_172_16):
        return f"{added} is in {_NOT_ADDED_TO_172_16}, which AWS adds to no VPC in {private_network}; {remedy}"
    return _why_not_beside_first_of_10(first, added)


def _why_not_beside_first_of_10(first: IPv4Network, added: IPv4Network) -> str | None:
    if first.subnet_of(_FIRST_TWO_OF_10) and added.subnet_of(_FIRST_OF_10):
        return (
            f"{added} is in {_FIRST_OF_10}, of which AWS adds nothing to a VPC that has a range of {_FIRST_TWO_OF_10} "
            f"({first}); use another range"
        )
    return None


PROBLEM_CHECKS = (
    _check_number_of_ranges,
    _check_associations,
    KeyCheck(
        "network.subnetSizes",
        when=lambda cluster: cluster.network.subnet_sizes.model_fields_set and cluster.network.vpc.id,
        message="the free ranges of {cluster.network.vpc.id} are not known; give each subnet a cidr, and remove the "
        "key",
        related=("network.vpc.id",),
    ),
    KeyCheck(
        "network.subnetSizes.public",
        when=lambda cluster: (
            cluster.network.subnet_sizes.public and not cluster.network.vpc.id and not is_private(cluster)
        ),
        message="the subnets of a public cluster have instances; use network.subnetSizes.instances",
        related=("network.topology",),
    ),
)
