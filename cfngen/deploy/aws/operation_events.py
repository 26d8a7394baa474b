"""Decides which events of the stacks belong to an operation, and puts those of several stacks in order.

CloudFormation keeps the events of all operations of a stack in one list, and has no operation id that is the same in
all nested stacks. Events are read newest first, and a boundary says where to stop reading.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import pairwise

from cfngen.deploy.aws.stacks import NESTED_STACK
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


def was_cancelled(events: Iterable[Event]) -> bool:
    """Return whether a user cancelled an operation; its events may include those of its rollback, oldest first."""
    root_events = (event for event in events if event.of_stack and not event.path)
    return any(_cancels(previous, event) for previous, event in pairwise(root_events))


def _cancels(previous: Event, event: Event) -> bool:
    # When CloudFormation itself deletes or rolls back after a failure, the event has another reason.
    by_user = event.reason in ("", "User Initiated")
    if previous.status == "CREATE_IN_PROGRESS":
        return by_user and event.status == "DELETE_IN_PROGRESS"  # the only way to cancel a creation
    was_updating = previous.status in ("UPDATE_IN_PROGRESS", "IMPORT_IN_PROGRESS")
    return by_user and was_updating and event.status.endswith("ROLLBACK_IN_PROGRESS")


def merge_events(events: Iterable[Event]) -> list[Event]:
    """Return the events of several stacks as one list, oldest first.

    Of events at the same time, the parent's "nested stack in progress" comes first, then the nested stack's, then the
    parent's "complete".

    Args:
        events: the events; those of one stack oldest first, and those of a parent before those of its nested stacks.
    """
    queues: dict[str, deque[Event]] = {}
    for event in events:
        queues.setdefault(event.stack_id, deque()).append(event)
    ordered = []
    while queues:
        earliest = min(queue[0].time for queue in queues.values())
        # Stacks whose next event has the earliest time.
        candidates = [queue for queue in queues.values() if queue[0].time == earliest]
        unblocked = (queue for queue in candidates if not _must_follow_another(queue[0], queues))
        next_queue = next(unblocked, candidates[0])
        ordered.append(next_queue.popleft())
        if not next_queue:
            del queues[ordered[-1].stack_id]
    return ordered


def _must_follow_another(event: Event, queues: dict[str, deque[Event]]) -> bool:
    """Return whether an event of another stack with the same time has to come before this event.

    A nested stack's first event follows the parent's event that starts the operation. The parent's event that ends the
    operation follows the nested stack's events.
    """
    if event.path and ((event.of_stack and _is_start(event)) or event.status.startswith("DELETE_")):
        return _parent_event_is_queued(event, queues)
    if event.of_stack or event.type != NESTED_STACK or _is_start(event):
        return False
    child = queues.get(event.physical_id)
    return child is not None and child[0].time == event.time and not _must_follow_another(child[0], queues)


def _is_start(event: Event) -> bool:
    return event.status.endswith("_IN_PROGRESS")


def _parent_event_is_queued(event: Event, queues: dict[str, deque[Event]]) -> bool:
    """Return whether the parent's event that starts the operation on this event's stack is still in a queue."""
    status = event.status if event.of_stack and _is_start(event) else "DELETE_IN_PROGRESS"
    return any(
        other.physical_id == event.stack_id and not other.of_stack and other.status == status
        for stack_id, queue in queues.items()
        if stack_id != event.stack_id
        for other in queue
        if other.time == event.time
    )
