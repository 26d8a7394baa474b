"""Running lint: what is in the cache is read, the rest is judged by as many processes as there are processors."""

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
from typing import TYPE_CHECKING, Any

from cfngen.errors import CfngenError
from cfngen.lint import cache as verdicts
from cfngen.lint.findings import SEVERITIES, Finding
from cfngen.lint.views import View, views

if TYPE_CHECKING:
    from cfngen.lint.judge import Judge
    from cfngen.templates.document import Document


def lint(
    documents: Sequence[Document], *, region: str, cache: Path | None = None, texts: Mapping[str, str] | None = None
) -> tuple[Finding, ...]:
    """Judge documents with cfn-lint and cfngen's own rules.

    The verdict depends on the documents, the region, cfn-lint's version and this package's sources, and on nothing in
    the environment (`cfngen.lint.judge` says how). Errors, warnings and informational findings all count.

    Args:
        documents: the templates. A document with `children` is checked together with those of them that are among
            the documents: what it passes to each and takes from it.
        region: AWS region that the templates are for.
        cache: directory of earlier verdicts (`cache_directory`), made if missing; None reads and keeps none.
        texts: by name, the text that a document was read from; findings in it are given line and column.

    Returns:
        Everything found: by document in the given order, errors first. Empty means clean.

    Raises:
        CfngenError: cfn-lint does not know the region, fails by itself on a template that has a text, or a process of
            it ended without an answer (out of memory).
    """
    views_to_judge, findings = views(documents, texts or {})
    verdict_cache = verdicts.Cache(cache) if cache else None
    fingerprint = verdicts.fingerprint(region) if verdict_cache else b""
    keys = [verdicts.key(fingerprint, _cache_key_parts(view)) if verdict_cache else "" for view in views_to_judge]
    cached: list[verdicts.Verdict | None] = [verdict_cache.get(key) if verdict_cache else None for key in keys]
    missing = [index for index, verdict in enumerate(cached) if verdict is None]
    if missing:
        judged = dict(zip(missing, _judge([views_to_judge[index] for index in missing], region), strict=True))
        cached = [judged.get(index, verdict) for index, verdict in enumerate(cached)]
        if verdict_cache:
            verdict_cache.put({keys[index]: verdict for index, verdict in judged.items()})

    modules = {document.name: document.module for document in documents}
    for view, verdict in zip(views_to_judge, cached, strict=True):
        findings += [
            Finding(**{**fact, "path": tuple(fact["path"])}, document=view.document, module=modules[view.document])
            for fact in verdict or ()
        ]
    order = {document.name: index for index, document in enumerate(documents)}
    # The second view of a document repeats what the first found.
    return tuple(sorted(dict.fromkeys(findings), key=lambda finding: _rank(finding, order[finding.document])))


def _cache_key_parts(view: View) -> tuple[Mapping[str, Any], ...]:
    """All that the verdict about a view depends on."""
    return (view.body, view.nested) if view.text is None else (view.body, view.nested, {"text": view.text})


def _rank(finding: Finding, document: int) -> tuple[int, int, str, str]:
    return document, SEVERITIES.index(finding.severity), "/".join(map(str, finding.path)), finding.rule


def _judge(todo: Sequence[View], region: str) -> list[verdicts.Verdict]:
    """Judge views in the order given, by several processes if that can help."""
    from cfngen.lint.judge import Judge

    with tempfile.TemporaryDirectory(prefix="cfngen-lint-") as directory:
        workplace = Path(directory).resolve()
        with _without_garbage_collection():
            judge = Judge(region, workplace)
        # Only Linux: elsewhere a forked process may not use the system's libraries (macOS) or there is no fork, and a
        # process started afresh would spend more on importing cfn-lint than it saves.
        if sys.platform == "linux":
            return list(_in_processes(judge, todo, workplace))
        with _current_directory(workplace):
            return [judge.judge(view) for view in todo]


@contextlib.contextmanager
def _without_garbage_collection() -> Iterator[None]:
    """Import cfn-lint without garbage collection, then and later: its objects are many, and all there to stay.

    That saves a third of the import, the copying of their memory in forked processes, and 0.3 s at the process's end.
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
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


# Set before forking, so that the processes inherit cfn-lint with its rules loaded rather than load it again.
_inherited: Judge | None = None


def _in_processes(judge: Judge, todo: Sequence[View], workplace: Path) -> Iterator[verdicts.Verdict]:
    global _inherited
    _inherited = judge
    heaviest_first = sorted(range(len(todo)), key=lambda index: todo[index].weight, reverse=True)
    context = multiprocessing.get_context("fork")
    workers = min(len(todo), _cpu_count())
    pool = ProcessPoolExecutor(workers, mp_context=context, initializer=_start_work, initargs=(workplace,))
    try:
        futures = {index: pool.submit(_judge_inherited, todo[index]) for index in heaviest_first}
        for index in range(len(todo)):
            yield futures[index].result()
    except BrokenProcessPool as error:
        raise CfngenError(
            "lint ended without a verdict: a process of it was killed",
            hint="Most often the machine has run out of memory; lint needs about 200 MB for each processor.",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)
        _inherited = None


def _start_work(workplace: Path) -> None:
    os.chdir(workplace)
    # What linting leaves behind is looked through less often than after every 700 objects.
    gc.set_threshold(50_000, 20, 20)
    # Ctrl-C reaches every process of the terminal: these end at once and in silence, the parent says what it means.
    # Where the parent was started to ignore it, as shells start background jobs, these ignore it too.
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


def _judge_inherited(view: View) -> verdicts.Verdict:
    if _inherited is None:
        raise RuntimeError("started without cfn-lint loaded")
    return _inherited.judge(view)
