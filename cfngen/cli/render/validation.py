"""What a validation came to, as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.render.wrapping import wrapped
from cfngen.cli.terminal import room, table
from cfngen.deploy.inspection.validation import Member, Problem, Validation, ValidationChange
from cfngen.text import pluralize


def result(found: Validation) -> list[str]:
    """Return the members, the problems and the verdict."""
    version = f", Kubernetes {found.version}" if found.version else ""
    lines = [click.style(f"Cluster {found.cluster}", bold=True) + f" (stack {found.stack}{version})"]
    if found.members:
        header = ("INSTANCE", "ROLE", "GROUP", "ZONE", "VERSION", "NODE")
        rows = [
            (member.instance, member.role, member.group, member.zone, member.version, _node(member))
            for member in found.members
        ]
        lines += ["", *table(header, rows)]
    if found.problems:
        lines += ["", *(line for problem in found.problems for line in _problem(problem, room()))]
    verdict = (
        click.style("The cluster is valid.", fg="green", bold=True)
        if found.valid
        else click.style(f"The cluster is not valid: {pluralize(len(found.problems), 'problem')}.", fg="red", bold=True)
    )
    return [*lines, "", verdict]


def change(found: ValidationChange) -> list[str]:
    """Return what is new since the look before."""
    time = f"{found.time:%H:%M:%SZ}"
    return [
        *(f"{time} {click.style('✓', fg='green')} resolved: {each.sentence}" for each in found.resolved),
        *(f"{time} {click.style('✗', fg='red')} {_capital(each.sentence)}" for each in found.appeared),
        f"{time} {pluralize(found.open, 'problem')} now; cfngen waits for {duration(found.remaining)} more at most.",
    ]


def _problem(problem: Problem, width: int) -> Iterator[str]:
    first, *more = wrapped(f"{_capital(problem.sentence)}.", width, "  ")
    yield from (f"{click.style('✗', fg='red', bold=True)} {first.lstrip()}", *more)
    if problem.detail:
        yield from wrapped(problem.detail, width, "  ")
    if problem.hint:
        first, *more = wrapped(f"hint: {problem.hint}", width, "    ", first="  ")
        yield from (first.replace("hint:", click.style("hint:", bold=True), 1), *more)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _node(member: Member) -> str:
    if not member.in_service:
        return "not in service"
    return "unknown" if member.ready is None else "Ready" if member.ready else "not Ready"
