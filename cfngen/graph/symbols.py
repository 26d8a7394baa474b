"""Symbols of boxes: simple shapes of 18 by 18 pixels, drawn with the border's colour."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.graph.picture import BoxKind

# Paths of SVG, https://www.w3.org/TR/SVG2/paths.html; lines without filling.
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
