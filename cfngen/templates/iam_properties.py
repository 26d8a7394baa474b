"""Properties of everything that the templates make in IAM: its path and its permissions boundary."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.templates.references import named_arn
from cfngen.templates.stack import PropertyValue


def iam_path(cluster: Cluster) -> dict[str, str]:
    """Return the property `Path` of roles, instance profiles and managed policies; none for IAM's own default."""
    return {} if cluster.iam.path == "/" else {"Path": cluster.iam.path}


def permissions_boundary(arn: str | None) -> dict[str, PropertyValue]:
    """Return the property `PermissionsBoundary` of a role; none without a boundary."""
    return {"PermissionsBoundary": named_arn(arn)} if arn else {}
