"""How text is shown: columns, byte counts, and a line of progress for what takes longer than a moment."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

import click

_ERASE_LINE = "\r\x1b[2K"


@contextmanager
def progress(text: str) -> Iterator[None]:
    """Show a line on standard error while the body runs; nothing at all where that is not a terminal that can erase it.

    Afterwards the terminal is told to erase the line, whatever has been added to it, such as the ^C of an interrupt.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM", "dumb") == "dumb":
        yield
        return
    # One row: of a text that goes on in the next, the first part would stay.
    click.echo(text[: shutil.get_terminal_size().columns - 1], err=True, nl=False)
    try:
        yield
    finally:
        # Asked for as colours are, since click takes every control sequence out where colours are not wanted.
        click.echo(_ERASE_LINE, err=True, nl=False, color=True)


def warning(text: str) -> None:
    """Show something the user should know though nothing failed."""
    click.echo(click.style("warning: ", fg="yellow", bold=True) + text, err=True)


def columns(
    rows: Sequence[Sequence[str]], *, right: Iterable[int] = (), indent: str = "  ", between: str = "  "
) -> list[str]:
    """Lines of text with aligned columns.

    Args:
        rows: cells, the same number in each row.
        right: indexes of the columns that are aligned to the right, such as numbers.
        indent: what every line starts with.
        between: what stands between two cells.
    """
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    to_the_right = frozenset(right)
    return [
        (
            indent
            + between.join(
                cell.rjust(width) if index in to_the_right else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        ).rstrip()
        for row in rows
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of text with aligned columns under a header; none if there are no rows."""
    if not rows:
        return []
    head, *lines = columns([header, *rows])
    return [click.style(head, dim=True), *lines]


def examples(*lines: str) -> str:
    """The end of a command's help: examples, each on a line of its own, that click shall not wrap."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
