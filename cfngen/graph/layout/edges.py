"""Which arrows are drawn as one: arrows between the same boxes, and arrows with one label that meet in a box.

A cluster's security groups alone have dozens of arrows. Those between the same two boxes become one, with a label that
lists theirs; of the rest, those with the same kind and label that leave one box, or reach one, share a trunk like the
branches of a tree. A trunk, followed away from its root, may lead to any of its ends, so one label serves all of it.

An Arrow is what the picture says; a Link is all arrows of one kind between two boxes; an Edge is the links that are
drawn as one tree, often a single one.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass

from cfngen.graph.changes import change_of, together
from cfngen.graph.picture import Arrow, ArrowKind, Change, Picture

_MANY_LABELS = 6  # a label that lists more says how many more there are


@dataclass(frozen=True)
class Link:
    """All arrows of one kind between the same two boxes.

    Attributes:
        label: their labels as one text.
        mutual: whether there are the same arrows in the other direction as well.
        change: what a deployment does to them, if it does the same to all.
    """

    source: str
    target: str
    kind: ArrowKind
    label: str
    mutual: bool
    change: Change | None
    arrows: tuple[Arrow, ...]


@dataclass(frozen=True)
class Edge:
    """Links that are drawn as one tree.

    Attributes:
        root: id of the box that all of them share.
        leaves: ids of the boxes at the other ends.
        outward: whether the arrows point from the root to the leaves.
        links: the links, in the order of the leaves.
    """

    root: str
    leaves: tuple[str, ...]
    outward: bool
    links: tuple[Link, ...]

    @property
    def kind(self) -> ArrowKind:
        """Kind of all its arrows."""
        return self.links[0].kind

    @property
    def label(self) -> str:
        """Label of all its arrows."""
        return self.links[0].label

    @property
    def mutual(self) -> bool:
        """Whether its arrows point in both directions."""
        return self.links[0].mutual

    @property
    def change(self) -> Change | None:
        """What a deployment does to all its arrows."""
        return self.links[0].change

    @property
    def arrows(self) -> tuple[Arrow, ...]:
        """All its arrows."""
        return tuple(arrow for link in self.links for arrow in link.arrows)


def links(picture: Picture) -> list[Link]:
    """Return the links between different boxes of a picture, in the order of their first arrows."""
    bundles: dict[tuple[str, str, ArrowKind], list[Arrow]] = defaultdict(list)
    for arrow in picture.arrows:
        if arrow.source != arrow.target:
            bundles[arrow.source, arrow.target, arrow.kind].append(arrow)
    labels = {ends: joined_labels(arrows) for ends, arrows in bundles.items()}
    changes = {ends: arrows_change(arrows, picture) for ends, arrows in bundles.items()}
    merged = []
    done = set()
    for ends, arrows in bundles.items():
        source, target, kind = ends
        back = (target, source, kind)
        if back in done and labels[back] == labels[ends] and changes[back] == changes[ends]:
            continue
        mutual = back in labels and labels[back] == labels[ends] and changes[back] == changes[ends]
        everything = (*arrows, *(bundles[back] if mutual else ()))
        merged.append(Link(source, target, kind, labels[ends], mutual, changes[ends], everything))
        done.add(ends)
    return merged


def edges_of(picture: Picture) -> list[Edge]:
    """Return the trees as which the arrows between different boxes of a picture are drawn."""
    alike: dict[tuple[object, ...], list[Link]] = defaultdict(list)
    for link in links(picture):
        alike[link.kind, link.label, link.mutual, link.change].append(link)
    edges = []
    for group in alike.values():
        rest = group
        while rest:
            edges.append(_largest_star(rest))
            rest = [link for link in rest if link not in edges[-1].links]
    return edges


def joined_labels(arrows: list[Arrow]) -> str:
    """Return the labels of arrows as one text: `TCP 80`, `TCP 443` are `TCP 80, 443`."""
    labels = list(dict.fromkeys(arrow.label for arrow in arrows if arrow.label))
    more = f" and {len(labels) - _MANY_LABELS + 1} more" if len(labels) > _MANY_LABELS else ""
    shown = labels[: _MANY_LABELS - 1] if more else labels
    by_word: dict[str, list[str]] = defaultdict(list)
    for label in shown:
        word, space, rest = label.partition(" ")
        by_word[word if space else ""].append(rest if space else label)
    return ", ".join(f"{word} {', '.join(rest)}".strip() for word, rest in by_word.items()) + more


def arrows_change(arrows: list[Arrow], picture: Picture) -> Change | None:
    """Return what a deployment does to arrows that are drawn as one."""
    return together(change_of(picture, arrow) for arrow in arrows if arrow.logical_ids)


def _largest_star(group: list[Link]) -> Edge:
    """Return the edge around the box that most of the links share."""
    out = Counter(link.source for link in group)
    into = Counter(link.target for link in group)
    (source, leaving), (target, arriving) = out.most_common(1)[0], into.most_common(1)[0]
    if leaving > arriving:
        star = tuple(link for link in group if link.source == source)
        return Edge(source, tuple(link.target for link in star), outward=True, links=star)
    star = tuple(link for link in group if link.target == target)
    return Edge(target, tuple(link.source for link in star), outward=False, links=star)
