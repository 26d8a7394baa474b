"""What a picture of a cluster shows: boxes, one within another, and arrows between them; not where they are drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

BoxKind = Literal[
    "account", "region", "vpc", "zone", "subnet", "instances", "load-balancer", "gateway", "endpoint", "security-group",
    "source", "role", "permission", "bucket", "secret", "key", "dns", "volume", "service",
]  # fmt: skip
ArrowKind = Literal["traffic", "route", "permission", "use"]
Change = Literal["added", "changed", "replaced", "removed"]
Difference = Literal["unknown", "same", "added", "removed"]
"""How a box or an arrow differs from the picture of what is deployed; unknown if the two were not compared."""


@dataclass(frozen=True)
class Box:
    """A box of the picture.

    Attributes:
        id: unique in the picture and stable: a logical id, or for what no single resource stands for (a zone, the
            internet) a name with a colon, e.g. `zone:us-west-2a`.
        kind: what it stands for; it decides symbol and colour.
        title: its first line, e.g. the name of a node group.
        lines: further lines below the title, e.g. address ranges or instance types.
        parent: id of the box that contains it; None if it is at the top.
        logical_ids: logical ids of the resources that it stands for.
        difference: how it differs from the picture of what is deployed.
    """

    id: str
    kind: BoxKind
    title: str
    lines: tuple[str, ...] = ()
    parent: str | None = None
    logical_ids: tuple[str, ...] = ()
    difference: Difference = "unknown"


@dataclass(frozen=True)
class Arrow:
    """An arrow from one box to another.

    Attributes:
        source: id of the box where it begins.
        target: id of the box where it ends.
        label: short text at the arrow, e.g. `TCP 6443`; may be empty.
        logical_ids: logical ids of the resources that it stands for, e.g. rules of security groups.
        difference: how it differs from the picture of what is deployed.
    """

    source: str
    target: str
    kind: ArrowKind
    label: str = ""
    logical_ids: tuple[str, ...] = ()
    difference: Difference = "unknown"


@dataclass(frozen=True)
class Picture:
    """A picture of a cluster.

    Attributes:
        title: what it shows, e.g. `kubernetes in us-west-2`.
        boxes: the boxes; parents come before their children, and siblings in the order in which they are drawn.
        arrows: the arrows, in a stable order.
        snippets: by logical id, the resource in its template, as JSON text; for what a click shows.
        changes: by logical id, what a deployment does to the resource; empty if the picture shows no deployment.
        notes: sentences below the picture about all of it, e.g. in how many updates its changes are made.
    """

    title: str
    boxes: tuple[Box, ...]
    arrows: tuple[Arrow, ...] = ()
    snippets: Mapping[str, str] = field(default_factory=dict)
    changes: Mapping[str, Change] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def children(self, parent: str | None) -> Iterator[Box]:
        """Yield the boxes that a box contains itself; for None, the boxes at the top."""
        return (box for box in self.boxes if box.parent == parent)


@dataclass
class Part:
    """Boxes and arrows of one subject.

    Attributes:
        boxes: the boxes, by their ids.
        arrows: the arrows; those that are alike are one.
    """

    boxes: dict[str, Box] = field(default_factory=dict)
    arrows: dict[tuple[str, str, ArrowKind, str], Arrow] = field(default_factory=dict)

    def box(self, box: Box) -> Box:
        """Add a box, or the logical ids and further lines of a box that is there already; return the box."""
        present = self.boxes.get(box.id)
        if present:
            box = replace(
                present,
                lines=_unique(present.lines + box.lines),
                logical_ids=_unique(present.logical_ids + box.logical_ids),
            )
        self.boxes[box.id] = box
        return box

    def arrow(
        self, source: str, target: str, kind: ArrowKind, label: str = "", logical_ids: Iterable[str] = ()
    ) -> None:
        """Add an arrow, or the logical ids of an arrow with the same ends and label that is there already."""
        key = (source, target, kind, label)
        present = self.arrows[key].logical_ids if key in self.arrows else ()
        self.arrows[key] = Arrow(source, target, kind, label, _unique(present + tuple(logical_ids)))

    def add(self, part: Part) -> None:
        """Add the boxes and arrows of another part."""
        for box in part.boxes.values():
            self.box(box)
        for arrow in part.arrows.values():
            self.arrow(arrow.source, arrow.target, arrow.kind, arrow.label, arrow.logical_ids)


def _unique(texts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))


def with_containers(boxes: Mapping[str, Box], all_boxes: Mapping[str, Box]) -> tuple[Box, ...]:
    """Return boxes with those of `all_boxes` that contain them, parents before children."""
    drawn = dict(boxes)
    for box in boxes.values():
        parent = box.parent
        while parent is not None and parent not in drawn:
            drawn[parent] = all_boxes[parent]
            parent = drawn[parent].parent
    # In the order of all boxes, so that every view has the same order.
    ordered = [box for box_id, box in all_boxes.items() if box_id in drawn]
    return tuple(_with_descendants(ordered, None))


def _with_descendants(boxes: Sequence[Box], parent: str | None) -> Iterator[Box]:
    """Yield the boxes within a box, each followed by the boxes within it."""
    for box in boxes:
        if box.parent == parent:
            yield box
            yield from _with_descendants(boxes, box.id)
