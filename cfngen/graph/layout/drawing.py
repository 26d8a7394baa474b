"""What is drawn, and where: the result of a layout."""

from __future__ import annotations

from dataclasses import dataclass

from cfngen.graph.box_changes import COLOURS, change_of
from cfngen.graph.layout.boxes import Placed
from cfngen.graph.layout.edges import Edge
from cfngen.graph.layout.labels import Label
from cfngen.graph.picture import Change, Picture

Point = tuple[int, int]


@dataclass(frozen=True)
class Line:
    """An edge as it is drawn.

    Attributes:
        paths: ways in pixels, from a leaf to the root, or to where one joins another: their corners.
        heads: ends that have the head of an arrow, each with the point before it.
        joints: where ways join.
        label: its label, if there is room for it on the line.
        clear: whether it keeps clear of all other lines.
    """

    edge: Edge
    paths: tuple[tuple[Point, ...], ...]
    heads: tuple[tuple[Point, Point], ...]
    joints: tuple[Point, ...]
    label: Label | None
    clear: bool


@dataclass(frozen=True)
class Drawing:
    """A picture as it is drawn.

    Attributes:
        boxes: its boxes with their places, parents first.
        height: height in pixels, without heading and legend.
    """

    picture: Picture
    boxes: tuple[Placed, ...]
    lines: tuple[Line, ...]
    width: int
    height: int

    @property
    def unplaced(self) -> tuple[Line, ...]:
        """Lines with a label that has no room on them; it is listed below the picture."""
        return tuple(line for line in self.lines if line.label is None and line.edge.label)

    @property
    def changes(self) -> list[Change]:
        """What a deployment does to the boxes and lines."""
        shown = {change_of(self.picture, placed.box) for placed in self.boxes}
        shown |= {line.edge.change for line in self.lines}
        return [change for change in COLOURS if change in shown]
