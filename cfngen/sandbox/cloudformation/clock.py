"""Time that passes only when nothing else is left to do, and the operations that run in it.

An operation is a generator: it works until it must wait, yields a condition, and goes on once the condition holds.
Operations run side by side, as stacks and resources do; when all of them wait, the clock jumps to the next thing that
was put off until later. So an hour of waiting costs nothing, and the order of events is the same in every run.
"""

from __future__ import annotations

import datetime
import heapq
import itertools
from collections.abc import Callable, Generator

Condition = Callable[[], bool]
Operation = Generator[Condition, None, None]

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


class StuckError(Exception):
    """Every operation waits and nothing is put off until later: the awaited thing can never happen."""


class Clock:
    """Seconds since the start of the test, and what is to happen at a later second."""

    def __init__(self) -> None:
        self.now = 0.0
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    @property
    def time(self) -> datetime.datetime:
        """What the clock shows."""
        return START + datetime.timedelta(seconds=self.now)

    def later(self, seconds: float, action: Callable[[], None]) -> None:
        """Do something after so many seconds; what is due at the same second happens in the order it was asked for."""
        heapq.heappush(self._later, (self.now + seconds, next(self._numbers), action))

    @property
    def due(self) -> float | None:
        """When the next thing put off is due; None if there is none."""
        return self._later[0][0] if self._later else None

    def jump(self) -> bool:
        """Go to the next thing put off and do it; False if there is none."""
        if not self._later:
            return False
        self.now, _, action = heapq.heappop(self._later)
        action()
        return True


class Simulation:
    """Runs operations side by side on one clock."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self._waiting: list[tuple[Operation, Condition]] = []

    def start(self, operation: Operation) -> None:
        """Run an operation up to its first wait."""
        self._resume(operation)

    def run(self, until: Condition) -> None:
        """Let operations and the clock go on until a condition holds.

        Raises:
            StuckError: the condition does not hold, and nothing is left that could change that
        """
        while not until():
            runnable = [entry for entry in self._waiting if entry[1]()]
            if runnable:
                self._waiting.remove(runnable[0])
                self._resume(runnable[0][0])
            elif not self.clock.jump():
                raise StuckError(f"{len(self._waiting)} operations wait for what nothing will bring about")

    def advance(self, seconds: float) -> None:
        """Let so much time pass, and everything happen that is due by its end."""
        end = self.clock.now + seconds
        while True:
            if runnable := next((entry for entry in self._waiting if entry[1]()), None):
                self._waiting.remove(runnable)
                self._resume(runnable[0])
            elif self.clock.due is not None and self.clock.due <= end:
                self.clock.jump()
            else:
                self.clock.now = max(self.clock.now, end)
                return

    def _resume(self, operation: Operation) -> None:
        condition = next(operation, None)
        if condition is not None:
            self._waiting.append((operation, condition))
