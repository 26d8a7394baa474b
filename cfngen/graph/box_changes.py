"""What a deployment does to a box or an arrow, which stands for several resources, or for a part of one."""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.graph.picture import Arrow, Box, Change, Picture


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
    meanings = [f"{NAMES[change]} {TEXTS[change]}" for change in COLOURS if change in shown]
    return [*([f"what is {', '.join(meanings)}"] if meanings else []), *picture.notes]


TEXTS: dict[Change, str] = {
    "added": "is added",
    "changed": "is changed in place",
    "replaced": "is replaced by a new one",
    "removed": "is removed",
}
COLOURS: dict[Change, tuple[str, str]] = {
    "added": ("#dcf5e3", "#1a7f37"),
    "changed": ("#fff4cc", "#9a6700"),
    "replaced": ("#ffe0c7", "#bc4c00"),
    "removed": ("#ffdcdc", "#cf222e"),
}
"""The fill and the line of what a deployment adds, changes, replaces and removes."""
NAMES: dict[Change, str] = {"added": "green", "changed": "yellow", "replaced": "orange", "removed": "red"}
"""What these colours are called."""
