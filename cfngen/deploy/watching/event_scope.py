"""Decide which of a stack's events belong to an operation.

CloudFormation keeps the events of all operations of a stack in one list, and has no operation id that is the same in
all nested stacks. Events are read newest first, and a boundary says where to stop reading.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from cfngen.deploy.messages.message import Event
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus

Boundary = Callable[[Event], bool]
"""Called with every event of a stack, newest first; returns True for the first event that is out of scope."""
Scope = Callable[[], Boundary]
"""Returns a new boundary; called each time that reading starts again at the newest event."""


class LastOperation:
    """Boundary at the start of a root stack's newest operation: a function that is called with each event.

    An operation starts when the stack changes from a final status to one in progress. Operation ids are not enough to
    tell: an automatic rollback and every nested stack have different ids (API reference of DescribeEvents). But events
    with the same id always belong to one operation.
    """

    def __init__(self, *, with_failure: bool = False) -> None:
        """Start before the newest event.

        Args:
            with_failure: whether to include the failed operation if the newest operation is its rollback.
        """
        self._with_failure = with_failure
        self._start: Event | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether this event is older than the operation; call it with each event, newest first."""
        if not event.of_stack:
            return False
        if not is_at_rest(event.status):
            self._start = event
            return False
        if self._start is None or (event.operation_id and event.operation_id == self._start.operation_id):
            return False
        if self._with_failure and event.status != "REVIEW_IN_PROGRESS" and _undoes_failure(self._start):
            self._start = None
            return False
        return True


def is_at_rest(status: str) -> bool:
    """Return whether no operation is in progress in a stack with this status."""
    return StackStatus(status).health is not StackHealth.BUSY


def _undoes_failure(start: Event) -> bool:
    """Return whether the operation that starts with this event is the rollback of a failed operation.

    With OnStackFailure=DELETE, the rollback of a failed creation is the deletion of the stack.
    """
    # If a user calls DeleteStack, the reason is `User Initiated`, or empty in nested stacks.
    if start.status == "DELETE_IN_PROGRESS":
        return start.reason not in ("", "User Initiated")
    return "ROLLBACK" in start.status


def all_events() -> Boundary:
    """Return the boundary of all events."""
    return lambda event: False


def since_time(time: datetime) -> Scope:
    """Return the scope of all events at this time or later (by CloudFormation's clock)."""
    return lambda: lambda event: event.time < time


def since_change_set(created: datetime) -> Scope:
    """Return the scope of a root stack's events after the creation of the change set that is executed.

    The former operation may have ended in the very millisecond in which the change set was created, but the operation
    itself starts later, so a stack that is at rest at that time is at rest from the former operation.
    """
    return lambda: (
        lambda event: event.time < created or (event.time == created and event.of_stack and is_at_rest(event.status))
    )


def since_event(last: Event) -> Scope:
    """Return the scope of all events after this one."""
    return lambda: lambda event: event.id == last.id or event.time < last.time


def last_operation_and_failure() -> Boundary:
    """Return the boundary of the newest operation; if it is a rollback, of the failed operation before it."""
    return LastOperation(with_failure=True)
