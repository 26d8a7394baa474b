"""The table of the commands to run next for each status of a cluster's root stack; every message uses it.

Tests run each command from each status; docs/operations.md shows the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.deploy.status import StackHealth, StackStatus
from cfngen.hints import CommandText, Hint, SuggestedCommand, suggest

_STEPS: Mapping[StackHealth, tuple[tuple[SuggestedCommand, str], ...]] = {
    StackHealth.ABSENT: ((suggest("deploy"), "creates the cluster"),),
    StackHealth.EMPTY: ((suggest("deploy"), "creates the cluster in the empty stack"),),
    StackHealth.BUSY: ((suggest("watch"), "attaches to the operation that is still in progress"),),
    StackHealth.PAUSED: (
        (suggest("deploy"), "continues from here, once the cause is fixed"),
        (
            suggest("rollback"),
            "returns to the last successful state, or deletes what has been created if there was none",
        ),
    ),
    StackHealth.DELETE_ONLY: (
        (suggest("deploy"), "asks to delete the remains and creates the cluster again, once the cause is fixed"),
        (suggest("delete"), "deletes the remains"),
    ),
    StackHealth.UPDATE_ROLLBACK_FAILED: (
        (suggest("rollback"), "continues the rollback, once the cause is fixed"),
        (suggest("rollback", "--force"), "continues it and leaves what cannot be rolled back as it is"),
    ),
    StackHealth.IMPORT_ROLLBACK_FAILED: (
        (suggest("events", "--failures"), "shows what failed; AWS Support can repair such a stack"),
        (suggest("delete"), "deletes the cluster; CloudFormation cannot continue the rollback of an import"),
    ),
    StackHealth.DELETE_FAILED: (
        (suggest("delete"), "deletes what Kubernetes has created and continues the deletion"),
        (suggest("delete", "--leave-behind"), "continues, and leaves behind what CloudFormation cannot delete"),
    ),
    StackHealth.HEALTHY: (),
}
_STEPS_AFTER_FAILED_CREATION = (_STEPS[StackHealth.PAUSED][0], (suggest("rollback"), "deletes what has been created"))


@dataclass(frozen=True)
class NextStep:
    """A command that the user can run next.

    Attributes:
        command: the command line.
        purpose: what it does.
    """

    command: SuggestedCommand
    purpose: str


def next_steps(status: StackStatus, stack: str = "") -> tuple[NextStep, ...]:
    """Return the commands to run next from a status, the usual one first; none if the stack is healthy.

    Args:
        status: status of the root stack.
        stack: name for the option --stack-name of the commands; empty leaves the option out.
    """
    steps = _STEPS_AFTER_FAILED_CREATION if status.name == "CREATE_FAILED" else _STEPS[status.health]
    options = (("--stack-name", stack),) if stack else ()
    return tuple(NextStep(command.with_options(options), purpose) for command, purpose in steps)


def as_hint(steps: Sequence[NextStep]) -> Hint:
    """Return the commands as one line of text, each with its purpose."""
    if not steps:
        return ""
    first, *others = (CommandText(step.command, f" {step.purpose}") for step in steps)
    return CommandText(first, *(CommandText("; ", other) for other in others), ".")
