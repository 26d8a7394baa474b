"""What was tried in every situation, as the tables of docs/operate/operations.md."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby

from status_walk import STACK, Known, Ran, shortened
from walked_commands import ACTING, CANCELLING, READING, Found

from cfngen.deploy.messages.stack_status import StackHealth

BEGIN = "<!-- What follows was recorded by tests/cli/test_status_walk.py; change the program, not this table. -->"
END = "<!-- End of what was recorded. -->"
_MOST = 3  # nested stacks that are named
_SHOWN = frozenset({"watch", "deploy", "rollback", "rollback --force", "delete", "delete --leave-behind"})
"""Commands that lead from one status of the stacks to another, as a reader may type them."""


def section(found: Sequence[Found], known: Known) -> str:
    """Return the tables, with the marks around them."""
    return "\n".join(
        (
            BEGIN,
            "",
            *_table(("Root", "How it came about", "Nested stacks", *(f"`{each}`" for each in ACTING), "The way on"),
                    _rows(found, known)),
            "",
            "Ctrl-C in `watch`, and then `c`:",
            "",
            *_table(("Root", "ends in"), _cancelling(found)),
            "",
            "Commands that only look, by their exit codes:",
            "",
            *_table(("Root", *(f"`{each}`" for each in READING)), _reading(found)),
            "",
            END,
        )
    )  # fmt: skip


def placed(page: str, text: str) -> str:
    """Return a page with its recorded section replaced."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return before + text + after


def _table(head: Iterable[str], rows: Iterable[Sequence[str]]) -> list[str]:
    titles = tuple(head)
    return [f"| {' | '.join(row)} |" for row in (titles, ("---",) * len(titles), *rows)]


def _rows(found: Sequence[Found], known: Known) -> list[tuple[str, ...]]:
    """One row for each situation; those of a status in which everything else is the same in one."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for each in found:
        cells = (_nested(each.stacks), *(_pair(*each.tried[command]) for command in ACTING), _way(each, known))
        rows.setdefault((each.status or "none", *cells), []).append(each.what)
    return [(status, "; ".join(filter(None, what)) or "under way", *cells) for (status, *cells), what in rows.items()]


def _nested(stacks: Mapping[str, str]) -> str:
    """Return the nested stacks that are not as they should be."""
    by_status: dict[str, list[str]] = {}
    for name, status in stacks.items():
        if name != STACK and (not status.endswith("_COMPLETE") or "ROLLBACK" in status):
            by_status.setdefault(status, []).append(name)
    if not by_status:
        return "none" if len(stacks) < 2 else "complete"
    texts = (f"{_named(names)} {status}" for status, names in by_status.items())
    return "; ".join(texts)


def _named(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) < _MOST else f"{len(names)} stacks"


def _pair(first: Ran, second: Ran) -> str:
    told, again = _cell(first), _cell(second)
    usual = not second.changed and (first.changed or told == again)
    return told if usual or told == again else f"{told}; again: {again}"


def _cell(ran: Ran) -> str:
    code = f"({ran.code})"
    if ran.command == "watch" and not ran.changed and ran.status.health not in (StackHealth.ABSENT, StackHealth.EMPTY):
        return f"shows how it ended {code}"
    if ran.refused:
        steps = [f"`{shortened(step)}`" for step in ran.steps if shortened(step) in _SHOWN]
        return f"refused {code}" + (f": {', '.join(dict.fromkeys(steps))}" if steps else "")
    if ran.command == "plan":
        return f"{'changes' if ran.code else 'no changes'} {code}"
    if ran.changed:
        return f"{_ending(ran)} {code}"
    return f"nothing to do {code}"


def _ending(ran: Ran) -> str:
    if not ran.stacks:
        return "gone"
    ends = [end for end, _ in groupby(ran.ends)]
    return ", ".join("remains deleted" if end == "DELETE_COMPLETE" else end for end in ends) or str(ran.status)


def _way(found: Found, known: Known) -> str:
    """Return the steps that are named, taken one after another until the cluster is in a good status or gone."""
    told: list[str] = []
    ran, _ = found.tried["status"]
    state, seen = found.state, {found.state}
    steps = list(ran.steps)
    while steps:
        step = steps.pop(0)
        taken = known.get((state, shortened(step)))
        if taken is None:
            continue
        if shortened(step) not in _SHOWN:
            steps += [step for step in taken.steps if step not in steps and shortened(step) in _SHOWN]
            continue
        text = f"`{shortened(step)}`: {_ending(taken)}"
        told += [text] if text not in told else []
        if taken.good:
            break
        if taken.after not in seen:
            state = taken.after
            seen.add(state)
            steps = []
        steps = [*(each for each in taken.steps if each != step), *steps]
    return ", ".join(told) or "nothing to do"


def _cancelling(found: Iterable[Found]) -> list[tuple[str, str]]:
    tried = [(each.status, each.tried[CANCELLING][0]) for each in found if CANCELLING in each.tried]
    return [(status, f"{'not cancelled; ' * _goes_on(ran)}{_ending(ran)} ({ran.code})") for status, ran in tried]


def _goes_on(ran: Ran) -> bool:
    return "not cancelled" in ran.text


def _reading(found: Iterable[Found]) -> list[tuple[str, ...]]:
    rows: dict[tuple[str, ...], list[str]] = {}
    for each in found:
        codes = tuple(str(each.tried[command][0].code) for command in READING)
        rows.setdefault(codes, []).append(each.status or "none")
    return [(", ".join(dict.fromkeys(statuses)), *codes) for codes, statuses in rows.items()]
