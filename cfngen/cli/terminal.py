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
    right_aligned = frozenset(right)
    return [
        (
            indent
            + between.join(
                cell.rjust(width) if index in right_aligned else cell.ljust(width)
                for index, (cell, width) in enumerate(zip(row, widths, strict=True))
            )
        ).rstrip()
        for row in rows
    ]


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Lines of text with aligned columns under a header; none if there are no rows.

    Where there is no room for all columns, the last ones stand below each row, with their names.

    Args:
        header: names of the columns.
        rows: cells.
        width: columns of the screen; None asks for it, and takes what is no screen for endless.
    """
    if not rows:
        return []
    width = room() if width is None else width
    visible = len(header)
    while visible > 1 and max(map(len, columns([row[:visible] for row in (header, *rows)]))) > width:
        visible -= 1
    head, *lines = columns([row[:visible] for row in (header, *rows)])
    extra_lines = [_cells_below(header[visible:], row[visible:], width) for row in rows]
    return [
        click.style(head, dim=True),
        *(text for line, more in zip(lines, extra_lines, strict=True) for text in (line, *more)),
    ]


def _cells_below(names: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """What of a row found no room in it; cells are not torn apart."""
    lines: list[str] = []
    for text in (f"{name.lower()}: {cell}" for name, cell in zip(names, cells, strict=True) if cell):
        if lines and len(lines[-1]) + 2 + len(text) <= width:
            lines[-1] += f"  {text}"
        else:
            lines.append(f"      {text}")
    return lines


def room() -> int:
    """Return how wide the screen is that standard output is; a file and a pipe have no end."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if has_width else sys.maxsize


def examples(*lines: str) -> str:
    """The end of a command's help: examples, each on a line of its own, that click shall not wrap."""
    return "\n".join(("\b", "Examples:", *(f"  {line}" for line in lines)))
