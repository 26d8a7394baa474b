"""The exit codes of cfngen, and the one for each error and for each result of a command."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

SUCCESS = 0
FAILED = 1
PROBLEMS = 2
STALE = 3
CHANGES = 4
DANGER = 5
IN_PROGRESS = 6
USAGE = 64  # EX_USAGE of sysexits.h, since click's own code 2 is used for PROBLEMS
INTERNAL = 70
INTERRUPTED = 130
BROKEN_PIPE = 141
TERMINATED = 143

EXIT_CODES = {
    SUCCESS: "done",
    FAILED: "refused or failed; the message says what to do",
    PROBLEMS: "validate, deploy: the cluster has problems; rehearse: AWS differed from the emulator",
    STALE: "templates --check: the output directory is not up to date",
    CHANGES: "plan: there are changes",
    DANGER: "plan: there are changes that may lose data, addresses or the cluster",
    IN_PROGRESS: "CloudFormation continues without cfngen; `cfngen watch` attaches again",
    USAGE: "usage error, such as an unknown command or option",
    INTERNAL: "a bug in cfngen; run the command again with --debug and report it",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "the program that reads the output, such as `head`, has exited",
    TERMINATED: "terminated; an operation that CloudFormation has started continues",
}

ERROR_EXIT_CODES: Mapping[str, int] = {
    "failed-creation": CHANGES,  # a plan that deletes the failed stack first has changes
    "internal-error": INTERNAL,
    "interrupted": INTERRUPTED,
    "operation-in-progress": IN_PROGRESS,
    "restore-detached": INTERRUPTED,
    "start-interrupted": IN_PROGRESS,
    "update-unfinished": IN_PROGRESS,
    "usage": USAGE,
    "watch-ended": IN_PROGRESS,
}
"""The exit code for each error, by its `code`; every other error has FAILED."""


class OperationResult(Protocol):
    """The properties of a finished or detached operation that decide the exit code."""

    @property
    def in_progress(self) -> bool:
        """Whether it is still in progress, because the user detached from it."""

    @property
    def succeeded(self) -> bool:
        """Whether it was successful."""


class PlanResult(Protocol):
    """The properties of a plan that decide the exit code."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing would change."""

    @property
    def is_dangerous(self) -> bool:
        """Whether data, addresses or the cluster may be lost."""

    @property
    def refusal_reason(self) -> str:
        """Why the plan cannot be carried out; empty if it can."""


class RehearsalOutcome(Protocol):
    """The property of a rehearsal that decides the exit code."""

    @property
    def result(self) -> str:
        """`as expected`, `surprise`, or why it ended early: `refused` or `interrupted`."""


def error_exit_code(code: str) -> int:
    """Return the exit code for an error with this `code`."""
    return ERROR_EXIT_CODES.get(code, FAILED)


def operation_exit_code(result: OperationResult) -> int:
    """Return the exit code of a command that started or watched an operation."""
    if result.in_progress:
        return IN_PROGRESS
    return SUCCESS if result.succeeded else FAILED


def plan_exit_code(plan: PlanResult) -> int:
    """Return the exit code of `cfngen plan`."""
    if plan.is_empty:
        return SUCCESS
    return DANGER if plan.is_dangerous or plan.refusal_reason else CHANGES


def validation_exit_code(*, valid: bool) -> int:
    """Return the exit code of a command that checked whether the cluster works."""
    return SUCCESS if valid else PROBLEMS


def rehearsal_exit_code(rehearsal: RehearsalOutcome, *, leftovers: bool) -> int:
    """Return the exit code of a rehearsal that was not interrupted.

    Args:
        rehearsal: the result of the rehearsal.
        leftovers: whether the rehearsal left resources in the account.
    """
    if rehearsal.result == "surprise":
        return PROBLEMS
    return SUCCESS if rehearsal.result == "as expected" and not leftovers else FAILED
