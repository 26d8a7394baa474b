"""Runs tests against mutants in forks of one process that has imported everything and collected all tests.

A fork gives the changed function the code of its mutant, so nothing is imported or collected anew, and most mutants
take less than a second. What this cannot do is left to a process that imports the changed module: faults outside of
functions, in functions that cannot be found by their names, and in programs that tests start.
"""

from __future__ import annotations

import functools
import gc
import importlib
import inspect
import multiprocessing
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import calls
import pytest
from mutations import Mutation, mutated

MEMORY = 6 << 30
# What a fork answers where no test failed, and where the mutant cannot be put in.
UNNOTICED, UNFIT = "", "(not in a fork)"


@dataclass(frozen=True)
class Trial:
    """What a mutant meets.

    Attributes:
        mutation: the fault.
        tests: ids of the tests that are run against it, in order.
        patience: seconds of the processor's time that they may take.
    """

    mutation: Mutation
    tests: list[str]
    patience: int


def run_forks(root: Path, trials: list[Trial], marked: str, processes: int) -> Iterator[tuple[Trial, str, float]]:
    """Yield each trial as it ends: the first test that failed, `UNNOTICED` or `UNFIT`, and the seconds that it took."""
    context = multiprocessing.get_context("fork")
    there, here = context.Pipe()
    process = context.Process(target=_serve, args=(root, trials, marked, processes, here))
    process.start()
    here.close()
    while True:
        try:
            place, answer, seconds = there.recv()
        except EOFError:
            break
        yield trials[place], answer, seconds
    process.join()
    if process.exitcode:
        sys.exit(f"the tests cannot be collected: {process.exitcode}")


def _serve(root: Path, trials: list[Trial], marked: str, processes: int, answers: Any) -> None:
    calls.enter(root)
    files = sorted({name.partition("::")[0] for trial in trials for name in trial.tests})
    forks = _Forks(root, trials, processes, answers.send)
    code = pytest.main(["-q", "-n", "0", "-m", marked, "-p", "no:cacheprovider", "--tb=no", *files], plugins=[forks])
    answers.close()
    os._exit(int(code))


class _Forks:
    """A plug-in of pytest that tries the mutants in place of running the tests."""

    def __init__(
        self, root: Path, trials: list[Trial], processes: int, answer: Callable[[tuple[int, str, float]], None]
    ) -> None:
        self.root, self.trials, self.processes, self.answer = root, trials, processes, answer
        self.failed = UNNOTICED

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and not self.failed:
            self.failed = report.nodeid

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        if session.testsfailed:  # a file could not be collected, which pytest's exit code says
            return True
        items = {item.nodeid: item for item in session.items}
        _forget(session)
        pending, running = list(enumerate(self.trials)), {}
        while pending or running:
            while pending and len(running) < self.processes:
                place, trial = pending.pop(0)
                fork = _Fork(place, trial.patience)
                if not fork.process_id:
                    self._try(trial, items, fork.writer)
                running[fork.reader] = fork
            for reader in select.select(list(running), [], [], 1)[0]:
                self.answer(running.pop(reader).ended())
            for fork in running.values():
                fork.end_in_time()
        return True

    def _try(self, trial: Trial, items: dict[str, pytest.Item], writer: int) -> None:
        """Run the tests in a fork, which ends with it."""
        answer = UNFIT
        try:
            confine(trial.patience)
            put_in(trial.mutation, self.root)
            chosen = [items[name] for name in trial.tests if name in items]
            for item, following in zip_longest(chosen, chosen[1:]):
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self.failed:
                    break
            answer = self.failed
        except UnfitError:
            pass
        finally:
            os.write(writer, answer.encode() or b"-")
            os._exit(0)


def confine(patience: int) -> None:
    """Give this process, which can be ended with those that it starts, so many seconds of the processor's time."""
    os.setsid()
    resource.setrlimit(resource.RLIMIT_CPU, (patience, patience))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


class _Fork:
    def __init__(self, place: int, patience: int) -> None:
        self.place, self.begin = place, time.monotonic()
        # Of the processor's time, since other programs may keep it busy; a mutant may also wait for what never comes.
        self.end, self.is_late = self.begin + 60 + 10 * patience, False
        self.reader, self.writer = os.pipe()
        self.process_id = os.fork()
        if self.process_id:
            os.close(self.writer)

    def end_in_time(self) -> None:
        if time.monotonic() > self.end:
            self.is_late = True
            with suppress(ProcessLookupError):
                os.killpg(self.process_id, signal.SIGKILL)

    def ended(self) -> tuple[int, str, float]:
        text = os.read(self.reader, 65536).decode()
        os.close(self.reader)
        os.waitpid(self.process_id, 0)
        answer = text if text else "(time is up)" if self.is_late else "(the process ended)"
        return self.place, UNNOTICED if answer == "-" else answer, round(time.monotonic() - self.begin, 1)


def _forget(session: pytest.Session) -> None:
    """Empty what caches kept while tests were collected: a mutant would not be asked for it again."""
    for kept in [kept for kept in gc.get_objects() if isinstance(kept, functools._lru_cache_wrapper)]:
        if kept.__module__.partition(".")[0] in ("cfngen", "tests", "conftest"):
            kept.cache_clear()
    for plugin in session.config.pluginmanager.get_plugins():
        getattr(plugin, "_GENERATED", {}).clear()
    gc.collect()
    gc.freeze()


class UnfitError(Exception):
    """A mutant that cannot be put into a process that has imported the program."""


def put_in(mutation: Mutation, root: Path) -> None:
    """Give a function of this process the code of a mutant.

    Raises:
        UnfitError: the fault is in no function, or in one that has not its own name, or needs other variables.
    """
    source = (root / mutation.path).read_text("utf-8")
    original, changed = (
        _code_of(compile(text, mutation.path, "exec", dont_inherit=True), mutation.function)
        for text in (source, mutated(source, mutation))
    )
    # By another name, `__init__` would be a second module beside the package.
    module = mutation.path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    function: Any = importlib.import_module(module)
    for name in original[0]:
        function = inspect.getattr_static(function, name, None)
    function = _plain(function)
    if not isinstance(function, FunctionType) or function.__code__.co_firstlineno != original[1].co_firstlineno:
        raise UnfitError
    try:
        function.__code__ = changed[1]
    except ValueError as error:
        raise UnfitError from error


def _plain(function: Any) -> Any:
    """Return the function of a property, a class method, a cached or decorated function, or a command."""
    for attribute in ("__func__", "fget", "func", "callback"):
        function = getattr(function, attribute, None) or function
    return inspect.unwrap(function) if callable(function) else function


def _code_of(module: CodeType, qualified_name: str) -> tuple[list[str], CodeType]:
    """Return the names down to the outermost function of a qualified name, and its code.

    Raises:
        UnfitError: there is none, or more than one.
    """
    names: list[str] = []
    code = module
    for name in qualified_name.split("."):
        inner = [part for part in code.co_consts if isinstance(part, CodeType) and part.co_name == name]
        if len(inner) != 1:
            raise UnfitError
        [code] = inner
        names.append(name)
        if code.co_flags & inspect.CO_OPTIMIZED:  # a function, and no body of a class
            return names, code
    raise UnfitError
