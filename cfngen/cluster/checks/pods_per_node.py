"""Checks of the number of pods on a node: it is given once, and there are addresses for all of them."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import GroupCheck
from cfngen.cluster.group_types import type_list, types_of
from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import delegates_prefixes, network_plugin
from cfngen.cluster.node_resources import KUBELET_MAX_PODS, pod_limit
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem

# Addresses of a node's range that no pod gets: the network's own, the gateway's and the broadcast address (host-local
# plug-in of CNI, plugins/ipam/host-local).
_ADDRESSES_NOT_FOR_PODS = 3


def _check_addresses(cluster: Cluster) -> Iterator[Problem]:
    plugin = network_plugin(cluster)
    for index, group in enumerate(cluster.node_groups):
        if group.max_pods is None:
            continue
        path: Path = ("nodeGroups", index, "maxPods")
        range_size = 2 ** (32 - plugin.node_block_prefix) - _ADDRESSES_NOT_FOR_PODS
        # Without a plug-in of cfngen's, it is not known whether pods get addresses of the node's range.
        has_one_range = plugin.gives_nodes_pod_cidrs and cluster.network.plugin != "none"
        if has_one_range and group.max_pods > range_size:
            message = (
                f"{group.max_pods} pods are too many: each node gets a /{plugin.node_block_prefix} of network.podCidr, "
                f"with {range_size} addresses; use at most {range_size}"
            )
            yield Problem(path, message, related_paths=(("network", "plugin"),))
        limit = pod_limit(cluster, types_of(cluster, group))
        if limit is not None and group.max_pods > limit:
            remedy = (
                "" if delegates_prefixes(cluster) else ", or set ENABLE_PREFIX_DELEGATION in network.pluginValues.env"
            )
            types = type_list(types_of(cluster, group))
            message = (
                f"{group.max_pods} pods are too many: {types} has addresses for {limit}; use at most {limit} or a "
                f"larger type{remedy}"
            )
            yield Problem(path, message, related_paths=(("nodeGroups", index, "instanceType"), ("network", "plugin")))


def _warn_of_limit_that_the_autoscaler_does_not_know(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        types = types_of(cluster, group)
        limit = pod_limit(cluster, types)
        is_scaled = cluster.addons.cluster_autoscaler.enabled and group.autoscaler.enabled and group.min_size == 0
        is_known = group.max_pods is not None or "pods" in group.autoscaler.resources or len(types) > 1
        if is_scaled and not is_known and limit is not None and limit < KUBELET_MAX_PODS:
            message = (
                f"a node of the type {types[0]} has addresses for {limit} pods, but cluster-autoscaler expects "
                f"{KUBELET_MAX_PODS} while there is no node; set maxPods: {limit}"
            )
            yield Problem(("nodeGroups", index, "instanceType"), message, related_paths=(("network", "plugin"),))


PROBLEM_CHECKS = (
    GroupCheck(
        "kubeletConfiguration.maxPods",
        when=lambda cluster, group: group.max_pods is not None and "maxPods" in group.kubelet_configuration,
        message="is given twice; use the group's key maxPods, and remove this one",
        related=(".maxPods",),
    ),
    _check_addresses,
)
WARNING_CHECKS = (_warn_of_limit_that_the_autoscaler_does_not_know,)
