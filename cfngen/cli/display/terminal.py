"""What commands show on the terminal beside their messages: a progress line, warnings, and the examples of --help."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

_ERASE_LINE = "\r\x1b[2K"


@contextmanager
def progress_line(text: str) -> Iterator[None]:
    """Show a line on standard error while the body runs, and erase it afterwards; only on a terminal that can erase.

    The whole line is erased, including anything that was added to it, such as the ^C of an interrupt.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    # Cut to one row: only the last row of a longer text would be erased.
    click.echo(text[: shutil.get_terminal_size().columns - 1], err=True, nl=False)
    try:
        yield
    finally:
        # Without color=True, click strips control sequences where colours are disabled.
        click.echo(_ERASE_LINE, err=True, nl=False, color=True)


def show_warning(text: str) -> None:
    """Show a warning on standard error."""
    click.echo(click.style("warning: ", fg="yellow", bold=True) + text, err=True)


def examples_epilog(*lines: str) -> str:
    """Return the examples at the end of a command's help, one on each line.

    What follows a command after three spaces explains it, and becomes a comment: every line can be pasted.
    """
    # "\b" tells click not to wrap the paragraph.
    return "\n".join(("\b", "Examples:", *(re.sub(r"(?<=\S)( {3,})(?![ #])", r"\1# ", f"  {line}") for line in lines)))
