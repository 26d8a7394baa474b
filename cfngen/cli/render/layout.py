"""The layout of texts: lines of a width, lists, and tables.

Commands between backticks and long words such as URLs are never broken, so that they can be copied.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple, TextIO, TypedDict

import click

MIN_WIDTH = 40
MAX_WIDTH = 120  # text in longer lines is hard to read
_MIN_TEXT_WIDTH = 30  # of the text in a row; where less space is left beside the other cells, it goes below them
_MIN_FOLDED_WIDTH = 20  # of the words that stand below each other in the last column of a folded line
_QUOTED_COMMAND = re.compile(r"`[^`]*`")
# Lines that are copied and run as they are, and those of a console; a command within a sentence is quoted.
_UNBROKEN_LINE = re.compile(r"(?:Next: | {4,})(?:aws|cfngen|kubectl) |export | +\| ")
_LINE_START = re.compile(r"(?:\x1b\[[0-9;]*m| )*")
_COLUMN_START = re.compile(r"^ *|(?<=\S) {2,}(?=\S)")
_NO_BREAK_SPACE = "\N{NO-BREAK SPACE}"


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


class _Word(NamedTuple):
    gap: str  # the spaces before it, unless it begins a line
    text: str
    style: Style

    @property
    def width(self) -> int:
        """Number of characters on the screen, where sequences for colours take no room."""
        return len(click.unstyle(self.gap + self.text))


def line_width(width: int | None = None, *, without_terminal: int = 80) -> int:
    """Return how many characters a line of text has at most: as many as the terminal, from MIN_WIDTH to MAX_WIDTH.

    Args:
        width: width of the terminal in characters; None means the actual one.
        without_terminal: the width that is assumed if there is no terminal.
    """
    columns = width or shutil.get_terminal_size((without_terminal, 24)).columns
    return min(MAX_WIDTH, max(MIN_WIDTH, columns))


def screen_width(stream: TextIO | None = None) -> int:
    """Return the width of a stream in characters; unlimited if it is a file or pipe without COLUMNS.

    Args:
        stream: None means standard output.
    """
    has_width = (stream or sys.stdout).isatty() or "COLUMNS" in os.environ
    return shutil.get_terminal_size().columns if has_width else sys.maxsize


def flow(pieces: Iterable[Piece], width: int, indent: int = 0, hanging: int | None = None) -> Iterator[str]:
    """Yield the lines of a text whose pieces have different styles; no lines for an empty text.

    Args:
        pieces: texts and their styles; the output has a space between two pieces.
        hanging: number of spaces before the other lines; None means `indent`.
    """
    line: list[_Word] = []
    line_indent = used_width = indent
    for word in _words(pieces):
        if line and used_width + word.width > width:
            yield _styled_line(line, line_indent)
            line = []
            line_indent = used_width = indent if hanging is None else hanging
            word = word._replace(gap="")
        line.append(word)
        used_width += word.width
    if line:
        yield _styled_line(line, line_indent)


def paragraph(
    text: str, width: int, indent: int = 0, hanging: int | None = None, *, style: Style = PLAIN
) -> Iterator[str]:
    """Yield the lines of a text in one style; the other arguments are the same as for `flow`."""
    return flow([(text, style)], width, indent, hanging)


def hanging(label: str, text: str, width: int, indent: int = 0, *, style: Style = BOLD) -> Iterator[str]:
    """Yield a text behind a label in a style; further lines begin where the text begins."""
    return flow([(label, style), (text, PLAIN)], width, indent, indent + len(label) + 1)


def fold(line: str, width: int) -> str:
    """Return a line in as many lines as the width needs: what does not fit goes below one of its last columns.

    Columns are two spaces apart, and a cell that fits into one line is not broken. A line that is a command, which
    somebody copies, or that is quoted from a console stays whole.
    """
    plain = click.unstyle(line)
    if len(plain) <= width or _UNBROKEN_LINE.match(plain):
        return line
    columns = [match.end() for match in _COLUMN_START.finditer(plain)]
    indent = columns[0]
    hanging = indent if len(columns) == 1 else indent + 4
    for column in columns[1:]:
        longest_word = max(word.width for word in _words([(plain[column:], PLAIN)]))
        if max(_MIN_FOLDED_WIDTH, longest_word) <= width - column:
            hanging = column
    start = _LINE_START.match(line)[0]  # type: ignore[index]  # it matches every line
    cells = re.split(r"( {2,})", start.replace(" ", "") + line.removeprefix(start))
    text = "".join(
        cell.replace(" ", _NO_BREAK_SPACE) if cell.strip() and len(click.unstyle(cell)) <= width - hanging else cell
        for cell in cells
    )
    return "\n".join(flow([(text, PLAIN)], width, indent, hanging))


def bullets(texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield the lines of a list with an item for each text."""
    for text in texts:
        yield from hanging("-", text, width, 2, style=PLAIN)


def align_columns(
    rows: Sequence[Sequence[str]], *, right_aligned: Sequence[int] = (), indent: str = "  ", separator: str = "  "
) -> list[str]:
    """Return each row as a line of text; each column is as wide as its longest cell.

    Args:
        right_aligned: indexes of the columns that are right-aligned, such as numbers.
    """
    return [(indent + separator.join(cells)).rstrip() for cells in _padded(rows, right_aligned)]


def aligned_rows(rows: Sequence[Sequence[str]], width: int, *, right_aligned: Sequence[int] = ()) -> Iterator[str]:
    """Yield rows with aligned columns; the last cell is a text, which is wrapped beside the others, or below them."""
    for cells, row in zip(_padded([row[:-1] for row in rows], right_aligned), rows, strict=True):
        start = "".join(f"  {cell}" for cell in cells) + "  "
        text = row[-1]
        longest_word = max(map(len, text.split()), default=0)
        if min(len(text), max(_MIN_TEXT_WIDTH, longest_word)) <= width - len(start):
            first_line, *other_lines = list(paragraph(text, width - len(start))) or [""]
            yield (start + first_line).rstrip()
            yield from (" " * len(start) + line for line in other_lines)
        else:
            yield from paragraph(start, width, 0, 4)
            yield from paragraph(text, width, 6)


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], width: int | None = None, *, indent: str = "  "
) -> list[str]:
    """Return a table with a header as lines of text; no lines if there are no rows.

    Columns that do not fit are printed below each row, with their names.

    Args:
        width: width of the terminal in characters; None means the width of standard output, unlimited for a file
            or pipe.
    """
    if not rows:
        return []
    width = screen_width() if width is None else width
    # Hide columns from the right until the rest fits.
    visible_count = len(header)
    lines = align_columns([header, *rows], indent=indent)
    while visible_count > 1 and max(map(len, lines)) > width:
        visible_count -= 1
        lines = align_columns([row[:visible_count] for row in (header, *rows)], indent=indent)
    header_line, *lines = lines
    table_lines = [click.style(header_line, dim=True)]
    for row, line in zip(rows, lines, strict=True):
        table_lines += [line, *_hidden_cell_lines(header[visible_count:], row[visible_count:], width)]
    return table_lines


def _hidden_cell_lines(column_names: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """Return the lines below a row, with the cells that did not fit into the row; empty ones are left out."""
    lines: list[str] = []
    names = [name.lower() if name.isupper() else name for name in column_names]
    for text in (f"{name}: {cell}" for name, cell in zip(names, cells, strict=True) if cell):
        if lines and len(lines[-1]) + 2 + len(text) <= width:
            lines[-1] += f"  {text}"
        else:
            lines += paragraph(text, width, 6, 8)
    return lines


def _padded(rows: Sequence[Sequence[str]], right_aligned: Sequence[int]) -> Iterator[list[str]]:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield [
            cell.rjust(width) if index in right_aligned else cell.ljust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]


def _words(pieces: Iterable[Piece]) -> Iterator[_Word]:
    """Yield the words of pieces of text; the last one of a piece keeps the spaces behind it."""
    is_first = True
    for text, style in pieces:
        unbreakable = _QUOTED_COMMAND.sub(lambda match: match[0].replace(" ", _NO_BREAK_SPACE), text)
        one_line = re.sub(r"\s", " ", unbreakable, flags=re.ASCII)
        for spaces, word in re.findall(r"( *)([^ ]+(?: +$)?)", one_line):
            yield _Word(spaces or ("" if is_first else " "), word.replace(_NO_BREAK_SPACE, " "), style)
            is_first = False


def _styled_line(words: Sequence[_Word], indent: int) -> str:
    """Return one line; adjacent words of the same style are styled together."""
    line = " " * indent
    for style, words_of_style in groupby(words, key=lambda word: word.style):
        gap, *texts = [text for word in words_of_style for text in (word.gap, word.text)]
        line += gap + (click.style("".join(texts), **style) if style else "".join(texts))
    return line.rstrip()
