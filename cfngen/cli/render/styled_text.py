"""Styled text of a given width: pieces of text that flow over lines, lists and tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypedDict

import click


class Style(TypedDict, total=False):
    """Arguments of `click.style`."""

    fg: str
    bold: bool
    dim: bool


Piece = tuple[str, Style]
"""A text and its style."""

PLAIN: Style = {}
BOLD: Style = {"bold": True}
FAINT: Style = {"dim": True}


def flow(pieces: Sequence[Piece], width: int, indent: int = 0, hanging: int | None = None) -> Iterator[str]:
    """Yield styled text wrapped to `width`.

    Args:
        pieces: texts and their styles; a space is put between two of them.
        width: maximum width of a line in columns.
        indent: indentation of the first line.
        hanging: indentation of the other lines; None means that of the first.
    """
    next_indent = indent if hanging is None else hanging
    line: list[Piece] = []
    line_indent, used = indent, indent
    for text, style in pieces:
        for word in _words(text, width - max(indent, next_indent)):
            gap = 1 if line else 0
            if line and used + gap + len(word) > width:
                yield _styled(line, line_indent)
                line, line_indent, used, gap = [], next_indent, next_indent, 0
            line.append((word, style))
            used += gap + len(word)
    if line:
        yield _styled(line, line_indent)


def paragraph(text: str, style: Style, width: int, indent: int = 0, hanging: int | None = None) -> Iterator[str]:
    """Yield a text of one style wrapped to `width`; see `flow`."""
    yield from flow([(text, style)], width, indent, hanging)


def bullets(texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield each distinct text as an item of a list."""
    for text in dict.fromkeys(texts):
        yield from flow([("!", BOLD), (text, PLAIN)], width, indent=2, hanging=4)


def aligned_rows(rows: Sequence[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> Iterator[str]:
    """Yield aligned columns; the last one is wrapped."""
    if not rows:
        return
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(size) if index in right else cell.ljust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        head = "  " + "  ".join(cells[:-1]) + ("  " if cells[:-1] else "")
        if len(head) > width // 2:
            yield from paragraph(" ".join(row), PLAIN, width, indent=2, hanging=6)
            continue
        first, *more = list(paragraph(row[-1], PLAIN, width - len(head))) or [""]
        yield (head + first).rstrip()
        for line in more:
            yield " " * len(head) + line


def _words(text: str, longest: int) -> Iterator[str]:
    """Yield the words of a text; too long ones are split, and trailing spaces are kept with the last word."""
    blank = len(text) - len(text.rstrip(" "))
    words = [part[at : at + longest] for part in text.split() for at in range(0, len(part), longest)]
    if words:
        words[-1] += " " * blank
    yield from words


def _styled(words: Sequence[Piece], indent: int) -> str:
    """Return one line; adjacent words of the same style are styled together."""
    groups: list[tuple[list[str], Style]] = []
    for word, style in words:
        if groups and groups[-1][1] is style:
            groups[-1][0].append(word)
        else:
            groups.append(([word], style))
    texts = (click.style(" ".join(group), **style) if style else " ".join(group) for group, style in groups)
    return (" " * indent + " ".join(texts)).rstrip()
