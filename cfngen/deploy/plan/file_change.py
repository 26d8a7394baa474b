"""How the cluster file differs from the one that the stack keeps, which the plan says beside the resources."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.cluster.file.kept_file import KeyChange, key_changes
from cfngen.templates.evaluation import EvaluatedTemplate
from cfngen.templates.kept_file import kept_file


@dataclass(frozen=True)
class FileChange:
    """How the cluster file differs from the one that the stack keeps.

    Attributes:
        keys: the keys with other values; none if only comments or layout differ, or if nothing can be compared.
        first: whether the stack keeps no file yet.
    """

    keys: tuple[KeyChange, ...]
    first: bool


def find_file_change(deployed: EvaluatedTemplate | None, requested: EvaluatedTemplate | None) -> FileChange | None:
    """Return how the file changes; None if it does not, and for a stack that is new or cannot be read.

    Args:
        deployed: the root's template in the stack.
        requested: the root's template that is to be deployed.
    """
    before, after = (kept_file(root.template) if root else b"" for root in (deployed, requested))
    if deployed is None or before == after or not after:
        return None
    return FileChange(key_changes(before, after) if before else (), first=not before)
