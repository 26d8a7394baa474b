"""Showing a message or result: as text for people, or as one line of JSON for programs."""

from __future__ import annotations

from collections.abc import Callable

import click

from cfngen.cli.json_output import emit
from cfngen.cli.message_types import Printable, message_type
from cfngen.cli.typography import verbatim


def show_message(
    message: Printable, *, json: bool, full: bool = False, complete_commands: Callable[[str], str] = str
) -> None:
    """Show a message or result; as text, nothing of one that only `render.live` can draw.

    Args:
        message: the message; commands in its attributes are complete already.
        json: whether to print JSON.
        full: whether to shorten nothing in the text.
        complete_commands: adds the options for the same cluster, stack and account to the commands in a line of text.
    """
    type_ = message_type(message)
    if json:
        emit(message)
        return
    if not type_.renderer:
        return
    lines = type_.lines(message, full=full)
    if type_.is_data:
        verbatim("\n".join(lines))
        return
    completed = (
        complete_commands(line) if type_.completes_all_lines or line.startswith("Next:") else line for line in lines
    )
    click.echo("\n".join(completed), err=type_.is_progress)
