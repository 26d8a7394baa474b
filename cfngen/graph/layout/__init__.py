"""Where everything in a picture is drawn: a layered, orthogonal layout of nodes within nodes.

It takes the steps of Sugiyama's method, for each node that contains others. Nodes (`nodes`) get their sizes from their
texts and the ports that their edges need. Where edges decide, nodes stand in ranks, ordered so that few edges cross
(`ranks`); elsewhere in rows, by what they stand for (`placement`). Arrows are bundled to edges (`edges`), which are
routed one after another between ports over the tracks of a grid (`routing`). Labels come last (`labels`).

How much room the edges need is known only afterwards: the first attempt is narrow, the next ones are wider, until no
two edges share a track and each label has a place.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cfngen.graph.changes import COLOURS, change_of
from cfngen.graph.layout.edges import Edge, edges_of
from cfngen.graph.layout.labels import Label, Labels, label_room, label_shapes
from cfngen.graph.layout.nodes import TRACK, Node, forest
from cfngen.graph.layout.placement import Placement, Spacing
from cfngen.graph.layout.routing import Grid, Route, Router
from cfngen.graph.picture import Change, Picture

_MARGIN = 3  # tracks
_WITHOUT_ARROWS = Spacing(gap=2, padding=2, lanes=0)
_REORDERINGS = 2  # in which edges are routed again: those first that had no room
_ATTEMPTS = (Spacing(3, 2, 0), Spacing(4, 2, 2), Spacing(4, 3, 2), Spacing(5, 3, 4), Spacing(6, 4, 6), Spacing(8, 5, 9))

Point = tuple[int, int]


@dataclass(frozen=True)
class Line:
    """An edge as it is drawn.

    Attributes:
        paths: in pixels, the ends and corners of each path from a leaf to the root, or to where it joins another.
        heads: ends that have the head of an arrow, each with the point before it.
        joints: where paths join.
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
        nodes: its boxes with their places, parents first.
        height: height in pixels, without heading and legend.
    """

    picture: Picture
    nodes: tuple[Node, ...]
    lines: tuple[Line, ...]
    width: int
    height: int

    @property
    def unplaced(self) -> tuple[Line, ...]:
        """Lines with a label that has no room on them; it is listed below the picture."""
        return tuple(line for line in self.lines if line.label is None and line.edge.label)

    @property
    def changes(self) -> list[Change]:
        """What a deployment does to the nodes and lines."""
        shown = {change_of(self.picture, node.box) for node in self.nodes}
        shown |= {line.edge.change for line in self.lines}
        return [change for change in COLOURS if change in shown]


def layout(picture: Picture) -> Drawing:
    """Return where everything in a picture is drawn."""
    edges = edges_of(picture)
    best: tuple[int, Drawing] | None = None
    for spacing in _ATTEMPTS if edges else (_WITHOUT_ARROWS,):
        faults, drawing = _attempt(picture, edges, spacing)
        if best is None or faults < best[0]:
            best = faults, drawing
        if not faults:
            break
    assert best is not None  # noqa: S101 - there is an attempt
    return best[1]


def _attempt(picture: Picture, edges: Sequence[Edge], spacing: Spacing) -> tuple[int, Drawing]:
    """Return how many faults a drawing with a spacing has, and the drawing."""
    roots = forest(picture)
    width, height = 0, 0
    if roots:
        width, height = Placement(roots, edges, spacing, {edge: label_room(edge) for edge in edges}).arrange(roots)
    margin = _MARGIN if edges else 1
    for root in roots:
        root.move(margin, margin)
    nodes = [node for root in roots for node in root.walk()]
    size = width + 2 * margin, height + 2 * margin
    by_id = {node.box.id: node for node in nodes}
    order = sorted(range(len(edges)), key=lambda number: (_distances(edges[number], by_id), number))
    faults, lines = _routed(edges, order, by_id, size)
    for _ in range(_REORDERINGS):
        failed = [number for number in order if not lines[number].clear or _is_unlabelled(lines[number])]
        if failed == order[: len(failed)]:  # none, or the order stays as it is
            break
        order = failed + [number for number in order if number not in failed]
        faults_again, lines_again = _routed(edges, order, by_id, size)
        if faults_again < faults:
            faults, lines = faults_again, lines_again
    drawn = tuple(lines[number] for number in range(len(edges)))
    return faults, Drawing(picture, tuple(nodes), drawn, size[0] * TRACK, size[1] * TRACK)


def _routed(edges: Sequence[Edge], order: Sequence[int], nodes: dict[str, Node],
            size: tuple[int, int]) -> tuple[int, dict[int, Line]]:  # fmt: skip
    """Route edges in an order; return how many faults they have, and their lines by number.

    Args:
        order: numbers of the edges: their indices in `edges`.
        size: width and height of the picture in tracks.
    """
    grid = Grid(size[0] + 1, size[1] + 1, nodes.values())
    router = Router(grid, nodes)
    labels = Labels(grid, nodes.values())
    lines = {}
    faults = 0
    for number in order:
        route = router.route(number, edges[number])
        label = labels.place(number, route)
        lines[number] = _line(grid, route, label)
        faults += (not lines[number].clear) + _is_unlabelled(lines[number]) + _is_over_side(label, nodes.values())
    return faults, lines


def _is_over_side(label: Label | None, nodes: Iterable[Node]) -> bool:
    """Return whether a label lies over the left or the right side of all that is within what holds all others."""
    outermost = [node for node in nodes if node.box.parent is None and node.children]
    if label is None or not outermost:
        return False
    left, top, width, _ = label.area
    sides = (min(node.x for node in outermost), max(node.x + node.width for node in outermost))
    is_beside = top > min(node.y for node in outermost) * TRACK
    return is_beside and any(left < side * TRACK < left + width for side in sides)


def _is_unlabelled(line: Line) -> bool:
    return line.label is None and bool(label_shapes(line.edge))


def _line(grid: Grid, route: Route, label: Label | None) -> Line:
    """Return a route in pixels."""
    paths, heads, joints = [], [], []
    outward, mutual = route.edge.outward, route.edge.mutual
    for branch in route.branches:
        if not branch.points:
            continue
        path = [(x * TRACK, y * TRACK) for x, y in map(grid.place, branch.points)]
        paths.append(_corners(path))
        if outward or mutual:
            heads.append((path[0], path[1]))
        if branch.joins:
            joints.append(path[-1])
        elif not outward or mutual:
            heads.append((path[-1], path[-2]))
    clear = not route.conflicts and len(paths) == len(route.branches)
    return Line(route.edge, tuple(paths), tuple(heads), tuple(joints), label, clear)


def _corners(path: Sequence[Point]) -> tuple[Point, ...]:
    """Return both ends of a path and the points where it turns."""
    turns = [
        here
        for before, here, after in zip(path, path[1:], path[2:], strict=False)
        if (here[0] - before[0], here[1] - before[1]) != (after[0] - here[0], after[1] - here[1])
    ]
    return (path[0], *turns, path[-1])


def _distances(edge: Edge, nodes: dict[str, Node]) -> int:
    """Return the distances between the middles of the root and of each leaf, added up, in half tracks."""
    root = nodes[edge.root]
    return sum(
        abs(2 * (root.x - leaf.x) + root.width - leaf.width) + abs(2 * (root.y - leaf.y) + root.height - leaf.height)
        for leaf in map(nodes.__getitem__, edge.leaves)
    )
