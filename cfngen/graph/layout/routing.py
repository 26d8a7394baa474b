"""The routes of edges: orthogonal, from port to port over the tracks of a grid, with few bends and crossings.

Edges are routed one after another, each on its cheapest path (Lee's algorithm with the bounds of A*): bends, crossings
and borders have a price. Where all points are taken, an edge runs along another one at a high price: then the picture
is laid out again with more room. A point may carry one edge across and another one up and down, which cross there. No
edge enters a node without children, unless it ends there, covers a title, or runs along a border.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from cfngen.graph.layout.edges import Edge
from cfngen.graph.layout.nodes import TRACK, Node, Rectangle
from cfngen.graph.picture import BoxKind

HORIZONTAL, VERTICAL = 0, 1
FREE, BLOCKED = -1, -2
_APART = 4  # pixels between an arrow and a title
# The price of a border: an arrow may well pass through a VPC, but not through instances that it has nothing to do with.
_TOLLS: Mapping[BoxKind, float] = {"account": 1, "region": 1, "vpc": 2, "zone": 4}
_TOLL = 30.0

# Prices.
_STEP = 1.0
_BEND = 4.0
_CROSSING = 4.0
_OFF_CENTRE = 7.0  # in a corner
_NEAR_PORTS = {1: 9.0, 2: 5.0}  # by the tracks to another arrow: labels would touch
_CONFLICT = 150.0


class Port(NamedTuple):
    """Where an arrow may leave or reach a box.

    Attributes:
        direction: HORIZONTAL or VERTICAL, from one to the other.
        off_centre: how far it is from the middle of the side: 0 there, 1 in a corner.
    """

    beside: int
    on_border: int
    direction: int
    off_centre: float


class _PricedPort(NamedTuple):
    on_border: int
    price: float


# By the point beside a box, and the direction there.
_Ports = dict[tuple[int, int], _PricedPort]


class Grid:
    """Points at the crossings of tracks, numbered row by row: one more is the point to the right, `width` more below.

    Attributes:
        owner: by direction and point, the number of the edge that uses it, or FREE, or BLOCKED.
        toll: by direction and point, what entering it costs in addition: at borders of nodes with children.
    """

    def __init__(self, w: int, h: int, nodes: Iterable[Node]) -> None:
        self.width, self.height = w, h
        self.owner = ([FREE] * (w * h), [FREE] * (w * h))
        self.toll = ([0.0] * (w * h), [0.0] * (w * h))
        for node in nodes:
            if node.children:
                self._border(node)
                self.block(node.header_area().enlarged(_APART))
            else:
                for y in range(node.y, node.y + node.height + 1):
                    for x in range(node.x, node.x + node.width + 1):
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

    def ports(self, node: Node, inside: bool) -> Iterator[Port]:
        """Yield where an arrow may leave or reach a box.

        Args:
            inside: whether the arrow comes from within the box.
        """
        away = -1 if inside else 1
        sides = (
            (VERTICAL, 0, -away, node.width, node.x, node.y),
            (VERTICAL, 0, away, node.width, node.x, node.y + node.height),
            (HORIZONTAL, -away, 0, node.height, node.x, node.y),
            (HORIZONTAL, away, 0, node.height, node.x + node.width, node.y),
        )
        for direction, dx, dy, length, x, y in sides:
            for offset in range(1, length):
                at_x, at_y = (x + offset, y) if direction == VERTICAL else (x, y + offset)
                beside = self.point(at_x + dx, at_y + dy if direction == VERTICAL else at_y)
                yield Port(beside, self.point(at_x, at_y), direction, abs(2 * offset / length - 1))

    def _border(self, node: Node) -> None:
        toll = _TOLLS.get(node.box.kind, _TOLL)
        right, bottom = node.x + node.width, node.y + node.height
        for x in range(node.x, right + 1):
            for y in (node.y, bottom):
                self.owner[HORIZONTAL][self.point(x, y)] = BLOCKED
                self.toll[VERTICAL][self.point(x, y)] += toll
        for y in range(node.y, bottom + 1):
            for x in (node.x, right):
                self.owner[VERTICAL][self.point(x, y)] = BLOCKED
                self.toll[HORIZONTAL][self.point(x, y)] += toll
        for x in (node.x, right):
            for y in (node.y, bottom):
                self._set(x, y)

    def _set(self, x: int, y: int) -> None:
        for owner in self.owner:
            owner[self.point(x, y)] = BLOCKED


@dataclass
class Branch:
    """The path from a leaf of an edge to its root, or to a branch that was there already.

    Attributes:
        leaf: id of the box where it begins.
        points: from the border of the leaf on, as the grid numbers them; none if there is no path.
        joins: whether it ends at another branch.
    """

    leaf: str
    points: list[int]
    joins: bool

    def joinable_points(self) -> list[int]:
        """Return the points where another branch may join: none on or beside a box, where the head of an arrow is."""
        return self.points[2 : -1 if self.joins else -2]


@dataclass
class Route:
    """The lines of an edge on the grid: a tree, where several arrows lead to one node or come from it.

    Attributes:
        branches: a line for each leaf, from the leaf to the root or to an earlier branch.
        conflicts: at how many points it runs along another edge.
    """

    edge: Edge
    branches: list[Branch] = field(default_factory=list)
    conflicts: int = 0

    def points(self) -> set[int]:
        """Return the numbers of the grid points on all branches."""
        return {point for branch in self.branches for point in branch.points}


class Router:
    """Routes edges on a grid."""

    def __init__(self, grid: Grid, nodes: Mapping[str, Node]) -> None:
        self._grid = grid
        self._nodes = nodes
        self._inside = {name: {child.box.id for child in node.walk()} for name, node in nodes.items()}

    def route(self, number: int, edge: Edge) -> Route:
        """Route an edge, and mark its points as taken by its number.

        Args:
            number: stands for the edge in the grid; no other edge has it.
        """
        route = Route(edge)
        middle = self._middle(edge.root)
        for leaf in sorted(
            edge.leaves, key=lambda name: (_distance(middle, self._middle(name)), edge.leaves.index(name))
        ):
            starts = self._ports(leaf, edge.root, number)
            goals = self._ports(edge.root, leaf, number)
            joinable_points = {point for branch in route.branches for point in branch.joinable_points()}
            joins = bool(joinable_points)
            points, cost = _Search(self._grid, number, starts, {} if joins else goals, joinable_points).cheapest()
            # A branch that reaches the trunk only along another edge may have a path of its own to the root.
            if joins and cost > _CONFLICT:
                direct_points, direct_cost = _Search(self._grid, number, starts, goals, set()).cheapest()
                if direct_cost < cost:
                    points, joins = direct_points, False
            route.conflicts += self._take(number, points)
            route.branches.append(Branch(leaf, points, joins))
        return route

    def _middle(self, name: str) -> tuple[float, float]:
        node = self._nodes[name]
        return node.x + node.width / 2, node.y + node.height / 2

    def _ports(self, name: str, other: str, number: int) -> _Ports:
        """Return the ports of a box for an edge between it and another box."""
        ports = {}
        for port in self._grid.ports(self._nodes[name], other in self._inside[name]):
            owner = self._grid.owner[port.direction][port.beside]
            if owner == BLOCKED:
                continue
            price = _OFF_CENTRE * port.off_centre**2
            if owner not in (FREE, number):
                price += _CONFLICT
            step = self._grid.width if port.direction == HORIZONTAL else 1
            owners = self._grid.owner[port.direction]
            for tracks, near_price in _NEAR_PORTS.items():
                if {owners[port.beside - tracks * step], owners[port.beside + tracks * step]} - {FREE, BLOCKED, number}:
                    price += near_price
            ports[port.beside, port.direction] = _PricedPort(port.on_border, price)
        return ports

    def _take(self, number: int, points: list[int]) -> int:
        """Mark the points of a path as taken; return how many of them another edge has already."""
        conflicts = 0
        for index, point in enumerate(points):
            neighbours = points[max(index - 1, 0) : index] + points[index + 1 : index + 2]
            for direction in {HORIZONTAL if abs(point - other) == 1 else VERTICAL for other in neighbours}:
                owner = self._grid.owner[direction]
                if owner[point] == FREE:
                    owner[point] = number
                elif owner[point] >= 0 and owner[point] != number:
                    conflicts += 1
        return conflicts


class _Search:
    """The search for the cheapest path from a start to a goal, or to a point of branches that are there already.

    A state is a point with the direction in which it was reached: 2 * point + direction. The two from `_arrived` on
    stand for the end of the path, wherever it is, by the direction in which it was reached.
    """

    def __init__(self, grid: Grid, number: int, starts: _Ports, goals: _Ports, joinable_points: set[int]) -> None:
        self._grid, self._number = grid, number
        self._starts, self._goals, self._joinable_points = starts, goals, joinable_points
        ends = [grid.place(point) for point in (joinable_points or {point for point, _ in goals})]
        self._bounds_x = _bounds(grid.width, [x for x, _ in ends], HORIZONTAL)
        self._bounds_y = _bounds(grid.height, [y for _, y in ends], VERTICAL)
        self._arrived = 2 * grid.width * grid.height
        self._costs = [math.inf] * (self._arrived + 2)
        self._before: dict[int, int] = {}
        # Least possible cost of a path by a state, its negative cost so far, and the state: of paths that may cost the
        # same, the one that has come farther is first.
        self._queue: list[tuple[float, float, int]] = []

    def cheapest(self) -> tuple[list[int], float]:
        """Return the points of the path, with those on borders, and its cost; no points if there is no path."""
        if not (self._joinable_points or self._goals):
            return [], 10 * _CONFLICT
        for (point, direction), port in self._starts.items():
            self._push(2 * point + direction, port.price)
        while self._queue:
            _, negative_cost, state = heapq.heappop(self._queue)
            cost = -negative_cost
            if state >= self._arrived:
                return self._path(state), cost
            if cost > self._costs[state]:
                continue
            if state >> 1 in self._joinable_points:
                self._before[self._arrived + (state & 1)] = state
                heapq.heappush(self._queue, (cost, -cost, self._arrived + (state & 1)))
            else:
                self._expand(state, cost)
        return [], 10 * _CONFLICT

    def _push(self, state: int, cost: float) -> None:
        self._costs[state] = cost
        point, direction = state >> 1, state & 1
        row, column = divmod(point, self._grid.width)
        bound = self._bounds_x[direction][column] + self._bounds_y[direction][row]
        heapq.heappush(self._queue, (cost + bound, -cost, state))

    def _expand(self, state: int, cost: float) -> None:
        """Go on from a state in each direction: to the goals, and to the next points."""
        point, direction = state >> 1, state & 1
        owners = self._grid.owner
        for onward in (HORIZONTAL, VERTICAL):
            price = cost
            if onward != direction:
                if owners[onward][point] == BLOCKED:
                    continue
                mine = (FREE, self._number)
                price += _BEND
                price += _CONFLICT if owners[onward][point] not in mine or owners[direction][point] not in mine else 0
            goal = self._goals.get((point, onward))
            if goal is not None and price + goal.price < self._costs[self._arrived + onward]:
                arrival_price = self._costs[self._arrived + onward] = price + goal.price
                self._before[self._arrived + onward] = state
                heapq.heappush(self._queue, (arrival_price, -arrival_price, self._arrived + onward))
            self._advance(state, onward, price)

    def _advance(self, state: int, onward: int, cost: float) -> None:
        """Go on from a state to the points before and behind it."""
        owner, across, toll = self._grid.owner[onward], self._grid.owner[1 - onward], self._grid.toll[onward]
        step = 1 if onward == HORIZONTAL else self._grid.width
        for following in ((state >> 1) - step, (state >> 1) + step):
            if owner[following] == BLOCKED:
                continue
            price = cost + _STEP + toll[following]
            if owner[following] not in (FREE, self._number):
                price += _CONFLICT
            if across[following] >= 0 and across[following] != self._number:
                price += _CROSSING
            next_state = 2 * following + onward
            if price < self._costs[next_state]:
                self._before[next_state] = state
                self._push(next_state, price)

    def _path(self, last: int) -> list[int]:
        """Return the points by which a state at the end was reached, from border to border."""
        states = [self._before[last]]
        while states[-1] in self._before:
            states.append(self._before[states[-1]])
        states.reverse()
        points = [state >> 1 for state in states]
        points.insert(0, self._starts[points[0], states[0] & 1].on_border)
        if points[-1] not in self._joinable_points:
            points.append(self._goals[points[-1], last & 1].on_border)
        return points


def _bounds(count: int, ends: list[int], along: int) -> tuple[list[float], list[float]]:
    """Return the least that the rest of a path can cost at each column or row: the lower bound that A* needs.

    The path ends in a column or row between the first and the last end.

    Args:
        count: how many columns or rows there are.
        ends: columns or rows where a path may end.
        along: the direction from one column or row to the next; a path that runs in the other one has to bend first.

    Returns:
        the costs by column or row, for a path that runs horizontally there, and for one that runs vertically.
    """
    low, high = min(ends, default=0), max(ends, default=0)
    straight = [_STEP * max(low - index, 0, index - high) for index in range(count)]
    turned = [price + _BEND if price else 0 for price in straight]
    return (straight, turned) if along == HORIZONTAL else (turned, straight)


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
