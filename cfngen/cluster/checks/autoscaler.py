"""Checks of cluster-autoscaler: its expanders and priorities, and that it is there for groups without nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.logical_ids import auto_scaling_group_id, node_group_prefix
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import join_and
from cfngen.text_limits import AUTO_SCALING_GROUP_NAME, STACK_NAME

_ADDON_PATH: Path = ("addons", "clusterAutoscaler")
# CloudFormation names a group `<stack>-<logical id>-<up to 13 random characters>`. A name that is too long is cut, and
# then no pattern for the logical id would match it.
_MAX_LOGICAL_ID_LENGTH = AUTO_SCALING_GROUP_NAME.longest - STACK_NAME.longest - len("-") - len("-") - 13


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
                yield Problem(name_path, message)
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


PROBLEM_CHECKS = (_check_expander, _check_priorities)
WARNING_CHECKS = (_warn_of_groups_that_stay_empty, _warn_of_groups_without_priority)
