"""Every command in every situation, every step that is named then, and what of it nobody should meet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from advised_commands import NOT_FOLLOWED, leads, name_of
from shell import COMMANDS
from situations import Situation
from status_walk import (
    AGAIN,
    CHOICE,
    STACK,
    TRIED,
    Known,
    Ran,
    Walk,
    in_a_copy,
    in_copies,
)

from cfngen.deploy.messages.stack_status import StackHealth

ACTING = ("plan", "deploy", "watch", "rollback", "delete")
READING = ("status", "events", "events --failures", "validate cluster", "kubeconfig", "delete --dry-run")
"""Commands that only look; a second look is the next command's."""
OPERATING = ("check network", "etcd list", "etcd backup", "etcd restore", "replace a", "pause", "resume")
"""Commands of a cluster that works, which the tables leave out."""
LEFT_OUT = {
    **NOT_FOLLOWED,
    **dict.fromkeys(
        (
            "init",
            "templates",
            "lint",
            "graph",
            "userdata",
            "config",
            "schema",
            "permissions",
            "kind",
            "completion",
            "version",
        ),
        "asks no account; it is run where it is advised",
    ),
}
"""Commands that are not tried in every situation, and why."""
CANCELLING = "watch, Ctrl-C, c"
AT_ONCE = 2
"""Situations that are walked through at the same time: what one half comes to know, the other does not."""
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


def walk(where: Walk, situations: Sequence[Situation]) -> tuple[list[Found], Known]:
    """Bring every situation about, run every command in it twice, and take every step that is named."""
    found: dict[int, Found] = {}
    known: Known = {}
    for created in (False, True):
        if created:
            assert where.run("deploy").code == 0
        numbers = [number for number, each in enumerate(situations) if each.created == created]
        parts = [numbers[start::AT_ONCE] for start in range(AT_ONCE)]
        for part in in_copies([partial(_some, where, situations, part, known) for part in parts], known):
            found |= part
    return [found[number] for number in range(len(situations))], known


def _some(where: Walk, situations: Sequence[Situation], numbers: Iterable[int], known: Known) -> dict[int, Found]:
    return {number: in_a_copy(partial(_of, where, situations[number], known), known) for number in numbers}


def _of(where: Walk, situation: Situation, known: Known) -> Found:
    situation.bring(where)
    state, stacks = where.state(), where.stacks
    assert stacks.get(STACK, "") == situation.status, (situation.what, stacks)
    tried = in_a_copy(partial(_looks, where, known), known)
    busy = situation.status.endswith("_IN_PROGRESS") and situation.status != "REVIEW_IN_PROGRESS"
    for command in (*ACTING, *OPERATING, *((CANCELLING,) if busy else ())):
        tried[command] = in_a_copy(partial(_twice, where, command, known), known)
    # Most of what is named in this state has been tried in it by now.
    for runs in tried.values():
        for ran in runs:
            if ran.after == state:
                where.follow(ran, known)
    return Found(situation.status, situation.what, state, stacks, tried)


def _twice(where: Walk, command: str, known: Known) -> tuple[Ran, Ran]:
    if command == CANCELLING:
        cancelled = where.cancel()
        where.follow(cancelled, known)
        return cancelled, cancelled
    first = where.run(command)
    known[first.before, f"{command}{TRIED}"] = first
    moved = first.after != first.before
    if moved:
        where.follow(first, known)
    # What comes of it in the state that it has left may be known by now, from a situation before.
    key = (first.after, f"{command}{AGAIN}")
    second = known.get(key) if first.changed else None
    if second is None:
        second = known[key] = where.run(command)
        if moved or second.after != second.before:
            where.follow(second, known)
    return first, second


def _looks(where: Walk, known: Known) -> dict[str, tuple[Ran, Ran]]:
    looks = {command: where.run(command) for command in READING}
    again = where.run(READING[0])
    for command, ran in looks.items():
        known[ran.before, f"{command}{TRIED}"] = ran
    return {command: (ran, again if command == READING[0] else ran) for command, ran in looks.items()}


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
                if astray := [step for step in ran.steps if not _chosen(step) <= set(step.split())]:
                    yield f"{where}: {astray} would go to another cluster: {ran.text}"
                if ran.refused and not ran.steps:
                    yield f"{where}: refused, and no step is named: {ran.text}"
                if not _leads_on(ran, good):
                    yield f"{where}: no step leads out of {ran.status}: {ran.text}"
            if not first.changed and (first.code, first.steps) != (second.code, second.steps):
                yield f"{where}: {first.code} {first.steps} at first, then {second.code} {second.steps}"
            if command in READING and first.changed:
                yield f"{where}: it has changed something"
    for (_, step), ran in known.items():
        if step.endswith(TRIED):
            continue
        if ran.code not in CODES:
            yield f"the step {step}: exit code {ran.code}: {ran.text}"
        if ran.refused and not ran.steps:
            yield f"the step {step} in {ran.status}: refused, and no step is named: {ran.text}"
        if not _leads_on(ran, good):
            yield f"the step {step}: no step leads out of {ran.status}: {ran.text}"
        if step.endswith(AGAIN):
            continue
        # That a failed operation may be rolled back is said before it is gone on with, and holds until then.
        outdated = step == "rollback" and ran.good
        if ran.code == 1 and not ran.changed and step != "watch" and not outdated:
            yield f"the step {step} in {ran.status}: refused: {ran.text}"


def _leads_on(ran: Ran, good: set[str]) -> bool:
    """Return whether a good status follows; of a command that succeeds beside an operation nothing is expected."""
    is_apart = (
        name_of(ran.command) in map(name_of, OPERATING) and ran.code == 0 and ran.status.health is StackHealth.BUSY
    )
    return ran.good or ran.after in good or is_apart


def _chosen(step: str) -> set[str]:
    """Return the words that choose the cluster of a command, as far as it has such options."""
    options = {option for parameter in COMMANDS[name_of(step)].params for option in parameter.opts}
    pairs = zip(CHOICE[::2], CHOICE[1::2], strict=True)
    return {word for name, value in pairs if name in options for word in (name, value)}


def _with_a_way(known: Known) -> set[str]:
    """Return the states from which the steps that are named there lead to a good status."""
    taken = [
        (before, ran) for (before, step), ran in known.items() if not step.endswith((AGAIN, TRIED)) and leads(step)
    ]
    good = {before for before, ran in taken if ran.good}
    while more := {before for before, ran in taken if ran.after in good} - good:
        good |= more
    return good
