"""What commands show on the terminal beside their messages: a progress line, warnings, and the examples of --help."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import click

from cfngen.cli.render.layout import fold, screen_width

_ERASE_LINE = "\r\x1b[2K"
# Controls, marks of direction and other characters without a form of their own; but not tabs and line ends, and not the
# colours that `click.style` makes here, none of which hides anything.
INVISIBLE = re.compile(
    "(?P<style>\x1b\\[(?:[0124]|[39][1-7])m)"
    "|[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ud800-\udfff\ufeff"
    "\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def visible(text: str) -> str:
    """Return a text in which characters that a terminal obeys or hides are written as escapes, by their number."""
    return text if text.isprintable() else INVISIBLE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return match["style"] or match[0].encode("unicode_escape").decode()


def echo(text: str = "", *, err: bool = False, nl: bool = True, color: bool | None = None, folds: bool = True) -> None:
    """Print a text, whoever wrote what is in it; every text for people is printed here.

    Args:
        folds: whether lines that are wider than the terminal are folded between words.
    """
    text = visible(text)
    if folds:
        width = screen_width(sys.stderr if err else sys.stdout)
        text = "\n".join(fold(line, width) for line in text.split("\n"))
    click.echo(text, err=err, nl=nl, color=color)


@contextmanager
def progress_line(text: str) -> Iterator[None]:
    """Show a line on standard error while the body runs, and erase it afterwards; only on a terminal that can erase.

    The whole line is erased, including anything that was added to it, such as the ^C of an interrupt.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    # Cut to one row: only the last row of a longer text would be erased.
    echo(visible(text)[: shutil.get_terminal_size().columns - 1], err=True, nl=False)
    try:
        yield
    finally:
        # Without color=True, click strips control sequences where colours are disabled.
        click.echo(_ERASE_LINE, err=True, nl=False, color=True)


def show_warning(text: str) -> None:
    """Show a warning on standard error."""
    echo(click.style("warning: ", fg="yellow", bold=True) + text, err=True)


def examples_epilog(*lines: str) -> str:
    """Return the examples at the end of a command's help, one on each line.

    What follows a command after three spaces explains it, and becomes a comment: every line can be pasted.
    """
    # "\b" tells click not to wrap the paragraph.
    return "\n".join(("\b", "Examples:", *(re.sub(r"(?<=\S)( {3,})(?![ #])", r"\1# ", f"  {line}") for line in lines)))
