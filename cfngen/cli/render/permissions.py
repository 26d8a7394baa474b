"""Formats why permissions are granted, and how the permissions of two clusters differ."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import click

from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.permissions.differences import PermissionDifference
    from cfngen.permissions.explanations import ExplainedStatement, Explanation
    from cfngen.permissions.grants import Grant


def statement_lines(statement: ExplainedStatement) -> list[str]:
    """Return a statement with its reasons: who needs it and for what, then what it allows."""
    lines = [click.style(statement.sid, bold=True)]
    for explanation in statement.explanations:
        lines.append(f"  {_component(explanation)}: {explanation.reason}")
        lines.append(click.style(f"    {', '.join(explanation.calls)}", dim=True))
    verb = "allows" if statement.effect == "Allow" else "denies"
    lines.append(f"  {verb} {', '.join(statement.actions)}")
    lines.append(f"  on {', '.join(map(_text, statement.resources))}")
    if statement.condition:
        lines.append(f"  if {_text(statement.condition)}")
    return lines


def explanation_page(explained: Iterable[tuple[Grant, Sequence[ExplainedStatement]]]) -> str:
    """Return the statements of all grantees with their reasons, as Markdown."""
    return "\n".join(line for grant, statements in explained for line in _section(grant, statements))


def difference_lines(difference: PermissionDifference) -> list[str]:
    """Return what a grantee is granted more (+) and less (-), with the id of each statement."""
    lines = [click.style(difference.grantee, bold=True)]
    for sign, colour, changes in (("+", "green", difference.more), ("-", "red", difference.less)):
        for change in changes:
            denied = "not denied: " if change.effect == "Deny" else ""
            condition = f" if {_text(change.condition)}" if change.condition else ""
            start = click.style(f"  {sign} {change.sid}:", fg=colour)
            lines.append(f"{start} {denied}{', '.join(change.actions)} on {_text(change.resource)}{condition}")
    return lines


def _section(grant: Grant, statements: Sequence[ExplainedStatement]) -> Iterator[str]:
    yield f"## {grant.name}"
    yield ""
    yield f"{grant.purpose[:1].upper()}{grant.purpose[1:]}: {pluralize(len(statements), 'statement')}."
    yield ""
    yield "| statement | component | reason | calls | actions | resources | condition |"
    yield "|---|---|---|---|---|---|---|"
    for statement in statements:
        cells = [
            f"`{statement.sid}`" + ("" if statement.effect == "Allow" else " (Deny)"),
            "<br>".join(dict.fromkeys(map(_component, statement.explanations))),
            "<br>".join(explanation.reason for explanation in statement.explanations),
            "<br>".join(_code(call) for explanation in statement.explanations for call in explanation.calls),
            "<br>".join(map(_code, statement.actions)),
            "<br>".join(_code(_text(resource)) for resource in statement.resources),
            _code(_text(statement.condition)) if statement.condition else "",
        ]
        yield f"| {' | '.join(cells)} |"
    yield ""


def _component(explanation: Explanation) -> str:
    return f"{explanation.component} {explanation.version}".strip()


def _code(text: str) -> str:
    return f"`{text}`".replace("|", "\\|")


def _text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
