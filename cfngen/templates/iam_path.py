"""The path of what the templates make in IAM."""

from __future__ import annotations

from cfngen.cluster.model import Cluster


def iam_path(cluster: Cluster) -> dict[str, str]:
    """Return the property `Path` of roles, instance profiles and managed policies; none for IAM's own default."""
    return {} if cluster.iam.path == "/" else {"Path": cluster.iam.path}
