"""Command lines of cfngen side by side, each as a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from cfngen.cli.exit_codes import EXIT_CODE_MEANINGS, FAILED

_SHELLS_ADD = 128  # to the number of a signal that has ended a process


@dataclass
class Processes:
    """Command lines of which a limited number is run at the same time.

    Attributes:
        show: shows a line that a process has printed; its first argument is the label of the command line.
        goes_on: whether to start further processes after one has ended with an exit code.
        separates_errors: whether standard error is left as it is, since what is shown is for programs.
        is_terminated: whether SIGTERM has ended the processes.
    """

    limit: int
    show: Callable[[str, str], None]
    goes_on: Callable[[int], bool]
    separates_errors: bool = False
    is_stopped: bool = False
    is_terminated: bool = False
    _running: list[subprocess.Popen[str]] = field(default_factory=list)
    _lock: Lock = field(default_factory=Lock)

    def run(self, command_lines: Mapping[str, Sequence[str]]) -> Iterator[tuple[str, int]]:
        """Run command lines, and yield the label and the exit code of each that has ended; some may never be started.

        Nobody can be asked: standard input is empty. Ctrl-C, which reaches the processes too, starts no further ones;
        SIGTERM is passed on to them.
        """
        with self._signals(), ThreadPoolExecutor(self.limit) as executor:
            label_by_run = {executor.submit(self._run, label, words): label for label, words in command_lines.items()}
            for run in as_completed(label_by_run):
                exit_code = run.result()
                if exit_code is not None:
                    yield label_by_run[run], exit_code

    def _run(self, label: str, words: Sequence[str]) -> int | None:
        """Run a command line to its end; return its exit code, or None if it is not to be started any more."""
        with self._lock:
            if self.is_stopped:
                return None
            process = subprocess.Popen(  # noqa: S603 - this program, with the options that it was given
                [sys.executable, "-m", "cfngen", *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=None if self.separates_errors else subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
            )
            self._running.append(process)
        with process:
            for line in process.stdout or ():
                with self._lock:
                    self.show(label, line.removesuffix("\n"))
        exit_code = process.returncode if process.returncode >= 0 else _SHELLS_ADD - process.returncode
        # One that a signal such as SIGKILL has ended has failed.
        exit_code = exit_code if exit_code in EXIT_CODE_MEANINGS else FAILED
        self.is_stopped |= not self.goes_on(exit_code)
        return exit_code

    @contextmanager
    def _signals(self) -> Iterator[None]:
        def stop(number: int, frame: object) -> None:
            self.is_stopped = True
            if number == signal.SIGTERM:
                self.is_terminated = True
                for process in self._running:
                    process.terminate()

        previous = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)
