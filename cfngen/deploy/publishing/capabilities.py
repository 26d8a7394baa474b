"""The capabilities that must be acknowledged for templates, derived from their content.

Source: "CreateChangeSet", CloudFormation API Reference, Capabilities. A change set of a root needs what its nested
templates need.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from cfngen.deploy.aws_types import TemplatePart
from cfngen.templates.document import Document

IAM, NAMED_IAM, AUTO_EXPAND = "CAPABILITY_IAM", "CAPABILITY_NAMED_IAM", "CAPABILITY_AUTO_EXPAND"
# The property that gives an IAM resource a custom name.
_NAME_PROPERTIES = {
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
}


def capabilities(documents: Sequence[Document]) -> tuple[str, ...]:
    """Return the capabilities that the templates require.

    Args:
        documents: the root and the nested templates; `standalone` may be among them.
    """
    required = {capability for document in documents for capability in _required_capabilities(document.body)}
    # CAPABILITY_NAMED_IAM includes CAPABILITY_IAM.
    if NAMED_IAM in required:
        required.discard(IAM)
    return tuple(sorted(required))


def _required_capabilities(template: TemplatePart) -> Iterator[str]:
    """Yield the capabilities that one template requires; one may be yielded several times."""
    if "Transform" in template or _has_macro(template):
        yield AUTO_EXPAND
    for resource in template.get("Resources", {}).values():
        resource_type = resource.get("Type", "") if isinstance(resource, Mapping) else ""
        if resource_type.startswith("AWS::IAM::"):
            has_custom_name = _NAME_PROPERTIES.get(resource_type) in resource.get("Properties", {})
            yield NAMED_IAM if has_custom_name else IAM


def _has_macro(value: object) -> bool:
    """Return whether a part of a template contains a macro, at any depth."""
    if isinstance(value, Mapping):
        # Fn::ForEach requires a Transform in the template; it is checked here in case the Transform is missing.
        return any(
            str(key).startswith(("Fn::Transform", "Fn::ForEach")) or _has_macro(item) for key, item in value.items()
        )
    return isinstance(value, (list, tuple)) and any(_has_macro(item) for item in value)
