"""The commands to run next for each status of a cluster's root stack; every message takes them from this table.

Tests run each command from each status; docs/operations.md shows the results.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.deploy.status import StackHealth, StackStatus

_STEPS: Mapping[StackHealth, tuple[tuple[str, str], ...]] = {
    StackHealth.ABSENT: (("deploy", "creates the cluster"),),
    StackHealth.EMPTY: (("deploy", "creates the cluster in the empty stack"),),
    StackHealth.BUSY: (("watch", "attaches to the operation that is still under way"),),
    StackHealth.PAUSED: (
        ("deploy", "goes on from here, once the cause is removed"),
        ("rollback", "returns to the last success, or deletes what has been created if there was none"),
    ),
    StackHealth.DEAD: (
        ("deploy", "asks to delete the remains and creates the cluster anew, once the cause is removed"),
        ("delete", "deletes the remains"),
    ),
    StackHealth.STUCK: (
        ("rollback", "continues the rollback, once the cause is removed"),
        ("rollback --force", "continues it and leaves what cannot be taken back as it is"),
    ),
    StackHealth.LOST: (
        ("events --failures", "shows what failed; AWS Support can put such a stack right"),
        ("delete", "deletes the cluster; CloudFormation has no way to continue the rollback of an import"),
    ),
    StackHealth.UNDELETED: (
        ("delete", "removes what Kubernetes has made and goes on with the deletion"),
        ("delete --leave-behind", "goes on, and gives up what CloudFormation cannot delete"),
    ),
    StackHealth.HEALTHY: (),
}
_STEPS_AFTER_FAILED_CREATION = (_STEPS[StackHealth.PAUSED][0], ("rollback", "deletes what has been created"))


@dataclass(frozen=True)
class NextStep:
    """A command that the user can run next.

    Attributes:
        command: the command line.
        purpose: what it does.
    """

    command: str
    purpose: str


def next_steps(status: StackStatus, stack: str = "") -> tuple[NextStep, ...]:
    """Return the commands to run next from a status, the usual one first; none if the stack is healthy.

    Args:
        status: status of the root stack.
        stack: name for the option --stack-name of the commands; empty leaves the option out.
    """
    steps = _STEPS_AFTER_FAILED_CREATION if status.name == "CREATE_FAILED" else _STEPS[status.standing]
    option = f" --stack-name {stack}" if stack else ""
    return tuple(NextStep(f"cfngen {command}{option}", purpose) for command, purpose in steps)


def as_hint(steps: tuple[NextStep, ...]) -> str:
    """Return the commands as one line of text, each with its purpose."""
    text = "; ".join(f"`{step.command}` {step.purpose}" for step in steps)
    return f"{text}." if text else ""
