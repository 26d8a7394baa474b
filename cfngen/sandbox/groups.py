"""The Auto Scaling groups of clusters, and the names by which `cfngen sandbox` shows and accepts them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.cloudformation.resource_types import AUTO_SCALING_GROUP

MASTER = "master"


@dataclass(frozen=True)
class Group:
    """An Auto Scaling group of a stack.

    Attributes:
        stack: name of the root stack.
        name: name of the node group or the master, e.g. `master-a`.
        logical_id: of the Auto Scaling group.
    """

    stack: str
    name: str
    logical_id: str


def groups(cloud: CloudFormation) -> list[Group]:
    """Return every Auto Scaling group of a region's stacks."""
    return [
        Group(stack.root.name, group_name(_tags(resource.properties)), resource.logical_id)
        for stack in cloud.stacks()
        for resource in stack.resources.values()
        if resource.exists and resource.type == AUTO_SCALING_GROUP
    ]


def group_name(tags: Mapping[str, str]) -> str:
    """Return the name of a node group or a master, from the tags of its Auto Scaling group or of an instance."""
    name_in_cluster = tags.get("Name", "").removeprefix(tags.get("KubernetesCluster", "") + "-")
    return name_in_cluster.removeprefix("nodes-")


def matches_group(text: str, name: str, logical_id: str) -> bool:
    """Return whether a text designates a group: its name, its logical id, or `master` for the groups of all masters."""
    return text in (name, logical_id) or (text == MASTER and logical_id.startswith("Master"))


def _tags(properties: Mapping[str, object]) -> dict[str, str]:
    """Return the tags in the properties of an Auto Scaling group."""
    tags = properties.get("Tags")
    return {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else {}
