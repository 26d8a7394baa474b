"""Where nodes stand: within each its children, in ranks if edges decide, else in rows; services beside or below.

What a node stands for decides its band: sources above, then gateways, load balancers, the network, instances.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from cfngen.graph.layout.edges import Edge
from cfngen.graph.layout.nodes import NARROWEST, TRACK, Node, tracks
from cfngen.graph.layout.ranks import ranks
from cfngen.graph.layout.text_metrics import Size
from cfngen.graph.picture import BoxKind

WIDEST = 98  # tracks
_ASPECT = 1.5  # width by height of a picture
_BANDS: tuple[frozenset[BoxKind], ...] = (
    frozenset({"source", "dns"}),
    frozenset({"gateway"}),
    frozenset({"load-balancer"}),
    frozenset({"account", "region", "vpc", "zone", "subnet"}),
    frozenset({"instances", "security-group", "volume"}),
)  # from above; everything else is a service
_BAND_OF_KIND = {kind: band for band, kinds in enumerate(_BANDS) for kind in kinds}
_SERVICES = len(_BANDS)
_BANDS_ABOVE_THE_NETWORK = range(3)
_ASPECT_OF_A_ROW = 12  # so wide that nodes mostly stand in one row
_GAP_WITHOUT_EDGES = 1  # tracks around nodes that no edge reaches


@dataclass(frozen=True)
class Spacing:
    """Tracks that are left free for arrows.

    Attributes:
        gap: between nodes side by side or one below another.
        padding: between the border of a box and its children.
        lanes: between ranks, in addition to the room for labels.
    """

    gap: int
    padding: int
    lanes: int


@dataclass
class _Row:
    """Nodes side by side; measures in tracks."""

    nodes: list[Node]
    width: int  # of the band that it belongs to
    gap: int


@dataclass
class _Block:
    """Siblings that are placed, relative to its left upper corner, and the tracks that they take."""

    nodes: list[Node]
    width: int
    height: int


class Placement:
    """Places the nodes of a picture."""

    def __init__(
        self, roots: list[Node], edges: Sequence[Edge], spacing: Spacing, label_sizes: dict[Edge, Size]
    ) -> None:
        self._spacing = spacing
        self._label_sizes = label_sizes
        self._edges = edges
        self._ancestors: dict[str, tuple[str, ...]] = {}
        for root in roots:
            self._remember(root, ())
        self._ports: Counter[str] = Counter()
        self._edges_between: dict[str, dict[str, set[int]]] = {name: {} for name in self._ancestors}
        for number, edge in enumerate(edges):
            self._ports.update({edge.root, *edge.leaves})
            for link in edge.links:
                self._edges_between[link.source].setdefault(link.target, set()).add(number)
                self._edges_between[link.target].setdefault(link.source, set()).add(number)
        self._leaf_sizes: dict[str, tuple[int, int]] = {}

    def arrange(self, roots: list[Node]) -> tuple[int, int]:
        """Place nodes and all that they contain; return the width and height that they take."""
        block = self._block(roots, WIDEST, _ASPECT)
        return block.width, block.height

    def _remember(self, node: Node, above: tuple[str, ...]) -> None:
        self._ancestors[node.box.id] = (*above, node.box.id)
        for child in node.children:
            self._remember(child, self._ancestors[node.box.id])

    def _place(self, node: Node, widest: int, aspect: float) -> None:
        """Give a box its size, and its children their places relative to it."""
        node.x = node.y = 0
        if not node.children:
            if node.box.id not in self._leaf_sizes:
                node.measure_leaf(max(math.ceil(self._ports[node.box.id] * 0.6), self._room_of_labels(node)))
                self._leaf_sizes[node.box.id] = node.width, node.height
            node.width, node.height = self._leaf_sizes[node.box.id]
            return
        usual = self._spacing
        self._spacing = self._spacing_within(node)
        inner = max(widest - 2 * self._spacing.padding, 1)
        block = self._block(node.children, inner, aspect, node)
        self._enclose(node, block)
        self._spacing = usual

    def _room_of_labels(self, node: Node) -> int:
        """Return the tracks that labels one above another take beside a box: those of several arrows to one other."""
        several = (edges for edges in self._edges_between[node.box.id].values() if len(edges) > 1)
        sizes = ([self._label_sizes[self._edges[number]].height for number in edges] for edges in several)
        return max((sum(tracks(height + TRACK / 2) for height in heights) for heights in sizes), default=0)

    def _spacing_within(self, node: Node) -> Spacing:
        """Return the spacing within a box: less if few arrows reach what it contains."""
        reached = sum(self._ports[inner.box.id] for child in node.children for inner in child.walk())
        if not reached:
            return Spacing(_GAP_WITHOUT_EDGES, _GAP_WITHOUT_EDGES, 0)
        if reached < len(node.children):
            return Spacing(max(self._spacing.gap - 1, 2), self._spacing.padding, self._spacing.lanes)
        return self._spacing

    def _enclose(self, node: Node, block: _Block) -> None:
        """Give a box the size that its header and its children need, and place the children below the header."""
        padding = self._spacing.padding
        needed = node.measure_header((block.width + 2 * padding) * TRACK)
        node.width = max(block.width + 2 * padding, needed)
        top = node.header + max(padding - 2, 0 if padding == _GAP_WITHOUT_EDGES else 1)
        node.height = top + block.height + padding
        for child in block.nodes:
            child.move((node.width - block.width) // 2, top)

    def _block(self, nodes: list[Node], widest: int, aspect: float, around: Node | None = None) -> _Block:
        """Place siblings: services beside or below the others, unless arrows decide where all of them stand.

        Args:
            aspect: width by height that is wanted.
            around: the box that contains them; None at the top.
        """
        main = [node for node in nodes if _band(node) < _SERVICES]
        services = [node for node in nodes if _band(node) == _SERVICES]
        in_rows = (
            not main or not services or (around is not None and around.box.kind in {"zone", "subnet", "instances"})
        )
        if in_rows or (self._are_linked(nodes) and not any(node.children for node in nodes)):
            return self._bands(nodes, widest, aspect, around)
        block = self._bands(main, widest, aspect, around)
        zones = any(node.box.kind == "zone" for node in nodes)
        return self._beside_or_below(block, services, widest, aspect, may_be_beside=not zones)

    def _bands(self, nodes: list[Node], widest: int, aspect: float, around: Node | None) -> _Block:
        """Place siblings in ranks if arrows decide, else in rows, one band below another."""
        if self._are_linked(nodes) and not any(node.children for node in nodes):
            return self._ranks(nodes, widest, aspect)
        bands = [[node for node in nodes if _band(node) == band] for band in range(_SERVICES + 1)]
        rows: list[_Row] = []
        for number, band in enumerate(bands):
            is_above = number in _BANDS_ABOVE_THE_NETWORK
            rows += self._rows(band, widest, max(aspect, _ASPECT_OF_A_ROW) if is_above else aspect) if band else []
        if around is not None:
            around.rows = [row.nodes for row in rows]
        return self._stack(rows)

    def _rows(self, nodes: list[Node], widest: int, aspect: float) -> list[_Row]:
        """Place nodes as the rows of a grid whose proportions suit, and make their widths even."""
        zones = all(node.box.kind == "zone" for node in nodes)
        best_count, lowest_score = 1, math.inf
        gap = self._horizontal_gap(nodes)
        counts = range(1, max(min(len(nodes), (widest + gap) // (NARROWEST + gap)), 1) + 1)
        if zones:
            narrowest = (NARROWEST + 4 * self._spacing.padding + self._spacing.gap) * len(nodes)
            counts = range(len(nodes) if narrowest <= widest else -(-len(nodes) // 2), len(nodes) + 1)
        for count in counts:
            self._place_in_rows(nodes, count, widest, aspect)
            w, h = self._grid_size(nodes, count)
            score = abs(math.log(w / h / aspect)) + (10 * w / widest if w > widest else 0)
            score += 0.1 * (-len(nodes) % count)
            if score < lowest_score:
                best_count, lowest_score = count, score
            if zones and w <= widest:  # as many zones side by side as there is room for
                best_count, lowest_score = count, -1.0
        count = best_count
        self._place_in_rows(nodes, count, widest, aspect)
        widths = [max(node.width for node in nodes[column::count]) for column in range(count)]
        rows = [
            _Row(nodes[at : at + count], sum(widths) + gap * (count - 1), gap) for at in range(0, len(nodes), count)
        ]
        for row in rows:
            height = max(node.height for node in row.nodes)
            leaves = not any(node.children for node in row.nodes)
            for node, width in zip(row.nodes, widths, strict=False):
                is_level = leaves or (node.children and node.box.kind != "role")
                _stretch(node, width, height if is_level else node.height)
        return rows

    def _place_in_rows(self, nodes: list[Node], count: int, widest: int, aspect: float) -> None:
        """Give nodes their sizes, for as many of them in a row."""
        share = max((widest - (count - 1) * self._horizontal_gap(nodes)) // count, 1)
        rows = -(-len(nodes) // count)
        for node in nodes:
            narrow = node.box.kind in {"subnet", "instances", "security-group"}
            self._place(node, share, 0.9 if narrow else min(max(aspect * rows / count, 0.4), 6))
        if all(node.box.kind == "zone" for node in nodes):
            _align(nodes, self)

    def _grid_size(self, nodes: list[Node], count: int) -> tuple[int, int]:
        widths = [max(node.width for node in nodes[column::count]) for column in range(count)]
        heights = [max(node.height for node in nodes[at : at + count]) for at in range(0, len(nodes), count)]
        w = sum(widths) + self._horizontal_gap(nodes) * (count - 1)
        return w, sum(heights) + self._spacing.gap * (len(heights) - 1)

    def _horizontal_gap(self, nodes: Sequence[Node]) -> int:
        """Return the tracks between nodes side by side: more if there are labels between them."""
        gap = self._spacing.gap
        if any(node.children for node in nodes):
            return gap
        widths = [self._label_sizes[edge].width for edge in self._between(nodes, nodes)]
        return max(gap, min(tracks(max(widths, default=0)) + 2, 16))

    def _vertical_gap(self, above: Sequence[Node], below: Sequence[Node], least: int) -> int:
        """Return the tracks between two rows: more if there are labels between them."""
        between = self._between(above, below)
        heights = [self._label_sizes[edge].height + 4 for edge in between if self._label_sizes[edge].height]
        # Of several labels the first takes the middle.
        return max(least, min(tracks(sum(heights) + (64 if len(heights) > 1 else 22)), 9) if heights else 0)

    def _between(self, some: Sequence[Node], others: Sequence[Node]) -> list[Edge]:
        """Return the edges that lead from nodes to others, not by way of what these contain."""
        other_ids = {node.box.id for node in others}
        numbers = {
            number
            for node in some
            for other, between in self._edges_between[node.box.id].items()
            if other in other_ids
            for number in between
        }
        return [self._edges[number] for number in sorted(numbers)]

    def _stack(self, rows: Sequence[_Row]) -> _Block:
        """Place rows one below another, each in the middle."""
        width = max(row.width for row in rows)
        y = 0
        for index, row in enumerate(rows):
            if index:
                y += self._vertical_gap(rows[index - 1].nodes, row.nodes, self._spacing.gap)
            x = (width - row.width) // 2
            height = max(node.height for node in row.nodes)
            for node in row.nodes:
                node.move(x, y if node.box.kind == "role" else y + (height - node.height) // 2)
                x += node.width + row.gap
            y += height
        return _Block([node for row in rows for node in row.nodes], width, y)

    def _beside_or_below(self, main: _Block, services: list[Node], widest: int, aspect: float,
                         may_be_beside: bool) -> _Block:  # fmt: skip
        gap = self._spacing.gap + (2 if self._edges else 0)
        room = widest - main.width - gap
        if may_be_beside and room > 0:
            block = self._services(services, room, room / main.height, beside=True)
            if (
                block.width <= room
                and block.height <= 1.2 * main.height
                and (main.width + block.width) / main.height < 2.5
            ):
                height = max(main.height, block.height)
                for node in main.nodes:
                    node.move(0, (height - main.height) // 2)
                for node in block.nodes:
                    node.move(main.width + gap, (height - block.height) // 2)
                return _Block(main.nodes + block.nodes, main.width + gap + block.width, height)
        block = self._services(services, max(main.width, WIDEST * 2 // 3), 4, beside=False)
        width = max(main.width, block.width)
        for node in main.nodes:
            node.move((width - main.width) // 2, 0)
        for node in block.nodes:
            node.move((width - block.width) // 2, main.height + gap)
        return _Block(main.nodes + block.nodes, width, main.height + gap + block.height)

    def _services(self, nodes: list[Node], widest: int, aspect: float, beside: bool) -> _Block:
        """Place services: those with arrows among them in columns, and the others in rows below."""
        linked = {name for pair in self._pairs(nodes) for name in pair}
        together = [node for node in nodes if node.box.id in linked]
        alone = [node for node in nodes if node.box.id not in linked]
        if not self._are_linked(together):
            together, alone = [], nodes
        blocks = []
        if together:
            blocks.append(self._ranks(together, widest, aspect))
        if alone:
            blocks.append(self._stack(self._rows(alone, widest, aspect / 4 if beside and not together else 8)))
        width = max(block.width for block in blocks)
        y = 0
        for block in blocks:
            for node in block.nodes:
                node.move((width - block.width) // 2, y)
            y += block.height + self._spacing.gap
        return _Block([node for block in blocks for node in block.nodes], width, y - self._spacing.gap)

    def _ranks(self, nodes: list[Node], widest: int, aspect: float) -> _Block:
        """Place nodes in ranks: columns between which there is room for the arrows and their labels."""
        for node in nodes:
            self._place(node, widest, aspect)
        pairs = self._pairs(nodes)
        widths = [self._label_sizes[edge].width for edge in self._edges if self._among(edge, nodes)]
        between = tracks(max(widths, default=0)) + 2 + self._spacing.lanes + min(len(widths) // 6, 6)
        gap = max(self._spacing.gap - 1, 2)
        arranged = ranks(nodes, pairs, widest, aspect, column_gap=between, node_gap=gap)
        gaps = [[self._vertical_gap([one], [other], gap) for one, other in itertools.pairwise(col)] for col in arranged]
        heights = [sum(node.height for node in col) + sum(below) for col, below in zip(arranged, gaps, strict=True)]
        x = 0
        for column, below, height in zip(arranged, gaps, heights, strict=True):
            width = max(node.width for node in column)
            step = (max(heights) - height) / len(column)
            y = step / 2
            for node, space in zip(column, [*below, 0], strict=True):
                _stretch(node, width, node.height)
                node.move(x, round(y))
                y += node.height + space + step
            x += width + between
        return _Block(list(nodes), x - between, max(heights))

    def _are_linked(self, nodes: list[Node]) -> bool:
        """Return whether enough arrows lead among siblings that these decide where they stand."""
        return len(nodes) > 1 and 2 * len(self._pairs(nodes)) >= len(nodes)

    def _pairs(self, nodes: list[Node]) -> list[tuple[str, str]]:
        """Return the ids of siblings from and to which arrows lead, also those of what they contain."""
        ids = {node.box.id for node in nodes}
        pairs = set()
        for edge in self._edges:
            for link in edge.links:
                source = next((name for name in self._ancestors[link.source] if name in ids), None)
                target = next((name for name in self._ancestors[link.target] if name in ids), None)
                if source and target and source != target:
                    pairs.add((source, target))
        return sorted(pairs)

    def _among(self, edge: Edge, nodes: list[Node]) -> bool:
        ids = {node.box.id for node in nodes}
        return any(ids.intersection(self._ancestors[name]) for name in (edge.root, *edge.leaves))

    def align_rows(self, node: Node, heights: list[int]) -> None:
        """Place the rows of a box again, each at least as high as wanted."""
        for row, height in zip(node.rows, heights, strict=True):
            for child in row:
                child.move(-child.x, -child.y)
                _stretch(child, child.width, height if child.children else child.height)
        gap = self._spacing.gap
        widths = [sum(child.width for child in row) + gap * (len(row) - 1) for row in node.rows]
        block = self._stack([_Row(row, width, gap) for row, width in zip(node.rows, widths, strict=True)])
        self._enclose(node, block)


def _align(zones: list[Node], placement: Placement) -> None:
    """Give the rows of zones the same heights, so that subnets stand side by side."""
    if len(zones) < 2 or len({len(zone.rows) for zone in zones}) != 1:
        return
    if not all(zone.rows and zone.header for zone in zones):
        return
    heights = [
        max(child.height for row in rows for child in row) for rows in zip(*(z.rows for z in zones), strict=True)
    ]
    for zone in zones:
        placement.align_rows(zone, heights)


def _stretch(node: Node, w: int, h: int) -> None:
    """Make a box larger; its children stay in the middle."""
    for child in node.children:
        child.move((w - node.width) // 2, 0)
    node.width, node.height = w, max(node.height, h)


def _band(node: Node) -> int:
    return _BAND_OF_KIND.get(node.box.kind, _SERVICES)
