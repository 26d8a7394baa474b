"""Deletes the root stack of a cluster; if CloudFormation fails, tries again, and finally asks what to leave behind."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.events import read_last_event
from cfngen.deploy.aws.protection import disable_termination_protection
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP, NESTED_STACK, StackView, find_stack, list_resource_tree
from cfngen.deploy.messages.message import Event, Message, Question, Report, Step
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.preflight.blockers import Blocker
from cfngen.deploy.watching.reasons import EXPORT_IN_USE
from cfngen.deploy.watching.watch import watch
from cfngen.text import join_and

MAX_ATTEMPTS = 3
"""How often the deletion is tried before the user is asked to leave behind the resources that cannot be deleted.

If foreign resources block it, it is tried once.
"""
ORPHAN_REMOVAL_INTERVAL_SECONDS = 30.0  # while CloudFormation deletes the stack

RemoveOrphans = Callable[[bool], None]
"""Removes resources that Kubernetes created.

Its argument is whether CloudFormation has failed to delete the stack: then the function waits until AWS releases the
resources. While CloudFormation is still deleting the stack, it does not wait.
"""
FindBlockers = Callable[[], tuple[Blocker, ...]]
"""Finds the foreign resources that block the deletion."""


@dataclass(frozen=True)
class UndeletedResource:
    """A resource that CloudFormation could not delete.

    Attributes:
        name: its path of logical ids, through the nested stacks, e.g. `VpcStack/Vpc`.
        id: its physical id.
        type: e.g. `AWS::EC2::VPC`.
        reason: why, as CloudFormation says.
    """

    name: str
    id: str
    type: str
    reason: str


@dataclass(frozen=True)
class DeletionFailed(Message):
    """CloudFormation failed to delete the stack, in one of several attempts.

    Attributes:
        stack: name of the root stack.
        round: number of the attempt.
        rounds: how many attempts are made at most.
        undeleted: resources that could not be deleted.
        blockers: foreign resources that block the deletion.
    """

    kind: ClassVar[str] = "deletionFailed"
    stack: str
    round: int
    rounds: int
    undeleted: tuple[UndeletedResource, ...]
    blockers: tuple[Blocker, ...] = ()


def delete_stack(
    account: Account,
    stack: StackView,
    interaction: Interaction,
    *,
    groups: Sequence[str] = (),
    remove_orphans: RemoveOrphans = lambda after_failure: None,
    find_blockers: FindBlockers = lambda: (),
    leave_behind: bool = False,
    on_started: Callable[[], None] = lambda: None,
) -> StackView | None:
    """Delete a stack, in several attempts if necessary; attach to its deletion if that is in progress.

    A deletion that foreign resources block is not tried again while they are there.

    Args:
        groups: names of the stack's Auto Scaling groups; once all are deleted, Kubernetes no longer runs.
        remove_orphans: removes resources that Kubernetes created and that block the deletion.
        find_blockers: finds the foreign resources that block the deletion.
        leave_behind: whether to retain, without asking, what cannot be deleted.
        on_started: called whenever CloudFormation has started to delete the stack.

    Returns:
        The stack as it is now; None if it is deleted. If other stacks import its exports, CloudFormation rejects the
        deletion: the stack keeps its status, with the reason.
    """
    removing_report = _ReportThatRemovesOrphans(account, interaction.report, groups, remove_orphans)
    current = stack
    for attempt in range(1, MAX_ATTEMPTS + 1):
        result = _try_deletion(account, current, removing_report, interaction, on_started)
        if result is None or result.status.in_progress or _is_rejected(result):
            return result
        current = result
        undeleted = _find_failed_resources(account, stack.id)
        failure = DeletionFailed(stack.name, attempt, MAX_ATTEMPTS, undeleted, find_blockers())
        interaction.report(failure)
        after_failure = True
        remove_orphans(after_failure)
        # Another attempt would fail as this one did, as long as what others have is there.
        if failure.blockers and (blockers := find_blockers()):
            ids = join_and([blocker.id for blocker in blockers])
            interaction.report(Step(f"no further attempt is made, as {ids} would block it as well"))
            break
    return _delete_and_retain_failed_resources(account, current, failure, interaction, already_confirmed=leave_behind)


def _try_deletion(
    account: Account, stack: StackView, report: Report, interaction: Interaction, on_started: Callable[[], None]
) -> StackView | None:
    """Delete a stack, or attach to its deletion, and wait for its end; return the stack if it still exists."""
    last_seen = None
    if stack.status.name != "DELETE_IN_PROGRESS":
        last_seen = read_last_event(account, stack.id)
        start_deletion(account, stack, interaction.report)
    on_started()
    return _watch_deletion(account, stack, report, interaction, last_seen)


def start_deletion(account: Account, stack: StackView, report: Report, **arguments: object) -> None:
    """Start to delete a stack, after disabling its termination protection.

    Args:
        arguments: further arguments of DeleteStack.
    """
    if stack.protected:
        report(Step(f"disabling the termination protection of {stack.name}"))
        disable_termination_protection(account, stack)
    report(Step(f"deleting the stack {stack.name}"))
    # boto3's retries of this call send the same token, so CloudFormation does not start a second deletion.
    account.client("cloudformation").delete_stack(
        StackName=stack.id, ClientRequestToken=f"cfngen-delete-{uuid.uuid4()}", **arguments
    )


def _delete_and_retain_failed_resources(
    account: Account, stack: StackView, failure: DeletionFailed, interaction: Interaction, *, already_confirmed: bool
) -> StackView | None:
    """Delete a stack but retain what cannot be deleted, after confirmation; return the stack if it still exists."""
    question = Question(
        f"Delete {stack.name} and leave behind the resources that cannot be deleted?",
        (
            *(
                f"{resource.name} ({resource.id or resource.type}) remains: {resource.reason}"
                for resource in failure.undeleted
            ),
            *(f"{blocker.id} blocks the deletion: {blocker.text}" for blocker in failure.blockers),
        ),
        dangerous=True,
    )
    if not already_confirmed and not interaction.consent(question):
        return stack
    last_seen = read_last_event(account, stack.id)
    names = [resource.name for resource in failure.undeleted]
    if names and all("/" not in name for name in names):
        start_deletion(account, stack, interaction.report, RetainResources=names)
    else:
        # RetainResources takes logical ids of the root stack only: it would retain a whole nested stack.
        start_deletion(account, stack, interaction.report, DeletionMode="FORCE_DELETE_STACK")
    return _watch_deletion(account, stack, interaction.report, interaction, last_seen)


def _watch_deletion(
    account: Account, stack: StackView, report: Report, interaction: Interaction, last_seen: Event | None
) -> StackView | None:
    watch(account, stack.id, report=report, since=last_seen, on_interrupt=interaction.on_interrupt)
    current = find_stack(account, stack.id)
    return current if current and current.status.exists else None


def _is_rejected(stack: StackView) -> bool:
    """Return whether CloudFormation rejected the deletion because other stacks import outputs that this one exports.

    A rejected deletion does not change the stack's status; it only sets the status reason.
    """
    return stack.status.health is not StackHealth.DELETE_FAILED and bool(EXPORT_IN_USE.search(stack.reason))


def _find_failed_resources(account: Account, root_id: str) -> tuple[UndeletedResource, ...]:
    return tuple(
        UndeletedResource(
            name=resource.name, id=resource.view.physical_id, type=resource.view.type, reason=resource.view.reason
        )
        for resource in list_resource_tree(account, root_id)
        if resource.view.status == "DELETE_FAILED" and resource.view.type != NESTED_STACK
    )


class _ReportThatRemovesOrphans:
    """A report function that also removes orphans while CloudFormation deletes the stack.

    The removal starts when all Auto Scaling groups are deleted, since Kubernetes no longer runs then and creates no
    more orphans. The removal is repeated at intervals, because AWS releases some resources late, such as the network
    interfaces of load balancers.
    """

    def __init__(self, account: Account, report: Report, groups: Sequence[str], remove_orphans: RemoveOrphans) -> None:
        self._clock = account.clock
        self._report = report
        self._groups = set(groups)
        self._remove_orphans = remove_orphans
        # When the next removal is due, as a time stamp in seconds; None while Auto Scaling groups still exist.
        self._next_removal: float | None = None

    def __call__(self, message: Message) -> None:
        self._report(message)
        if isinstance(message, Event) and message.type == AUTO_SCALING_GROUP and message.status == "DELETE_COMPLETE":
            self._groups.discard(message.physical_id)
            if not self._groups and self._next_removal is None:
                self._next_removal = 0.0  # at once
        now = self._clock.now().timestamp()
        if self._next_removal is not None and now >= self._next_removal:
            self._next_removal = now + ORPHAN_REMOVAL_INTERVAL_SECONDS
            after_failure = False
            self._remove_orphans(after_failure)
