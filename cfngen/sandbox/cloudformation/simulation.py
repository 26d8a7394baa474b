"""Simulated time, the operations that run in it, in which order, and failures that a test or a user injects.

An operation is a generator: it runs until it has to wait, yields a condition, and continues when the condition is true.
Operations run concurrently, as stacks and resources do. When all of them wait, the clock jumps to the next scheduled
action. So an hour of waiting takes no real time, and the order of events is the same in every run.
"""

from __future__ import annotations

import datetime
import heapq
import itertools
import os
import random
from collections.abc import Callable, Generator, Iterable
from dataclasses import dataclass

from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.services.rules import CLOCK_START

ResumeCondition = Callable[[], bool]  # returns whether an operation that waits may continue
Operation = Generator[ResumeCondition, None, None]

SIMULATION_START = CLOCK_START


class StuckError(Exception):
    """All operations wait and no action is scheduled, so that no condition can ever become true."""


class Clock:
    """The simulated time, in seconds since the start, and the actions that are scheduled for a later time."""

    def __init__(self) -> None:
        self.now = 0.0
        # A heap of (time, sequence number, action); the sequence number orders actions for the same time.
        self._scheduled: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = itertools.count()

    @property
    def time(self) -> datetime.datetime:
        """The current simulated time as a date."""
        return SIMULATION_START + datetime.timedelta(seconds=self.now)

    def schedule(self, seconds: float, action: Callable[[], None]) -> None:
        """Run an action after a number of seconds; actions for the same time run in the order of scheduling."""
        heapq.heappush(self._scheduled, (self.now + seconds, next(self._sequence), action))

    @property
    def next_action_time(self) -> float | None:
        """The time of the next scheduled action, in seconds since the start; None if there is none."""
        return self._scheduled[0][0] if self._scheduled else None

    def jump_to_next_action(self) -> bool:
        """Advance the clock to the next scheduled action and run it; returns False if there is none."""
        if not self._scheduled:
            return False
        self.now, _, action = heapq.heappop(self._scheduled)
        action()
        return True


class Simulation:
    """Runs operations concurrently on one clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: list[tuple[Operation, ResumeCondition]] = []

    def start(self, operation: Operation) -> None:
        """Start an operation, and run it until it waits for the first time."""
        self._resume(operation)

    def run(self, until: ResumeCondition) -> None:
        """Run operations and advance the clock until a condition is true.

        Raises:
            StuckError: the condition is not true, and nothing is left to run
        """
        while not until():
            if not self._resume_next() and not self.clock.jump_to_next_action():
                raise StuckError(f"{len(self._waiting)} operations wait for conditions that can no longer become true")

    def advance(self, seconds: float) -> None:
        """Advance the clock by a number of seconds, and run everything that is due by then."""
        end = self.clock.now + seconds
        while True:
            if self._resume_next():
                continue
            next_action_time = self.clock.next_action_time
            if next_action_time is not None and next_action_time <= end:
                self.clock.jump_to_next_action()
            else:
                self.clock.now = max(self.clock.now, end)
                return

    def _resume_next(self) -> bool:
        """Resume the first waiting operation whose condition is true; return False if there is none."""
        for waiting in self._waiting:
            operation, condition = waiting
            if condition():
                self._waiting.remove(waiting)
                self._resume(operation)
                return True
        return False

    def _resume(self, operation: Operation) -> None:
        """Run an operation until it waits for the next condition, or ends."""
        condition = next(operation, None)
        if condition is not None:
            self._waiting.append((operation, condition))


# Drills and whoever starts a sandbox may set another one.
DEFAULT_SEED = int(os.environ.get("CFNGEN_SANDBOX_SEED", "1"))
# The range of durations that are drawn. It is wide on purpose: with similar durations, a resource with many
# dependencies would always come after one with few.
MIN_DRAWN_SECONDS = 0.3
MAX_DRAWN_SECONDS = 300.0


class ResourceOrder:
    """The order of resources that do not depend on each other, and how long operations on them take.

    CloudFormation only guarantees that a resource waits for its dependencies (template reference, "DependsOn
    attribute"). Independent resources are handled concurrently, and complete in any order. So the emulator draws one,
    and a missing dependency shows as a failure for some seeds.

    Args:
        seed: the same seed gives the same order.
        draws_durations: whether operations without a configured duration take any time, so that they overlap in every
            way; else they take none.
    """

    def __init__(self, seed: int, *, draws_durations: bool = False) -> None:
        self._random = random.Random(seed)  # noqa: S311 - nothing secret
        self._draws_durations = draws_durations

    def vary_duration(self, seconds: float) -> float:
        """Vary the duration of an operation, or draw one if none is configured.

        Args:
            seconds: the configured duration, which becomes half to one and a half times as long; 0 if none is
                configured
        """
        if seconds:
            return seconds * self._random.uniform(0.5, 1.5)
        if not self._draws_durations:
            return 0.0
        # A uniform exponent makes short and long durations equally likely.
        return float(MIN_DRAWN_SECONDS * (MAX_DRAWN_SECONDS / MIN_DRAWN_SECONDS) ** self._random.random())

    def shuffled(self, logical_ids: Iterable[str]) -> list[str]:
        """Logical ids in an order that is drawn."""
        candidates = list(logical_ids)
        self._random.shuffle(candidates)
        return candidates


@dataclass
class _Failure:
    """A failure that still has to happen; see `CloudFormation.fail` for what its fields mean."""

    logical_id: str
    reason: str
    during: str
    remaining_times: int
    stack_name_prefix: str


class InjectedFailures:
    """The pending failures and throttled resources of a region."""

    def __init__(self) -> None:
        self._pending: list[_Failure] = []
        self._throttled_until: dict[str, float] = {}  # by logical id: when throttling ends, in simulated seconds

    def inject(self, logical_id: str, reason: str, *, during: str, times: int, stack_name_prefix: str) -> None:
        """Make the next operations on a resource fail; see `CloudFormation.fail` for the arguments."""
        if during not in ("CREATE", "UPDATE", "DELETE"):
            raise ValueError(during)
        self._pending.append(_Failure(logical_id, reason, during, times, stack_name_prefix))

    def throttle(self, logical_id: str, until: float) -> None:
        """Throttle the creation of a resource until a simulated time."""
        self._throttled_until[logical_id] = until

    def throttled_until(self, logical_id: str) -> float:
        """Return and remove the time until which the creation of a resource is throttled; 0 if it is not throttled."""
        return self._throttled_until.pop(logical_id, 0.0)

    def raise_injected(self, stack_name: str, logical_id: str, during: str) -> None:
        """Raise the failure that was injected for a resource, if any, and count it.

        Args:
            during: the operation: CREATE, UPDATE or DELETE.

        Raises:
            ResourceError: the injected failure
        """
        for failure in self._pending:
            is_same_operation = failure.logical_id == logical_id and failure.during == during
            if is_same_operation and stack_name.startswith(failure.stack_name_prefix):
                failure.remaining_times -= 1
                if failure.remaining_times == 0:
                    self._pending.remove(failure)
                raise ResourceError(failure.reason)
