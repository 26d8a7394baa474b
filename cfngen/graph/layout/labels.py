"""Where the labels of arrows are: on their line, and over no box, title, other line or other label."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cfngen.graph.layout.edges import Edge
from cfngen.graph.layout.nodes import TRACK, Node
from cfngen.graph.layout.routing import Grid, Rectangle, Route
from cfngen.graph.layout.text_metrics import LABEL, width, wrapped
from cfngen.graph.picture import Change

SIGNS: dict[Change, str] = {"added": "+", "changed": "~", "replaced": "!", "removed": "\N{MINUS SIGN}"}
_WIDEST = 118  # pixels, of a line of several
_WIDEST_ALONE = 230  # of a label with one line
_INSET = 4
_APART = 3  # pixels between a label and a box, or another arrow
_HEAD = 11  # pixels that the head of an arrow takes


@dataclass(frozen=True)
class Label:
    """The label of an edge.

    Attributes:
        area: left, top, width and height in pixels.
    """

    lines: tuple[str, ...]
    area: Rectangle


def label_shapes(edge: Edge) -> list[tuple[str, ...]]:
    """Return an edge's label in lines, with the sign of what a deployment does to it: narrow, and in one line."""
    sign = SIGNS[edge.change] if edge.change else ""
    shapes = dict.fromkeys(wrapped(f"{sign} {edge.label}", limit, LABEL) for limit in (_WIDEST, _WIDEST_ALONE))
    return [lines for lines in shapes if lines]


def label_room(edge: Edge) -> tuple[float, float]:
    """Return the width that an edge's label takes at an arrow across, and the height at one up or down; in pixels."""
    sizes = [label_size(lines) for lines in label_shapes(edge)] or [(0.0, 0.0)]
    return max(w for w, _ in sizes), max(h for _, h in sizes)


def label_size(lines: tuple[str, ...]) -> tuple[float, float]:
    """Return width and height of the lines of a label in pixels."""
    return max((width(line, LABEL) for line in lines), default=0) + 2 * _INSET, len(lines) * LABEL.line


class Labels:
    """Places labels, one after another."""

    def __init__(self, grid: Grid, nodes: Iterable[Node]) -> None:
        self._grid = grid
        self._taken: list[Rectangle] = []
        self._borders: list[Rectangle] = []
        for node in nodes:
            outline = (node.x * TRACK, node.y * TRACK, node.width * TRACK, node.height * TRACK)
            if node.children:
                self._taken.append(node.header_area())
                self._borders.append(outline)
            else:
                self._taken.append(_enlarged(outline))

    def place(self, number: int, route: Route) -> Label | None:
        """Return where the label of an edge fits best, and keep others out of there; None if it fits nowhere."""
        shapes = label_shapes(route.edge)
        if not shapes:
            return None
        own = route.points()
        ends = self._ends(route)
        best: tuple[float, Rectangle, tuple[str, ...]] | None = None
        candidates = ((*candidate, lines) for lines in shapes for candidate in self._candidates(route, lines))
        for area, price, lines in candidates:
            if best is not None and price >= best[0]:
                continue
            if not self._is_free(area, number) or any(_near(area, end) for end in ends):
                continue
            total = price + sum(25 for border in self._borders if _overlap(area, border) and not _within(area, border))
            total += 4 * len(own.intersection(self._grid.points(area)))
            if best is None or total < best[0]:
                best = total, area, lines
        if best is None:
            return None
        self._taken.append(best[1])
        self._grid.block(_enlarged(best[1]))
        return Label(best[2], best[1])

    def _candidates(self, route: Route, lines: tuple[str, ...]) -> Iterator[tuple[Rectangle, float]]:
        w, h = label_size(lines)
        shared = len(route.edge.leaves) > 1
        for branch in route.branches:
            length = len(branch.points)
            for index, run_length, middle, across in _runs(branch.points):
                x, y = self._grid.place(branch.points[index])
                needed = (w if across else h) / TRACK + 2
                price = abs(index - middle) + (3 * (len(lines) - 1) if across else 2 + w / TRACK / 2)
                price += max(needed - run_length, 0) * 3
                price += 0.5 * (length - index) if shared else 0.2 * abs(index - length / 2)
                price += 25 if shared and branch.joins else 0
                yield (x * TRACK - w / 2, y * TRACK - h / 2, w, h), price
                if not across and run_length == 3 and index + 0.5 == middle:  # too short for a label at a point
                    next_y = self._grid.place(branch.points[index + 1])[1]
                    yield (x * TRACK - w / 2, (y + next_y) / 2 * TRACK - h / 2, w, h), price
                if not across:  # beside the middle of the label
                    for tracks in range(1, int(w / 2 / TRACK)):
                        for shift in (-tracks * TRACK, tracks * TRACK):
                            yield (x * TRACK - w / 2 + shift, y * TRACK - h / 2, w, h), price + 3 + tracks

    def _ends(self, route: Route) -> list[tuple[float, float]]:
        ends: list[tuple[float, float]] = []
        for branch in route.branches:
            for point in (branch.points[:1], [] if branch.joins else branch.points[-1:]):
                ends += [(x * TRACK, y * TRACK) for x, y in map(self._grid.place, point)]
        return ends

    def _is_free(self, area: Rectangle, number: int) -> bool:
        left, top, w, h = area
        if (
            left < 0
            or top < 0
            or left + w > (self._grid.width - 1) * TRACK
            or top + h > (self._grid.height - 1) * TRACK
        ):
            return False
        for point in self._grid.points(_enlarged(area)):
            if any(owner[point] >= 0 and owner[point] != number for owner in self._grid.owner):
                return False
        return not any(_overlap(area, taken) for taken in self._taken)


def _runs(points: list[int]) -> Iterator[tuple[int, int, float, bool]]:
    """Yield the points of a way: index, and of its straight run the length, the middle and whether it is across."""
    start = 0
    for index in range(1, len(points)):
        step = points[index] - points[index - 1]
        if index + 1 == len(points) or points[index + 1] - points[index] != step:
            for inner in range(start, index + 1):
                yield inner, index - start, (start + index) / 2, abs(step) == 1
            start = index


def _enlarged(area: Rectangle) -> Rectangle:
    left, top, w, h = area
    return left - _APART, top - _APART, w + 2 * _APART, h + 2 * _APART


def _overlap(one: Rectangle, other: Rectangle) -> bool:
    return (one[0] < other[0] + other[2] and other[0] < one[0] + one[2]
            and one[1] < other[1] + other[3] and other[1] < one[1] + one[3])  # fmt: skip


def _within(one: Rectangle, other: Rectangle) -> bool:
    return (other[0] < one[0] and one[0] + one[2] < other[0] + other[2]
            and other[1] < one[1] and one[1] + one[3] < other[1] + other[3])  # fmt: skip


def _near(area: Rectangle, end: tuple[float, float]) -> bool:
    x, y = end
    return area[0] - _HEAD < x < area[0] + area[2] + _HEAD and area[1] - _HEAD < y < area[1] + area[3] + _HEAD
