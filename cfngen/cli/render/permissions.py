"""Formats IAM policies as text."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfngen.permissions.grants import Policy


def document_lines(policy: Policy) -> list[str]:
    """Return the lines of the policy document, as `aws iam create-policy` takes it."""
    return json.dumps(policy.document, indent=2, ensure_ascii=False).split("\n")
