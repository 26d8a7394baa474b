"""Formatting text for the terminal: columns, tables, warnings, and a temporary progress line."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
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


def align_columns(
    rows: Sequence[Sequence[str]], *, right_aligned: Iterable[int] = (), indent: str = "  ", separator: str = "  "
) -> list[str]:
    """Return each row as a line of text; each column is as wide as its longest cell.

    Args:
        rows: cells, the same number in each row.
        right_aligned: indexes of the columns that are right-aligned, such as numbers.
        indent: the start of every line.
        separator: the text between two cells.
    """
    if not rows:
        return []
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    right_aligned_indexes = frozenset(right_aligned)
    lines: list[str] = []
    for row in rows:
        aligned_cells = [
            cell.rjust(width) if index in right_aligned_indexes else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + separator.join(aligned_cells)).rstrip())
    return lines


def table(header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None) -> list[str]:
    """Return a table with a header as lines of text; no lines if there are no rows.

    Columns that do not fit are printed below each row, with their names.

    Args:
        header: names of the columns.
        rows: cells.
        width: width of the terminal in characters; None means that of standard output, which is unlimited for a file
            or pipe.
    """
    if not rows:
        return []
    width = screen_width() if width is None else width
    # Hide columns from the right until the rest fits.
    visible_count = len(header)
    while visible_count > 1 and max(map(len, align_columns([row[:visible_count] for row in (header, *rows)]))) > width:
        visible_count -= 1
    header_line, *lines = align_columns([row[:visible_count] for row in (header, *rows)])
    table_lines = [click.style(header_line, dim=True)]
    for row, line in zip(rows, lines, strict=True):
        table_lines += [line, *_hidden_cell_lines(header[visible_count:], row[visible_count:], width)]
    return table_lines


def _hidden_cell_lines(column_names: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """Return the lines below a row, with the cells that did not fit into the row; a cell is not wrapped.

    Args:
        column_names: names of the hidden columns; each is printed before its cell.
        cells: the row's cells in these columns; empty ones are left out.
        width: maximum width of a line, unless one cell is longer.
    """
    lines: list[str] = []
    for text in (f"{name.lower()}: {cell}" for name, cell in zip(column_names, cells, strict=True) if cell):
        if lines and len(lines[-1]) + 2 + len(text) <= width:
            lines[-1] += f"  {text}"
        else:
            lines.append(f"      {text}")
    return lines


def screen_width() -> int:
    """Return the width of standard output in characters; unlimited if it is a file or pipe without COLUMNS."""
    has_width = sys.stdout.isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if has_width else sys.maxsize


def examples_epilog(*lines: str) -> str:
    """Return the examples at the end of a command's help, one on each line.

    What follows a command after three spaces explains it, and becomes a comment: every line can be pasted.
    """
    # "\b" tells click not to wrap the paragraph.
    return "\n".join(("\b", "Examples:", *(re.sub(r"(?<=\S)( {3,})(?![ #])", r"\1# ", f"  {line}") for line in lines)))
