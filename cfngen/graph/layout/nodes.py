"""Nodes: boxes with their texts, measured in tracks: how large each must be, and where the parts of its header are.

Tracks are the grid on which borders and edges lie, which keeps edges apart by one track.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from cfngen.graph.layout.edges import joined_labels
from cfngen.graph.layout.text_metrics import LINE, TITLE, Font, width, wrapped
from cfngen.graph.picture import Arrow, Box, Picture

TRACK = 14  # pixels
SYMBOL = 18  # width and height of a symbol in pixels
_INSET = 10  # pixels between a border and a text
_SYMBOL_GAP = 8  # pixels between a symbol and a title
NARROWEST = 8  # tracks of a box
_WIDEST_LEAF = 190  # pixels of text
_WIDEST_HEADER = 420
_WIDEST_TITLE = 260  # for which a box is wider than what it contains
LOOP = "\N{CLOCKWISE OPEN CIRCLE ARROW} "


class Rectangle(NamedTuple):
    """An area of the picture, in pixels."""

    left: float
    top: float
    width: float
    height: float

    def enlarged(self, by: float) -> Rectangle:
        """Return the area with so many pixels more at each side."""
        return Rectangle(self.left - by, self.top - by, self.width + 2 * by, self.height + 2 * by)

    def overlaps(self, other: Rectangle) -> bool:
        """Return whether the areas have more than a border in common."""
        return (
            self.left < other.left + other.width
            and other.left < self.left + self.width
            and self.top < other.top + other.height
            and other.top < self.top + self.height
        )

    def is_within(self, other: Rectangle) -> bool:
        """Return whether the area lies in another one and does not touch its border."""
        return (
            other.left < self.left
            and self.left + self.width < other.left + other.width
            and other.top < self.top
            and self.top + self.height < other.top + other.height
        )


@dataclass(frozen=True)
class Text:
    """A line of text where it is drawn.

    Attributes:
        x: left end in pixels.
        y: top of the line in pixels.
        loop: the arrow from a box to itself that it stands for, if it does.
    """

    text: str
    x: float
    y: float
    font: Font
    loop: Arrow | None = None

    @property
    def width(self) -> float:
        """Upper bound of its width in pixels."""
        return width(self.text, self.font)


@dataclass
class Node:
    """A box of the picture while it is placed; all measures in tracks.

    Attributes:
        children: the boxes that it contains, in order.
        x: left border, at first relative to the block of its siblings.
        y: top border, likewise.
        header: height of title and lines, without a track between them and the children.
        header_limit: pixels that lines of the header may take.
        rows: rows of the children, as they were arranged.
    """

    box: Box
    loops: list[Arrow] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    x: int = 0
    y: int = 0
    width: int = 0
    height: int = 0
    header: int = 0
    header_limit: float = _WIDEST_LEAF
    rows: list[list[Node]] = field(default_factory=list)

    def walk(self) -> Iterator[Node]:
        """Yield this box and all that it contains, parents first."""
        yield self
        for child in self.children:
            yield from child.walk()

    def move(self, x: int, y: int) -> None:
        """Move this box and all that it contains."""
        for node in self.walk():
            node.x += x
            node.y += y

    def measure_leaf(self, ports: int) -> None:
        """Give a box without children its size."""
        self.header_limit = _WIDEST_LEAF
        self.width = even(max(self._text_width() + 2 * _INSET, NARROWEST * TRACK))
        self.header = tracks(self._text_height())
        self.height = max(self.header, ports + 1)

    def measure_header(self, inner: float) -> int:
        """Give a box with children its header, for a width of its children in pixels; return the width it needs."""
        self.header_limit = max(inner - SYMBOL - _SYMBOL_GAP - 2 * _INSET, _WIDEST_LEAF if inner < 300 else 0)
        title_width = min(width(self.box.title, TITLE) + 1, _WIDEST_TITLE)
        self.header_limit = max(min(self.header_limit, max(_WIDEST_HEADER, inner / 2)), title_width)
        self.header = tracks(self._text_height())
        return even(self._text_width() + 2 * _INSET)

    def texts(self) -> list[Text]:
        """Return the lines of title and text, where they are drawn; the node has been placed by now."""
        left = self.x * TRACK + _INSET
        spare = 0.0 if self.children else (self.height * TRACK - self._text_height()) / 2
        top = self.y * TRACK + _INSET - 1 + spare
        texts = []
        for line, font, loop in self._lines():
            indent = SYMBOL + _SYMBOL_GAP
            texts.append(Text(line, left + indent, top, font, loop))
            top += font.line
        return texts

    def symbol(self) -> tuple[float, float]:
        """Return where the left upper corner of the symbol is drawn, in pixels."""
        texts = self.texts()
        return self.x * TRACK + _INSET, texts[0].y + (TITLE.line - SYMBOL) / 2 if texts else self.y * TRACK + _INSET

    def header_area(self) -> Rectangle:
        """Return the area of symbol and texts."""
        texts = self.texts()
        left, top = self.symbol()
        right = max((text.x + text.width for text in texts), default=left + SYMBOL)
        bottom = max((text.y + text.font.line for text in texts), default=top + SYMBOL)
        return Rectangle(left, top, right - left, bottom - top)

    def _lines(self) -> Iterator[tuple[str, Font, Arrow | None]]:
        """Yield the lines of title and text, each with its font and, of an arrow to the box itself, the arrow."""
        for line in wrapped(self.box.title, self.header_limit, TITLE) or ("",):
            yield line, TITLE, None
        for text in self.box.lines:
            for line in wrapped(text, self.header_limit, LINE):
                yield line, LINE, None
        for kind in dict.fromkeys(loop.kind for loop in self.loops):
            loops = [loop for loop in self.loops if loop.kind == kind]
            text = LOOP + (joined_labels(loops) or "itself")
            for line in wrapped(text, self.header_limit, LINE):
                yield line, LINE, loops[0]

    def _text_width(self) -> float:
        return SYMBOL + _SYMBOL_GAP + max(width(line, font) for line, font, _ in self._lines())

    def _text_height(self) -> float:
        return sum(font.line for _, font, _ in self._lines()) + 2 * (_INSET - 1)


def forest(picture: Picture) -> list[Node]:
    """Return the boxes of a picture that no box contains, with all that they contain."""
    by_id = {box.id: Node(box) for box in picture.boxes}
    for arrow in picture.arrows:
        if arrow.source == arrow.target:
            by_id[arrow.source].loops.append(arrow)
    for box in picture.boxes:
        if box.parent is not None:
            by_id[box.parent].children.append(by_id[box.id])
    return [by_id[box.id] for box in picture.boxes if box.parent is None]


def tracks(pixels: float) -> int:
    """Return how many tracks a number of pixels takes."""
    return math.ceil(pixels / TRACK)


def even(pixels: float) -> int:
    """Return how many tracks a number of pixels takes, as an even number: there is a track in the middle then."""
    return 2 * math.ceil(pixels / TRACK / 2)
