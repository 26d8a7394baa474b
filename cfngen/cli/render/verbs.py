"""Verbs for operations, followed by a stack's name."""

from __future__ import annotations

from collections.abc import Mapping

VERBS: Mapping[str, str] = {
    "create": "creating",
    "update": "updating",
    "delete": "deleting",
    "rollback": "rolling back",
    "import": "importing into",
}
