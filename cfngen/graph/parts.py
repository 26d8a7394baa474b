"""Parts of a picture: what each module of this room draws, put together to the picture of a view."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from cfngen.graph.picture import Arrow, ArrowKind, Box


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
    """Return boxes with those that contain them, parents before children.

    Args:
        all_boxes: these and all others, by their ids.
    """
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
