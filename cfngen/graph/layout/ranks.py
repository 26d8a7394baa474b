"""Nodes in ranks, so that edges lead from one rank to the next and few of them cross: Sugiyama's layered method.

An order with few edges that point backwards breaks the cycles (the heuristic of Eades, Lin and Smyth); a node's rank
is the length of the longest path to it; within ranks, which stand as columns, nodes are ordered by the barycentres of
those that they are linked with.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from cfngen.graph.layout.nodes import Node

_SWEEPS = 6


def ranks(nodes: Sequence[Node], pairs: Iterable[tuple[str, str]], widest: int, aspect: float, *,
          column_gap: int, node_gap: int) -> list[list[Node]]:  # fmt: skip
    """Return nodes as columns, each from top to bottom.

    Args:
        pairs: ids of nodes from and to which arrows lead.
        widest: tracks that the columns may take together.
        aspect: width by height that is wanted.
        column_gap: tracks between columns.
        node_gap: tracks between the nodes of a column.
    """
    by_id = {node.box.id: node for node in nodes}
    edges = sorted({(source, target) for source, target in pairs if source != target})
    assigned = _assigned_ranks(list(by_id), edges)
    best: list[list[str]] = []
    lowest_score = math.inf
    for candidate in _column_candidates(assigned, edges):
        ordered = _ordered_by_barycentre(candidate, edges)
        width = sum(max(by_id[name].width for name in column) for column in ordered) + column_gap * (len(ordered) - 1)
        height = max(sum(by_id[name].height + node_gap for name in column) for column in ordered)
        score = abs(math.log(width / height / aspect)) + (10 * width / widest if width > widest else 0)
        column_of = {name: index for index, column in enumerate(ordered) for name in column}
        score += 1.5 * sum(column_of[source] == column_of[target] for source, target in edges) / max(len(edges), 1)
        if score < lowest_score:
            best, lowest_score = ordered, score
    return [[by_id[name] for name in column] for column in best]


def _assigned_ranks(names: list[str], edges: list[tuple[str, str]]) -> list[list[str]]:
    """Return layers such that arrows, but for those that point backwards, lead to a later layer."""
    position = {name: index for index, name in enumerate(_acyclic_order(names, edges))}
    layer = dict.fromkeys(names, 0)
    for name in sorted(names, key=position.__getitem__):
        for source, target in edges:
            if source == name and position[target] > position[source]:
                layer[target] = max(layer[target], layer[name] + 1)
    return [[name for name in names if layer[name] == index] for index in range(max(layer.values(), default=0) + 1)]


def _acyclic_order(names: list[str], edges: list[tuple[str, str]]) -> list[str]:
    """Return names in an order in which few arrows point backwards (Eades, Lin and Smyth)."""
    rest = list(names)
    first: list[str] = []
    last: list[str] = []
    while rest:
        inside = set(rest)
        out = dict.fromkeys(rest, 0)
        into = dict.fromkeys(rest, 0)
        for source, target in edges:
            if source in inside and target in inside:
                out[source] += 1
                into[target] += 1
        sinks = [name for name in rest if not out[name] and into[name]]
        sources = [name for name in rest if not into[name]]
        if sinks:
            last.insert(0, sinks[0])
            rest.remove(sinks[0])
        else:
            following = sources[0] if sources else max(rest, key=lambda name: out[name] - into[name])
            first.append(following)
            rest.remove(following)
    return first + last


def _column_candidates(layers: list[list[str]], edges: list[tuple[str, str]]) -> Iterable[list[list[str]]]:
    """Yield the layers as columns: as they are, joined into fewer, and with a long one on both sides of the other."""
    yield layers
    for count in range(2, len(layers)):
        size = math.ceil(sum(map(len, layers)) / count)
        joined: list[list[str]] = [[]]
        for layer in layers:
            if joined[-1] and len(joined[-1]) + len(layer) > size * 1.25 and len(joined) < count:
                joined.append([])
            joined[-1].extend(layer)
        yield joined
    if len(layers) == 2:
        few, many = sorted(layers, key=len)
        left, right = _divided(many, few, edges)
        if left and right:
            yield [left, few, right]


def _divided(many: list[str], few: list[str], edges: list[tuple[str, str]]) -> tuple[list[str], list[str]]:
    """Return a layer as two of similar length: what is linked with the same nodes of the other layer stays together."""
    rank = {name: index for index, name in enumerate(few)}
    linked = {name: [rank[other] for edge in edges if name in edge for other in edge if other != name] for name in many}
    groups: dict[tuple[int, ...], list[str]] = {}
    for name in many:
        groups.setdefault(tuple(sorted(set(linked[name]))), []).append(name)
    left: list[str] = []
    right: list[str] = []
    for group in sorted(groups.values(), key=len, reverse=True):
        shorter = left if len(left) < len(right) else right
        shorter.extend(group)
    return [name for name in many if name in left], [name for name in many if name in right]


def _ordered_by_barycentre(layers: list[list[str]], edges: list[tuple[str, str]]) -> list[list[str]]:
    """Return columns in which linked nodes are at similar heights."""
    neighbours: dict[str, list[str]] = {name: [] for column in layers for name in column}
    for source, target in edges:
        neighbours[source].append(target)
        neighbours[target].append(source)
    ordered = [list(column) for column in layers]
    height = {name: (index + 0.5) / len(column) for column in ordered for index, name in enumerate(column)}
    for sweep in range(_SWEEPS):
        sequence = ordered if sweep % 2 == 0 else ordered[::-1]
        for column in sequence:
            mean_heights = {
                name: sum(height[other] for other in neighbours[name]) / len(neighbours[name])
                if neighbours[name]
                else height[name]
                for name in column
            }
            column.sort(key=mean_heights.__getitem__)
            for index, name in enumerate(column):
                height[name] = (index + 0.5) / len(column)
    return ordered
