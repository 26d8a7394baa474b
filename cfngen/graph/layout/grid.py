"""The grid on which arrows are drawn: which of its points are free, and for whom.

A point may carry one arrow across and another one up and down, which cross there. No arrow enters a box that has no
children, unless it ends there, covers a title, or runs along a border.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

from cfngen.graph.layout.boxes import TRACK, Placed
from cfngen.graph.picture import BoxKind

HORIZONTAL, VERTICAL = 0, 1
FREE, BLOCKED = -1, -2
_APART = 4  # pixels between an arrow and a title
# The price of a border: an arrow may well pass through a VPC, but not through instances that it has nothing to do with.
_TOLLS: Mapping[BoxKind, float] = {"account": 1, "region": 1, "vpc": 2, "zone": 4, "subnet": 5}
_TOLL = 30.0

Rectangle = tuple[float, float, float, float]  # left, top, width and height in pixels


class Grid:
    """Points at the crossings of tracks; a point is a number.

    Attributes:
        owner: by direction, which edge uses a point, or FREE, or BLOCKED.
        toll: by direction, what entering a point costs in addition: at borders of boxes with children.
    """

    def __init__(self, w: int, h: int, boxes: Iterable[Placed]) -> None:
        self.width, self.height = w, h
        self.owner = ([FREE] * (w * h), [FREE] * (w * h))
        self.toll = ([0.0] * (w * h), [0.0] * (w * h))
        for placed in boxes:
            if placed.children:
                self._border(placed)
                left, top, width, height = placed.header_area()
                self.block((left - _APART, top - _APART, width + 2 * _APART, height + 2 * _APART))
            else:
                for y in range(placed.y, placed.y + placed.height + 1):
                    for x in range(placed.x, placed.x + placed.width + 1):
                        self._set(x, y)
        for x in range(w):
            self._set(x, 0)
            self._set(x, h - 1)
        for y in range(h):
            self._set(0, y)
            self._set(w - 1, y)

    def point(self, x: int, y: int) -> int:
        """Return the point in a column and row."""
        return y * self.width + x

    def place(self, point: int) -> tuple[int, int]:
        """Return column and row of a point."""
        return point % self.width, point // self.width

    def block(self, area: Rectangle) -> None:
        """Keep arrows out of an area."""
        for point in self.points(area):
            for owner in self.owner:
                if owner[point] == FREE:
                    owner[point] = BLOCKED

    def points(self, area: Rectangle) -> Iterator[int]:
        """Yield the points within an area, without its border."""
        left, top, width, height = area
        for y in range(math.floor(top / TRACK) + 1, math.ceil((top + height) / TRACK)):
            for x in range(math.floor(left / TRACK) + 1, math.ceil((left + width) / TRACK)):
                if 0 <= x < self.width and 0 <= y < self.height:
                    yield y * self.width + x

    def ports(self, placed: Placed, inside: bool) -> Iterator[tuple[int, int, int, float]]:
        """Yield where an arrow may leave or reach a box.

        Args:
            inside: whether the arrow comes from within the box.

        Yields:
            the point beside the border, the point on the border, the direction between them, and how far that is from
            the middle of the side: 0 there, 1 in a corner.
        """
        away = -1 if inside else 1
        sides = (
            (VERTICAL, 0, -away, placed.width, placed.x, placed.y),
            (VERTICAL, 0, away, placed.width, placed.x, placed.y + placed.height),
            (HORIZONTAL, -away, 0, placed.height, placed.x, placed.y),
            (HORIZONTAL, away, 0, placed.height, placed.x + placed.width, placed.y),
        )
        for direction, dx, dy, length, x, y in sides:
            for offset in range(1, length):
                at_x, at_y = (x + offset, y) if direction == VERTICAL else (x, y + offset)
                beside = self.point(at_x + dx, at_y + dy if direction == VERTICAL else at_y)
                yield beside, self.point(at_x, at_y), direction, abs(2 * offset / length - 1)

    def _border(self, placed: Placed) -> None:
        toll = _TOLLS.get(placed.box.kind, _TOLL)
        right, bottom = placed.x + placed.width, placed.y + placed.height
        for x in range(placed.x, right + 1):
            for y in (placed.y, bottom):
                self.owner[HORIZONTAL][self.point(x, y)] = BLOCKED
                self.toll[VERTICAL][self.point(x, y)] += toll
        for y in range(placed.y, bottom + 1):
            for x in (placed.x, right):
                self.owner[VERTICAL][self.point(x, y)] = BLOCKED
                self.toll[HORIZONTAL][self.point(x, y)] += toll
        for x in (placed.x, right):
            for y in (placed.y, bottom):
                self._set(x, y)

    def _set(self, x: int, y: int) -> None:
        for owner in self.owner:
            owner[self.point(x, y)] = BLOCKED
