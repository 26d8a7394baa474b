"""Programs that run at once in simulated time: each runs until it sleeps, then whoever wakes next has its turn."""

from __future__ import annotations

import heapq
import itertools
import threading
from collections.abc import Callable


class Killed(BaseException):
    """The instance ends: not even the boot program's own handling of failures sees it."""


class Program:
    """A function in a thread of its own, which runs only while the timeline lets it."""

    def __init__(self, function: Callable[[], object]) -> None:
        self.result: object = None
        self.error: BaseException | None = None
        self.ended = False
        self.killed = False
        self._turn = threading.Semaphore(0)
        self._yielded = threading.Semaphore(0)
        self._function = function
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._turn.acquire()
        try:
            if not self.killed:
                self.result = self._function()
        except Killed:
            pass
        except BaseException as error:  # noqa: BLE001 - also pytest's failures; the test's own thread raises it
            self.error = error
        self.ended = True
        self._yielded.release()

    def resume(self) -> None:
        """Let the program run until it sleeps or ends."""
        if not self.ended:
            self._turn.release()
            self._yielded.acquire()
        error, self.error = self.error, None
        if error:
            raise error

    def pause(self) -> None:
        """Wait for the next turn; called by the program itself."""
        self._yielded.release()
        self._turn.acquire()
        if self.killed:
            raise Killed

    @property
    def runs_here(self) -> bool:
        """Whether this thread is the program's."""
        return threading.current_thread() is self._thread


class Timeline:
    """Simulated time, and what happens in it.

    Attributes:
        now: seconds since the beginning.
        programs: every program that was started.
    """

    def __init__(self) -> None:
        self.now = 0.0
        self.programs: list[Program] = []
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()

    def at(self, second: float, action: Callable[[], None]) -> None:
        """Do something at a second; what is due at once is done in the order in which it was asked for."""
        heapq.heappush(self._due, (second, next(self._order), action))

    def start(self, function: Callable[[], object]) -> Program:
        """Start a program, now."""
        program = Program(function)
        self.programs.append(program)
        self.at(self.now, program.resume)
        return program

    def sleep(self, seconds: float) -> None:
        """Let time pass for the program that calls this."""
        [program] = [program for program in self.programs if program.runs_here]
        self.at(self.now + seconds, program.resume)
        program.pause()

    def run(self, end: float) -> None:
        """Let time pass until a second, then end all programs."""
        try:
            while self._due and self._due[0][0] <= end:
                self.now, _, action = heapq.heappop(self._due)
                action()
        finally:
            for program in self.programs:
                program.killed = True
                program.resume()
