"""Generates and lints the templates of thousands of combinations of what a cluster file can say, and reports.

Any three values of `dimensions.py` that go together occur in a combination; further ones differ from one of these in
one value. Of each row of `conflicts.py` some are tried, too. Exits with 1 if lint has findings, a combination ends with
a traceback, or the checks refuse something else than `conflicts.py` says. Ctrl-C reports what was done until then, and
exits with 130; the next run need not lint that again.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import sys
import time
from collections.abc import Callable
from itertools import chain, islice
from pathlib import Path

import yaml
from combinations import ALL, cover, file_of, neighbours, refused
from dimension_values import REGIONS
from matrix_pool import Progress, Selected, judged
from matrix_report import as_json, report
from outcomes import described

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "matrix"
_CLEAR = "\r\x1b[2K"


def main() -> int:
    """Run the command line."""
    options = _options()
    if options.file:
        print(yaml.safe_dump(file_of(json.loads(options.file)), sort_keys=False), end="")
        return 0
    selected = [({**json.loads(text)}, True) for text in options.only or ()] or chosen(options)
    progress = Progress(len(selected))
    clock = Clock()
    regions = {region for _, region, _ in REGIONS.values()}
    cache = None if options.no_cache else FOLDER / "verdicts"
    outcomes = judged(selected, sorted(regions), progress, cache, _shown(progress, clock), options.processes)
    if _is_terminal():
        print(_CLEAR, end="", file=sys.stderr)
    for line in report(outcomes, progress, clock.minutes, clock.cpu_seconds):
        print(line)
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "outcomes.json").write_text(as_json(outcomes) + "\n")
    if progress.stopped:
        return 130
    return int(any(outcome.findings or outcome.faults for outcome in outcomes))


class Clock:
    """Measures a run from when it is made."""

    def __init__(self) -> None:
        self._begin = time.monotonic()

    @property
    def minutes(self) -> float:
        """How long it has taken."""
        return (time.monotonic() - self._begin) / 60

    @property
    def cpu_seconds(self) -> float:
        """How much time this process, and its worker processes that have ended, have spent on a processor."""
        spent = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def _is_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"


def _shown(progress: Progress, clock: Clock) -> Callable[[], None]:
    """Return what shows how far it is: on a terminal in one line, elsewhere in a line each minute."""
    said = 0

    def show() -> None:
        nonlocal said
        line = (
            f"{progress.generated} of {progress.total} combinations, {progress.linted} templates linted, "
            f"{progress.waiting} waiting, {progress.wrong} with something wrong, {clock.minutes:.1f} minutes"
        )
        if _is_terminal():
            print(f"{_CLEAR}{line}", end="", file=sys.stderr, flush=True)
        elif int(clock.minutes) > said:
            said = int(clock.minutes)
            print(line, file=sys.stderr, flush=True)

    return show


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--combinations", type=int, default=2000, help="how many are to be generated (2000)")
    parser.add_argument("--refused", type=int, default=20, help="how many of each conflict are to be refused (20)")
    parser.add_argument("--seed", type=int, default=1, help="which ones are drawn (1)")
    parser.add_argument(
        "--processes", type=int, default=len(os.sched_getaffinity(0)), help="how many work at once (one per processor)"
    )
    parser.add_argument("--standalone", choices=("some", "all"), default="some", help="lint standalone.json of which")
    parser.add_argument("--no-cache", action="store_true", help="lint again what an earlier run has linted")
    parser.add_argument("--only", action="append", metavar="JSON", help="a combination, as the report shows it")
    parser.add_argument("--file", metavar="JSON", help="print the cluster file of a combination")
    return parser.parse_args()


def chosen(options: argparse.Namespace) -> list[Selected]:
    """Return the combinations to generate without repeating any, then those to be refused.

    What nests and is nested is linted of all. `standalone.json` has the same resources once more, and is as long to
    lint as all others together: it is linted of those combinations in which any two values occur.
    """
    pairs = cover(ALL, 2, options.seed)
    triples = cover(ALL, 3, options.seed)
    selected: dict[str, Selected] = {described(row): (row, True) for row in pairs}
    for row in chain(triples, islice(neighbours(triples, ALL, options.seed), 10 * options.combinations)):
        if len(selected) >= options.combinations:
            break
        selected.setdefault(described(row), (row, options.standalone == "all"))
    return [*selected.values(), *((row, False) for row in refused(ALL, options.refused, options.seed))]


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
