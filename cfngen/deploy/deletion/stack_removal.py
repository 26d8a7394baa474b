"""Deleting the stacks of a cluster, and again where CloudFormation fails, until only a question is left."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cfngen.deploy.account import Account
from cfngen.deploy.deletion.blockers import Blocker
from cfngen.deploy.messages import Event, Message, Question, Report, Step
from cfngen.deploy.protection import unprotect
from cfngen.deploy.recovery import Interaction
from cfngen.deploy.stacks import GROUP, NESTED, StackView, find, tree
from cfngen.deploy.status import StackHealth
from cfngen.deploy.watching.events import last_event
from cfngen.deploy.watching.reasons import EXPORT_IN_USE
from cfngen.deploy.watching.watch import watch

ROUNDS = 3
"""How often a stack is deleted before the user is asked to leave something behind."""
AGAIN = 30.0  # seconds between two sweeps while CloudFormation works

Sweeping = Callable[[bool], None]
"""Removes what Kubernetes made; waits for AWS to let go if told so."""
Searching = Callable[[], tuple[Blocker, ...]]
"""Finds what others have in the way."""


@dataclass(frozen=True)
class Undeleted:
    """A resource that CloudFormation could not delete.

    Attributes:
        name: its logical id behind those of the nested stacks around it, e.g. `VpcStack/Vpc`.
        id: its id.
        type: e.g. `AWS::EC2::VPC`.
        reason: what CloudFormation says.
    """

    name: str
    id: str
    type: str
    reason: str


@dataclass(frozen=True)
class DeletionFailed(Message):
    """CloudFormation has given up deleting the stack, for this time.

    Attributes:
        stack: the root's name.
        round: how often it has been tried.
        rounds: how often it is tried.
        undeleted: what could not be deleted.
        obstacles: what others have in the way of it.
    """

    kind: ClassVar[str] = "deletionFailed"
    stack: str
    round: int
    rounds: int
    undeleted: tuple[Undeleted, ...]
    obstacles: tuple[Blocker, ...] = ()


def remove(
    account: Account,
    stack: StackView,
    waiting: Interaction,
    *,
    groups: Sequence[str] = (),
    sweeping: Sweeping = lambda patiently: None,
    searching: Searching = lambda: (),
    leave_behind: bool = False,
    begun: Callable[[], None] = lambda: None,
) -> StackView | None:
    """Delete a stack; attach to its deletion if that is under way.

    Args:
        account: where it is.
        stack: the root.
        waiting: who is told, and asked about what cannot be deleted.
        groups: its Auto Scaling groups; once all are gone, nothing of Kubernetes runs any more.
        sweeping: removes what stands in the way and is the cluster's.
        searching: finds what else stands in the way.
        leave_behind: whether to leave what cannot be deleted without asking.
        begun: called whenever CloudFormation has begun.

    Returns:
        The stack as it is now; None if it is gone. If others import what it exports, CloudFormation leaves it in the
        status it had, with the reason.
    """
    now = stack
    report = _Meanwhile(account, waiting.report, groups, sweeping)
    undeleted: tuple[Undeleted, ...] = ()
    obstacles: tuple[Blocker, ...] = ()
    for number in range(1, ROUNDS + 1):
        since = None
        if now.status.name != "DELETE_IN_PROGRESS":
            since = last_event(account, stack.id)
            start(account, now, waiting.report)
        begun()
        after = _watched(account, stack, report, waiting, since)
        if after is None or after.status.in_progress or _taken_back(after):
            return after
        now, undeleted, obstacles = after, _undeleted(account, stack.id), searching()
        waiting.report(DeletionFailed(stack.name, number, ROUNDS, undeleted, obstacles))
        sweeping(True)
    return _left_behind(account, now, undeleted, obstacles, waiting, agreed=leave_behind)


def start(account: Account, stack: StackView, report: Report, **arguments: Any) -> None:
    """Ask CloudFormation to delete a stack, lifting its termination protection before.

    Args:
        account: where it is.
        stack: the root.
        report: told what is done.
        arguments: further arguments of DeleteStack.
    """
    if stack.protected:
        report(Step(f"lifting the termination protection of {stack.name}"))
        unprotect(account, stack)
    report(Step(f"deleting the stack {stack.name}"))
    # A token for each call that is meant, so that boto3's repetition of one is not taken for another.
    account.client("cloudformation").delete_stack(
        StackName=stack.id, ClientRequestToken=f"cfngen-delete-{uuid.uuid4()}", **arguments
    )


def _left_behind(
    account: Account,
    stack: StackView,
    undeleted: Sequence[Undeleted],
    obstacles: Sequence[Blocker],
    waiting: Interaction,
    *,
    agreed: bool,
) -> StackView | None:
    """Delete a stack without what cannot be deleted, after consent."""
    question = Question(
        f"Delete {stack.name} without what cannot be deleted, and leave that behind?",
        (
            *(f"{each.name} ({each.id or each.type}) stays: {each.reason}" for each in undeleted),
            *(f"in the way is {obstacle.id}: {obstacle.what}" for obstacle in obstacles),
        ),
        dangerous=True,
    )
    if not agreed and not waiting.consent(question):
        return stack
    since = last_event(account, stack.id)
    if undeleted and all("/" not in each.name for each in undeleted):
        start(account, stack, waiting.report, RetainResources=[each.name for each in undeleted])
    else:
        # RetainResources names resources of the root only: it would leave a whole nested stack behind.
        start(account, stack, waiting.report, DeletionMode="FORCE_DELETE_STACK")
    return _watched(account, stack, waiting.report, waiting, since)


def _watched(
    account: Account, stack: StackView, report: Report, waiting: Interaction, since: Event | None
) -> StackView | None:
    """Watch a deletion; return the stack if it is still there."""
    watch(account, stack.id, report=report, since=since, interrupted=waiting.interrupted)
    now = find(account, stack.id)
    return now if now and now.status.exists else None


def _taken_back(stack: StackView) -> bool:
    """Return whether CloudFormation has not even begun to delete a stack, which is as it was: others import from it."""
    return stack.status.standing is not StackHealth.UNDELETED and bool(EXPORT_IN_USE.search(stack.reason))


def _undeleted(account: Account, root_id: str) -> tuple[Undeleted, ...]:
    """Return what CloudFormation failed to delete, without the nested stacks around it."""
    return tuple(
        Undeleted(each.name, each.view.physical_id, each.view.type, each.view.reason)
        for each in tree(account, root_id)
        if each.view.status == "DELETE_FAILED" and each.view.type != NESTED
    )


class _Meanwhile:
    """Passes on what happens, and sweeps once the last group is gone: from then on nothing makes new leftovers.

    What AWS releases late, such as the interfaces of a load balancer, is what later rounds are for.
    """

    def __init__(self, account: Account, report: Report, groups: Sequence[str], sweeping: Sweeping) -> None:
        self._clock = account.clock
        self._report = report
        self._groups = set(groups)
        self._sweeping = sweeping
        self._next: float | None = None

    def __call__(self, message: Message) -> None:
        self._report(message)
        if isinstance(message, Event) and message.type == GROUP and message.status == "DELETE_COMPLETE":
            self._groups.discard(message.physical_id)
            if not self._groups and self._next is None:
                self._next = 0.0
        now = self._clock.now().timestamp()
        if self._next is not None and now >= self._next:
            self._next = now + AGAIN
            self._sweeping(False)
