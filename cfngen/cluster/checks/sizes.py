"""Checks of the number of nodes: sizes of groups, and whether addresses and routes suffice."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import MAX_AWS_PREFIX, POD_CIDR_PATH, size_paths
from cfngen.cluster.checks.sections import GroupCheck, KeyCheck, node_groups, subnet_path
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.address_plan import address_demand
from cfngen.cluster.network.network_plugins import NODE_PREFIX, network_plugin
from cfngen.cluster.network.topology import public_subnets, range_text, usable_address_count
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import pluralize

_NODE_GROUPS_PATH: Path = ("nodeGroups",)
# What takes addresses of subnets.
_NEEDING_ADDRESSES: tuple[Path, ...] = (
    _NODE_GROUPS_PATH,
    ("controlPlane", "count"),
    ("api",),
    ("network", "nat"),
    ("network", "endpoints"),
)
# The quota "Routes per route table" of older accounts, which kube-up's users ran into (kubernetes/kubernetes#40307);
# new accounts have more: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
_DEFAULT_ROUTE_QUOTA = 50
# Dollars per hour; EC2 refuses less: "Bid price must be greater than or equal to 0.001"
_MIN_SPOT_PRICE = 0.001


def _check_size_order(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        min_path = (*_NODE_GROUPS_PATH, index, "minSize")
        max_path = (*_NODE_GROUPS_PATH, index, "maxSize")
        desired_path = (*_NODE_GROUPS_PATH, index, "desiredSize")
        if group.min_size > group.max_size:
            message = f"{group.max_size} is less than minSize ({group.min_size}); raise it or lower minSize"
            yield Problem(max_path, message, related_paths=(min_path,))
        elif group.desired_size is not None and not group.min_size <= group.desired_size <= group.max_size:
            message = f"{group.desired_size} is not between minSize ({group.min_size}) and maxSize ({group.max_size})"
            yield Problem(desired_path, message, related_paths=(min_path, max_path))


def _max_node_count(cluster: Cluster) -> int:
    return sum(group.max_size for group in cluster.node_groups)


def _check_pod_range_size(cluster: Cluster) -> Iterator[Problem]:
    pod_cidr = cluster.network.pod_cidr
    prefix = network_plugin(cluster).node_block_prefix
    # `cfngen.cluster.checks.addresses` reports a podCidr that is smaller than the /24 of one node.
    if not prefix or pod_cidr.prefixlen > NODE_PREFIX:
        return
    # Each bit that the prefix of a node's range is longer than podCidr's doubles the number of ranges.
    range_count = 2 ** (prefix - pod_cidr.prefixlen)
    max_nodes = _max_node_count(cluster)
    if max_nodes + cluster.control_plane.count > range_count:
        masters = pluralize(cluster.control_plane.count, "master")
        message = (
            f"{range_text(cluster, 'podCidr', pod_cidr)} contains {range_count} ranges of /{prefix}, but up to "
            f"{max_nodes} nodes and {masters} need one each; enlarge it or lower maxSize"
        )
        # The greatest size is derived from the least one.
        related_paths = tuple((*path, key) for path, _ in node_groups(cluster) for key in ("maxSize", "minSize"))
        yield Problem(POD_CIDR_PATH, message, related_paths=related_paths)


def _check_room_in_subnets(cluster: Cluster) -> Iterator[Problem]:
    """Check that the subnets have room when the cluster is created; existing ones may have less than they could."""
    for index, subnet in enumerate(cluster.network.subnets):
        public = public_subnets(cluster).get(subnet.zone)
        ranges = [(subnet_path(index), subnet.cidr, False)] if "cidr" in subnet.model_fields_set else []
        if public and public.cidr:
            ranges.append((("network", "subnets", index, "public", "cidr"), public.cidr, True))
        for path, cidr, is_public_tier in ranges:
            demand = address_demand(cluster, subnet.zone, is_public_tier=is_public_tier)
            usable = usable_address_count(cidr)
            # `cfngen.cluster.checks.addresses` reports ranges that AWS does not take.
            if usable < demand.at_first and cidr.prefixlen <= MAX_AWS_PREFIX:
                message = f"{cidr} has {pluralize(usable, 'usable address')}, and the cluster needs {demand.at_first}"
                remedy = "use a larger range" + (", or fewer nodes" if "nodes" in demand.parts else "")
                related_paths = (*_NEEDING_ADDRESSES, *size_paths(cluster))
                yield Problem(path, f"{message} ({demand}); {remedy}", related_paths=related_paths)


def _warn_of_too_few_addresses_for_max_size(cluster: Cluster) -> Iterator[Problem]:
    for index, subnet in enumerate(cluster.network.subnets):
        demand, usable = address_demand(cluster, subnet.zone), usable_address_count(subnet.cidr)
        at_maximum = demand.at_first + demand.growth
        if usable < at_maximum:
            message = (
                f"{subnet.cidr} has {pluralize(usable, 'usable address')}, and the cluster needs {at_maximum} when its "
                "groups have their greatest size; use a larger range, or reduce maxSize"
            )
            yield Problem(subnet_path(index), message, related_paths=_NEEDING_ADDRESSES)


def _warn_of_route_quota(cluster: Cluster) -> Iterator[Problem]:
    """Warn if the VPC routes to the instances' pod ranges may exceed the account's quota.

    The account's actual quota is not known here, so this is a warning only.
    """
    if not network_plugin(cluster).uses_vpc_routes:
        return
    max_instances = _max_node_count(cluster) + cluster.control_plane.count
    if max_instances > _DEFAULT_ROUTE_QUOTA:
        message = (
            f'up to {max_instances} nodes and masters need a VPC route each; check the quota "Routes per route table" '
            f"of your account ({_DEFAULT_ROUTE_QUOTA} in older accounts) and ask AWS to raise it if needed"
        )
        yield Problem(_NODE_GROUPS_PATH, message)


PROBLEM_CHECKS = (
    _check_size_order,
    GroupCheck(
        "spotPrice",
        when=lambda cluster, group: group.spot_price is not None and float(group.spot_price) < _MIN_SPOT_PRICE,
        message=f"EC2 accepts no maximum price below {_MIN_SPOT_PRICE} dollars per hour; enter a higher one, or "
        "remove the key for on-demand instances",
    ),
    _check_pod_range_size,
    _check_room_in_subnets,
)
WARNING_CHECKS = (
    _warn_of_too_few_addresses_for_max_size,
    _warn_of_route_quota,
    KeyCheck(
        "nodeGroups",
        when=lambda cluster: not cluster.node_groups,
        message="there is no node group: the cluster only has masters, which do not run ordinary pods",
    ),
)
