"""Lints documents: takes results from the cache, and the others from processes that load cfn-lint."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cfngen.lint import cache as verdicts
from cfngen.lint.findings import SEVERITIES, LintFinding
from cfngen.lint.views import View, make_views

if TYPE_CHECKING:
    from cfngen.lint.process import LintProcess
    from cfngen.templates.document import Document


@contextlib.contextmanager
def lint_process(*, is_needed: bool) -> Iterator[LintProcess | None]:
    """Load cfn-lint in a process of its own while the body generates templates, for `lint` to use.

    Yields None, and loads nothing, where a further process gains nothing.

    Args:
        is_needed: whether some verdict may not be in the cache; a guess is enough.
    """
    if not is_needed or sys.platform != "linux" or "cfnlint" in sys.modules:
        yield None
        return
    from cfngen.lint.process import LintProcess, cpu_count

    if cpu_count() == 1:
        yield None
        return
    with LintProcess() as process:
        yield process


def lint(
    documents: Sequence[Document],
    *,
    region: str,
    cache: Path | None = None,
    texts: Mapping[str, str] | None = None,
    process: LintProcess | None = None,
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
        process: a process, not used before, that has loaded cfn-lint or still does.

    Raises:
        LintUnavailableError: cfn-lint does not know the region, crashes on a template that has a text, or a worker
            process was killed (out of memory).
    """
    views_to_judge, findings = make_views(documents, texts or {})
    modules = {document.name: document.module for document in documents}
    for view, verdict in zip(views_to_judge, _verdicts(views_to_judge, region, cache, process), strict=True):
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


def _verdicts(
    views: Sequence[View], region: str, directory: Path | None, process: LintProcess | None
) -> list[verdicts.Verdict]:
    """Return the verdict on each view: from the cache in the directory, if there is one, or else a new one."""
    if directory is None:
        return _judge(views, region, process)
    cache = verdicts.Cache(directory)
    fingerprint = verdicts.fingerprint(region)
    keys = [verdicts.cache_key(fingerprint, view.inputs_of_verdict) for view in views]
    known = [cache.get(key) for key in keys]
    missing = [index for index, verdict in enumerate(known) if verdict is None]
    judged = dict(zip(missing, _judge([views[index] for index in missing], region, process), strict=True))
    if judged:
        cache.put({keys[index]: verdict for index, verdict in judged.items()})
    return [judged[index] if verdict is None else verdict for index, verdict in enumerate(known)]


def _judge(views: Sequence[View], region: str, process: LintProcess | None) -> list[verdicts.Verdict]:
    if not views:
        return []
    if process is not None:
        return process.judge(views, region)
    from cfngen.lint.process import judge

    return judge(views, region)


def _sort_key(finding: LintFinding, document_position: int) -> tuple[int, int, str, str]:
    return document_position, SEVERITIES.index(finding.severity), "/".join(map(str, finding.path)), finding.rule
