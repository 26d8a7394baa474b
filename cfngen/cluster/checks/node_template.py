"""Checks of the tags that tell cluster-autoscaler about a node group, and of what it would assume without them."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.checks.sections import GroupCheck
from cfngen.cluster.group_types import types_of
from cfngen.cluster.instance_type_facts import facts_of
from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.node_resources import allocatable
from cfngen.cluster.node_template_tags import NODE_TEMPLATE, is_guessed, node_template_tags
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem
from cfngen.text import join_and
from cfngen.text_limits import TAG_KEY, TAG_VALUE

# Tags of an Auto Scaling group that are left to the user: it has 50 at most ("Tag Auto Scaling groups", Auto Scaling
# User Guide, November 2026), and cfngen itself adds six.
_MAX_GROUP_TAGS = 44
# The part of a tag's key after which cluster-autoscaler takes the rest for the key of a label, wherever it stands.
_EKS_PREFIX = "eks:"


def _check_tags(cluster: Cluster) -> Iterator[Problem]:
    """Check that Auto Scaling accepts the tags that tell cluster-autoscaler about a group.

    Labels' and taints' keys are checked where they stand (`cfngen.cluster.checks.nodes`), so resources remain.
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
            yield Problem((*path, "instanceType"), message)
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
            yield Problem((*path, "taints", position), message)


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
            yield Problem(("tags", key), message)


PROBLEM_CHECKS = (
    GroupCheck(
        "autoscaler.enabled",
        when=lambda cluster, group: not group.autoscaler.enabled and group.autoscaler.model_fields_set - {"enabled"},
        message="cluster-autoscaler leaves this group alone, so the other keys have no effect; remove them",
    ),
    _check_tags,
    _check_tag_count,
    GroupCheck(
        "autoscaler.resources.pods",
        when=lambda cluster, group: group.max_pods is not None and "pods" in group.autoscaler.resources,
        message="maxPods tells cluster-autoscaler the number of pods already; remove it here",
        related=(".maxPods",),
    ),
)
WARNING_CHECKS = (_warn_of_unknown_nodes, _warn_of_tags_taken_for_labels)
