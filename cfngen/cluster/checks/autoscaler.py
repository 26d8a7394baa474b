"""Checks of cluster-autoscaler, of what it is told about node groups, and of the number of pods on a node."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.checks.sections import GroupCheck
from cfngen.cluster.instances.group_types import type_list, types_of
from cfngen.cluster.instances.instance_types import facts_of
from cfngen.cluster.instances.node_resources import (
    KUBELET_MAX_PODS,
    NODE_TEMPLATE,
    allocatable,
    is_guessed,
    node_template_tags,
    pod_limit,
)
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import auto_scaling_group_id, node_group_prefix
from cfngen.cluster.network.network_plugins import delegates_prefixes, network_plugin
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.text import join_and
from cfngen.text_limits import AUTO_SCALING_GROUP_NAME, STACK_NAME, TAG_KEY, TAG_VALUE

_ADDON_PATH: Path = ("addons", "clusterAutoscaler")
# CloudFormation names a group `<stack>-<logical id>-<up to 13 random characters>`. A name that is too long is cut, and
# then no pattern for the logical id would match it.
_MAX_LOGICAL_ID_LENGTH = AUTO_SCALING_GROUP_NAME.longest - STACK_NAME.longest - len("-") - len("-") - 13
# Tags of an Auto Scaling group that are left to the user: it has 50 at most ("Tag Auto Scaling groups", Auto Scaling
# User Guide, November 2026), and cfngen itself adds six.
_MAX_GROUP_TAGS = 44
# The part of a tag's key after which cluster-autoscaler takes the rest for the key of a label, wherever it stands.
_EKS_PREFIX = "eks:"
# Addresses of a node's range that no pod gets: the network's own, the gateway's and the broadcast address (host-local
# plug-in of CNI, plugins/ipam/host-local).
_ADDRESSES_NOT_FOR_PODS = 3


def _check_expander(cluster: Cluster) -> Iterator[Problem]:
    """Check that the expanders form a chain that cluster-autoscaler accepts (its expander/factory)."""
    addon = cluster.addons.cluster_autoscaler
    path: Path = (*_ADDON_PATH, "expander")
    for index, expander in enumerate(addon.expander):
        if expander in addon.expander[:index]:
            yield Problem(
                (*path, index), f"{expander} appears twice, and cluster-autoscaler does not start; remove one"
            )
        elif index and addon.expander[index - 1] == "random":
            message = f"random leaves {expander} no choice, and cluster-autoscaler does not start; put random last"
            yield Problem((*path, index), message)
    arguments = addon.values.get("extraArgs")
    if addon.expander and isinstance(arguments, Mapping) and "expander" in arguments:
        message = "is given twice; use the key expander, and remove this one"
        yield Problem((*_ADDON_PATH, "values", "extraArgs", "expander"), message, related_paths=(path,))


def _check_priorities(cluster: Cluster) -> Iterator[Problem]:
    addon = cluster.addons.cluster_autoscaler
    path: Path = (*_ADDON_PATH, "priorities")
    expander_path: Path = (*_ADDON_PATH, "expander")
    chart_path: Path = (*_ADDON_PATH, "values", "expanderPriorities")
    has_chart_priorities = bool(addon.values.get("expanderPriorities"))
    if addon.priorities and "priority" not in addon.expander:
        message = "has no effect without the expander priority; set expander: [priority], or remove the priorities"
        yield Problem(path, message, related_paths=(expander_path,))
    if addon.priorities and has_chart_priorities:
        yield Problem(chart_path, "priorities are given twice; remove one of them", related_paths=(path,))
    if "priority" in addon.expander and not addon.priorities and not has_chart_priorities:
        message = "priority chooses by priorities, and there are none; add priorities, or remove priority"
        yield Problem(expander_path, message, related_paths=(path,))
    yield from _check_prioritized_groups(cluster)


def _check_prioritized_groups(cluster: Cluster) -> Iterator[Problem]:
    path: Path = (*_ADDON_PATH, "priorities")
    groups = {group.name: (index, group) for index, group in enumerate(cluster.node_groups)}
    first_priority: dict[str, str] = {}
    for priority, names in cluster.addons.cluster_autoscaler.priorities.items():
        if not names:
            yield Problem((*path, priority), "names no node group; name some, or remove the priority")
        for position, name in enumerate(names):
            name_path: Path = (*path, priority, position)
            if name not in groups:
                message = f"there is no node group {name}; the groups are {join_and(list(groups))}"
                yield Problem(name_path, message, related_paths=(("nodeGroups",),))
                continue
            index, group = groups[name]
            if name in first_priority:
                message = f"{name} has the priority {first_priority[name]} already; remove one of them"
                yield Problem(name_path, message, related_paths=((*path, first_priority[name]),))
            elif not group.autoscaler.enabled:
                message = f"{name} is left alone by cluster-autoscaler (autoscaler.enabled: false); remove one of them"
                yield Problem(name_path, message, related_paths=(("nodeGroups", index, "autoscaler", "enabled"),))
            elif len(auto_scaling_group_id(node_group_prefix(name))) > _MAX_LOGICAL_ID_LENGTH:
                message = "so long a name may be cut in that of the Auto Scaling group; give the group a shorter one"
                yield Problem(name_path, message)
            first_priority.setdefault(name, priority)


def _warn_of_groups_that_stay_empty(cluster: Cluster) -> Iterator[Problem]:
    is_installed = cluster.addons.cluster_autoscaler.enabled
    for index, group in enumerate(cluster.node_groups):
        if group.min_size or group.desired_size or (is_installed and group.autoscaler.enabled):
            continue
        path: Path = ("nodeGroups", index, "minSize")
        if is_installed:
            message = "the group starts without nodes, and cluster-autoscaler leaves it alone; set its size yourself"
            yield Problem(path, message, related_paths=(("nodeGroups", index, "autoscaler", "enabled"),))
        else:
            message = (
                "the group starts without nodes, and nothing here adds any; enable addons.clusterAutoscaler, or set "
                "its size yourself"
            )
            yield Problem(path, message, related_paths=(("addons", "clusterAutoscaler", "enabled"),))


def _warn_of_groups_without_priority(cluster: Cluster) -> Iterator[Problem]:
    priorities = cluster.addons.cluster_autoscaler.priorities
    prioritized = {name for names in priorities.values() for name in names}
    others = [group.name for group in cluster.node_groups if group.autoscaler.enabled and group.name not in prioritized]
    if priorities and others:
        message = (
            f"cluster-autoscaler does not use groups without a priority while others can grow: {join_and(others)}; "
            "give each a priority"
        )
        yield Problem((*_ADDON_PATH, "priorities"), message, related_paths=(("nodeGroups",),))


def _check_tags(cluster: Cluster) -> Iterator[Problem]:
    """Check that Auto Scaling accepts the tags that tell cluster-autoscaler about a group.

    Keys of labels and taints are checked by `kubernetes_configuration`, so resources remain.
    """
    for index, group in enumerate(cluster.node_groups):
        for key, value in node_template_tags(cluster, group).items():
            kind, _, name = key.removeprefix(f"{NODE_TEMPLATE}/").partition("/")
            if kind == "resources":
                reason = TAG_KEY.fault(key) or TAG_VALUE.fault(value)
                if reason:
                    message = f"becomes a tag, which {reason}; choose a shorter name"
                    yield Problem(("nodeGroups", index, "autoscaler", "resources", name), message)
            if key in cluster.tags:
                message = f"node group {group.name} sets this tag itself, from its {kind}; remove it"
                yield Problem(("tags", key), message, related_paths=(("nodeGroups", index),))


def _check_tag_count(cluster: Cluster) -> Iterator[Problem]:
    """Check that the tags of each Auto Scaling group do not exceed the quota.

    Besides the cluster's tags, cluster-autoscaler needs a tag for each label, for each key of a taint, and for each
    resource and setting of its own.
    """
    for index, group in enumerate(cluster.node_groups):
        template_tags = node_template_tags(cluster, group)
        tag_count = len(template_tags) + len(cluster.tags)
        if tag_count > _MAX_GROUP_TAGS:
            has_settings = any("/resources/" in key or "/autoscaling-options/" in key for key in template_tags)
            sources = "labels, taints, autoscaler and tags" if has_settings else "labels, taints and tags"
            message = (
                f"{sources} need {tag_count} tags of the Auto Scaling group, but only {_MAX_GROUP_TAGS} "
                "are possible; remove some"
            )
            yield Problem(
                ("nodeGroups", index, "labels"),
                message,
                related_paths=(
                    ("nodeGroups", index, "taints"),
                    ("nodeGroups", index, "autoscaler", "resources"),
                    ("tags",),
                ),
            )


def _may_be_empty(group: NodeGroup) -> bool:
    """Return whether a group may have no node, so that cluster-autoscaler knows its nodes from tags only."""
    return group.min_size == 0


def _why_told(path: Path) -> tuple[Path, ...]:
    """Return the paths on which it depends whether cluster-autoscaler has to be told about the nodes of a group."""
    return (("addons", "clusterAutoscaler", "enabled"), (*path, "autoscaler", "enabled"), (*path, "minSize"))


def _warn_of_unknown_nodes(cluster: Cluster) -> Iterator[Problem]:
    if not cluster.addons.cluster_autoscaler.enabled:
        return
    for index, group in enumerate(cluster.node_groups):
        if not _may_be_empty(group) or not group.autoscaler.enabled:
            continue
        path: Path = ("nodeGroups", index)
        if is_guessed(group) and allocatable(cluster, group) is None and not group.autoscaler.resources:
            unknown = [name for name in types_of(cluster, group) if facts_of(name) is None]
            message = (
                f"cfngen does not know the size of {join_and(unknown)}, and cluster-autoscaler takes the group's first "
                "type for all while there is no node; set autoscaler.resources to what the smallest type has"
            )
            yield Problem((*path, "instanceType"), message, related_paths=_why_told(path))
        yield from _warn_of_hidden_taints(path, group)


def _warn_of_hidden_taints(path: Path, group: NodeGroup) -> Iterator[Problem]:
    first_effect: dict[str, str] = {}
    for position, taint in enumerate(group.taints):
        tag_effect = first_effect.setdefault(taint.key, taint.effect)
        if tag_effect == "PreferNoSchedule" and taint.effect != tag_effect:
            message = (
                f"cluster-autoscaler is told only the first taint of {taint.key}, PreferNoSchedule, while there is no "
                "node, and may add nodes for pods that this one keeps away; put this one first"
            )
            yield Problem((*path, "taints", position), message, related_paths=_why_told(path))


def _warn_of_tags_taken_for_labels(cluster: Cluster) -> Iterator[Problem]:
    has_empty_group = any(_may_be_empty(group) and group.autoscaler.enabled for group in cluster.node_groups)
    if not cluster.addons.cluster_autoscaler.enabled or not has_empty_group:
        return
    for key in cluster.tags:
        if _EKS_PREFIX in key:
            label = key.split(_EKS_PREFIX)[1]
            message = (
                f"cluster-autoscaler takes a tag with {_EKS_PREFIX} for a label, here {label}, which nodes do not get; "
                "choose another key"
            )
            related_paths: tuple[Path, ...] = (("addons", "clusterAutoscaler", "enabled"), ("nodeGroups",))
            yield Problem(("tags", key), message, related_paths=related_paths)


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
            path: Path = ("nodeGroups", index)
            related_paths = (*_why_told(path), ("network", "plugin"))
            yield Problem((*path, "instanceType"), message, related_paths=related_paths)


PROBLEM_CHECKS = (
    _check_expander,
    _check_priorities,
    GroupCheck(
        "autoscaler.enabled",
        when=lambda cluster, group: not group.autoscaler.enabled and group.autoscaler.model_fields_set - {"enabled"},
        message="cluster-autoscaler leaves this group alone, so the other keys have no effect; remove them",
        related=(".autoscaler",),
    ),
    _check_tags,
    _check_tag_count,
    GroupCheck(
        "autoscaler.resources.pods",
        when=lambda cluster, group: group.max_pods is not None and "pods" in group.autoscaler.resources,
        message="maxPods tells cluster-autoscaler the number of pods already; remove it here",
        related=(".maxPods",),
    ),
    GroupCheck(
        "kubeletConfiguration.maxPods",
        when=lambda cluster, group: group.max_pods is not None and "maxPods" in group.kubelet_configuration,
        message="is given twice; use the group's key maxPods, and remove this one",
        related=(".maxPods",),
    ),
    _check_addresses,
)
WARNING_CHECKS = (
    _warn_of_groups_that_stay_empty,
    _warn_of_groups_without_priority,
    _warn_of_unknown_nodes,
    _warn_of_tags_taken_for_labels,
    _warn_of_limit_that_the_autoscaler_does_not_know,
)
