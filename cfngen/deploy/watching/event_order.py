"""The events of several stacks as one list, in the order in which they came about.

Events of one stack are in their order already. Between stacks their times tell, and where those are the same, what a
nested stack does follows what its parent says when it begins, and precedes what its parent says when it has ended.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from cfngen.deploy.messages import Event
from cfngen.deploy.stacks import NESTED


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return events of several stacks in one order.

    Args:
        events: of each stack oldest first; stacks in any order, parents before those they nest.
    """
    queues: dict[str, deque[Event]] = {}
    for event in events:
        queues.setdefault(event.stack_id, deque()).append(event)
    ordered = []
    while queues:
        now = min(queue[0].time for queue in queues.values())
        first = [queue for queue in queues.values() if queue[0].time == now]
        ready = (queue for queue in first if not _must_wait(queue[0], queues))
        chosen = next(ready, first[0])
        ordered.append(chosen.popleft())
        if not chosen:
            del queues[ordered[-1].stack_id]
    return ordered


def _must_wait(event: Event, queues: dict[str, deque[Event]]) -> bool:
    if event.path and ((event.of_stack and _begins(event)) or event.status.startswith("DELETE_")):
        return _is_still_announced(event, queues)
    if event.of_stack or event.type != NESTED or _begins(event):
        return False
    child = queues.get(event.physical_id)
    return child is not None and child[0].time == event.time and not _must_wait(child[0], queues)


def _begins(event: Event) -> bool:
    return event.status.endswith("_IN_PROGRESS")


def _is_still_announced(event: Event, queues: dict[str, deque[Event]]) -> bool:
    """Return whether the parent has yet to say that it begins to do this with the event's stack."""
    status = event.status if event.of_stack and _begins(event) else "DELETE_IN_PROGRESS"
    return any(
        each.physical_id == event.stack_id and not each.of_stack and each.status == status
        for stack_id, queue in queues.items()
        if stack_id != event.stack_id
        for each in queue
        if each.time == event.time
    )
