"""Progress of an operation: the status of all stacks and resources, derived from their events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from cfngen.deploy.aws.events import is_cancelled
from cfngen.deploy.aws.operation_events import is_at_rest
from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.deploy.messages.message import Event, Message
from cfngen.deploy.watching.expectations import Expectation, ResourceAction, StackPath, usual_seconds

_DONE_SUFFIXES = ("_COMPLETE", "_SKIPPED")
# Reasons of events of Auto Scaling groups that wait for signals. AWS does not document these texts; if one changes,
# only a number is missing on the screen.
_SIGNAL_RECEIVED_REASON = re.compile(r"^Received (SUCCESS|FAILURE) signal with UniqueId (\S+)")
_ROLLING_UPDATE_STARTED_REASON = re.compile(r"^Rolling update initiated\. Terminating (\d+) obsolete instance")


def is_overdue(seconds: float, expected: int) -> bool:
    """Return whether something takes much longer than expected; `expected` is 0 if that is not known."""
    return 0 < expected * 1.5 < seconds


@dataclass(frozen=True)
class ResourceProgress:
    """One resource in an operation.

    Attributes:
        logical_id: the resource's logical id.
        type: e.g. `AWS::EC2::Volume`.
        status: the resource's status in CloudFormation.
        seconds: how long the operation on the resource has taken so far, or took.
        expected: how many seconds an operation on such a resource usually takes; 0 if not known.
        signals: number of instances that have signaled success.
        signals_expected: number of signals that CloudFormation waits for; 0 if none or not known.
        reason: why the resource failed, also after it has been rolled back; empty if it did not fail, or was only
            cancelled because another resource failed.
    """

    logical_id: str
    type: str
    status: str
    seconds: float
    expected: int
    signals: int = 0
    signals_expected: int = 0
    reason: str = ""

    @property
    def running(self) -> bool:
        """Whether an operation on it is in progress."""
        return self.status.endswith("_IN_PROGRESS")

    @property
    def overdue(self) -> bool:
        """Whether the operation on it takes much longer than usual."""
        return self.running and is_overdue(self.seconds, self.expected)


@dataclass(frozen=True)
class StackProgress:
    """One stack in an operation.

    Attributes:
        path: logical ids from the root to it; empty for the root.
        name: the stack's name.
        status: its status in CloudFormation; empty before its operation starts.
        done: number of its resources that are complete; during a rollback, that are rolled back.
        total: number of its resources; 0 if not known.
        seconds: how long the operation on it has taken so far, or took.
        resources: the resources in the order in which their operations started; nested stacks are not included.
    """

    path: StackPath
    name: str
    status: str
    done: int
    total: int
    seconds: float
    resources: tuple[ResourceProgress, ...] = ()

    @property
    def running(self) -> bool:
        """Whether an operation on it is in progress."""
        return bool(self.status) and not is_at_rest(self.status)


@dataclass(frozen=True)
class Progress(Message):
    """Progress of an operation.

    Attributes:
        action: `create`, `update`, `rollback`, `delete` or `import`; empty before it is known.
        stack: name of the root stack.
        status: its status.
        seconds: how long the operation has taken so far.
        expected: how many seconds it usually takes; 0 if not known.
        stacks: the root and its nested stacks, each after its parent.
        fresh: whether CloudFormation has answered since the last message of this kind; if not, only time has passed.
        poll_error: why CloudFormation does not answer at the moment; empty if it does.
    """

    kind: ClassVar[str] = "progress"
    action: str
    stack: str
    status: str
    seconds: float
    expected: int = 0
    stacks: tuple[StackProgress, ...] = ()
    fresh: bool = True
    poll_error: str = ""


@dataclass
class _TrackedResource:
    """The state of a resource, as far as its events have been processed."""

    logical_id: str
    type: str
    status: str
    started_at: datetime
    ended_at: datetime | None = None
    reason: str = ""
    exists: bool = False  # whether it has a physical id, so that a rollback must delete it
    signals_expected: int = 0
    signals: set[str] = field(default_factory=set)  # ids of the instances that have signaled success


@dataclass
class _TrackedStack:
    """The state of a stack and its resources, as far as their events have been processed."""

    path: StackPath
    name: str
    status: str = ""
    started_at: datetime | None = None
    ended_at: datetime | None = None
    resources: dict[str, _TrackedResource] = field(default_factory=dict)
    # Logical ids of the resources that existed when the rollback started, and of those that are rolled back already.
    to_roll_back: frozenset[str] = frozenset()
    rolled_back: set[str] = field(default_factory=set)


class ProgressTracker:
    """Collects events and computes the progress of every stack and resource from them.

    Attributes:
        action: the operation, e.g. `create`, from the first event about the root stack; empty before that event.
        begun: when the operation started; None before its first event.
    """

    def __init__(self, root: str, expectation: Expectation) -> None:
        self.action = ""
        self.begun: datetime | None = None
        self._newest: datetime | None = None
        self._expectation = expectation
        self._stacks: dict[StackPath, _TrackedStack] = {(): _TrackedStack((), root)}
        for resource in expectation.resources:
            if resource.type == NESTED_STACK:
                path = (*resource.path, resource.logical_id)
                self._stacks[path] = _TrackedStack(path, "")

    def add_event(self, event: Event) -> None:
        """Update the progress of the stack or resource that an event is about."""
        self._newest = max(self._newest or event.time, event.time)
        stack = self._stacks.setdefault(event.path, _TrackedStack(event.path, event.stack))
        if event.of_stack:
            self._update_stack(stack, event)
        elif event.type != NESTED_STACK:
            self._update_resource(stack, event)

    def stacks(self, now: datetime) -> tuple[StackProgress, ...]:
        """Return the progress of every stack, each after its parent.

        Args:
            now: the time by this machine's clock; only used for how long something has taken.
        """
        now = max(now, self._newest or now)
        return tuple(self._stack_progress(stack, now) for stack in _parents_first(self._stacks.values()))

    def seconds(self, now: datetime) -> float:
        """Return how long the operation has taken so far."""
        root = self._stacks[()]
        now = max(now, self._newest or now)
        return ((root.ended_at or now) - self.begun).total_seconds() if self.begun else 0.0

    def _update_stack(self, stack: _TrackedStack, event: Event) -> None:
        stack.name, stack.status = event.stack, event.status
        if not event.path and not self.action:
            self.begun = event.time
            self.action = operation_of_status(event.status)
        stack.started_at = stack.started_at or event.time
        stack.ended_at = event.time if is_at_rest(event.status) else None
        is_rollback_or_deletion = event.status == "DELETE_IN_PROGRESS" or event.status.endswith("ROLLBACK_IN_PROGRESS")
        if is_rollback_or_deletion and not stack.to_roll_back:
            resources = stack.resources.values()
            stack.to_roll_back = frozenset(resource.logical_id for resource in resources if resource.exists)

    def _update_resource(self, stack: _TrackedStack, event: Event) -> None:
        """Update the state of a resource from an event about it; each operation on it starts with a new state."""
        resource = stack.resources.get(event.logical_id)
        is_running = event.status.endswith("_IN_PROGRESS")
        if resource is None or (is_running and resource.status != event.status):
            expected = self._expectation.find(stack.path, event.logical_id)
            signals_expected = expected.signals if expected and event.status.startswith("CREATE") else 0
            earlier_reason = resource.reason if resource else ""
            resource = _TrackedResource(
                logical_id=event.logical_id,
                type=event.type,
                status=event.status,
                started_at=event.time,
                reason=earlier_reason,
                signals_expected=signals_expected,
            )
            # Resources are in the order in which their operations started, so this one moves to the end.
            stack.resources.pop(event.logical_id, None)
            stack.resources[event.logical_id] = resource
        resource.status = event.status
        resource.exists = bool(event.physical_id) and not event.status.startswith("DELETE_")
        resource.ended_at = None if is_running else event.time
        if event.failed and not is_cancelled(event):
            resource.reason = event.reason
        if is_running and (match := _SIGNAL_RECEIVED_REASON.match(event.reason)) and match[1] == "SUCCESS":
            resource.signals.add(match[2])
        elif is_running and (match := _ROLLING_UPDATE_STARTED_REASON.match(event.reason)):
            resource.signals_expected = int(match[1])
        if event.status.endswith(_DONE_SUFFIXES) and event.logical_id in stack.to_roll_back:
            stack.rolled_back.add(event.logical_id)

    def _stack_progress(self, stack: _TrackedStack, now: datetime) -> StackProgress:
        if stack.to_roll_back:
            done, total = len(stack.rolled_back), len(stack.to_roll_back)
        else:
            done = sum(resource.status.endswith(_DONE_SUFFIXES) for resource in stack.resources.values())
            expected_count = sum(resource.type != NESTED_STACK for resource in self._expectation.of(stack.path))
            # Without expectations, the number of resources is not known before the operation ends.
            total = max(expected_count, len(stack.resources)) if expected_count else 0
        return StackProgress(
            path=stack.path,
            name=stack.name,
            status=stack.status,
            done=done,
            total=total,
            seconds=((stack.ended_at or now) - stack.started_at).total_seconds() if stack.started_at else 0.0,
            resources=tuple(
                self._resource_progress(resource, stack.path, now) for resource in stack.resources.values()
            ),
        )

    def _resource_progress(self, resource: _TrackedResource, path: StackPath, now: datetime) -> ResourceProgress:
        expected = self._expectation.find(path, resource.logical_id)
        action: ResourceAction = "update"
        if resource.status.startswith("CREATE_"):
            action = "create"
        elif resource.status.startswith("DELETE_"):
            action = "delete"
        # CloudFormation replaces a resource by creating a new one.
        is_expected = expected and (expected.action == action or (expected.action, action) == ("replace", "create"))
        if expected and is_expected:
            expected_seconds = expected.seconds
        else:
            expected_seconds = usual_seconds(resource.type, action, resource.signals_expected)
        return ResourceProgress(
            logical_id=resource.logical_id,
            type=resource.type,
            status=resource.status,
            seconds=((resource.ended_at or now) - resource.started_at).total_seconds(),
            expected=expected_seconds,
            signals=len(resource.signals),
            signals_expected=resource.signals_expected,
            reason=resource.reason,
        )


def operation_of_status(status: str) -> str:
    """Return the operation that starts with this stack status, e.g. `create` or `rollback`."""
    return "rollback" if "ROLLBACK" in status else status.partition("_")[0].lower()


def _parents_first(stacks: Iterable[_TrackedStack]) -> list[_TrackedStack]:
    """Return stacks in the given order, but each directly followed by its nested stacks."""
    unordered = list(stacks)

    def with_nested(path: StackPath) -> Iterator[_TrackedStack]:
        """Yield the stack with this path, then its nested stacks, each with its own."""
        for stack in unordered:
            if stack.path == path:
                yield stack
        for stack in unordered:
            if stack.path[:-1] == path and stack.path:
                yield from with_nested(stack.path)

    return list(with_nested(()))
