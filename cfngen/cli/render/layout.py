"""The layout of texts: lines of a width, lists, and tables."""

from __future__ import annotations

import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import TypedDict

import click


class Style(TypedDict, total=False):
    """Arguments of `click.style`."""

    fg: str
    bold: bool
    dim: bool


Piece = tuple[str, Style]
"""A piece of text, and its style."""

PLAIN: Style = {}
BOLD: Style = {"bold": True}
FAINT: Style = {"dim": True}


def flow(pieces: Sequence[Piece], width: int, indent: int = 0, hanging_indent: int | None = None) -> Iterator[str]:
    """Yield the lines of a text whose pieces have different styles.

    Args:
        pieces: texts and their styles; the output has a space between two pieces.
        width: maximum width of a line in characters.
        indent: number of spaces before the first line.
        hanging_indent: number of spaces before the other lines; None means `indent`.
    """
    indent_of_other_lines = indent if hanging_indent is None else hanging_indent
    line_words: list[Piece] = []
    line_indent, used_width = indent, indent
    for text, style in pieces:
        for word in _split_words(text, max_length=width - max(indent, indent_of_other_lines)):
            gap = 1 if line_words else 0
            if line_words and used_width + gap + len(word) > width:
                yield _styled_line(line_words, line_indent)
                line_words, line_indent, used_width, gap = [], indent_of_other_lines, indent_of_other_lines, 0
            line_words.append((word, style))
            used_width += gap + len(word)
    if line_words:
        yield _styled_line(line_words, line_indent)


def paragraph(text: str, style: Style, width: int, indent: int = 0, hanging_indent: int | None = None) -> Iterator[str]:
    """Yield the lines of a text in one style; the other arguments are those of `flow`."""
    yield from flow([(text, style)], width, indent=indent, hanging_indent=hanging_indent)


def bullets(texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield the lines of a list with an item for each text; equal texts become one item."""
    for text in dict.fromkeys(texts):
        yield from flow([("!", BOLD), (text, PLAIN)], width, indent=2, hanging_indent=4)


def aligned_rows(rows: Sequence[Sequence[str]], width: int, *, right_aligned: Sequence[int] = ()) -> Iterator[str]:
    """Yield rows with aligned columns; the cell in the last column is wrapped.

    Args:
        rows: cells, the same number in each row.
        width: maximum width of a line in characters.
        right_aligned: indexes of the columns that are right-aligned.
    """
    if not rows:
        return
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(column_width) if index in right_aligned else cell.ljust(column_width)
            for index, (cell, column_width) in enumerate(zip(row, widths, strict=True))
        ]
        # Two spaces stand before the first cell and between two cells.
        aligned_cells = "".join(f"  {cell}" for cell in cells[:-1]) + "  "
        if len(aligned_cells) > width // 2:
            # Too little width is left for the last cell: the row is printed as a paragraph.
            yield from paragraph(" ".join(row), PLAIN, width, indent=2, hanging_indent=6)
            continue
        last_cell_lines = list(paragraph(row[-1], PLAIN, width - len(aligned_cells)))
        # An empty cell has no lines.
        first_line, *other_lines = last_cell_lines or [""]
        yield (aligned_cells + first_line).rstrip()
        for line in other_lines:
            yield " " * len(aligned_cells) + line


def _split_words(text: str, max_length: int) -> Iterator[str]:
    """Yield the words of a text; words longer than `max_length` are split.

    The last word keeps the text's trailing spaces: the symbol of a change is padded, so that all symbols are equally
    wide.
    """
    words: list[str] = []
    for word in text.split():
        words += [word[start : start + max_length] for start in range(0, len(word), max_length)]
    if words:
        trailing_spaces = len(text) - len(text.rstrip(" "))
        words[-1] += " " * trailing_spaces
    yield from words


def _styled_line(words: Sequence[Piece], indent: int) -> str:
    """Return one line; adjacent words of the same style are styled together.

    Args:
        words: the words of the line, each with its style.
        indent: number of spaces before the line.
    """
    styled_texts: list[str] = []
    for style, words_of_style in groupby(words, key=lambda piece: piece[1]):
        text = " ".join(word for word, _ in words_of_style)
        styled_texts.append(click.style(text, **style) if style else text)
    return (" " * indent + " ".join(styled_texts)).rstrip()


MIN_WIDTH = 40
MAX_WIDTH = 120  # text in longer lines is hard to read
# Commands in a text stand between backticks.
_QUOTED_COMMAND_PATTERN = re.compile(r"`[^`]*`")


def max_line_width(width: int | None = None) -> int:
    """Return how many characters a line of text has at most: fewer than the terminal, from MIN_WIDTH to MAX_WIDTH.

    Args:
        width: width of the terminal in characters; None means the actual one.
    """
    return min(MAX_WIDTH, max(MIN_WIDTH, (width or shutil.get_terminal_size().columns) - 1))


def wrapped(text: str, width: int, indent: str = "", *, first_indent: str | None = None) -> list[str]:
    """Return the lines of a wrapped text, at least one; a word that is longer than a line gets its own line.

    Args:
        text: the text, without styles, since their control sequences would count as characters.
        width: maximum width of a line in characters.
        indent: the spaces before every line.
        first_indent: the spaces before the first line; None means `indent`.
    """
    # textwrap does not break a line at a no-break space, so a command stays on one line.
    unbreakable = _QUOTED_COMMAND_PATTERN.sub(lambda match: match[0].replace(" ", "\N{NO-BREAK SPACE}"), text)
    lines = textwrap.wrap(
        unbreakable,
        width,
        initial_indent=indent if first_indent is None else first_indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [line.replace("\N{NO-BREAK SPACE}", " ") for line in lines] or [indent.rstrip()]


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
