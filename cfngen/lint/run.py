"""Lints documents: takes results from the cache, and the others from one process for each CPU, with a `Linter` each."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.lint import cache as verdicts
from cfngen.lint.findings import SEVERITIES, LintFinding, LintUnavailableError
from cfngen.lint.views import View, make_views

if TYPE_CHECKING:
    from cfngen.lint.linter import Linter
    from cfngen.templates.document import Document


def lint(
    documents: Sequence[Document], *, region: str, cache: Path | None = None, texts: Mapping[str, str] | None = None
) -> tuple[LintFinding, ...]:
    """Return the findings of cfn-lint and of cfngen's own rules, by document in the given order, errors first.

    The verdict depends on the documents, the region, cfn-lint's version and this package's sources, and on nothing in
    the environment (`cfngen.lint.linter` says how). Errors, warnings and informational findings all count.

    Args:
        documents: the templates. A document with `children` is checked together with its children that are among the
            documents: the parameters that it passes to each child, and the outputs that it takes from each child.
        cache: directory of earlier verdicts (`cache_directory`), created if missing; None disables the cache.
        texts: the texts that documents were read from, by the document's name; findings in these documents have line
            and column.

    Raises:
        LintUnavailableError: cfn-lint does not know the region, crashes on a template that has a text, or a worker
            process was killed (out of memory).
    """
    views_to_judge, findings = make_views(documents, texts or {})
    modules = {document.name: document.module for document in documents}
    for view, verdict in zip(views_to_judge, _verdicts(views_to_judge, region, cache), strict=True):
        findings += [
            LintFinding(
                **{**fields, "path": tuple(fields["path"])}, document=view.document, module=modules[view.document]
            )
            for fields in verdict
        ]
    positions = {document.name: index for index, document in enumerate(documents)}
    # Both views of a document may report the same finding, so duplicates are removed.
    unique_findings = dict.fromkeys(findings)
    return tuple(sorted(unique_findings, key=lambda finding: _sort_key(finding, positions[finding.document])))


def _verdicts(views: Sequence[View], region: str, directory: Path | None) -> list[verdicts.Verdict]:
    """Return the verdict on each view: from the cache in the directory, if there is one, or else a new one."""
    if directory is None:
        return _judge(views, region) if views else []
    cache = verdicts.Cache(directory)
    fingerprint = verdicts.fingerprint(region)
    keys = [verdicts.cache_key(fingerprint, view.inputs_of_verdict) for view in views]
    known = [cache.get(key) for key in keys]
    missing = [index for index, verdict in enumerate(known) if verdict is None]
    if not missing:
        return [verdict for verdict in known if verdict is not None]
    judged = dict(zip(missing, _judge([views[index] for index in missing], region), strict=True))
    cache.put({keys[index]: verdict for index, verdict in judged.items()})
    return [judged[index] if verdict is None else verdict for index, verdict in enumerate(known)]


def _sort_key(finding: LintFinding, document_position: int) -> tuple[int, int, str, str]:
    return document_position, SEVERITIES.index(finding.severity), "/".join(map(str, finding.path)), finding.rule


def _judge(views_to_judge: Sequence[View], region: str) -> list[verdicts.Verdict]:
    """Lint views, on Linux with several processes; return their verdicts in the order of the views."""
    from cfngen.lint.linter import Linter

    with tempfile.TemporaryDirectory(prefix="cfngen-lint-") as directory:
        workplace = Path(directory).resolve()
        with without_garbage_collection():
            linter = Linter(region, workplace)
        # Linux only: on macOS a forked process must not use the system's libraries, Windows has no fork, and a newly
        # started process would take longer to import cfn-lint than it saves.
        if sys.platform == "linux":
            return list(_in_processes(linter, views_to_judge, workplace))
        with _current_directory(workplace):
            return [linter.judge(view) for view in views_to_judge]


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


def _cpu_count() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Set before forking, so that worker processes inherit cfn-lint with its rules loaded.
_inherited_linter: Linter | None = None


def _in_processes(linter: Linter, views_to_judge: Sequence[View], workplace: Path) -> Iterator[verdicts.Verdict]:
    """Lint views in forked processes, the largest views first; yield the verdicts in the order of the views."""
    global _inherited_linter
    _inherited_linter = linter
    largest_first = sorted(range(len(views_to_judge)), key=lambda index: views_to_judge[index].weight, reverse=True)
    context = multiprocessing.get_context("fork")
    workers = min(len(views_to_judge), _cpu_count())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_initialize_worker, initargs=(workplace,))
    try:
        futures = {index: pool.submit(_judge_with_inherited_linter, views_to_judge[index]) for index in largest_first}
        for index in range(len(views_to_judge)):
            yield futures[index].result()
    except BrokenProcessPool as error:
        raise LintUnavailableError(
            "lint ended without a verdict: a process of it was killed",
            hint="Most often the machine has run out of memory; lint needs about 200 MB for each processor.",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _inherited_linter = None


def _initialize_worker(workplace: Path) -> None:
    """Prepare a new worker process: set its current directory, garbage collection and reaction to Ctrl-C."""
    os.chdir(workplace)
    # Collect garbage after every 50,000 new objects instead of every 700, Python's default.
    gc.set_threshold(50_000, 20, 20)
    # Ctrl-C reaches every process of the terminal: workers exit at once without a message, and the parent reports it.
    # If the parent ignores it, as background jobs of a shell do, so do the workers.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _judge_with_inherited_linter(view: View) -> verdicts.Verdict:
    """Lint a view in a worker process, with the linter that the parent process created before forking."""
    if _inherited_linter is None:
        raise RuntimeError("started without cfn-lint loaded")
    return _inherited_linter.judge(view)
