"""Generates and lints many combinations with one pool of processes; a template that several have is linted once."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from outcomes import Outcome, generated, lines_of

from cfngen.lint.cache import Cache, Verdict
from cfngen.lint.linter import Linter
from cfngen.lint.process import without_garbage_collection
from cfngen.lint.views import View

# How many combinations are generated ahead, and how many templates wait to be linted at most: a view has a megabyte.
_AHEAD = 16
_WAITING = 200
# Verdicts are stored in batches, since each time the whole directory is looked through.
_BATCH = 200
Selected = tuple[Mapping[str, str], bool]
"""A combination, and whether its template with everything in it is linted."""


@dataclass
class Progress:
    """How far it is.

    Attributes:
        total: how many combinations there are.
        generated: how many of them were generated or refused.
        linted: how many templates were linted.
        known: how many templates needed no lint, since another combination or an earlier run had the same one.
        waiting: how many templates wait to be linted.
        wrong: how many combinations have a fault, and templates a finding.
        stopped: whether Ctrl-C ended the run before all was done.
    """

    total: int
    generated: int = 0
    linted: int = 0
    known: int = 0
    waiting: int = 0
    wrong: int = 0
    stopped: bool = False


@dataclass
class _Judging:
    """A template that is being linted, or was.

    Attributes:
        first: the combination that had it first, to which the time counts.
        document: its name.
        outcomes: the combinations that have it, until there is a verdict.
        verdict: what lint found; None until then.
    """

    first: Outcome
    document: str
    outcomes: list[Outcome] = field(default_factory=list)
    verdict: Verdict | None = None


def judged(
    selected: Iterable[Selected],
    regions: Iterable[str],
    progress: Progress,
    cache: Path | None,
    report: Callable[[], None],
    processes: int,
) -> list[Outcome]:
    """Generate and lint combinations; return what became of each, or, after Ctrl-C, of those that were generated.

    Args:
        selected: the combinations.
        regions: the regions that they are in.
        progress: is kept up to date.
        cache: directory of verdicts of earlier runs; None lints everything again.
        report: called when something has changed.
        processes: how many work at the same time.
    """
    with tempfile.TemporaryDirectory(prefix="cfngen-matrix-") as directory:
        workplace = Path(directory).resolve()
        with without_garbage_collection():
            _LINTERS.update({region: Linter(region, workplace) for region in regions})
        context = multiprocessing.get_context("fork")
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(workplace,)) as pool:
            return _Run(pool, progress, Cache(cache) if cache else None, report).of(iter(selected))


class _Run:
    """One run: what is under way, and the verdicts so far."""

    def __init__(
        self, pool: ProcessPoolExecutor, progress: Progress, cache: Cache | None, report: Callable[[], None]
    ) -> None:
        self._pool, self._progress, self._cache, self._report = pool, progress, cache, report
        self._judgings: dict[str, _Judging] = {}
        self._unsaved: dict[str, Verdict] = {}
        self._futures: dict[Future[Any], str] = {}
        self._outcomes: list[Outcome] = []

    def of(self, selected: Iterator[Selected]) -> list[Outcome]:
        """Work until everything is done, or until Ctrl-C."""
        try:
            self._work(selected)
        except KeyboardInterrupt:
            self._progress.stopped = True
            self._progress.waiting = sum(bool(key) for key in self._futures.values())
            self._pool.shutdown(wait=True, cancel_futures=True)
        self._save()
        return self._outcomes

    def _work(self, selected: Iterator[Selected]) -> None:
        self._more(selected)
        while self._futures:
            done, _ = wait(self._futures, return_when=FIRST_COMPLETED)
            for future in done:
                key = self._futures.pop(future)
                if key:
                    self._linted(key, *future.result())
                else:
                    self._generated(*future.result())
            self._more(selected)
            self._report()

    def _more(self, selected: Iterator[Selected]) -> None:
        """Let further combinations be generated, unless many templates wait already."""
        ahead = sum(not key for key in self._futures.values())
        self._progress.waiting = len(self._futures) - ahead
        for _ in range(_AHEAD - ahead if self._progress.waiting < _WAITING else 0):
            if (combination := next(selected, None)) is None:
                return
            self._futures[self._pool.submit(generated, *combination)] = ""

    def _generated(self, outcome: Outcome, views: Mapping[str, View], region: str) -> None:
        """Add what lint says of the templates, or let it say something."""
        self._outcomes.append(outcome)
        self._progress.generated += 1
        self._progress.wrong += bool(outcome.faults or outcome.findings)
        for key, view in views.items():
            if key not in self._judgings:
                verdict = self._cache.get(key) if self._cache else None
                self._judgings[key] = _Judging(outcome, view.document, verdict=verdict)
                if verdict is None:
                    self._judgings[key].outcomes.append(outcome)
                    self._futures[self._pool.submit(_judge, view, region)] = key
                    continue
            self._progress.known += 1
            judging = self._judgings[key]
            if judging.verdict is None:
                judging.outcomes.append(outcome)
            else:
                outcome.findings += lines_of(judging.document, judging.verdict)

    def _linted(self, key: str, verdict: Verdict, seconds: float) -> None:
        judging = self._judgings[key]
        judging.verdict = self._unsaved[key] = verdict
        judging.first.lint_seconds += seconds
        self._progress.linted += 1
        self._progress.wrong += bool(verdict)
        for outcome in judging.outcomes:
            outcome.findings += lines_of(judging.document, verdict)
        judging.outcomes.clear()
        if len(self._unsaved) >= _BATCH:
            self._save()

    def _save(self) -> None:
        if self._cache:
            self._cache.put(self._unsaved)
        self._unsaved.clear()


# Set before forking, so that worker processes inherit cfn-lint with its rules loaded.
_LINTERS: dict[str, Linter] = {}


def _begin(workplace: Path) -> None:
    """Prepare a new worker process."""
    os.chdir(workplace)
    gc.set_threshold(50_000, 20, 20)
    # Ctrl-C reaches every process of the terminal; the first one ends the others, and reports what was done.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _judge(view: View, region: str) -> tuple[Verdict, float]:
    """Lint a template; return the verdict and how long it took."""
    begin = time.monotonic()
    verdict = _LINTERS[region].judge(view)
    return verdict, time.monotonic() - begin
