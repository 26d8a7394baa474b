"""The ways of arrows: the cheapest from box to box over free points of the grid, with few bends and crossings.

Arrows are routed one after another (Lee's algorithm with the bounds of A*). Where all points are taken, an arrow runs
along another one at a high price: then the picture is laid out again with more room.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.graph.layout.boxes import Placed
from cfngen.graph.layout.edges import Edge
from cfngen.graph.layout.grid import BLOCKED, FREE, HORIZONTAL, VERTICAL, Grid

_STEP = 1.0
_BEND = 4.0
_CROSSING = 4.0
_OFF_CENTRE = 7.0  # in a corner
_CONFLICT = 150.0


# By point beside a box, and direction there: the point on the box's border, and the price of this port.
Ports = dict[tuple[int, int], tuple[int, float]]


@dataclass
class Branch:
    """The way from a leaf of an edge to its root, or to a branch that was there already.

    Attributes:
        leaf: id of the box where it begins.
        joins: whether it ends at another branch.
    """

    leaf: str
    points: list[int]
    joins: bool


@dataclass
class Route:
    """All branches of an edge.

    Attributes:
        branches: one for each of its leaves.
        conflicts: at how many points it runs along another edge.
    """

    edge: Edge
    branches: list[Branch] = field(default_factory=list)
    conflicts: int = 0

    def points(self) -> set[int]:
        """Return all points of all branches."""
        return {point for branch in self.branches for point in branch.points}


class Router:
    """Routes edges on a grid."""

    def __init__(self, grid: Grid, boxes: Mapping[str, Placed]) -> None:
        self._grid = grid
        self._boxes = boxes
        self._inside = {name: {child.box.id for child in placed.walk()} for name, placed in boxes.items()}

    def route(self, number: int, edge: Edge) -> Route:
        """Route an edge, and mark its points as taken by its number."""
        route = Route(edge)
        middle = self._middle(edge.root)
        for leaf in sorted(
            edge.leaves, key=lambda name: (_distance(middle, self._middle(name)), edge.leaves.index(name))
        ):
            starts = self._ends(leaf, edge.root, number)
            goals = self._ends(edge.root, leaf, number)
            tree: set[int] = set()
            for branch in route.branches:  # not beside a box, where the head of an arrow is
                tree.update(branch.points[2 : -1 if branch.joins else -2])
            points, cost = self._search(number, starts, {} if tree else goals, tree)
            if cost > _CONFLICT and tree:
                straight = self._search(number, starts, goals, set())
                if straight[1] < cost:
                    tree = set()
                    points = straight[0]
            route.conflicts += self._take(number, points)
            route.branches.append(Branch(leaf, points, joins=bool(tree)))
        return route

    def _middle(self, name: str) -> tuple[float, float]:
        placed = self._boxes[name]
        return placed.x + placed.width / 2, placed.y + placed.height / 2

    def _ends(self, name: str, other: str, number: int) -> Ports:
        """Return by point beside a box, and direction, the point on its border and the price of this port."""
        ends = {}
        owner = self._grid.owner
        for beside, port, direction, off_centre in self._grid.ports(self._boxes[name], other in self._inside[name]):
            if owner[direction][beside] == BLOCKED:
                continue
            price = _OFF_CENTRE * off_centre**2
            if owner[direction][beside] not in (FREE, number):
                price += _CONFLICT
            ends[beside, direction] = port, price
        return ends

    def _search(self, number: int, starts: Ports, goals: Ports, tree: set[int]) -> tuple[list[int], float]:
        """Return the cheapest way from a start to a goal or to a tree, with the points on borders, and its price."""
        grid, owners, tolls = self._grid, self._grid.owner, self._grid.toll
        width = grid.width
        ends = [grid.place(point) for point in (tree or {point for point, _ in goals})]
        if not ends or not starts:
            return [], 10 * _CONFLICT
        bounds_x = _bounds(grid.width, [x for x, _ in ends], HORIZONTAL)
        bounds_y = _bounds(grid.height, [y for _, y in ends], VERTICAL)

        # A state is a point with the direction in which it was reached: 2 * point + direction. Those from `arrived` on
        # stand for the end of the way, whichever it is.
        arrived = 2 * grid.width * grid.height
        costs = [math.inf] * (arrived + 2)
        before: dict[int, int] = {}
        # In the order of the least that a way by a state may cost; of equal ones, what has come farther is first.
        queue: list[tuple[float, float, int]] = []
        for (point, direction), (_, price) in starts.items():
            costs[2 * point + direction] = price
            bound = bounds_x[direction][point % width] + bounds_y[direction][point // width]
            queue.append((price + bound, -price, 2 * point + direction))
        heapq.heapify(queue)
        while queue:
            _, negative_cost, state = heapq.heappop(queue)
            cost = -negative_cost
            if state >= arrived:
                return self._way(before, starts, goals, tree, state), cost
            if cost > costs[state]:
                continue
            point, direction = state >> 1, state & 1
            if point in tree:
                before[arrived + direction] = state
                heapq.heappush(queue, (cost, -cost, arrived + direction))
                continue
            here = owners[HORIZONTAL][point], owners[VERTICAL][point]
            row, column = divmod(point, width)
            for onward in (HORIZONTAL, VERTICAL):
                turn = 0.0
                if onward != direction:
                    if here[onward] == BLOCKED:
                        continue
                    turn = _BEND
                    if here[onward] not in (FREE, number) or here[direction] not in (FREE, number):
                        turn += _CONFLICT
                goal = goals.get((point, onward))
                if goal is not None and cost + turn + goal[1] < costs[arrived + onward]:
                    price = costs[arrived + onward] = cost + turn + goal[1]
                    before[arrived + onward] = state
                    heapq.heappush(queue, (price, -price, arrived + onward))
                owner, across = owners[onward], owners[1 - onward]
                for step in (-1, 1):
                    following = point + (step if onward == HORIZONTAL else step * width)
                    taken = owner[following]
                    if taken == BLOCKED:
                        continue
                    price = cost + turn + _STEP + tolls[onward][following]
                    if taken not in (FREE, number):
                        price += _CONFLICT
                    if across[following] >= 0 and across[following] != number:
                        price += _CROSSING
                    next_state = 2 * following + onward
                    if price < costs[next_state]:
                        costs[next_state] = price
                        before[next_state] = state
                        if onward == HORIZONTAL:
                            bound = bounds_x[HORIZONTAL][column + step] + bounds_y[HORIZONTAL][row]
                        else:
                            bound = bounds_x[VERTICAL][column] + bounds_y[VERTICAL][row + step]
                        heapq.heappush(queue, (price + bound, -price, next_state))
        return [], 10 * _CONFLICT

    @staticmethod
    def _way(before: Mapping[int, int], starts: Ports, goals: Ports, tree: set[int], last: int) -> list[int]:
        states = []
        state = before[last]
        while state in before:
            states.append(state)
            state = before[state]
        states.append(state)
        states.reverse()
        points = [state >> 1 for state in states]
        points.insert(0, starts[points[0], states[0] & 1][0])
        if points[-1] not in tree:
            points.append(goals[points[-1], last & 1][0])
        return points

    def _take(self, number: int, points: list[int]) -> int:
        """Mark the points of a way as taken; return how many of them another edge has already."""
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


def _bounds(count: int, ends: list[int], along: int) -> tuple[list[float], list[float]]:
    """Return the least that each column or row costs on the way to those between the first and the last end.

    Args:
        count: how many columns or rows there are.
        ends: those where a way may end.
        along: the direction that leads from one to the next; whoever goes in the other one must turn first.

    Returns:
        the prices by column or row, for a way that goes across, and for one that goes up or down.
    """
    low, high = min(ends), max(ends)
    straight = [_STEP * max(low - index, 0, index - high) for index in range(count)]
    turned = [price + _BEND if price else 0 for price in straight]
    return (straight, turned) if along == HORIZONTAL else (turned, straight)


def _distance(one: tuple[float, float], other: tuple[float, float]) -> float:
    return abs(one[0] - other[0]) + abs(one[1] - other[1])
