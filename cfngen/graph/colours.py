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


LIGHT = Scheme(
    page="#ffffff",
    text="#18212f",
    quiet="#465264",
    fills={
        "account": "#fbfcfd", "region": "#f8fafc", "vpc": "#f7f5fd", "zone": "#f2f6fb", "subnet": "#edf7f1",
        "instances": "#fff6ea", "load-balancer": "#f1ebfd", "gateway": "#f1ebfd", "endpoint": "#f1ebfd",
        "security-group": "#fdf0f0", "source": "#eef2f6", "role": "#fdeff5", "permission": "#fbf4f8",
        "bucket": "#eaf6ec", "secret": "#fdf0f0", "key": "#fdf0f0", "dns": "#f1ebfd", "volume": "#fffdf6",
        "service": "#eaf3fc",
    },
    borders={
        "account": "#66727f", "region": "#66727f", "vpc": "#7350b8", "zone": "#54759c", "subnet": "#2f7f54",
        "instances": "#b0601a", "load-balancer": "#6b3fc0", "gateway": "#6b3fc0", "endpoint": "#6b3fc0",
        "security-group": "#b23c40", "source": "#55657a", "role": "#b02e68", "permission": "#b02e68",
        "bucket": "#32793c", "secret": "#b23c40", "key": "#b23c40", "dns": "#6b3fc0", "volume": "#b0601a",
        "service": "#2668a8",
    },
    arrows={"traffic": "#1558bd", "route": "#4d596a", "permission": "#a01f5c", "use": "#236b2e"},
    changes={"added": "#19742f", "changed": "#86590a", "replaced": "#b3410e", "removed": "#b3202c"},
    on_change="#ffffff",
)  # fmt: skip

DARK = Scheme(
    page="#11161d",
    text="#e9eef5",
    quiet="#b3bfce",
    fills={
        "account": "#141a22", "region": "#161d26", "vpc": "#1a1b2b", "zone": "#192431", "subnet": "#16291f",
        "instances": "#332513", "load-balancer": "#2a2145", "gateway": "#2a2145", "endpoint": "#2a2145",
        "security-group": "#381f22", "source": "#222c38", "role": "#371d2b", "permission": "#2c1d26",
        "bucket": "#17301c", "secret": "#381f22", "key": "#381f22", "dns": "#2a2145", "volume": "#241b10",
        "service": "#172b40",
    },
    borders={
        "account": "#8d9bab", "region": "#8d9bab", "vpc": "#a78be6", "zone": "#84a8d3", "subnet": "#5cba88",
        "instances": "#e39a4e", "load-balancer": "#b294f5", "gateway": "#b294f5", "endpoint": "#b294f5",
        "security-group": "#ee8387", "source": "#9db0c6", "role": "#f082b0", "permission": "#f082b0",
        "bucket": "#6fc27b", "secret": "#ee8387", "key": "#ee8387", "dns": "#b294f5", "volume": "#e39a4e",
        "service": "#77b2ee",
    },
    arrows={"traffic": "#7eb4ff", "route": "#b9c4d2", "permission": "#ff92bf", "use": "#86d392"},
    changes={"added": "#6fd287", "changed": "#e7bc55", "replaced": "#ff9c63", "removed": "#ff8a8f"},
    on_change="#11161d",
)  # fmt: skip

DASHES: Mapping[ArrowKind, str] = {"traffic": "", "route": "7 4", "permission": "9 3 2 3", "use": "2 3"}
