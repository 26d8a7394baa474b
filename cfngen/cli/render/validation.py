"""Formats the result of a validation as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import hanging, paragraph, screen_width, table
from cfngen.deploy.inspection.cluster_problems import Problem
from cfngen.deploy.inspection.validation import Member, Validation, ValidationChange
from cfngen.text import pluralize


def result_lines(validation: Validation) -> list[str]:
    """Return a table of the cluster's instances, the problems, and whether the cluster is valid."""
    version = f", Kubernetes {validation.version}" if validation.version else ""
    lines = [click.style(f"Cluster {validation.cluster}", bold=True) + f" (stack {validation.stack}{version})"]
    if validation.members:
        header = ("INSTANCE", "ROLE", "GROUP", "ZONE", "VERSION", "NODE")
        rows = [
            (member.instance, member.role, member.group, member.zone, member.version, _node_state(member))
            for member in validation.members
        ]
        lines += ["", *table(header, rows)]
    if validation.problems:
        lines.append("")
        for problem in validation.problems:
            lines += _problem_lines(problem, screen_width())
    if validation.valid:
        verdict = click.style("The cluster is valid.", fg="green", bold=True)
    else:
        problems = pluralize(len(validation.problems), "problem")
        verdict = click.style(f"The cluster is not valid: {problems}.", fg="red", bold=True)
    return [*lines, "", verdict]


def change_lines(message: ValidationChange) -> list[str]:
    """Return the problems that were resolved or appeared since the previous validation, and how long cfngen waits."""
    time = f"{message.time:%H:%M:%SZ}"
    limit = f"waiting for {duration_text(message.remaining)} more at most"
    return [
        *(f"{time} {click.style('✓', fg='green')} resolved: {problem.sentence}" for problem in message.resolved),
        *(f"{time} {click.style('✗', fg='red')} {_capitalized(problem.sentence)}" for problem in message.appeared),
        f"{time} {pluralize(message.open, 'problem')} now; {limit}.",
    ]


def _problem_lines(problem: Problem, width: int) -> Iterator[str]:
    yield from hanging("✗", f"{_capitalized(problem.sentence)}.", width, style={"fg": "red", "bold": True})
    yield from paragraph(problem.detail, width, 2)
    if problem.hint:
        yield from hanging("hint:", str(problem.hint), width, 2)


def _capitalized(sentence: str) -> str:
    """Return the sentence with a capital first letter; unlike `str.capitalize`, the other letters stay as they are."""
    return sentence[:1].upper() + sentence[1:]


def _node_state(member: Member) -> str:
    if not member.in_service:
        return "not in service"
    if member.ready is None:
        return "unknown"
    return "Ready" if member.ready else "not Ready"
