"""Statements of an operator whose deployments add tags to existing subnets (`network.tagExisting`).

Resources and conditions: ec2:CreateTags and ec2:DeleteTags in "Actions, resources, and condition keys for Amazon EC2",
Service Authorization Reference. `ForAllValues` is also true for a request without keys, and DeleteTags without keys
deletes all tags of a resource (API reference, DeleteTags), so a request must have keys.
"""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.tag_keys import SUBNET_ROLES, added_tags_note, shared_with
from cfngen.cluster.sections.references import known_id
from cfngen.permissions.scope import Scope
from cfngen.permissions.statements import Condition, Statement, allow


def subnet_tag_statements(cluster: Cluster, scope: Scope) -> list[Statement]:
    """Return the statements to add the tags, and to remove the cluster's own; empty without `network.tagExisting`."""
    # What a reference leads to is not known here, so any subnet stands for it.
    subnet_ids = dict.fromkeys(
        known_id(subnet_id) or "*"
        for subnet in cluster.network.subnets
        for subnet_id in (subnet.id, subnet.public.id if subnet.public else None)
        if subnet_id
    )
    if not cluster.network.tag_existing or not subnet_ids:
        return []
    arns = scope.ec2_arns(*(f"subnet/{subnet_id}" for subnet_id in subnet_ids))
    own_keys = [shared_with(cluster.name), added_tags_note(cluster.name)]
    return [
        allow(
            sid="TagSubnets",
            actions="ec2:CreateTags",
            resources=arns,
            condition=_only_keys([*SUBNET_ROLES, *own_keys]),
        ),
        allow(sid="UntagSubnets", actions="ec2:DeleteTags", resources=arns, condition=_only_keys(own_keys)),
    ]


def _only_keys(keys: Sequence[str]) -> Condition:
    """Return the condition that a request names tags by key, and no others than these."""
    return {"ForAllValues:StringEquals": {"aws:TagKeys": list(keys)}, "Null": {"aws:TagKeys": "false"}}
