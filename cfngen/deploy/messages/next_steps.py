"""The table of the commands to run next for each status of a cluster's root stack; every message uses it.

Tests run each command from each status; docs/operate/operations.md shows the results.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.hints import CommandText, Hint, SuggestedCommand, suggest


@dataclass(frozen=True)
class NextStep:
    """A command that the user can run next.

    Attributes:
        command: the command line.
        purpose: what the command does in this status, as the rest of a sentence, e.g. `deletes the remains`.
    """

    command: SuggestedCommand
    purpose: str


_STEPS_BY_HEALTH: Mapping[StackHealth, tuple[NextStep, ...]] = {
    StackHealth.ABSENT: (NextStep(suggest("deploy"), "creates the cluster"),),
    StackHealth.EMPTY: (NextStep(suggest("deploy"), "creates the cluster in the empty stack"),),
    StackHealth.BUSY: (NextStep(suggest("watch"), "attaches to the operation that is still in progress"),),
    StackHealth.PAUSED: (
        NextStep(suggest("deploy"), "continues from here, once the cause is fixed"),
        NextStep(
            suggest("rollback"),
            "returns to the last successful state, or deletes what has been created if there was none",
        ),
    ),
    StackHealth.DELETE_ONLY: (
        NextStep(
            suggest("deploy"), "asks to delete the remains and creates the cluster again, once the cause is fixed"
        ),
        NextStep(suggest("delete"), "deletes the remains"),
    ),
    StackHealth.UPDATE_ROLLBACK_FAILED: (
        NextStep(suggest("rollback"), "continues the rollback, once the cause is fixed"),
        NextStep(suggest("rollback", "--force"), "continues it and leaves what cannot be rolled back as it is"),
    ),
    StackHealth.IMPORT_ROLLBACK_FAILED: (
        NextStep(suggest("events", "--failures"), "shows what failed; AWS Support can repair such a stack"),
        NextStep(suggest("delete"), "deletes the cluster; CloudFormation cannot continue the rollback of an import"),
    ),
    StackHealth.DELETE_FAILED: (
        NextStep(suggest("delete"), "deletes what Kubernetes has created and continues the deletion"),
        NextStep(suggest("delete", "--leave-behind"), "continues, and leaves behind what CloudFormation cannot delete"),
    ),
    StackHealth.HEALTHY: (),
}
# In CREATE_FAILED no operation has ever succeeded, so a rollback can only delete the stack.
_STEPS_AFTER_FAILED_CREATION = (
    _STEPS_BY_HEALTH[StackHealth.PAUSED][0],
    NextStep(suggest("rollback"), "deletes what has been created"),
)


def next_steps(status: StackStatus, stack: str = "", *, made_elsewhere: bool = False) -> tuple[NextStep, ...]:
    """Return the commands to run next from a status, the usual one first; none if the stack is healthy.

    Args:
        stack: name for the option --stack-name of the commands; empty leaves the option out.
        made_elsewhere: whether another tool made the stack: then `deploy`, which refuses it, is left out.
    """
    steps = _STEPS_AFTER_FAILED_CREATION if status.name == "CREATE_FAILED" else _STEPS_BY_HEALTH[status.health]
    if made_elsewhere:
        steps = tuple(step for step in steps if step.command.name != "deploy")
    options = (("--stack-name", stack),) if stack else ()
    return tuple(NextStep(step.command.with_options(options), step.purpose) for step in steps)


def as_hint(steps: Sequence[NextStep]) -> Hint:
    """Return the commands as one line of text, each with its purpose."""
    if not steps:
        return ""
    first, *others = (CommandText(step.command, f" {step.purpose}") for step in steps)
    return CommandText(first, *(CommandText("; ", other) for other in others), ".")


def replace_command(slot: str, instance_type: str = "TYPE") -> SuggestedCommand:
    """Return the command that replaces a master by an instance of another type."""
    return SuggestedCommand(f"replace {slot}", (("--instance-type", instance_type),))
