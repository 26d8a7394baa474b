"""Every command in every situation, every step that is named then, and what of it nobody should meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial

from situations import Situation
from status_walk import CHOICE, STACK, Known, Ran, Walk, in_a_copy

ACTING = ("plan", "deploy", "watch", "rollback", "delete")
READING = ("status", "events", "events --failures", "validate cluster", "kubeconfig", "delete --dry-run")
"""Commands that only look; a second look is the next command's."""
CANCELLING = "watch, Ctrl-C, c"
LEADING = frozenset({"watch", "deploy", "rollback", "rollback --force", "delete", "delete --leave-behind"})
"""Commands that lead from one status to another."""
AGAIN = ", again"
CODES = frozenset({0, 1, 2, 4, 5, 6})


@dataclass(frozen=True)
class Found:
    """What came of every command in a situation.

    Attributes:
        status: of the root; empty where there is none.
        what: how the situation came about.
        state: of the account.
        stacks: statuses of the root and of the stacks that it nests.
        tried: each command, run twice in a row.
    """

    status: str
    what: str
    state: str
    stacks: dict[str, str]
    tried: dict[str, tuple[Ran, Ran]]


def walk(where: Walk, situations: Iterable[Situation]) -> tuple[list[Found], Known]:
    """Bring every situation about, run every command in it twice, and take every step that is named."""
    found: dict[int, Found] = {}
    known: Known = {}
    numbered = list(enumerate(situations))
    for created in (False, True):
        if created:
            assert where.run("deploy").code == 0
        for number, each in numbered:
            if each.created == created:
                found[number], known = in_a_copy(partial(_of, where, each, known))
    return [found[number] for number, _ in numbered], known


def _of(where: Walk, situation: Situation, known: Known) -> tuple[Found, Known]:
    situation.bring(where)
    state, stacks = where.state(), where.stacks
    assert stacks.get(STACK, "") == situation.status, (situation.what, stacks)
    tried: dict[str, tuple[Ran, Ran]] = {}
    busy = situation.status.endswith("_IN_PROGRESS") and situation.status != "REVIEW_IN_PROGRESS"
    for command in (*ACTING, *((CANCELLING,) if busy else ())):
        tried[command], known = in_a_copy(partial(_twice, where, command, known))
    looks, known = in_a_copy(partial(_looks, where, known))
    return Found(situation.status, situation.what, state, stacks, tried | looks), known


def _twice(where: Walk, command: str, known: Known) -> tuple[tuple[Ran, Ran], Known]:
    known = dict(known)
    if command == CANCELLING:
        cancelled = where.cancel()
        where.follow(cancelled, known)
        return (cancelled, cancelled), known
    first = where.run(command)
    where.follow(first, known)
    # What comes of it in the state that it has left may be known by now, from a situation before.
    key = (first.after, f"{command}{AGAIN}")
    second = known.get(key) if first.changed else None
    if second is None:
        second = known[key] = where.run(command)
        where.follow(second, known)
    return (first, second), known


def _looks(where: Walk, known: Known) -> tuple[dict[str, tuple[Ran, Ran]], Known]:
    known = dict(known)
    looks = {command: where.run(command) for command in READING}
    again = where.run(READING[0])
    for ran in looks.values():
        where.follow(ran, known)
    return {command: (ran, again if command == READING[0] else ran) for command, ran in looks.items()}, known


def violations(found: Iterable[Found], known: Known) -> Iterator[str]:
    """Return what nobody should meet."""
    good = _with_a_way(known)
    for each in found:
        for command, runs in each.tried.items():
            where = f"{each.status or 'no stack'} ({each.what}), {command}"
            first, second = runs
            for ran in runs:
                if ran.code not in CODES:
                    yield f"{where}: exit code {ran.code}: {ran.text}"
                if astray := [step for step in ran.steps if not set(CHOICE) <= set(step.split())]:
                    yield f"{where}: {astray} would go to another cluster: {ran.text}"
                if ran.refused and not ran.steps:
                    yield f"{where}: refused, and no step is named: {ran.text}"
                if not ran.good and ran.after not in good:
                    yield f"{where}: no step leads out of {ran.status}: {ran.text}"
            if not first.changed and (first.code, first.steps) != (second.code, second.steps):
                yield f"{where}: {first.code} {first.steps} at first, then {second.code} {second.steps}"
            if command in READING and first.changed:
                yield f"{where}: it has changed something"
    for (_, step), ran in known.items():
        if step.endswith(AGAIN):
            continue
        if ran.code not in CODES:
            yield f"the step {step}: exit code {ran.code}: {ran.text}"
        # That a failed operation may be taken back is said before it is gone on with, and holds until then.
        outdated = step == "rollback" and ran.good
        if ran.code == 1 and not ran.changed and step != "watch" and not outdated:
            yield f"the step {step} in {ran.status}: refused: {ran.text}"


def _with_a_way(known: Known) -> set[str]:
    """Return the states from which the steps that are named there lead to a good status."""
    taken = [(before, ran) for (before, step), ran in known.items() if step in LEADING]
    good = {before for before, ran in taken if ran.good}
    while more := {before for before, ran in taken if ran.after in good} - good:
        good |= more
    return good
