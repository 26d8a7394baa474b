"""How a picture looks: colours for light and for dark pages, symbols, fonts, and the style sheet.

A colour is never the only sign: kinds of boxes have symbols, kinds of arrows dashes, and changes a sign. The style
sheet has classes only, since strict content security policies forbid `style` attributes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.graph.layout import Drawing
from cfngen.graph.picture import ArrowKind, BoxKind, Change

FONTS = "Helvetica, Arial, 'Liberation Sans', 'DejaVu Sans', sans-serif"


@dataclass(frozen=True)
class Scheme:
    """Colours for one kind of page.

    Attributes:
        page: behind everything.
        text: titles.
        quiet: further lines of text.
        fills: within boxes.
        borders: borders and symbols of boxes.
        arrows: arrows, and labels on a page's colour.
        changes: borders and badges of what a deployment changes.
        on_change: the sign on a badge.
    """

    page: str
    text: str
    quiet: str
    fills: Mapping[BoxKind, str]
    borders: Mapping[BoxKind, str]
    arrows: Mapping[ArrowKind, str]
    changes: Mapping[Change, str]
    on_change: str


class _BoxColours(NamedTuple):
    """Colours of a kind of box, on a light page and on a dark one."""

    light_fill: str
    light_border: str
    dark_fill: str
    dark_border: str


_BOXES: Mapping[BoxKind, _BoxColours] = {
    "account": _BoxColours("#fbfcfd", "#66727f", "#141a22", "#8d9bab"),
    "region": _BoxColours("#f8fafc", "#66727f", "#161d26", "#8d9bab"),
    "vpc": _BoxColours("#f7f5fd", "#7350b8", "#1a1b2b", "#a78be6"),
    "zone": _BoxColours("#f2f6fb", "#54759c", "#192431", "#84a8d3"),
    "subnet": _BoxColours("#edf7f1", "#2f7f54", "#16291f", "#5cba88"),
    "instances": _BoxColours("#fff6ea", "#b0601a", "#332513", "#e39a4e"),
    "load-balancer": _BoxColours("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "gateway": _BoxColours("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "endpoint": _BoxColours("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "security-group": _BoxColours("#fdf0f0", "#b23c40", "#381f22", "#ee8387"),
    "source": _BoxColours("#eef2f6", "#55657a", "#222c38", "#9db0c6"),
    "role": _BoxColours("#fdeff5", "#b02e68", "#371d2b", "#f082b0"),
    "permission": _BoxColours("#fbf4f8", "#b02e68", "#2c1d26", "#f082b0"),
    "bucket": _BoxColours("#eaf6ec", "#32793c", "#17301c", "#6fc27b"),
    "secret": _BoxColours("#fdf0f0", "#b23c40", "#381f22", "#ee8387"),
    "key": _BoxColours("#fdf0f0", "#b23c40", "#381f22", "#ee8387"),
    "dns": _BoxColours("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "volume": _BoxColours("#fffdf6", "#b0601a", "#241b10", "#e39a4e"),
    "service": _BoxColours("#eaf3fc", "#2668a8", "#172b40", "#77b2ee"),
}
LIGHT = Scheme(
    page="#ffffff",
    text="#18212f",
    quiet="#465264",
    fills={kind: colours.light_fill for kind, colours in _BOXES.items()},
    borders={kind: colours.light_border for kind, colours in _BOXES.items()},
    arrows={"traffic": "#1558bd", "route": "#4d596a", "permission": "#a01f5c", "use": "#236b2e"},
    changes={"added": "#19742f", "changed": "#86590a", "replaced": "#b3410e", "removed": "#b3202c"},
    on_change="#ffffff",
)
DARK = Scheme(
    page="#11161d",
    text="#e9eef5",
    quiet="#b3bfce",
    fills={kind: colours.dark_fill for kind, colours in _BOXES.items()},
    borders={kind: colours.dark_border for kind, colours in _BOXES.items()},
    arrows={"traffic": "#7eb4ff", "route": "#b9c4d2", "permission": "#ff92bf", "use": "#86d392"},
    changes={"added": "#6fd287", "changed": "#e7bc55", "replaced": "#ff9c63", "removed": "#ff8a8f"},
    on_change="#11161d",
)

DASHES: Mapping[ArrowKind, str] = {"traffic": "", "route": "7 4", "permission": "9 3 2 3", "use": "2 3"}
# Paths of SVG in 18 by 18 pixels, https://www.w3.org/TR/SVG2/paths.html; lines without filling.
SYMBOLS: Mapping[BoxKind, str] = {
    "account": "M3 3h12v12h-12z M6 12.5c0-4 6-4 6 0 M9 5.2a1.9 1.9 0 1 1 0 3.8a1.9 1.9 0 1 1 0-3.8",
    "region": "M2.5 5l4.5-2l4.5 2l4-2v10l-4 2l-4.5-2l-4.5 2z M7 3v10 M11.5 5v10",
    "vpc": "M5 14.5a3.4 3.4 0 0 1-.4-6.8a4.6 4.6 0 0 1 8.9-.4a3.6 3.6 0 0 1-.1 7.2z",
    "zone": "M3 15.5v-9l4-3v12 M7 15.5v-7h8v7 M1.5 15.5h15 M10 11h2 M10 13h2",
    "subnet": "M6.5 2.5h5v4h-5z M1.5 11.5h5v4h-5z M11.5 11.5h5v4h-5z M9 6.5v2.5 M4 11.5v-2.5h10v2.5",
    "instances": "M5.5 5.5h10v10h-10z M2.5 12.5v-10h10 M8.5 8.5h4v4h-4z",
    "load-balancer": "M2 9h4 M6 9l5-5h3 M6 9h8 M6 9l5 5h3 M12.5 2.5l2 1.5l-2 1.5 M12.5 7.5l2 1.5l-2 1.5"
    " M12.5 12.5l2 1.5l-2 1.5",
    "gateway": "M3 15.5v-7a6 6 0 0 1 12 0v7 M9 15v-8 M6.5 9.5l2.5-2.5l2.5 2.5 M1.5 15.5h4 M12.5 15.5h4",
    "endpoint": "M2 9h4 M12 9h4 M9 6a3 3 0 1 1 0 6a3 3 0 1 1 0-6",
    "security-group": "M9 2l6 2.2v4.3c0 3.7-2.5 6-6 7.5c-3.5-1.5-6-3.8-6-7.5v-4.3z M6.3 9l2 2l3.5-3.8",
    "source": "M9 2a7 7 0 1 1 0 14a7 7 0 1 1 0-14 M2 9h14 M9 2c-4.2 4-4.2 10 0 14c4.2-4 4.2-10 0-14",
    "role": "M9 2.5a3 3 0 1 1 0 6a3 3 0 1 1 0-6 M3 15.5c0-6.5 12-6.5 12 0z",
    "permission": "M4 2h7.5l3 3v11h-10.5z M6.5 10l2 2l3.5-4",
    "bucket": "M2.5 4.5c0-2.7 13-2.7 13 0l-1.8 10c0 2-9.4 2-9.4 0z M2.5 4.5c0 2.5 13 2.5 13 0",
    "secret": "M4 8h10v8h-10z M6 8v-2.5a3 3 0 0 1 6 0v2.5 M9 11v2.2",
    "key": "M6 6a3.5 3.5 0 1 1 0 7a3.5 3.5 0 1 1 0-7 M9.5 9.5h7 M16 9.5v3 M13 9.5v2.2",
    "dns": "M8 2v14 M8 3.5h6l2 1.8l-2 1.8h-6 M8 9h-4.5l-2 1.8l2 1.8h4.5",
    "volume": "M3 4.5c0-2.7 12-2.7 12 0v9c0 2.7-12 2.7-12 0z M3 4.5c0 2.5 12 2.5 12 0 M3 9c0 2.5 12 2.5 12 0",
    "service": "M9 2l6 3.5v7l-6 3.5l-6-3.5v-7z M9 6.5a2.5 2.5 0 1 1 0 5a2.5 2.5 0 1 1 0-5",
}  # fmt: skip


def stylesheet(drawing: Drawing) -> str:
    """Return the style sheet of a picture, for what occurs in it."""
    picture = drawing.picture
    kinds = {arrow.kind for arrow in picture.arrows}
    dashes = [f".{kind} .way{{stroke-dasharray:{dash}}}" for kind, dash in DASHES.items() if dash and kinds > {kind}]
    return "\n".join(
        [
            f".picture text{{font-family:{FONTS}}}",
            ".symbol{fill:none;stroke-width:1.3;stroke-linejoin:round;stroke-linecap:round}",
            ".outline{stroke-width:1.3}.around .outline{stroke-width:1.2}.zone .outline{stroke-dasharray:6 4}",
            ".way{fill:none;stroke-width:1.6;stroke-linejoin:round}",
            ".reach{fill:none;stroke:none;stroke-width:11;pointer-events:stroke}",
            *dashes,
            ".box.added .outline,.box.changed .outline,.box.replaced .outline,.box.removed .outline{stroke-width:2.6}",
            ".box.removed .outline{stroke-dasharray:5 3}.box.removed .name{text-decoration:line-through}",
            ".label rect{stroke-width:.8}.label{pointer-events:none}.badge{pointer-events:none}",
            ".arrow:hover .way{stroke-width:3}",
            *_colours(LIGHT, drawing),
            "@media screen and (prefers-color-scheme:dark){",
            *_colours(DARK, drawing),
            "}",
            "@media print{",
            # A picture that is a document of its own is fitted to the page: its width and its height.
            ".picture:root{width:100%;height:auto;max-height:100vh}",
            ".page{fill:none}.reach{display:none}.picture .outline,.picture .label rect{fill:#fff}",
            ".picture .heading,.picture .name,.picture .line:not(.loop){fill:#000}",
            "}",
        ]
    )


def _colours(scheme: Scheme, drawing: Drawing) -> list[str]:
    picture = drawing.picture
    kinds = dict.fromkeys(box.kind for box in picture.boxes)
    arrows = dict.fromkeys(arrow.kind for arrow in picture.arrows)
    changes = drawing.changes
    rules = [
        f".page{{fill:{scheme.page}}}.heading,.name{{fill:{scheme.text}}}.line{{fill:{scheme.quiet}}}",
        f".label rect{{fill:{scheme.page}}}.badge text{{fill:{scheme.on_change}}}",
    ]
    for kind in kinds:
        border = scheme.borders[kind]
        rules.append(f".{kind} .outline{{fill:{scheme.fills[kind]};stroke:{border}}}.{kind} .symbol{{stroke:{border}}}")
    rules += [_arrow(arrow, scheme.arrows[arrow]) for arrow in arrows]
    rules += [
        f".badge.{change} circle{{fill:{scheme.changes[change]};stroke:{scheme.page}}}"
        f".box.{change} .outline{{stroke:{scheme.changes[change]}}}" + _arrow(change, scheme.changes[change])
        for change in changes
    ]
    return rules


def _arrow(name: str, colour: str) -> str:
    return (
        f".arrow.{name} .way{{stroke:{colour}}}.arrow.{name} .head,.arrow.{name} .joint,.label.{name} text,"
        f".loop.{name}{{fill:{colour}}}.label.{name} rect{{stroke:{colour}}}"
    )
