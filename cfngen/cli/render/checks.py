"""Formats the results of checks: whether a cluster is valid, and whether an existing network suits it."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import hanging, paragraph, screen_width, table
from cfngen.deploy.preflight.findings import Finding, NetworkCheck, Severity
from cfngen.deploy.status.cluster_problems import Problem
from cfngen.deploy.status.validation import Member, Validation, ValidationChange
from cfngen.text import pluralize

_MARKS = {Severity.PROBLEM: ("✗", "red"), Severity.WARNING: ("!", "yellow"), Severity.OK: ("✓", "green")}


def validation_lines(validation: Validation) -> list[str]:
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
    for difference in validation.differing_values:
        lines += ["", *hanging("!", f"{difference.text}.", screen_width(), style={"fg": "yellow", "bold": True})]
        lines += hanging("hint:", str(difference.hint), screen_width(), 2) if difference.hint else []
    if validation.valid and validation.differing_values:
        differing = pluralize(len(validation.differing_values), "parameter of the stack", "differ")
        text = f"The cluster is valid as it is deployed; {differing} from the cluster file."
        verdict = click.style(text, fg="yellow", bold=True)
    elif validation.valid:
        verdict = click.style("The cluster is valid.", fg="green", bold=True)
    else:
        problems = pluralize(len(validation.problems), "problem")
        verdict = click.style(f"The cluster is not valid: {problems}.", fg="red", bold=True)
    return [*lines, "", verdict]


def validation_change_lines(message: ValidationChange) -> list[str]:
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


def network_check_lines(check: NetworkCheck) -> list[str]:
    """Return the findings with their remedies, and how many problems and warnings there are."""
    if not check.vpc:
        return [f"The stack of {check.cluster} creates its VPC, so there is no existing network to check."]
    lines = [click.style(f"Network of {check.cluster}", bold=True) + f" ({check.vpc}, {check.region})", ""]
    for finding in check.findings:
        lines += _finding_lines(finding, screen_width())
    warnings = f", {pluralize(len(check.warnings), 'warning')}" if check.warnings else ""
    if check.problems:
        verdict = click.style(f"{pluralize(len(check.problems), 'problem')}{warnings}.", fg="red", bold=True)
    else:
        verdict = click.style(f"No problems{warnings}.", fg="green", bold=True)
    return [*lines, "", verdict]


def _finding_lines(finding: Finding, width: int) -> Iterator[str]:
    mark, color = _MARKS[finding.severity]
    sentence = f"{finding.key}: {finding.text}." if finding.key else f"{finding.text[:1].upper()}{finding.text[1:]}."
    yield from hanging(mark, sentence, width, style={"fg": color, "bold": True})
    if finding.remedy:
        yield from hanging("hint:", finding.remedy + (":" if finding.commands else "."), width, 2)
    yield from (f"    {command}" for command in finding.commands)
