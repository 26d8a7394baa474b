"""The processes that lint views: one for each CPU, forked from one that has loaded cfn-lint."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.lint.findings import LintUnavailableError
from cfngen.lint.views import View

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from types import TracebackType

    from cfngen.lint.cache import Verdict
    from cfngen.lint.linter import Linter


# Until the region is known.
_SOME_REGION = "us-east-1"

# Judged while there is nothing else to do: cfn-lint imports more for the first conditions, which the processes that are
# forked then need not do again.
_WITH_CONDITIONS = View(
    "with-conditions",
    {
        "Parameters": {"Size": {"Type": "String"}},
        "Conditions": {
            "IsSmall": {"Fn::Not": [{"Fn::Equals": [{"Ref": "Size"}, "large"]}]},
            "IsTiny": {"Fn::And": [{"Condition": "IsSmall"}, {"Fn::Equals": [{"Ref": "Size"}, "tiny"]}]},
        },
        "Resources": {"Handle": {"Type": "AWS::CloudFormation::WaitConditionHandle", "Condition": "IsTiny"}},
    },
    nested={},
)


class LintProcess:
    """A process that loads cfn-lint while its parent does something else, and then lints what the parent sends.

    As a context manager it ends the process at the end of the body, also if it was never used. Linux only.
    """

    def __init__(self) -> None:
        context = multiprocessing.get_context("fork")
        self._connection, connection_of_process = context.Pipe()
        self._process = context.Process(target=_serve, args=(connection_of_process, self._connection))
        self._process.start()
        connection_of_process.close()

    def __enter__(self) -> LintProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._connection.close()
        self._process.terminate()
        self._process.join()

    def judge(self, views: Sequence[View], region: str) -> list[Verdict]:
        """Return the verdicts in the order of the views; to be called once.

        Raises:
            LintUnavailableError: cfn-lint does not know the region, crashes on a text, or a process was killed.
        """
        try:
            self._connection.send((region, views))
            answer = self._connection.recv()
        except (EOFError, OSError) as error:
            raise _killed() from error
        if isinstance(answer, Exception):
            raise answer
        verdicts: list[Verdict] = answer
        return verdicts


def _serve(connection: Connection, connection_of_parent: Connection) -> None:
    """Load cfn-lint, wait for views, answer with their verdicts or with the error, and end."""
    # Held open here, it would hide that the parent has ended.
    connection_of_parent.close()
    _react_to_signals()
    # The parent ends this process with SIGTERM; processes that it has forked end with it.
    signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    answer: list[Verdict] | Exception
    with contextlib.suppress(EOFError, BrokenPipeError):
        try:
            with _loaded_linter(_SOME_REGION) as linter:
                if not connection.poll():
                    linter.judge(_WITH_CONDITIONS)
                region, views = connection.recv()
                linter.choose_region(region)
                answer = list(_in_processes(linter, views))
        except EOFError:
            raise
        except Exception as error:  # noqa: BLE001 - the parent raises it
            answer = error
        connection.send(answer)


def judge(views: Sequence[View], region: str) -> list[Verdict]:
    """Lint views, on Linux with several processes; return their verdicts in the order of the views.

    Raises:
        LintUnavailableError: cfn-lint does not know the region, crashes on a text, or a process was killed.
    """
    with _loaded_linter(region) as linter:
        # Linux only: on macOS a forked process must not use the system's libraries, Windows has no fork, and a newly
        # started process would take longer to import cfn-lint than it saves.
        if sys.platform == "linux":
            return list(_in_processes(linter, views))
        with _current_directory(linter.workplace):
            return [linter.judge(view) for view in views]


@contextlib.contextmanager
def _loaded_linter(region: str) -> Iterator[Linter]:
    from cfngen.lint.linter import Linter

    with tempfile.TemporaryDirectory(prefix="cfngen-lint-") as directory:
        with without_garbage_collection():
            linter = Linter(region, Path(directory).resolve())
        yield linter


@contextlib.contextmanager
def without_garbage_collection() -> Iterator[None]:
    """Disable garbage collection while cfn-lint is imported, and exempt its many permanent objects from it afterwards.

    That saves a third of the import, copies of their memory in forked processes, and 0.3 s at the end of the process.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
        gc.freeze()
    finally:
        if enabled:
            gc.enable()


@contextlib.contextmanager
def _current_directory(directory: Path) -> Iterator[None]:
    previous = Path.cwd()
    os.chdir(directory)
    try:
        yield
    finally:
        os.chdir(previous)


def cpu_count() -> int:
    """Return the number of CPUs that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Set before forking, so that worker processes inherit cfn-lint with its rules loaded.
_inherited_linter: Linter | None = None


def _in_processes(linter: Linter, views_to_judge: Sequence[View]) -> Iterator[Verdict]:
    """Lint views in forked processes, the largest views first; yield the verdicts in the order of the views."""
    global _inherited_linter
    _inherited_linter = linter
    largest_first = sorted(range(len(views_to_judge)), key=lambda index: views_to_judge[index].weight, reverse=True)
    context = multiprocessing.get_context("fork")
    workers = min(len(views_to_judge), cpu_count())
    pool = ProcessPoolExecutor(
        workers, mp_context=context, initializer=_initialize_worker, initargs=(linter.workplace,)
    )
    try:
        futures = {index: pool.submit(_judge_with_inherited_linter, views_to_judge[index]) for index in largest_first}
        for index in range(len(views_to_judge)):
            yield futures[index].result()
    except BrokenProcessPool as error:
        raise _killed() from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _inherited_linter = None


def _initialize_worker(workplace: Path) -> None:
    """Prepare a new worker process: set its current directory, garbage collection and reaction to Ctrl-C."""
    os.chdir(workplace)
    # As the command line does, which is not all that lints.
    gc.set_threshold(50_000, 20, 20)
    _react_to_signals()
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _react_to_signals() -> None:
    # Ctrl-C reaches every process of the terminal: these exit at once without a message, and the parent reports it.
    # If the parent ignores it, as background jobs of a shell do, so do they.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _killed() -> LintUnavailableError:
    return LintUnavailableError(
        "lint ended without a verdict: a process of it was killed",
        hint="Most often the machine has run out of memory; lint needs about 200 MB for each processor.",
    )


def _judge_with_inherited_linter(view: View) -> Verdict:
    """Lint a view in a worker process, with the linter that the parent process created before forking."""
    if _inherited_linter is None:
        raise RuntimeError("started without cfn-lint loaded")
    return _inherited_linter.judge(view)
