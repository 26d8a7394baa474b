"""What policies allow, with the context of a request as a policy writes it: keys in their usual case, single values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cfngen.sandbox.services.authorization import decision


def allows(documents: Sequence[Mapping[str, Any]], action: str, resource: str, *contexts: Mapping[str, Any]) -> bool:
    """Return whether policies allow a request, with the context keys of all contexts together.

    Args:
        documents: policy documents.
        action: e.g. `ec2:AttachVolume`.
        resource: ARN of the resource.
        contexts: the value, or the list of values, of each key.
    """
    values = {
        key.lower(): value if isinstance(value, list) else [value]
        for context in contexts
        for key, value in context.items()
    }
    return decision(documents, action, resource, values) == "allowed"
