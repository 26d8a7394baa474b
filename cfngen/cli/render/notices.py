"""Formats short messages: the steps of a command's work, what the user should know, and versions."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cfngen.cli.render.layout import align_columns
from cfngen.hints import CommandText, Line

if TYPE_CHECKING:
    from cfngen.cli.commands.version import Versions
    from cfngen.deploy.messages import Notice, Step


def step_lines(message: Step) -> list[str]:
    """Return the line that announces a step which takes some time."""
    return [click.style("• ", fg="cyan") + message.text]


def notice_lines(message: Notice) -> list[Line]:
    """Return a notice as a warning, with its hint."""
    lines: list[Line] = [click.style("warning: ", fg="yellow", bold=True) + message.text]
    return [*lines, CommandText(click.style("hint: ", bold=True), message.hint)] if message.hint else lines


def version_lines(message: Versions) -> list[str]:
    """Return a line for each version."""
    default = message.default_kubernetes_version
    others = [version for version in reversed(message.kubernetes_versions) if version != default]
    rows = [
        ("cfngen", message.cfngen),
        ("Kubernetes", f"{default} by default; also {', '.join(others)}"),
        ("Python", message.python),
        *message.packages.items(),
    ]
    return align_columns(rows, indent="")
