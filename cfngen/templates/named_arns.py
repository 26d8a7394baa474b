"""ARNs that the cluster file names, as values of properties."""

from __future__ import annotations

from troposphere import Sub

from cfngen.cluster.sections.references import text_of_sub
from cfngen.templates.stack import PropertyValue


def named_arn(arn: str) -> PropertyValue:
    """Return an ARN as it is or, if it leaves the account open, an expression for that of the stack's account."""
    text = text_of_sub(arn)
    return Sub(text) if text else arn


def permissions_boundary(arn: str | None) -> dict[str, PropertyValue]:
    """Return the property `PermissionsBoundary` of a role; none without a boundary."""
    return {"PermissionsBoundary": named_arn(arn)} if arn else {}
