"""How a command ended for each of several clusters: in words, from its exit code and from the cluster's stack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from cfngen.cli.exit_codes import (
    FAILED,
    INTERRUPTED,
    OPERATION_IN_PROGRESS,
    OUTPUT_IS_STALE,
    PLAN_HAS_CHANGES,
    PLAN_IS_DANGEROUS,
    PROBLEMS_FOUND,
    SUCCESS,
    TERMINATED,
)

if TYPE_CHECKING:
    from cfngen.deploy.aws.stacks import StackView

NOT_STARTED = "not started"
_MEANINGS: Mapping[str, Mapping[int, str]] = {
    "lint": {SUCCESS: "nothing found"},
    "plan": {SUCCESS: "no changes", PLAN_HAS_CHANGES: "changes", PLAN_IS_DANGEROUS: "dangerous changes"},
    "templates": {OUTPUT_IS_STALE: "not up to date"},
    "validate": {SUCCESS: "valid", PROBLEMS_FOUND: "not valid", FAILED: "not known"},
}
_MEANINGS_FOR_ALL = {
    SUCCESS: "done",
    FAILED: "failed",
    OPERATION_IN_PROGRESS: "in progress",
    INTERRUPTED: "interrupted",
    TERMINATED: "interrupted",
}


@dataclass(frozen=True)
class ClusterOutcome:
    """How a command ended for one of several clusters.

    Attributes:
        cluster: its name.
        region: its region.
        file: its cluster file.
        outcome: in words, e.g. `created`, `unchanged`, `rolled back` or `not started`.
        status: status of its stack afterwards; empty if there is none, and if the command does not ask for it.
        exit_code: what the command would have exited with for this cluster alone; null if it was not started.
    """

    cluster: str
    region: str
    file: str
    outcome: str = NOT_STARTED
    status: str = ""
    exit_code: int | None = None


@dataclass(frozen=True)
class ClusterOutcomes:
    """A command has ended for several clusters; the last line of its output.

    Attributes:
        command: the command.
        clusters: each cluster, in the order in which the command was run for them.
        exit_code: what the process exits with: the worst of the clusters' exit codes.
    """

    kind: ClassVar[str] = "clusters"
    command: str
    clusters: tuple[ClusterOutcome, ...]
    exit_code: int


def outcome_of(command: str, exit_code: int, before: StackView | None, after: StackView | None) -> str:
    """Return in words how a command ended for a cluster.

    Args:
        before: the cluster's stack before, if the command reads or changes it and there was one.
        after: the same afterwards.
    """
    if command not in ("deploy", "delete"):
        meaning = _MEANINGS.get(command, {}).get(exit_code) or _MEANINGS_FOR_ALL.get(exit_code)
        return meaning or f"exit code {exit_code}"
    is_changed = (before and (before.id, before.updated, before.status)) != (
        after and (after.id, after.updated, after.status)
    )
    if after is not None and after.status.in_progress:
        return "in progress"
    if exit_code not in (SUCCESS, PROBLEMS_FOUND):
        word = _MEANINGS_FOR_ALL.get(exit_code, _MEANINGS_FOR_ALL[FAILED])
        # A stack that a failed creation has left behind is deleted with --on-failure delete.
        if is_changed and command == "deploy" and (after is None or after.status.rolled_back):
            word = "rolled back"
        return word if is_changed else f"{word}, unchanged"
    if command == "delete":
        return "deleted" if before else "was not there"
    is_new = before is None or (after is not None and after.id != before.id)
    done = "created" if is_new else "updated" if is_changed else "unchanged"
    return done if exit_code == SUCCESS else f"{done}, but not valid"
