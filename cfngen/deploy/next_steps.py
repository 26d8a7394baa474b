"""The commands that lead on from each status of a cluster's root: the one table that every message takes them from.

That each of them does what it says is tried from every status; docs/operations.md shows what came of it.
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
_CREATED_IN_PART = (_STEPS[StackHealth.PAUSED][0], ("rollback", "deletes what has been created"))


@dataclass(frozen=True)
class NextStep:
    """A way on.

    Attributes:
        command: what to type.
        purpose: what it does.
    """

    command: str
    purpose: str


def next_steps(status: StackStatus, stack: str = "") -> tuple[NextStep, ...]:
    """Return the ways on from a status, the usual one first; none where a stack is as it should be.

    Args:
        status: of the root.
        stack: its name, which the commands then name; empty leaves it out.
    """
    steps = _CREATED_IN_PART if status.name == "CREATE_FAILED" else _STEPS[status.standing]
    named = f" --stack-name {stack}" if stack else ""
    return tuple(NextStep(f"cfngen {verb}{named}", purpose) for verb, purpose in steps)


def in_words(steps: tuple[NextStep, ...]) -> str:
    """Return ways on as a hint: each command and what it does."""
    told = "; ".join(f"`{step.command}` {step.purpose}" for step in steps)
    return f"{told}." if told else ""
