"""What a deployment changes in a picture, and two pictures as one: as the cluster is deployed, and as it will be.

A resource may stand for more than one part of a picture: a role has a box for each service, and arrows to what it may
use. Which of them a change of the role is about is only seen if both pictures are compared.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple, TypeVar

from cfngen.graph.picture import Arrow, Box, Change, Picture, with_containers

TEXTS: dict[Change, str] = {
    "added": "is added",
    "changed": "is changed in place",
    "replaced": "is replaced by a new one",
    "removed": "is removed",
}


class ChangeColours(NamedTuple):
    """The colours of what a deployment changes."""

    fill: str
    line: str


COLOURS: dict[Change, ChangeColours] = {
    "added": ChangeColours("#dcf5e3", "#1a7f37"),
    "changed": ChangeColours("#fff4cc", "#9a6700"),
    "replaced": ChangeColours("#ffe0c7", "#bc4c00"),
    "removed": ChangeColours("#ffdcdc", "#cf222e"),
}
COLOUR_NAMES: dict[Change, str] = {"added": "green", "changed": "yellow", "replaced": "orange", "removed": "red"}
# Lines of these boxes are a list, in which one does not take the place of another.
_KINDS_WITH_LISTS = ("role", "permission", "security-group", "load-balancer", "dns")
BoxOrArrow = TypeVar("BoxOrArrow", Box, Arrow)


def change_of(picture: Picture, part: Box | Arrow) -> Change | None:
    """Return what the deployment does to a box or an arrow; None if it does nothing to it.

    A part that only one of the pictures before and after the deployment has is added or removed, even if its resources
    are changed: a role that loses a permission stays, the arrow for the permission does not.
    """
    if not any(logical_id in picture.changes for logical_id in part.logical_ids) or part.difference == "same":
        return None
    if part.difference != "unknown":
        return part.difference
    return together(picture.changes.get(logical_id) for logical_id in part.logical_ids)


def together(changes: Iterable[Change | None]) -> Change | None:
    """Return what a deployment does to several resources, boxes or arrows that are drawn as one.

    What happens to all of them is said; if something else happens to each, they are changed, or replaced if one is.
    """
    kinds = set(changes)
    if "replaced" in kinds:
        return "replaced"
    if len(kinds) > 1:
        return "changed"
    return kinds.pop() if kinds else None


def captions(picture: Picture) -> list[str]:
    """Return what is written below a picture in a format without a legend: what colours mean, and the notes."""
    shown = {change_of(picture, box) for box in picture.boxes}
    shown |= {change_of(picture, arrow) for arrow in picture.arrows}
    meanings = [f"{COLOUR_NAMES[change]} {TEXTS[change]}" for change in COLOURS if change in shown]
    return [*([f"what is {', '.join(meanings)}"] if meanings else []), *picture.notes]


def compare(before: Picture, after: Picture) -> Picture:
    """Return a picture with what a deployment removes, in which what stays as it is has no colour."""
    changes = {**before.changes, **after.changes}
    old_boxes = {box.id: box for box in before.boxes}
    old_arrows = {_key(arrow): arrow for arrow in before.arrows}
    boxes = [_with_removed_resources(box, old_boxes.get(box.id), changes) for box in after.boxes]
    arrows = [_with_removed_resources(arrow, old_arrows.get(_key(arrow)), changes) for arrow in after.arrows]
    removed_arrows = _removed_arrows(old_arrows, {_key(arrow) for arrow in arrows}, changes)
    telling_boxes = [box for box in boxes if box.kind != "permission" or not _same_box(box, old_boxes.get(box.id))]
    telling_arrows = [arrow for arrow in arrows if not _same_arrow(arrow, old_arrows.get(_key(arrow)))]
    shown = set(_logical_ids([*telling_boxes, *telling_arrows, *removed_arrows]))

    def marked(part: BoxOrArrow, old: BoxOrArrow | None, telling: Sequence[BoxOrArrow]) -> BoxOrArrow:
        if old is None:
            return replace(part, difference="added")
        is_shown_elsewhere = all(logical_id in shown for logical_id in part.logical_ids if logical_id in changes)
        if part not in telling and is_shown_elsewhere:
            return replace(part, difference="same")
        return _with_old_values(part, old) if _is_changed(part, changes) else part

    needed = {end for arrow in removed_arrows for end in (arrow.source, arrow.target)}
    needed |= {box.id for box in before.boxes if _is_changed(box, changes)}
    new_boxes = {box.id: box for box in boxes}
    removed_boxes = _with_containers(needed - new_boxes.keys(), before, new_boxes)
    kept_boxes = [marked(box, old_boxes.get(box.id), telling_boxes) for box in boxes]
    kept_arrows = [marked(arrow, old_arrows.get(_key(arrow)), telling_arrows) for arrow in arrows]
    return replace(
        after,
        boxes=(*kept_boxes, *(replace(box, difference="removed") for box in removed_boxes)),
        arrows=(*kept_arrows, *removed_arrows),
        changes=changes,
        snippets={**{name: text for name, text in before.snippets.items() if name in changes}, **after.snippets},
    )


def focus(picture: Picture, kept: Container[str]) -> Picture:
    """Return a picture of what a deployment changes, with what surrounds it; what stays has a title alone.

    Args:
        kept: ids of the boxes that are drawn in any case, e.g. the network.
    """
    changed = {box.id for box in picture.boxes if change_of(picture, box)}
    arrows = [
        arrow
        for arrow in picture.arrows
        if change_of(picture, arrow) or (arrow.source in kept and arrow.target in kept)
    ]
    ends = {end for arrow in arrows for end in (arrow.source, arrow.target)}
    shown = {box.id: box for box in picture.boxes if box.id in kept or {box.id, box.parent} & changed or box.id in ends}
    containers = {box.parent for box in picture.boxes}
    boxes = [
        box if box.id in changed or box.id in containers else replace(box, lines=())
        for box in with_containers(shown, {box.id: box for box in picture.boxes})
    ]
    return replace(picture, boxes=tuple(boxes), arrows=tuple(arrows))


def _with_old_values(part: BoxOrArrow, old: BoxOrArrow) -> BoxOrArrow:
    """Return a box or an arrow that says what it was: `t3.large → m6i.large`, or `no longer: …`."""
    if isinstance(part, Arrow) and isinstance(old, Arrow):
        return replace(part, label=_from_to(old.label, part.label))
    if not isinstance(part, Box) or not isinstance(old, Box):
        return part
    lines = part.lines
    if part.kind not in _KINDS_WITH_LISTS and len(old.lines) == len(lines):
        lines = tuple(_from_to(old_line, line) for old_line, line in zip(old.lines, lines, strict=True))
    else:
        lines += tuple(f"no longer: {line}" for line in old.lines if line not in lines)
    return replace(part, lines=lines)


def _from_to(old: str, new: str) -> str:
    return new if old == new else f"{old or 'nothing'} \N{RIGHTWARDS ARROW} {new or 'nothing'}"


def _removed_arrows(
    old_arrows: Mapping[tuple[str, ...], Arrow], present: Container[tuple[str, ...]], changes: Mapping[str, Change]
) -> list[Arrow]:
    return [
        replace(arrow, difference="removed")
        for key, arrow in old_arrows.items()
        if key not in present and _is_changed(arrow, changes)
    ]


def _with_removed_resources(part: BoxOrArrow, old: BoxOrArrow | None, changes: Mapping[str, Change]) -> BoxOrArrow:
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
