"""Colours of pictures, for light and for dark pages, and the fonts of their texts.

Whoever cannot tell colours apart has another sign for each: a symbol for the kind of a box, dashes for the kind of an
arrow, a sign for a change.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

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


# By the kind of a box: fill and border on a light page, fill and border on a dark one.
_BOXES: Mapping[BoxKind, tuple[str, str, str, str]] = {
    "account": ("#fbfcfd", "#66727f", "#141a22", "#8d9bab"),
    "region": ("#f8fafc", "#66727f", "#161d26", "#8d9bab"),
    "vpc": ("#f7f5fd", "#7350b8", "#1a1b2b", "#a78be6"),
    "zone": ("#f2f6fb", "#54759c", "#192431", "#84a8d3"),
    "subnet": ("#edf7f1", "#2f7f54", "#16291f", "#5cba88"),
    "instances": ("#fff6ea", "#b0601a", "#332513", "#e39a4e"),
    "load-balancer": ("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "gateway": ("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "endpoint": ("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "security-group": ("#fdf0f0", "#b23c40", "#381f22", "#ee8387"),
    "source": ("#eef2f6", "#55657a", "#222c38", "#9db0c6"),
    "role": ("#fdeff5", "#b02e68", "#371d2b", "#f082b0"),
    "permission": ("#fbf4f8", "#b02e68", "#2c1d26", "#f082b0"),
    "bucket": ("#eaf6ec", "#32793c", "#17301c", "#6fc27b"),
    "secret": ("#fdf0f0", "#b23c40", "#381f22", "#ee8387"),
    "key": ("#fdf0f0", "#b23c40", "#381f22", "#ee8387"),
    "dns": ("#f1ebfd", "#6b3fc0", "#2a2145", "#b294f5"),
    "volume": ("#fffdf6", "#b0601a", "#241b10", "#e39a4e"),
    "service": ("#eaf3fc", "#2668a8", "#172b40", "#77b2ee"),
}
LIGHT = Scheme(
    page="#ffffff",
    text="#18212f",
    quiet="#465264",
    fills={kind: colours[0] for kind, colours in _BOXES.items()},
    borders={kind: colours[1] for kind, colours in _BOXES.items()},
    arrows={"traffic": "#1558bd", "route": "#4d596a", "permission": "#a01f5c", "use": "#236b2e"},
    changes={"added": "#19742f", "changed": "#86590a", "replaced": "#b3410e", "removed": "#b3202c"},
    on_change="#ffffff",
)
DARK = Scheme(
    page="#11161d",
    text="#e9eef5",
    quiet="#b3bfce",
    fills={kind: colours[2] for kind, colours in _BOXES.items()},
    borders={kind: colours[3] for kind, colours in _BOXES.items()},
    arrows={"traffic": "#7eb4ff", "route": "#b9c4d2", "permission": "#ff92bf", "use": "#86d392"},
    changes={"added": "#6fd287", "changed": "#e7bc55", "replaced": "#ff9c63", "removed": "#ff8a8f"},
    on_change="#11161d",
)

DASHES: Mapping[ArrowKind, str] = {"traffic": "", "route": "7 4", "permission": "9 3 2 3", "use": "2 3"}
