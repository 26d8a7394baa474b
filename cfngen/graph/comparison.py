"""Two pictures of a cluster as one: as it is deployed, and as it will be; so that what is removed is seen as well.

A resource may stand for more than one part of a picture: a role has a box for each service, and arrows to what it may
use. Which of them a change of the role is about is only seen if both pictures are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TypeVar

from cfngen.graph.picture import Arrow, Box, Change, Picture

Part = TypeVar("Part", Box, Arrow)


def compare(before: Picture, after: Picture) -> Picture:
    """Return a picture with what a deployment removes, in which what stays as it is has no colour."""
    changes = {**before.changes, **after.changes}
    old_boxes = {box.id: box for box in before.boxes}
    old_arrows = {_key(arrow): arrow for arrow in before.arrows}
    boxes = [_with_removed_resources(box, old_boxes.get(box.id), changes) for box in after.boxes]
    arrows = [_with_removed_resources(arrow, old_arrows.get(_key(arrow)), changes) for arrow in after.arrows]
    new_boxes = {box.id: box for box in boxes}
    new_arrows = {_key(arrow): arrow for arrow in arrows}
    telling = [box for box in boxes if box.kind != "permission" or not _same_box(box, old_boxes.get(box.id))]
    removed_arrows = [
        replace(arrow, difference="removed")
        for key, arrow in old_arrows.items()
        if key not in new_arrows and _is_changed(arrow, changes)
    ]
    changed_arrows = [arrow for arrow in arrows if not _same_arrow(arrow, old_arrows.get(_key(arrow)))]
    telling_ids = {box.id for box in telling}
    shown = set(_logical_ids([*telling, *changed_arrows, *removed_arrows]))

    def is_shown_elsewhere(part: Box | Arrow) -> bool:
        return all(logical_id in shown for logical_id in part.logical_ids if logical_id in changes)

    for index, box in enumerate(boxes):
        if box.id not in old_boxes:
            boxes[index] = replace(box, difference="added")
        elif box.id not in telling_ids and is_shown_elsewhere(box):
            boxes[index] = replace(box, difference="same")
    for index, arrow in enumerate(arrows):
        if _key(arrow) not in old_arrows:
            arrows[index] = replace(arrow, difference="added")
        elif arrow not in changed_arrows and is_shown_elsewhere(arrow):
            arrows[index] = replace(arrow, difference="same")
    needed = {end for arrow in removed_arrows for end in (arrow.source, arrow.target)}
    needed |= {box.id for box in before.boxes if _is_changed(box, changes)}
    removed_boxes = list(_with_containers(needed - new_boxes.keys(), before, new_boxes))
    return replace(
        after,
        boxes=(*boxes, *(replace(box, difference="removed") for box in removed_boxes)),
        arrows=(*arrows, *removed_arrows),
        changes=changes,
        snippets={**{name: text for name, text in before.snippets.items() if name in changes}, **after.snippets},
    )


def _with_removed_resources(part: Part, old: Part | None, changes: Mapping[str, Change]) -> Part:
    """Return a box or an arrow that also stands for the resources that the deployment removes from it."""
    old_ids = old.logical_ids if old is not None else ()
    further = tuple(name for name in old_ids if name in changes and name not in part.logical_ids)
    return replace(part, logical_ids=part.logical_ids + further)


def _key(arrow: Arrow) -> tuple[str, ...]:
    """Return what says whether an arrow is in both pictures; what a role may do at one place can be more or less."""
    return (arrow.source, arrow.target, arrow.kind, "" if arrow.kind == "permission" else arrow.label)


def _same_box(box: Box, old: Box | None) -> bool:
    return old is not None and (box.title, box.lines) == (old.title, old.lines)


def _same_arrow(arrow: Arrow, old: Arrow | None) -> bool:
    return old is not None and arrow.label == old.label


def _is_changed(part: Box | Arrow, changes: Mapping[str, Change]) -> bool:
    return any(logical_id in changes for logical_id in part.logical_ids)


def _logical_ids(parts: Iterable[Box | Arrow]) -> Iterator[str]:
    for part in parts:
        yield from part.logical_ids


def _with_containers(box_ids: Iterable[str], before: Picture, present: Mapping[str, Box]) -> Iterator[Box]:
    """Yield boxes of the picture before with those that contain them, as far as no box of the new one has their id."""
    by_id = {box.id: box for box in before.boxes}
    needed = set()
    for box_id in box_ids:
        container: str | None = box_id
        while container is not None and container not in present:
            needed.add(container)
            container = by_id[container].parent
    return (box for box in before.boxes if box.id in needed)
