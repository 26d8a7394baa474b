"""The legend below a picture: kinds of arrows and changes that occur in it, and labels without room on their line."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cfngen.graph.changes import TEXTS
from cfngen.graph.layout import Drawing
from cfngen.graph.layout.nodes import LOOP
from cfngen.graph.layout.text_metrics import LINE, width, wrapped
from cfngen.graph.picture import ArrowKind, Change

ARROWS: Mapping[ArrowKind, str] = {
    "traffic": "may open connections to",
    "route": "routes to",
    "permission": "may use or change",
    "use": "uses",
}
_GAP = 28  # pixels between entries
_ROW = 22
_BADGE = 24
_ARROW = 44


@dataclass(frozen=True)
class Entry:
    """An entry of the legend.

    Attributes:
        x: left end in pixels.
        y: top in pixels.
        indent: pixels for the sign before the text.
    """

    lines: tuple[str, ...]
    x: int = 0
    y: int = 0
    indent: int = 0
    arrow: ArrowKind | None = None
    change: Change | None = None

    @property
    def width(self) -> float:
        """Upper bound of its width in pixels."""
        return self.indent + max(width(line, LINE) for line in self.lines)

    @property
    def height(self) -> int:
        """Its height in pixels."""
        return len(self.lines) * LINE.line


def legend(drawing: Drawing, widest: float) -> list[Entry]:
    """Return the entries of the legend of a drawing, in rows of a width."""
    picture = drawing.picture
    kinds = {arrow.kind for arrow in picture.arrows}
    entries = [Entry((text,), indent=_ARROW, arrow=kind) for kind, text in ARROWS.items() if kind in kinds]
    if any(line.joints for line in drawing.lines):
        entries.append(Entry(("Arrows with the same label share a line where a dot joins them.",)))
    if any(node.loops for node in drawing.nodes):
        entries.append(Entry((f"{LOOP}among its own members",)))
    entries += [Entry((TEXTS[change],), indent=_BADGE, change=change) for change in drawing.changes]
    titles = {box.id: box.title for box in picture.boxes}
    for line in drawing.unplaced:
        ends = "; ".join(
            f"{titles[link.source]} \N{RIGHTWARDS ARROW} {titles[link.target]}" for link in line.edge.links
        )
        entries.append(Entry(wrapped(f"{ends}: {line.edge.label}", widest - _GAP, LINE)))
    entries += [Entry(wrapped(note, widest - _GAP, LINE)) for note in picture.notes]
    placed = []
    x = y = 0
    height = 0
    for entry in entries:
        if x and x + entry.width > widest:
            x, y, height = 0, y + height + _ROW - LINE.line, 0
        placed.append(Entry(entry.lines, x, y, entry.indent, entry.arrow, entry.change))
        x += round(entry.width) + _GAP
        height = max(height, entry.height)
    return placed
