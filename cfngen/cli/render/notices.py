"""Formats the short messages of every command: the steps of its work, and what the user should know."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cfngen.hints import CommandText, Line

if TYPE_CHECKING:
    from cfngen.deploy.messages import Notice, Step


def step_lines(message: Step) -> list[str]:
    """Return the line that announces a step which takes some time."""
    return [click.style("• ", fg="cyan") + message.text]


def notice_lines(message: Notice) -> list[Line]:
    """Return a notice as a warning, with its hint."""
    lines: list[Line] = [click.style("warning: ", fg="yellow", bold=True) + message.text]
    return [*lines, CommandText(click.style("hint: ", bold=True), message.hint)] if message.hint else lines
