"""Formats the changes of a plan: what happens to each resource, and the old and new values of its properties."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from cfngen.cli.render.layout import FAINT, PLAIN, Piece, Style, flow

if TYPE_CHECKING:
    from cfngen.deploy.messages.message import Impact
    from cfngen.deploy.plan.plan import Change, PropertyChange

CHANGE_SYMBOLS = {"add": "+", "import": "+", "update": "~", "remove": "-", "will-replace": "±", "might-replace": "±?"}
"""The symbol before a resource, by the kind of change."""
CHANGE_STYLES: dict[str, Style] = {
    "add": {"fg": "green"},
    "import": {"fg": "green"},
    "update": {"fg": "yellow"},
    "remove": {"fg": "red"},
    "will-replace": {"fg": "red", "bold": True},
    "might-replace": {"fg": "magenta"},
}
"""The style of a change, by its kind; colours only repeat what words and symbols say."""
_DANGER_STYLES: dict[str, Style] = {"none": {"fg": "cyan"}, "disruptive": {"fg": "yellow"}, "dangerous": {"fg": "red"}}
# What happens to a resource that is removed or replaced, by the change's policy.
_OLD_RESOURCE_BY_DELETION_POLICY = {"delete": "deleted", "retain": "kept", "snapshot": "kept as a snapshot only"}


def change_lines(change: Change, width: int, *, full: bool) -> Iterator[str]:
    """Yield a change of a resource: what happens to it, its changed properties, and the impact."""
    kind = _change_kind(change)
    style = CHANGE_STYLES[kind]
    pieces: list[Piece] = [(CHANGE_SYMBOLS[kind].ljust(2), style), (change.logical_id, style), (change.type, FAINT)]
    # Longer ids, such as ARNs, would take most of the line.
    if change.physical_id and len(change.physical_id) <= 40:
        pieces.append((change.physical_id, FAINT))
    pieces.append((effect_in_words(change), style))
    yield from flow(pieces, width, 2, 7)
    for property_ in change.properties:
        yield from _property_lines(property_, width, full=full)
    if change.impact:
        yield from impact_lines(change.impact, width, indent=5)


def impact_lines(impact: Impact, width: int, *, indent: int) -> Iterator[str]:
    """Yield what a change means for the cluster, coloured by its danger."""
    pieces: list[Piece] = [("=>", FAINT), (impact.text, _DANGER_STYLES[impact.danger.value])]
    yield from flow(pieces, width, indent, indent + 3)


def effect_in_words(change: Change) -> str:
    """Return what happens to a resource, in words; for a replacement, also what happens to the old resource.

    An update has no words, since the changed properties are listed below the resource.
    """
    kind = _change_kind(change)
    old_resource_outcome = _OLD_RESOURCE_BY_DELETION_POLICY.get(change.policy, "")
    if kind == "will-replace":
        return f"will be replaced; the old one is {old_resource_outcome}" if change.policy else "will be replaced"
    if kind == "might-replace":
        if change.policy:
            return f"might be replaced; the old one would be {old_resource_outcome}"
        return "might be replaced"
    if kind == "remove":
        return f"is removed and {old_resource_outcome}" if change.policy in ("retain", "snapshot") else "is removed"
    return {"add": "is added", "import": "is imported into the stack", "update": ""}[kind]


def shorten_to_difference(
    old_value: str | None, new_value: str | None, max_length: int
) -> tuple[str | None, str | None]:
    """Return the old and the new value, cut to the part where they differ if one of them is too long.

    An ellipsis stands where text was cut off.

    Args:
        max_length: how many characters each value may have; at least 24 are kept.
    """
    max_length = max(max_length, 24)
    old, new = _one_line(old_value), _one_line(new_value)
    if max(len(old or ""), len(new or "")) <= max_length:
        return old, new
    if old is None or new is None:
        return _cut(old, 0, max_length), _cut(new, 0, max_length)
    common_length = 0
    for old_character, new_character in zip(old, new, strict=False):
        if old_character != new_character:
            break
        common_length += 1
    # A third of the space shows text before the difference.
    visible_start = max(0, common_length - max_length // 3)
    return _cut(old, visible_start, max_length), _cut(new, visible_start, max_length)


def _change_kind(change: Change) -> str:
    """Return the kind of a change, a key of `CHANGE_SYMBOLS`: the action, unless the resource is or may be replaced."""
    if change.replacement.value == "no":
        return change.action
    return {"will": "will-replace", "might": "might-replace"}[change.replacement.value]


def _property_lines(change: PropertyChange, width: int, *, full: bool) -> Iterator[str]:
    # Only slashes before a bracket separate names; in the brackets they belong to a key.
    property_path, bracket, key = re.sub(r"^/(Properties/)?", "", change.path).partition("[")
    path = property_path.replace("/", ".") + bracket + key
    diff = _value_diff(change, width) if full else []
    pieces: list[Piece] = [(f"{path}:", PLAIN)]
    if change.note:
        pieces.append((change.note, PLAIN))
    elif not diff:
        pieces += _value_pieces(change, (width - len(path) - 20) // 2)
    if remarks := _remarks(change):
        pieces.append((f"({', '.join(remarks)})", FAINT))
    yield from flow(pieces, width, 5, 9)
    yield from diff


def _value_pieces(change: PropertyChange, max_length: int) -> list[Piece]:
    """Return the old and the new value, each of at most `max_length` characters, or why they are not shown."""
    if change.sensitive:
        return [("changes (secret, not shown)", PLAIN)]
    if change.before is None and change.after is None and not change.known:
        return [("changes", PLAIN)]
    old, new = shorten_to_difference(change.before, change.after, max_length)
    new_piece: Piece = ("(none)" if new is None else new, {"fg": "green"})
    if not change.known:
        new_piece = ("(not known yet)", {"fg": "magenta"})
    return [("(none)" if old is None else old, {"fg": "red"}), ("->", PLAIN), new_piece]


def _remarks(change: PropertyChange) -> list[str]:
    """Return remarks on the change's certainty, on a replacement and on its cause unless there is a note."""
    remarks: list[str] = []
    if not change.certain:
        remarks.append("might change")
    if change.replaces.value == "will":
        remarks.append("replaces the resource")
    elif change.replaces.value == "might":
        remarks.append("might replace the resource")
    if change.cause and not change.note:
        remarks.append(change.cause)
    if change.only_in:
        remarks.append(f"only the {change.only_in} {'say' if change.only_in == 'templates' else 'says'} so")
    return remarks


def _value_diff(change: PropertyChange, width: int) -> list[str]:
    """Return the lines of a unified diff of two long values; empty if they are short or unknown."""
    old_value, new_value = change.before, change.after
    if old_value is None and new_value is None:
        return []
    if change.path.endswith("/UserData"):
        from cfngen.userdata.user_data_diff import parts as userdata_lines

        old, new = userdata_lines(old_value or ""), userdata_lines(new_value or "")
    elif max(len(old_value or ""), len(new_value or "")) <= (width - len(change.path) - 20) // 2:
        return []
    else:
        old, new = _value_lines(old_value), _value_lines(new_value)
    diff_lines = difflib.unified_diff(old, new, lineterm="", n=2)
    style_of_sign: dict[str, Style] = {"+": {"fg": "green"}, "-": {"fg": "red"}}
    # The first two lines are file names. Lines are not wrapped, so that they can be copied.
    return [" " * 9 + click.style(line, **style_of_sign.get(line[:1], FAINT)) for line in list(diff_lines)[2:]]


def _value_lines(value: str | None) -> list[str]:
    try:
        parsed = json.loads(value or "")
    except ValueError:
        return (value or "").splitlines()
    return json.dumps(parsed, indent=2, sort_keys=True, ensure_ascii=False).splitlines()


def _one_line(text: str | None) -> str | None:
    """Return a text on one line; `""` for an empty text, and None for none."""
    if text is None:
        return None
    return re.sub(r"\s+", " ", text) or '""'


def _cut(text: str | None, start: int, max_length: int) -> str | None:
    """Return the part of a text from `start`, with an ellipsis where text is missing; None for no text."""
    if text is None:
        return None
    if len(text) <= max_length:
        start = 0
    # One character is left for an ellipsis.
    part = text[start : start + max_length - 1]
    end = start + len(part)
    ellipsis_before = "…" if start else ""
    ellipsis_after = "…" if end < len(text) else ""
    return ellipsis_before + part + ellipsis_after
