"""The exit codes of cfngen, and the one for each error and for each result of a command."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

SUCCESS = 0
FAILED = 1
PROBLEMS_FOUND = 2
OUTPUT_IS_STALE = 3
PLAN_HAS_CHANGES = 4
PLAN_IS_DANGEROUS = 5
OPERATION_IN_PROGRESS = 6
USAGE_ERROR = 64  # EX_USAGE of sysexits.h, since click's own code 2 is used for PROBLEMS_FOUND
INTERNAL_ERROR = 70
INTERRUPTED = 130  # as shells report SIGINT; SIGPIPE and SIGTERM likewise
BROKEN_PIPE = 141
TERMINATED = 143

# What each exit code means, for the help of `cfngen`.
EXIT_CODE_MEANINGS = {
    SUCCESS: "done",
    FAILED: "refused or failed; the message says what to do",
    PROBLEMS_FOUND: "the cluster or its network has problems; rehearse: AWS differed from the emulator",
    OUTPUT_IS_STALE: "templates --check: the output directory is not up to date",
    PLAN_HAS_CHANGES: "plan, config --diff: there are changes; permissions --diff: less is granted",
    PLAN_IS_DANGEROUS: "plan: changes may lose data, addresses or the cluster, or let everybody in; "
    "permissions --diff: more is granted",
    OPERATION_IN_PROGRESS: "CloudFormation continues without cfngen; `cfngen watch` attaches again",
    USAGE_ERROR: "usage error, such as an unknown command or option",
    INTERNAL_ERROR: "a bug in cfngen; run the command again with --debug and report it",
    INTERRUPTED: "interrupted",
    BROKEN_PIPE: "the program that reads the output, such as `head`, has exited",
    TERMINATED: "terminated; an operation that CloudFormation has started continues",
}

WORST_FIRST = (
    INTERNAL_ERROR, TERMINATED, INTERRUPTED, BROKEN_PIPE, USAGE_ERROR, FAILED, OPERATION_IN_PROGRESS, PROBLEMS_FOUND,
    PLAN_IS_DANGEROUS, PLAN_HAS_CHANGES, OUTPUT_IS_STALE, SUCCESS,
)  # fmt: skip
"""Every exit code, the worst first: of several clusters, the worst one is the exit code of the command."""

EXIT_CODE_BY_ERROR: Mapping[str, int] = {
    "internal-error": INTERNAL_ERROR,
    "interrupted": INTERRUPTED,
    "operation-in-progress": OPERATION_IN_PROGRESS,
    "replacement-detached": INTERRUPTED,
    "pause-interrupted": INTERRUPTED,
    "restore-detached": INTERRUPTED,
    "resume-interrupted": INTERRUPTED,
    "start-interrupted": OPERATION_IN_PROGRESS,
    "update-unfinished": OPERATION_IN_PROGRESS,
    "usage": USAGE_ERROR,
    "watch-ended": OPERATION_IN_PROGRESS,
}
"""The exit code for each error, by its `code`; every other error has FAILED."""


def permissions_exit_code(*, grants_more: bool, grants_less: bool) -> int:
    """Return the exit code of `cfngen permissions --diff`."""
    if grants_more:
        return PLAN_IS_DANGEROUS
    return PLAN_HAS_CHANGES if grants_less else SUCCESS


class OperationResult(Protocol):
    """The properties of an operation that decide the exit code, once it has finished or the user has detached."""

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
        """Whether data, addresses or the cluster may be lost, or everybody is let in."""

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
    return EXIT_CODE_BY_ERROR.get(code, FAILED)


def worst_exit_code(exit_codes: Iterable[int]) -> int:
    """Return the exit code of a command that has ended with these for several clusters."""
    return min(exit_codes, key=WORST_FIRST.index, default=SUCCESS)


def operation_exit_code(result: OperationResult) -> int:
    """Return the exit code of a command that started or watched an operation."""
    if result.in_progress:
        return OPERATION_IN_PROGRESS
    return SUCCESS if result.succeeded else FAILED


def plan_exit_code(plan: PlanResult) -> int:
    """Return the exit code of `cfngen plan`."""
    if plan.is_empty:
        return SUCCESS
    return PLAN_IS_DANGEROUS if plan.is_dangerous or plan.refusal_reason else PLAN_HAS_CHANGES


def validation_exit_code(*, valid: bool) -> int:
    """Return the exit code of a command that checked whether the cluster works."""
    return SUCCESS if valid else PROBLEMS_FOUND


def network_check_exit_code(*, has_problems: bool) -> int:
    """Return the exit code of a command that checked the network of a cluster."""
    return PROBLEMS_FOUND if has_problems else SUCCESS


def rehearsal_exit_code(rehearsal: RehearsalOutcome, *, leftovers: bool) -> int:
    """Return the exit code of a rehearsal that was not interrupted."""
    if rehearsal.result == "surprise":
        return PROBLEMS_FOUND
    return SUCCESS if rehearsal.result == "as expected" and not leftovers else FAILED
