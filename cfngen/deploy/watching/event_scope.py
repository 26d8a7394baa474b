"""Which of a stack's events belong to an operation.

CloudFormation keeps the events of all of a stack's operations in one list, and says of none which attempt it belongs to
in a way that holds for a tree of stacks. They are read from the newest on, and a boundary says where to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from cfngen.deploy.messages import Event
from cfngen.deploy.status import StackHealth, StackStatus

Boundary = Callable[[Event], bool]
"""Told every event of a stack from the newest on; says at which one to stop, which does not belong any more."""
Scope = Callable[[], Boundary]
"""Which events are wanted: makes the boundary anew for every reading from the newest event on."""


class LastOperation:
    """Finds, from the newest event of a root on, where the operation begins that it belongs to.

    An operation begins where the stack leaves rest. Ids of operations cannot tell: an automatic rollback and every
    nested stack have ids of their own (API reference of DescribeEvents). They only forbid: events of one id are never
    parted.
    """

    def __init__(self, *, with_failure: bool = False) -> None:
        """Begin at the newest event.

        Args:
            with_failure: if the operation undoes one that failed, that one belongs to it.
        """
        self._with_failure = with_failure
        self._start: Event | None = None

    def __call__(self, event: Event) -> bool:
        """Return whether this event is older than the operation."""
        if not event.of_stack:
            return False
        if not at_rest(event.status):
            self._start = event
            return False
        if self._start is None or (event.operation_id and event.operation_id == self._start.operation_id):
            return False
        if self._with_failure and event.status != "REVIEW_IN_PROGRESS" and _undoes_failure(self._start):
            self._start = None
            return False
        return True


def at_rest(status: str) -> bool:
    """Return whether a stack in this status is waiting for somebody to do something."""
    return StackStatus(status).standing is not StackHealth.BUSY


def _undoes_failure(start: Event) -> bool:
    # OnStackFailure=DELETE deletes with a reason; what a user deletes bears this one, or none in a nested stack.
    if start.status == "DELETE_IN_PROGRESS":
        return start.reason not in ("", "User Initiated")
    return "ROLLBACK" in start.status


def unbounded() -> Boundary:
    """Want all events there are."""
    return lambda event: False


def since_time(time: datetime) -> Scope:
    """Want the events of this time, which is the service's, and later."""
    return lambda: lambda event: event.time < time


def since_event(last: Event) -> Scope:
    """Want the events after this one."""
    return lambda: lambda event: event.id == last.id or event.time < last.time


def last_operation_and_failure() -> Boundary:
    """Want the newest operation, and the failed one that it undoes if that is what it does."""
    return LastOperation(with_failure=True)
