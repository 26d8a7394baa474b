"""The layout of texts: lines of a width, lists, and tables.

Commands between backticks and long words such as URLs are never broken, so that they can be copied.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, zip_longest
from typing import NamedTuple, TextIO, TypedDict

import click

MIN_WIDTH = 40
MAX_WIDTH = 120  # text in longer lines is hard to read
MIN_COLUMN_WIDTH = 24  # of a text that is wrapped within its column; a point in time is a little shorter
_MIN_FOLDED_WIDTH = 20  # of the words that stand below each other in the last column of a folded line
_QUOTED_COMMAND = re.compile(r"`[^`]*`")
# Lines that are copied as they are: commands, which are quoted within a sentence, lines of a diff and of a console.
_UNBROKEN_LINE = re.compile(r"(?:Next: | {2,})(?:aws|cfngen|kubectl|\(umask) |export | {9}[-+] | +\| ")
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

    Columns are two spaces apart, and a cell that fits into one line is not broken. A line that somebody copies, such as
    a command, or that is quoted from a console stays whole.
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
        unbroken(cell) if cell.strip() and len(click.unstyle(cell)) <= width - hanging else cell for cell in cells
    )
    return "\n".join(flow([(text, PLAIN)], width, indent, hanging))


def unbroken(text: str) -> str:
    """Return a text, such as a command, that is not broken between its words."""
    return text.replace(" ", _NO_BREAK_SPACE)


def bullets(texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield the lines of a list with an item for each text."""
    for text in texts:
        yield from hanging("-", text, width, 2, style=PLAIN)


def table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    *,
    right_aligned: Sequence[int] = (),
    indent: str = "  ",
) -> list[str]:
    """Return rows in aligned columns as lines of text, with a header unless it is empty; no lines without rows.

    If a row does not fit, the widest texts are wrapped within their columns. Columns for which no room is left are
    printed below each row, with their names.

    Args:
        width: of the terminal in characters; None means that of standard output, unlimited for a file or pipe.
        right_aligned: indexes of the columns that are right-aligned, such as numbers.
    """
    if not rows:
        return []
    width = screen_width() if width is None else width
    names = [name.lower() if name.isupper() else name for name in header] or [""] * len(rows[0])
    column_widths = _column_widths([header, *rows] if header else rows, width - len(indent))
    visible_count = len(column_widths)
    lines = [click.style(line, dim=True) for line in _row_lines(header, column_widths, right_aligned, indent)]
    for row in rows:
        lines += _row_lines(row, column_widths, right_aligned, indent)
        lines += _hidden_cell_lines(names[visible_count:], row[visible_count:], width)
    return lines


def _column_widths(rows: Sequence[Sequence[str]], width: int) -> list[int]:
    """Return the widths of as many columns, from the left, as fit side by side; of the first one at least.

    A column is as wide as its longest cell. Where that is too much, the widest columns are narrowed, to the longest
    word and MIN_COLUMN_WIDTH at least.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(len(click.unstyle(cell)) for cell in column) for column in columns]
    words = [[len(click.unstyle(word.text)) for word in _words((cell, PLAIN) for cell in column)] for column in columns]
    least_widths = [
        min(column_width, max([MIN_COLUMN_WIDTH, *word_widths]))
        for column_width, word_widths in zip(widths, words, strict=True)
    ]
    separators = 2 * (len(columns) - 1)
    while len(least_widths) > 1 and sum(least_widths) + separators > width:
        del least_widths[-1]
        separators -= 2
    widths = widths[: len(least_widths)]
    while sum(widths) + separators > width and widths != least_widths:
        widest = max(range(len(widths)), key=lambda index: (widths[index] > least_widths[index], widths[index]))
        widths[widest] -= 1
    return widths


def _row_lines(
    row: Sequence[str], column_widths: Sequence[int], right_aligned: Sequence[int], indent: str
) -> Iterator[str]:
    """Yield the lines of the cells that have a column."""
    cells = [list(paragraph(cell, width)) for cell, width in zip(row, column_widths, strict=False)]
    for parts in zip_longest(*cells, fillvalue=""):
        padding = [" " * (width - len(click.unstyle(part))) for part, width in zip(parts, column_widths, strict=True)]
        aligned = [
            space + part if index in right_aligned else part + space
            for index, (part, space) in enumerate(zip(parts, padding, strict=True))
        ]
        yield (indent + "  ".join(aligned)).rstrip()


def _hidden_cell_lines(column_names: Sequence[str], cells: Sequence[str], width: int) -> list[str]:
    """Return the lines below a row, with the cells that did not fit into the row; empty ones are left out."""
    lines: list[str] = []
    for name, cell in zip(column_names, cells, strict=True):
        text = f"{name}: {cell}" if name else cell
        if not cell:
            continue
        if lines and len(click.unstyle(f"{lines[-1]}  {text}")) <= width:
            lines[-1] += f"  {text}"
        else:
            lines += paragraph(text, width, 6, 8 if name else 6)
    return lines


def _words(pieces: Iterable[Piece]) -> Iterator[_Word]:
    """Yield the words of pieces of text; the last one of a piece keeps the spaces behind it."""
    is_first = True
    for text, style in pieces:
        unbreakable = _QUOTED_COMMAND.sub(lambda match: unbroken(match[0]), text)
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
