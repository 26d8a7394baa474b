"""Styled text of a given width: pieces of text that flow over lines, lists and tables."""

from __future__ import annotations

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
