"""Statements of the cluster file for the roles of node groups and of service accounts."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from cfngen.cluster import field_types
from cfngen.cluster.sections.base import List, Model


class PolicyStatement(Model):
    """A statement of an IAM policy, for the role of a node group or of a service account."""

    effect: Literal["Allow", "Deny"] = Field("Allow", description="What the statement does.")
    actions: List[field_types.IamAction] = Field(
        min_length=1, description="Actions such as `s3:GetObject`; `*` stands for any characters of a name."
    )
    resources: List[field_types.IamResource] = Field(
        min_length=1, description="ARNs of the resources, with `*` for any characters; `*` alone is any resource."
    )
    conditions: dict[str, dict[str, Any]] = Field(
        default_factory=dict,
        description="Conditions by operator and key: `{StringEquals: {aws:ResourceTag/team: ml}}`.",
    )
