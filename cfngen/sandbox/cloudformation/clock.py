"""Simulated time, and the operations that run in it.

An operation is a generator: it runs until it has to wait, yields a condition, and continues when the condition is true.
Operations run concurrently, as stacks and resources do. When all of them wait, the clock jumps to the next scheduled
action. So an hour of waiting takes no real time, and the order of events is the same in every run.
"""

from __future__ import annotations

import datetime
import heapq
import itertools
from collections.abc import Callable, Generator

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
