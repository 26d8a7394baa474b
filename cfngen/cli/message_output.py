"""Showing a message or result: as text for people, or as one line of JSON for programs."""

from __future__ import annotations

from collections.abc import Callable

import click

from cfngen.cli.json_output import emit
from cfngen.cli.message_types import Printable, message_type
from cfngen.cli.typography import verbatim
from cfngen.hints import Line


def show_message(
    message: Printable, *, json: bool, full: bool = False, render_line: Callable[[Line], str] = str
) -> None:
    """Show a message or result. As text, messages without a renderer are not shown: `render.live` draws them.

    Args:
        message: the message; the commands in its attributes already have the options for the cluster.
        json: whether to print JSON.
        full: whether to show long values and lists completely in the text.
        render_line: returns a line as text; adds the options for this cluster and account to the line's commands.
    """
    type_ = message_type(message)
    if json:
        emit(message)
        return
    if not type_.renderer:
        return
    lines = "\n".join(render_line(line) for line in type_.lines(message, full=full))
    if type_.is_data:
        verbatim(lines)
    else:
        click.echo(lines, err=type_.is_progress)
