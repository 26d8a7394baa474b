"""Where the labels of arrows are: on their line, and over no box, title, other line or other label."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.graph.layout.edges import Edge
from cfngen.graph.layout.nodes import TRACK, Node, Rectangle
from cfngen.graph.layout.routing import Grid, Route
from cfngen.graph.layout.text_metrics import LABEL, Size, width, wrapped
from cfngen.graph.picture import Change

SIGNS: dict[Change, str] = {
    "added": "+",
    "changed": "\N{GREEK CAPITAL LETTER DELTA}",
    "replaced": "!",
    "removed": "\N{MINUS SIGN}",
}
_WIDEST = 118  # pixels, of a line of several
_WIDEST_ALONE = 230  # of a label with one line
_INSET = 4
_APART = 3  # pixels between a label and a box, or another arrow
_BETWEEN_LABELS = 5  # pixels
_HEAD = 11  # pixels that the head of an arrow takes


@dataclass(frozen=True)
class Label:
    """The label of an edge."""

    lines: tuple[str, ...]
    area: Rectangle


def label_shapes(edge: Edge) -> list[tuple[str, ...]]:
    """Return an edge's label in lines, with the sign of what a deployment does to it: narrow, and in one line."""
    sign = SIGNS[edge.change] if edge.change else ""
    shapes = dict.fromkeys(wrapped(f"{sign} {edge.label}", limit, LABEL) for limit in (_WIDEST, _WIDEST_ALONE))
    return [lines for lines in shapes if lines]


def label_room(edge: Edge) -> Size:
    """Return the width that an edge's label takes at an arrow across, and the height at one up or down."""
    sizes = [label_size(lines) for lines in label_shapes(edge)] or [Size(0.0, 0.0)]
    return Size(max(size.width for size in sizes), max(size.height for size in sizes))


def label_size(lines: tuple[str, ...]) -> Size:
    """Return the size of a label of these lines."""
    return Size(max((width(line, LABEL) for line in lines), default=0) + 2 * _INSET, len(lines) * LABEL.line)


class Labels:
    """Places labels, one after another."""

    def __init__(self, grid: Grid, nodes: Iterable[Node]) -> None:
        self._grid = grid
        self._taken: list[Rectangle] = []
        self._borders: list[Rectangle] = []
        self._labels: list[Rectangle] = []  # with the room that others should leave around them
        for node in nodes:
            outline = Rectangle(node.x * TRACK, node.y * TRACK, node.width * TRACK, node.height * TRACK)
            if node.children:
                self._taken.append(node.header_area())
                self._borders.append(outline)
            else:
                self._taken.append(outline.enlarged(_APART))

    def place(self, number: int, route: Route) -> Label | None:
        """Return where the label of an edge fits best, and keep others out of there; None if it fits nowhere.

        Args:
            number: the number by which the grid marks the edge's own points.
        """
        shapes = label_shapes(route.edge)
        if not shapes:
            return None
        own_points = route.points()
        ends = self._ends(route)
        best: Label | None = None
        lowest_price = math.inf
        candidates = ((*candidate, lines) for lines in shapes for candidate in self._candidates(route, lines))
        for area, price, lines in candidates:
            if price >= lowest_price or not self._is_free(area, number) or any(_is_near(area, end) for end in ends):
                continue
            crossed = [border for border in self._borders if area.overlaps(border) and not area.is_within(border)]
            total = price + 25 * len(crossed) + 25 * any(area.overlaps(label) for label in self._labels)
            total += 4 * len(own_points.intersection(self._grid.points(area)))
            if total < lowest_price:
                lowest_price, best = total, Label(lines, area)
        if best is not None:
            self._taken.append(best.area)
            self._labels.append(best.area.enlarged(_BETWEEN_LABELS))
            self._grid.block(best.area.enlarged(_APART))
        return best

    def _candidates(self, route: Route, lines: tuple[str, ...]) -> Iterator[tuple[Rectangle, float]]:
        """Yield areas that a label of these lines may take on a route, each with its price: less is better."""
        w, h = label_size(lines)
        shared = len(route.edge.leaves) > 1
        for branch in route.branches:
            length = len(branch.points)
            for position, run_length, run_middle, across in _points_in_runs(branch.points):
                x, y = self._grid.place(branch.points[position])
                # In the middle of a run that is long enough; a label on an arrow up or down should be narrow.
                needed = (w if across else h) / TRACK + 2
                price = abs(position - run_middle) + (3 * (len(lines) - 1) if across else 2 + w / TRACK / 2)
                price += max(needed - run_length, 0) * 3
                # In the middle of an arrow; of a tree, on the trunk: near the root, on the branch that reaches it.
                price += 0.5 * (length - position) if shared else 0.2 * abs(position - length / 2)
                price += 25 if shared and branch.joins else 0
                yield Rectangle(x * TRACK - w / 2, y * TRACK - h / 2, w, h), price
                if not across and run_length == 3 and position + 0.5 == run_middle:  # too short for a label at a point
                    next_y = self._grid.place(branch.points[position + 1])[1]
                    yield Rectangle(x * TRACK - w / 2, (y + next_y) / 2 * TRACK - h / 2, w, h), price
                if not across:  # beside the middle of the label
                    for tracks in range(1, int(w / 2 / TRACK) + 1):
                        at_end = 12 if (tracks + 1) * TRACK > w / 2 else 0
                        for shift in (-tracks * TRACK, tracks * TRACK):
                            area = Rectangle(x * TRACK - w / 2 + shift, y * TRACK - h / 2, w, h)
                            yield area, price + 3 + tracks + at_end

    def _ends(self, route: Route) -> list[tuple[float, float]]:
        """Return where a route meets boxes, in pixels: no label may cover the head of an arrow there."""
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
        for point in self._grid.points(area.enlarged(_APART)):
            if any(owner[point] >= 0 and owner[point] != number for owner in self._grid.owner):
                return False
        return not any(area.overlaps(taken) for taken in self._taken)


class _PointInRun(NamedTuple):
    """A point of a branch, and the straight run of the branch that it lies on.

    Attributes:
        position: index of the point in the branch.
        run_length: steps of the run.
        run_middle: index in the middle of the run; a half lies between two points.
        across: whether the run goes across; else it goes up or down.
    """

    position: int
    run_length: int
    run_middle: float
    across: bool


def _points_in_runs(points: list[int]) -> Iterator[_PointInRun]:
    """Yield the points of a branch of a route by their straight runs; a corner lies on two runs and comes twice.

    Args:
        points: as `Grid` numbers them, row by row: the numbers of neighbours in a row differ by one.
    """
    start = 0
    for index in range(1, len(points)):
        step = points[index] - points[index - 1]
        if index + 1 == len(points) or points[index + 1] - points[index] != step:
            for inner in range(start, index + 1):
                yield _PointInRun(inner, index - start, (start + index) / 2, across=abs(step) == 1)
            start = index


def _is_near(area: Rectangle, tip: tuple[float, float]) -> bool:
    """Return whether an area comes near the head of an arrow whose tip is at a point."""
    x, y = tip
    return (
        area.left - _HEAD < x < area.left + area.width + _HEAD and area.top - _HEAD < y < area.top + area.height + _HEAD
    )
