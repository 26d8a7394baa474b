"""How far an operation has come: the tree of stacks and resources, made from their events."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from cfngen.deploy.messages import Event, Message
from cfngen.deploy.stacks import NESTED
from cfngen.deploy.watching.event_scope import at_rest
from cfngen.deploy.watching.events import is_cancelled
from cfngen.deploy.watching.expectations import Action, Expectation, Path, usual_seconds

_DONE_SUFFIXES = ("_COMPLETE", "_SKIPPED")
# What CloudFormation says about groups that wait for their instances. The texts are documented nowhere; one that is
# not understood costs a number on the screen.
_SIGNAL_RECEIVED = re.compile(r"^Received (SUCCESS|FAILURE) signal with UniqueId (\S+)")
_ROLLING_UPDATE_STARTED = re.compile(r"^Rolling update initiated\. Terminating (\d+) obsolete instance")


@dataclass(frozen=True)
class ResourceProgress:
    """One resource in an operation.

    Attributes:
        logical_id: its name in the template.
        type: e.g. `AWS::EC2::Volume`.
        status: as CloudFormation spells it.
        seconds: how long it has been worked on, or was.
        expected: how long that usually takes; 0 if there is nothing to compare with.
        signals: how many instances have reported success.
        signals_wanted: of how many instances that is waited for; 0 if of none or if it is not known.
        reason: why it failed, be it that it has been taken back since; empty if it did not fail by itself.
    """

    logical_id: str
    type: str
    status: str
    seconds: float
    expected: int = 0
    signals: int = 0
    signals_wanted: int = 0
    reason: str = ""

    @property
    def running(self) -> bool:
        """Whether it is being worked on."""
        return self.status.endswith("_IN_PROGRESS")


@dataclass(frozen=True)
class StackProgress:
    """One stack in an operation.

    Attributes:
        path: logical ids from the root to it; empty for the root.
        name: the stack's name.
        status: as CloudFormation spells it; empty before it begins.
        done: how many of its resources are where they shall be; while it rolls back, how many have been undone.
        total: how many there are; 0 if not known.
        seconds: how long it has been worked on, or was.
        resources: those that have been begun, in that order; nested stacks are not among them.
    """

    path: Path
    name: str
    status: str
    done: int
    total: int
    seconds: float
    resources: tuple[ResourceProgress, ...] = ()

    @property
    def running(self) -> bool:
        """Whether an operation is under way in it."""
        return bool(self.status) and not at_rest(self.status)


@dataclass(frozen=True)
class Progress(Message):
    """How far an operation has come.

    Attributes:
        action: `create`, `update`, `rollback`, `delete` or `import`; empty before it is known.
        stack: name of the root stack.
        status: its status.
        seconds: how long the operation has taken.
        expected: how long it usually takes; 0 if there is nothing to compare with.
        stacks: the root, and every nested stack after the one that nests it.
        fresh: whether CloudFormation was asked since the last message of this kind; else only time has passed.
        trouble: why CloudFormation cannot be asked at the moment; empty if it can.
    """

    kind: ClassVar[str] = "progress"
    action: str
    stack: str
    status: str
    seconds: float
    expected: int = 0
    stacks: tuple[StackProgress, ...] = ()
    fresh: bool = True
    trouble: str = ""


@dataclass
class _Resource:
    logical_id: str
    type: str
    status: str
    begun: datetime
    ended: datetime | None = None
    reason: str = ""
    exists: bool = False  # whether there is something to undo
    wanted: int = 0
    signals: set[str] = field(default_factory=set)


@dataclass
class _Stack:
    path: Path
    name: str
    status: str = ""
    begun: datetime | None = None
    ended: datetime | None = None
    resources: dict[str, _Resource] = field(default_factory=dict)
    undoing: frozenset[str] = frozenset()  # what there is to undo, once it goes back
    undone: set[str] = field(default_factory=set)


class Tree:
    """Puts events together to a picture.

    Attributes:
        action: what the root's first own event says is being done; empty before it.
        begun: when that was.
    """

    def __init__(self, root: str, expectation: Expectation) -> None:
        """Begin with nothing but what is expected.

        Args:
            root: name of the root stack.
            expectation: what is known beforehand.
        """
        self.action = ""
        self.begun: datetime | None = None
        self._newest: datetime | None = None
        self._expectation = expectation
        self._stacks: dict[Path, _Stack] = {(): _Stack((), root)}
        for resource in expectation.resources:
            if resource.type == NESTED:
                path = (*resource.path, resource.logical_id)
                self._stacks[path] = _Stack(path, "")

    def see(self, event: Event) -> None:
        """Take an event into the picture."""
        self._newest = max(self._newest or event.time, event.time)
        stack = self._stacks.setdefault(event.path, _Stack(event.path, event.stack))
        if event.of_stack:
            self._see_stack(stack, event)
        elif event.type != NESTED:
            self._see_resource(stack, event)

    def stacks(self, now: datetime) -> tuple[StackProgress, ...]:
        """Return the picture.

        Args:
            now: the time; of this machine, for want of another, and only to show how long something takes.
        """
        now = max(now, self._newest or now)
        return tuple(self._stack(stack, now) for stack in _parents_first(self._stacks.values()))

    def seconds(self, now: datetime) -> float:
        """Return how long the operation has taken so far."""
        root = self._stacks[()]
        now = max(now, self._newest or now)
        return ((root.ended or now) - self.begun).total_seconds() if self.begun else 0.0

    def _see_stack(self, stack: _Stack, event: Event) -> None:
        stack.name, stack.status = event.stack, event.status
        if not event.path and not self.action:
            self.begun = event.time
            self.action = action_of(event.status)
        stack.begun = stack.begun or event.time
        stack.ended = event.time if at_rest(event.status) else None
        is_rolling_back = event.status == "DELETE_IN_PROGRESS" or event.status.endswith("ROLLBACK_IN_PROGRESS")
        if is_rolling_back and not stack.undoing:
            to_roll_back = (resource.logical_id for resource in stack.resources.values() if resource.exists)
            stack.undoing = frozenset(to_roll_back)

    def _see_resource(self, stack: _Stack, event: Event) -> None:
        resource = stack.resources.get(event.logical_id)
        is_running = event.status.endswith("_IN_PROGRESS")
        if resource is None or (is_running and resource.status != event.status):
            expected = self._expectation.find(stack.path, event.logical_id)
            signals_wanted = expected.signals if expected and event.status.startswith("CREATE") else 0
            earlier_reason = resource.reason if resource else ""
            resource = _Resource(
                event.logical_id, event.type, event.status, event.time, reason=earlier_reason, wanted=signals_wanted
            )
            # What is begun anew moves to the end.
            stack.resources.pop(event.logical_id, None)
            stack.resources[event.logical_id] = resource
        resource.status = event.status
        resource.exists = bool(event.physical_id) and not event.status.startswith("DELETE_")
        resource.ended = None if is_running else event.time
        if event.failed and not is_cancelled(event):
            resource.reason = event.reason
        if is_running and (match := _SIGNAL_RECEIVED.match(event.reason)) and match[1] == "SUCCESS":
            resource.signals.add(match[2])
        elif is_running and (match := _ROLLING_UPDATE_STARTED.match(event.reason)):
            resource.wanted = int(match[1])
        if event.status.endswith(_DONE_SUFFIXES) and event.logical_id in stack.undoing:
            stack.undone.add(event.logical_id)

    def _stack(self, stack: _Stack, now: datetime) -> StackProgress:
        if stack.undoing:
            done, total = len(stack.undone), len(stack.undoing)
        else:
            done = sum(resource.status.endswith(_DONE_SUFFIXES) for resource in stack.resources.values())
            total = sum(resource.type != NESTED for resource in self._expectation.of(stack.path))
            total = max(total, len(stack.resources)) if total else 0
        return StackProgress(
            path=stack.path,
            name=stack.name,
            status=stack.status,
            done=done,
            total=total,
            seconds=((stack.ended or now) - stack.begun).total_seconds() if stack.begun else 0.0,
            resources=tuple(self._resource(resource, stack.path, now) for resource in stack.resources.values()),
        )

    def _resource(self, resource: _Resource, path: Path, now: datetime) -> ResourceProgress:
        expected = self._expectation.find(path, resource.logical_id)
        verb = resource.status.partition("_")[0].lower()
        action: Action = "create" if verb == "create" else "delete" if verb == "delete" else "update"
        is_as_expected = expected is not None and action == (
            "create" if expected.action == "replace" else expected.action
        )
        return ResourceProgress(
            logical_id=resource.logical_id,
            type=resource.type,
            status=resource.status,
            seconds=((resource.ended or now) - resource.begun).total_seconds(),
            expected=expected.seconds
            if expected and is_as_expected
            else usual_seconds(resource.type, action, resource.wanted),
            signals=len(resource.signals),
            signals_wanted=resource.wanted,
            reason=resource.reason,
        )


def action_of(status: str) -> str:
    """Return what a stack does whose operation begins with this status, e.g. `create` or `rollback`."""
    return "rollback" if "ROLLBACK" in status else status.partition("_")[0].lower()


def _parents_first(stacks: Iterable[_Stack]) -> list[_Stack]:
    """Return stacks in the order in which they were met, each followed by those that it nests."""
    unordered = list(stacks)

    def with_nested(path: Path) -> Iterator[_Stack]:
        for stack in unordered:
            if stack.path == path:
                yield stack
        for stack in unordered:
            if stack.path[:-1] == path and stack.path:
                yield from with_nested(stack.path)

    return list(with_nested(()))
