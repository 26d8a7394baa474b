"""A picture as SVG: one file that shows itself in light and dark pages and in print, and whose texts are texts."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape, quoteattr

from cfngen.graph.changes import change_of
from cfngen.graph.layout import Drawing, Line, Point, layout
from cfngen.graph.layout.labels import SIGNS
from cfngen.graph.layout.nodes import TRACK, Node, Text
from cfngen.graph.layout.text_metrics import HEADING, LABEL, LINE, Font, width
from cfngen.graph.legend import Entry, legend
from cfngen.graph.picture import Arrow, Box, Change, Picture
from cfngen.graph.style import SYMBOLS, stylesheet

_MARGIN = 2 * TRACK  # left of the heading and the legend
_TOP = 3 * TRACK  # of the heading
_TOP_OF_HEADING = 1.25 * TRACK
_RADIUS = 6  # of corners of arrows
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_ASCENT = 0.8  # of a line, from its top to its base


def svg(picture: Picture) -> str:
    """Return a picture as SVG."""
    drawing = layout(picture)
    entries = legend(drawing, drawing.width - 2 * _MARGIN)
    bottom = max((entry.y + entry.height for entry in entries), default=0)
    wide = max([drawing.width, width(picture.title, HEADING) + 2 * _MARGIN, *(_right(entry) for entry in entries)])
    across, down = round(wide), _TOP + drawing.height + (bottom + TRACK if entries else 0)
    return _svg(drawing, entries, across, down)


def _svg(drawing: Drawing, entries: Sequence[Entry], across: int, down: int) -> str:
    picture = drawing.picture
    left = round((across - drawing.width) / 2)
    size = f'viewBox="0 0 {across} {down}" width="{across}" height="{down}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} class="picture"',
        ' role="img" aria-labelledby="picture-title picture-description">',
        f'<title id="picture-title">{_escaped(picture.title)}</title>',
        f'<desc id="picture-description">{_escaped(_description(picture))}</desc>',
        f"<style>{stylesheet(drawing)}</style>",
        f'<rect class="page" width="{across}" height="{down}"/>',
        _text(picture.title, _MARGIN, _TOP_OF_HEADING, HEADING, "heading"),
        f'<g transform="translate({left} {_TOP})">',
        *(_box(node, picture) for node in drawing.nodes),
        *(_line(number, line, drawing) for number, line in enumerate(drawing.lines)),
        *(_label(number, line) for number, line in enumerate(drawing.lines)),
        *(_badge(node, picture) for node in drawing.nodes),
        "</g>",
        f'<g class="legend" transform="translate({_MARGIN} {_TOP + drawing.height})">',
        *(_entry(entry) for entry in entries),
        "</g>",
        "</svg>",
    ]
    return "\n".join(part for part in parts if part) + "\n"


def _box(node: Node, picture: Picture) -> str:
    box = node.box
    change = change_of(picture, box)
    classes = f"box {box.kind}" + (f" {change}" if change else "") + (" around" if node.children else "")
    x, y, w, h = node.x * TRACK, node.y * TRACK, node.width * TRACK, node.height * TRACK
    symbol_x, symbol_y = node.symbol()
    size = f'x="{x}" y="{y}" width="{w}" height="{h}" rx="{8 if node.children else 6}"'
    at = f"translate({_number(symbol_x)} {_number(symbol_y)})"
    texts = (_text(text.text, text.x, text.y, text.font, _style(text)) for text in node.texts() if text.text)
    return (
        f"<g class={quoteattr(classes)} {_data(box.logical_ids)} data-box={_attribute(_word(box.id))}>"
        f'<title>{_escaped(_box_title(node, picture))}</title><rect class="outline" {size}/>'
        f'<path class="symbol" transform="{at}" d="{SYMBOLS[box.kind]}"/>{"".join(texts)}</g>'
    )


def _style(text: Text) -> str:
    if text.loop:
        return f"loop {text.loop.kind}"
    return "name" if text.font.bold else "line"


def _badge(node: Node, picture: Picture) -> str:
    change = change_of(picture, node.box)
    if not change:
        return ""
    x, y = (node.x + node.width) * TRACK - 2, node.y * TRACK + 2
    return _sign_of_change(change, x, y, ' aria-hidden="true"')


def _sign_of_change(change: Change, x: float, y: float, attributes: str) -> str:
    at = f'x="{_number(x)}" y="{_number(y + 4.5)}"'
    return (
        f'<g class="badge {change}"{attributes}><circle cx="{_number(x)}" cy="{_number(y)}" r="8"/>'
        f'<text {at} text-anchor="middle" font-size="13" font-weight="700">{SIGNS[change]}</text></g>'
    )


def _line(number: int, line: Line, drawing: Drawing) -> str:
    edge = line.edge
    classes = f"arrow {edge.kind}" + (f" {edge.change}" if edge.change else "")
    logical_ids = tuple(dict.fromkeys(name for arrow in edge.arrows for name in arrow.logical_ids))
    way = "".join(_path(path) for path in line.paths)
    heads = "".join(_head(tip, before) for tip, before in line.heads)
    joints = "".join(f'<circle class="joint" cx="{x}" cy="{y}" r="2.5"/>' for x, y in line.joints)
    return (
        f"<g class={quoteattr(classes)} {_data(logical_ids)} {_ends(number, line)}>"
        f"<title>{_escaped(_line_title(line, drawing.picture))}</title>"
        f'<path class="reach" d="{way}"/><path class="way" d="{way}"/>'
        + (f'<path class="head" d="{heads}"/>' if heads else "")
        + f"{joints}</g>"
    )


def _label(number: int, line: Line) -> str:
    if line.label is None:
        return ""
    x, y, w, h = line.label.area
    size = f'x="{_number(x)}" y="{_number(y + 0.5)}" width="{_number(w)}" height="{_number(h - 1)}" rx="4"'
    style = f"label {line.edge.kind}" + (f" {line.edge.change}" if line.edge.change else "")
    lines = "".join(
        f'<text x="{_number(x + w / 2)}" y="{_number(y + index * LABEL.line + LABEL.line * _ASCENT - 0.5)}"'
        f' text-anchor="middle" font-size="{LABEL.size}">{_escaped(text)}</text>'
        for index, text in enumerate(line.label.lines)
    )
    return f'<g class="{style}" aria-hidden="true" {_ends(number, line)}><rect {size}/>{lines}</g>'


def _entry(entry: Entry) -> str:
    sign = ""
    middle = entry.y + LINE.line / 2
    if entry.arrow:
        x = entry.x
        way = _path(((x, round(middle)), (x + 34, round(middle))))
        head = _head((x + 34, round(middle)), (x + 20, round(middle)))
        sign = f'<g class="arrow {entry.arrow}"><path class="way" d="{way}"/><path class="head" d="{head}"/></g>'
    elif entry.change:
        sign = _sign_of_change(entry.change, entry.x + 8, middle, "")
    return sign + "".join(
        _text(text, entry.x + entry.indent, entry.y + index * LINE.line, LINE, "line")
        for index, text in enumerate(entry.lines)
    )


def _right(entry: Entry) -> float:
    return entry.x + entry.width + 2 * _MARGIN


def _path(points: Sequence[Point]) -> str:
    parts = [f"M{points[0][0]} {points[0][1]}"]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        (start_x, start_y), (end_x, end_y) = _towards(corner, before), _towards(corner, after)
        parts.append(f"L{start_x} {start_y}Q{corner[0]} {corner[1]} {end_x} {end_y}")
    return "".join([*parts, f"L{points[-1][0]} {points[-1][1]}"])


def _towards(corner: Point, other: Point) -> Point:
    """Return the point near a corner in the direction of another point."""
    x, y = (_sign(other[0] - corner[0]), _sign(other[1] - corner[1]))
    return corner[0] + x * _RADIUS, corner[1] + y * _RADIUS


def _head(tip: Point, before: Point) -> str:
    """Return the head of an arrow, which points away from the point before it."""
    x, y = _sign(tip[0] - before[0]), _sign(tip[1] - before[1])
    back_x, back_y = tip[0] - 9 * x, tip[1] - 9 * y
    return f"M{tip[0]} {tip[1]}L{back_x + 4 * y} {back_y + 4 * x}L{back_x - 4 * y} {back_y - 4 * x}Z"


def _sign(number: int) -> int:
    return (number > 0) - (number < 0)


def _text(text: str, x: float, top: float, font: Font, style: str) -> str:
    weight = ' font-weight="700"' if font.bold else ""
    base = _number(top + font.line * _ASCENT)
    return f'<text class="{style}" x="{_number(x)}" y="{base}" font-size="{font.size}"{weight}>{_escaped(text)}</text>'


def _data(logical_ids: Sequence[str]) -> str:
    return f"data-logical-ids={_attribute(' '.join(logical_ids))}"


def _ends(number: int, line: Line) -> str:
    ends = (line.edge.root, *line.edge.leaves)
    return f'data-edge="{number}" data-ends={_attribute(" ".join(map(_word, ends)))}'


def _word(box_id: str) -> str:
    """Return the id of a box as one word of a list of words."""
    return "%20".join(box_id.replace("%", "%25").split())


def _attribute(text: str) -> str:
    return quoteattr(clean(text))


def _box_title(node: Node, picture: Picture) -> str:
    box = node.box
    loops = [f"{box.title} to itself: {_arrow_text(loop)}" for loop in node.loops]
    return "\n".join([box.title + _difference(box), *_resources(box.logical_ids, picture), *loops])


def _line_title(line: Line, picture: Picture) -> str:
    titles = {box.id: box.title for box in picture.boxes}
    return "\n".join(
        f"{titles[arrow.source]} \N{RIGHTWARDS ARROW} {titles[arrow.target]}: {_arrow_text(arrow)}"
        for arrow in line.edge.arrows
    )


def _arrow_text(arrow: Arrow) -> str:
    names = ", ".join(arrow.logical_ids)
    return (arrow.label or arrow.kind) + _difference(arrow) + (f" ({names})" if names else "")


def _difference(part: Box | Arrow) -> str:
    """Return whether a deployment adds or removes this part of its resources, in words."""
    return f", {part.difference}" if part.difference in ("added", "removed") else ""


def _resources(logical_ids: Sequence[str], picture: Picture) -> Iterator[str]:
    for name in logical_ids:
        change = picture.changes.get(name)
        yield f"{name} ({change})" if change else name


def _description(picture: Picture) -> str:
    titles = {box.id: box.title for box in picture.boxes}
    arrows = dict.fromkeys(
        f"{titles[arrow.source]} to {titles[arrow.target]}" + (f" ({arrow.label})" if arrow.label else "")
        for arrow in picture.arrows
    )
    listed = "; ".join(arrows)
    notes = "".join(f" {note}" for note in picture.notes)
    return f"{len(picture.boxes)} boxes, {len(picture.arrows)} arrows" + (f": {listed}." if listed else ".") + notes


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def _escaped(text: str) -> str:
    return escape(clean(text))


def clean(text: str) -> str:
    """Return a text without the characters that XML does not allow (https://www.w3.org/TR/xml/#charsets)."""
    return _NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", text)
