"""Verbs for operations, followed by a stack's name."""

from __future__ import annotations

from collections.abc import Mapping

OPERATION_VERBS: Mapping[str, str] = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "rollback": "rolling back",
    "import": "importing into",
}
"""By the name of an operation, as in `Progress.action`: the verb, to be followed by the name of the stack."""
