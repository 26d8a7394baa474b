"""Checks of names: they are unique, and no name derived from them is too long."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster import names
from cfngen.cluster.checks.sections import KeyCheck
from cfngen.cluster.logical_ids import pascal
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem


def _check_cluster_name_length(cluster: Cluster) -> Iterator[Problem]:
    too_long = names.cluster_name_too_long(cluster.name)
    if too_long:
        derived_name, name_text = too_long
        excess_length = len(name_text) - derived_name.max_length
        message = (
            f"has {len(cluster.name)} characters; the {derived_name.subject} is named after it and may have "
            f"{derived_name.max_length}, so use at most {len(cluster.name) - excess_length}"
        )
        yield Problem(("name",), message)


def _check_group_name_lengths(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        too_long = names.group_name_too_long(cluster, group.name)
        if too_long:
            derived_name, name_text = too_long
            excess_length = len(name_text) - derived_name.max_length
            message = (
                f"has {len(group.name)} characters; the {derived_name.subject} is named after it and may have "
                f"{derived_name.max_length}, so use at most {len(group.name) - excess_length}"
            )
            yield Problem(("nodeGroups", index, "name"), message, related_paths=(("name",),))


def _check_group_names_distinct(cluster: Cluster) -> Iterator[Problem]:
    """Check that no two node groups would have the same logical ids: in these, a group's name has no hyphens."""
    first_index_by_id: dict[str, int] = {}
    for index, group in enumerate(cluster.node_groups):
        logical_id = pascal(group.name)
        earlier_index = first_index_by_id.setdefault(logical_id, index)
        if earlier_index == index:
            continue
        other = cluster.node_groups[earlier_index].name
        if other == group.name:
            message = f"{group.name} is also the name of nodeGroups[{earlier_index}]; give each group a different name"
        else:
            message = (
                f"{group.name} and {other} (nodeGroups[{earlier_index}]) differ by hyphens only and would share the "
                f"logical id {logical_id}; rename one"
            )
        yield Problem(("nodeGroups", index, "name"), message, related_paths=(("nodeGroups", earlier_index, "name"),))


def _check_no_dynamic_references(cluster: Cluster) -> Iterator[Problem]:
    """Check that the SSH key contains no dynamic reference.

    CloudFormation resolves `{{resolve:…}}` everywhere in a template, and there is no way to escape one ("Dynamic
    references", AWS CloudFormation User Guide).
    """
    texts: tuple[tuple[Path, str | None], ...] = (
        (("ssh", "keyName"), cluster.ssh.key_name),
        (("ssh", "publicKey"), cluster.ssh.public_key),
    )
    for path, text in texts:
        if text and "{{resolve:" in text:
            yield Problem(path, "CloudFormation replaces {{resolve:…}} in every text; remove it")


PROBLEM_CHECKS = (
    _check_cluster_name_length,
    KeyCheck(
        "name",
        # "Name", CreateLoadBalancer, ELB API Reference.
        when=lambda cluster: cluster.control_plane.count > 1 and cluster.name.startswith("internal-"),
        message="the load balancer of several masters is named after the cluster, and such a name cannot start with "
        "internal-; use another name",
        related=("controlPlane.count",),
    ),
    _check_group_name_lengths,
    _check_group_names_distinct,
    _check_no_dynamic_references,
)
