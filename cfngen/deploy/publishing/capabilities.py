"""What a caller must acknowledge before CloudFormation takes templates, derived from what stands in them.

Source: "CreateChangeSet", CloudFormation API Reference, Capabilities. A change set of a root needs what its nested
templates need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cfngen.templates.document import Document

IAM, NAMED_IAM, AUTO_EXPAND = "CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"
# The property by which a resource of IAM bears a name that CloudFormation did not make up.
_NAME_PROPERTIES = {
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}


def capabilities(documents: Sequence[Document]) -> tuple[str, ...]:
    """Return the capabilities that templates need together.

    Args:
        documents: the root and what it nests; `standalone` may be among them.
    """
    needed = {capability for document in documents for capability in _needed(document.body)}
    # CAPABILITY_NAMED_IAM is CAPABILITY_IAM and more.
    return tuple(sorted(needed - {IAM} if NAMED_IAM in needed else needed))


def _needed(body: Mapping[str, Any]) -> Iterator[str]:
    if "Transform" in body or _has_macro(body):
        yield AUTO_EXPAND
    for resource in body.get("Resources", {}).values():
        kind = resource.get("Type", "") if isinstance(resource, Mapping) else ""
        if kind.startswith("AWS::IAM::"):
            yield NAMED_IAM if _NAME_PROPERTIES.get(kind) in resource.get("Properties", {}) else IAM


def _has_macro(value: Any) -> bool:
    if isinstance(value, Mapping):
        # Loops are part of a transform that must be named, and yet a template without it is not what it seems.
        return any(str(key).startswith(("Fn::Transform", "Fn::ForEach")) or _has_macro(v) for key, v in value.items())
    return isinstance(value, (list, tuple)) and any(_has_macro(item) for item in value)
