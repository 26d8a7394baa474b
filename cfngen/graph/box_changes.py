"""What a deployment does to a box or an arrow, which stands for several resources."""

from __future__ import annotations

from cfngen.graph.picture import Change, Picture


def change_of(picture: Picture, logical_ids: tuple[str, ...]) -> Change | None:
    """Return what the deployment does to resources together; None if it does nothing to them.

    What happens to all of them is said; if something else happens to each, they are changed, or replaced if one is.
    """
    changes = {picture.changes[logical_id] for logical_id in logical_ids if logical_id in picture.changes}
    if not changes:
        return None
    if "replaced" in changes:
        return "replaced"
    if len(changes) == 1 and all(logical_id in picture.changes for logical_id in logical_ids):
        return changes.pop()
    return "changed"


COLOURS: dict[Change, tuple[str, str]] = {
    "added": ("#dcf5e3", "#1a7f37"),
    "changed": ("#fff4cc", "#9a6700"),
    "replaced": ("#ffe0c7", "#bc4c00"),
    "removed": ("#ffdcdc", "#cf222e"),
}
"""The fill and the line of what a deployment adds, changes, replaces and removes."""
