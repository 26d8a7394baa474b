"""Showing a message or result: as text for people, or as one line of JSON for programs."""

from __future__ import annotations

from collections.abc import Callable

import click

from cfngen.cli.json_output import print_json
from cfngen.cli.message_types import Printable, message_type
from cfngen.cli.typography import print_verbatim
from cfngen.hints import Line


def show_message(
    message: Printable, *, json: bool, full: bool = False, render_line: Callable[[Line], str] = str
) -> None:
    """Show a message or result as text or JSON.

    As text, messages without a renderer are not shown: `render.live` draws them while an operation is in progress.

    Args:
        message: the message; the commands in its attributes already have the options for the cluster.
        full: whether to show long values and lists completely in the text.
        render_line: returns a line as text; adds the options for this cluster and account to the line's commands.
    """
    type_ = message_type(message)
    if json:
        print_json(message)
        return
    if not type_.renderer:
        return
    lines = "\n".join(render_line(line) for line in type_.lines(message, full=full))
    if type_.is_verbatim:
        print_verbatim(lines)
    else:
        click.echo(lines, err=type_.is_progress)
