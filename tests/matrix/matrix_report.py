"""The report of the matrix: a table by dimension and value, what was refused with which message, and what is wrong."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from dimensions import DIMENSIONS
from matrix_pool import Progress
from outcomes import Outcome, described

from cfngen.text import pluralize

_HEADER = ("value", "combinations", "refused", "findings", "faults", "template", "UserData", "time")
_SHOWN = 3
_KEY = re.compile(r"\[\d+\]")
_IDS = re.compile(r"\b([a-z]{2,8})-(?:0[0-9a-f]{16}|[0-9a-f]{17})\b")


def report(outcomes: Sequence[Outcome], progress: Progress, minutes: float, cpu_seconds: float) -> Iterator[str]:
    """Yield the lines of the report.

    Args:
        outcomes: of all combinations.
        progress: how far it came.
        minutes: how long it took.
        cpu_seconds: how much processor time it took, in all processes together.
    """
    yield from _table(outcomes)
    refusals = _grouped((outcome, _general(line)) for outcome in outcomes for line in outcome.refusals)
    yield ""
    yield f"refused by the checks, with {pluralize(len(refusals), 'message')}:"
    for message, refused in refusals.items():
        yield f"  {len(refused):5}  {message}"
    yield from _wrong("lint findings", _grouped((each, line) for each in outcomes for line in each.findings))
    yield from _wrong("faults", _grouped((each, fault) for each in outcomes for fault in each.faults))
    refused_count = sum(bool(outcome.refusals) for outcome in outcomes)
    findings_count = sum(bool(outcome.findings) for outcome in outcomes)
    faults_count = sum(bool(outcome.faults) for outcome in outcomes)
    yield ""
    if progress.stopped:
        yield (
            f"stopped after {len(outcomes)} of {pluralize(progress.total, 'combination')}; "
            f"{pluralize(progress.waiting, 'template')} of these not linted"
        )
    yield (
        f"{pluralize(len(outcomes) - refused_count, 'combination')} generated, {refused_count} refused by the checks; "
        f"{pluralize(progress.linted, 'template')} linted, {progress.known:,} were known; {findings_count} with lint "
        f"findings, {faults_count} with faults; {minutes:.1f} minutes, {cpu_seconds:,.0f} seconds of processor time"
    )


def _table(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """Yield a row for each value of each dimension; the time is that of one combination on average."""
    for dimension, values in DIMENSIONS.items():
        rows = [(dimension, *_HEADER[1:])]
        for value in values:
            chosen = [outcome for outcome in outcomes if outcome.combination[dimension] == value]
            rows.append((f"  {value}", *_cells(chosen)))
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        widths[0] = max(widths[0], 33)
        for name, *cells in rows:
            aligned = (cell.rjust(width) for cell, width in zip(cells, widths[1:], strict=True))
            yield "  ".join((name.ljust(widths[0]), *aligned))


def _cells(outcomes: Sequence[Outcome]) -> tuple[str, ...]:
    accepted = [outcome for outcome in outcomes if not outcome.refusals]
    spent = sum(outcome.seconds + outcome.lint_seconds for outcome in accepted) / max(len(accepted), 1)
    return (
        str(len(outcomes)),
        str(len(outcomes) - len(accepted)),
        str(sum(bool(outcome.findings) for outcome in outcomes)),
        str(sum(bool(outcome.faults) for outcome in outcomes)),
        f"{max((outcome.template_bytes for outcome in accepted), default=0) / 1024:.0f} KiB",
        f"{max((outcome.userdata_bytes for outcome in accepted), default=0)} B",
        f"{spent:.2f} s",
    )


def _general(message: str) -> str:
    """Return a message without positions in lists and ids, so that messages of the same check are alike."""
    return _IDS.sub(r"\1-…", _KEY.sub("[]", message))


def _grouped(lines: Iterable[tuple[Outcome, str]]) -> Mapping[str, list[Outcome]]:
    """Return the outcomes by message, the most frequent message first."""
    groups: dict[str, list[Outcome]] = defaultdict(list)
    for outcome, line in lines:
        groups[line].append(outcome)
    return dict(sorted(groups.items(), key=lambda item: len(item[1]), reverse=True))


def _wrong(title: str, groups: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """Yield what is wrong, with the values that all combinations of a message share, and one of them to try."""
    if not groups:
        return
    yield ""
    yield f"{title}:"
    for message, outcomes in groups.items():
        yield f"  {len(outcomes):5}  " + message.rstrip().replace("\n", "\n         ")
        shared = [
            f"{dimension}: {' or '.join(counts)}"
            for dimension, values in DIMENSIONS.items()
            if len(counts := Counter(outcome.combination[dimension] for outcome in outcomes)) <= len(values) // 2
        ]
        if len(outcomes) > _SHOWN and shared:
            yield f"         all have {'; '.join(shared)}"
        yield f"         --only '{described(outcomes[0].combination)}'"


def as_json(outcomes: Sequence[Outcome]) -> str:
    """Return the outcomes as JSON."""
    return json.dumps([{**vars(outcome), "combination": dict(outcome.combination)} for outcome in outcomes], indent=1)
