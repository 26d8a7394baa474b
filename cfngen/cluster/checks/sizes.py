"""Checks of the number of nodes: sizes of groups, and whether addresses and routes suffice."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.addresses import NODE_PREFIX, PODS, usable
from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import pluralize

_GROUPS: Path = ("nodeGroups",)
# The quota "Routes per route table" of older accounts, which kube-up's users ran into (kubernetes/kubernetes#40307);
# new accounts have more: https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html
_DEFAULT_ROUTE_QUOTA = 50


def _size_order(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        min_path, max_path = (*_GROUPS, index, "minSize"), (*_GROUPS, index, "maxSize")
        desired_path = (*_GROUPS, index, "desiredSize")
        if group.min_size > group.max_size:
            message = f"{group.max_size} is less than minSize ({group.min_size}); raise it or lower minSize"
            yield Problem(max_path, message, (min_path,))
        elif group.desired_size is not None and not group.min_size <= group.desired_size <= group.max_size:
            message = f"{group.desired_size} is not between minSize ({group.min_size}) and maxSize ({group.max_size})"
            yield Problem(desired_path, message, (min_path, max_path))


def _spot_price(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        if group.spot_price is not None and float(group.spot_price) == 0:
            message = "a price of 0 never gets an instance; enter a price, or remove the key for on-demand instances"
            yield Problem((*_GROUPS, index, "spotPrice"), message)


def _max_nodes(cluster: Cluster) -> int:
    return sum(group.max_size for group in cluster.node_groups)


def _group_paths(cluster: Cluster, key: str) -> tuple[Path, ...]:
    return tuple((*_GROUPS, index, key) for index in range(len(cluster.node_groups)))


def _pod_ranges(cluster: Cluster) -> Iterator[Problem]:
    pods, prefix = cluster.network.pod_cidr, network_plugin(cluster).least_prefix
    if not prefix or pods.prefixlen > NODE_PREFIX:
        return
    ranges = 2 ** (prefix - pods.prefixlen)
    needed = _max_nodes(cluster) + cluster.control_plane.count
    if needed > ranges:
        masters = pluralize(cluster.control_plane.count, "master")
        message = (
            f"{pods} contains {ranges} ranges of /{prefix}, but up to {_max_nodes(cluster)} nodes and {masters} need "
            "one "
            "each; enlarge it or lower maxSize"
        )
        yield Problem(PODS, message, _group_paths(cluster, "maxSize"))


def _usable_addresses(cluster: Cluster, zones: tuple[str, ...]) -> int:
    return sum(usable(subnet) for subnet in cluster.network.subnets if subnet.zone in zones)


def _subnet_addresses(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        available = _usable_addresses(cluster, group.zones)
        if group.min_size > available:
            message = (
                f"the group's subnets have addresses for {available} instances, not {group.min_size}; enlarge them "
                "or lower minSize"
            )
            touches: tuple[Path, ...] = (("network", "subnets"), (*_GROUPS, index, "zones"))
            yield Problem((*_GROUPS, index, "minSize"), message, touches)


def _subnet_addresses_at_most(cluster: Cluster) -> Iterator[Problem]:
    available = (
        _usable_addresses(cluster, tuple(subnet.zone for subnet in cluster.network.subnets))
        - cluster.control_plane.count
    )
    if _max_nodes(cluster) > available:
        message = (
            f"the subnets have addresses for {available} nodes beside the masters, but maxSize allows "
            f"{_max_nodes(cluster)}"
        )
        yield Problem(_GROUPS, message)


def _routes(cluster: Cluster) -> Iterator[Problem]:
    if not network_plugin(cluster).routes:
        return
    instances = _max_nodes(cluster) + cluster.control_plane.count
    if instances > _DEFAULT_ROUTE_QUOTA:
        message = (
            f'up to {instances} nodes and masters need a VPC route each; check the quota "Routes per route table" '
            f"of your account ({_DEFAULT_ROUTE_QUOTA} in older accounts) and ask AWS to raise it if needed"
        )
        yield Problem(_GROUPS, message)


def _no_groups(cluster: Cluster) -> Iterator[Problem]:
    if not cluster.node_groups:
        yield Problem(_GROUPS, "there is no node group: the cluster only has masters, which do not run ordinary pods")


PROBLEMS = (_size_order, _spot_price, _pod_ranges, _subnet_addresses)
WARNINGS = (_subnet_addresses_at_most, _routes, _no_groups)
