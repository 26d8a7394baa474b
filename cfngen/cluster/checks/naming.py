"""Checks of names: they are unique, and no name derived from them is too long."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster import names
from cfngen.cluster.logical_ids import pascal
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path
from cfngen.cluster.problems import Problem


def _cluster_name(cluster: Cluster) -> Iterator[Problem]:
    match = names.cluster_name_too_long(cluster.name)
    if match:
        derived, name = match
        longest = len(cluster.name) - (len(name) - derived.limit)
        message = (
            f"has {len(cluster.name)} characters; the {derived.subject} is named after it and may have "
            f"{derived.limit}, so use at most {longest}"
        )
        yield Problem(("name",), message)


def _balancer_name(cluster: Cluster) -> Iterator[Problem]:
    # "Name", CreateLoadBalancer, Elastic Load Balancing API Reference.
    if cluster.control_plane.count > 1 and cluster.name.startswith("internal-"):
        message = (
            "the load balancer of several masters is named after the cluster, and such a name cannot start with "
            "internal-; "
            "use another name"
        )
        yield Problem(("name",), message, (("controlPlane", "count"),))


def _group_names(cluster: Cluster) -> Iterator[Problem]:
    for index, group in enumerate(cluster.node_groups):
        match = names.group_name_too_long(cluster, group.name)
        if match:
            derived, name = match
            longest = len(group.name) - (len(name) - derived.limit)
            message = (
                f"has {len(group.name)} characters; the {derived.subject} is named after it and may have "
                f"{derived.limit}, so use at most {longest}"
            )
            yield Problem(("nodeGroups", index, "name"), message, (("name",),))


def _groups_distinct(cluster: Cluster) -> Iterator[Problem]:
    first_index: dict[str, int] = {}
    for index, group in enumerate(cluster.node_groups):
        logical_id = pascal(group.name)
        earlier_index = first_index.setdefault(logical_id, index)
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
        yield Problem(("nodeGroups", index, "name"), message, (("nodeGroups", earlier_index, "name"),))


def _dynamic_references(cluster: Cluster) -> Iterator[Problem]:
    # CloudFormation resolves them everywhere and has no escape ("Dynamic references", AWS CloudFormation User Guide).
    texts: tuple[tuple[Path, str | None], ...] = (
        (("ssh", "keyName"), cluster.ssh.key_name),
        (("ssh", "publicKey"), cluster.ssh.public_key),
    )
    for path, text in texts:
        if text and "{{resolve:" in text:
            yield Problem(path, "CloudFormation replaces {{resolve:…}} in every text; remove it")


PROBLEMS = (_cluster_name, _balancer_name, _group_names, _groups_distinct, _dynamic_references)
