"""The Auto Scaling groups of clusters, and the names by which the commands of `cfngen sandbox` show and accept them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.sandbox.cloudformation import CloudFormation
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP

ALL_MASTERS = "master"  # designates the Auto Scaling groups of all masters


@dataclass(frozen=True)
class ScalingGroup:
    """An Auto Scaling group of a stack.

    Attributes:
        stack: name of the root stack.
        name: name of the node group or the master, e.g. `master-a`.
    """

    stack: str
    name: str
    logical_id: str


def scaling_groups(cloudformation: CloudFormation) -> list[ScalingGroup]:
    """Return every Auto Scaling group of a region's stacks."""
    return [
        ScalingGroup(
            stack=stack.root.name, name=group_name(_tags_of_group(resource.properties)), logical_id=resource.logical_id
        )
        for stack in cloudformation.stacks()
        for resource in stack.resources.values()
        if resource.exists and resource.type == AUTO_SCALING_GROUP
    ]


def group_name(tags: Mapping[str, str]) -> str:
    """Return the name of a node group or a master, from the tags of its Auto Scaling group or of an instance.

    The tag `Name` is the cluster's name with `-nodes-` and the node group's name, or with `-master-` and the slot's
    letter.
    """
    cluster_prefix = tags.get("KubernetesCluster", "") + "-"
    return tags.get("Name", "").removeprefix(cluster_prefix).removeprefix("nodes-")


def designates_group(text: str, *, name: str, logical_id: str) -> bool:
    """Return whether a text designates an Auto Scaling group.

    Args:
        text: a group's name, a logical id, or `master` for the groups of all masters.
        logical_id: logical id of its Auto Scaling group; those of masters start with `Master`.
    """
    return text in (name, logical_id) or (text == ALL_MASTERS and logical_id.startswith("Master"))


def _tags_of_group(properties: Mapping[str, object]) -> dict[str, str]:
    tags = properties.get("Tags")
    return {tag["Key"]: tag["Value"] for tag in tags} if isinstance(tags, list) else {}
