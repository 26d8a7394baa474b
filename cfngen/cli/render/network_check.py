"""Formats the findings about an existing network as lines of text."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cfngen.cli.render.layout import hanging, screen_width
from cfngen.deploy.network_check.findings import Finding, NetworkCheck, Severity
from cfngen.text import pluralize

_MARKS = {Severity.PROBLEM: ("✗", "red"), Severity.WARNING: ("!", "yellow"), Severity.OK: ("✓", "green")}


def result_lines(check: NetworkCheck) -> list[str]:
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
