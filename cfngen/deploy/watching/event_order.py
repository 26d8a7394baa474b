"""Merge the events of several stacks into one list, oldest first.

Events of one stack are in order already. Events of different stacks are ordered by time. If the times are equal, the
parent's event "nested stack in progress" comes first, then the nested stack's events, then the parent's "complete".
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from cfngen.deploy.messages.message import Event
from cfngen.deploy.stacks import NESTED_STACK


def merge_events(events: Iterable[Event]) -> list[Event]:
    """Return the events of several stacks as one list, oldest first.

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
    """Return whether an event starts an operation, and does not end it."""
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
