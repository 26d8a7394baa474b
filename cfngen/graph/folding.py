"""Node groups that are alike, as one box in each subnet: twenty groups in three zones are no sixty boxes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

from cfngen.graph.changes import change_of
from cfngen.graph.instances import NODE_GROUP
from cfngen.graph.picture import Box, Picture


def fold_node_groups(picture: Picture) -> Picture:
    """Return a picture in which node groups with the same subnets, lines and changes share their boxes.

    A group that an arrow reaches, or that is unlike all others, keeps its boxes.
    """
    ends = {end for arrow in picture.arrows for end in (arrow.source, arrow.target)}
    boxes_by_title: dict[str, list[Box]] = defaultdict(list)
    for box in picture.boxes:
        if box.kind == "instances" and box.title.startswith(NODE_GROUP):
            boxes_by_title[box.title].append(box)
    alike: dict[tuple[object, ...], list[list[Box]]] = defaultdict(list)
    for boxes in boxes_by_title.values():
        if not any(box.id in ends for box in boxes):
            alike[tuple((box.parent, box.lines, change_of(picture, box)) for box in boxes)].append(boxes)
    folded: dict[str, Box | None] = {}
    for groups in alike.values():
        if len(groups) == 1:
            continue
        names = ", ".join(boxes[0].title.removeprefix(NODE_GROUP) for boxes in groups)
        for same_place in zip(*groups, strict=True):
            first, *others = same_place
            logical_ids = tuple(dict.fromkeys(name for box in same_place for name in box.logical_ids))
            title = f"{len(groups)} node groups"
            folded[first.id] = replace(first, title=title, lines=(names, *first.lines), logical_ids=logical_ids)
            folded.update(dict.fromkeys((box.id for box in others), None))
    shown = (folded.get(box.id, box) for box in picture.boxes)
    return replace(picture, boxes=tuple(box for box in shown if box))
