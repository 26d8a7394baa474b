"""A picture as a page: one file that loads nothing, in which a click on an element shows its resources' templates.

The page works from a disk as well as from a web server. Its policy allows its own style sheets and script, by their
digests, and nothing else; so no text of a template can run as a script, even if an escape were missing.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from xml.sax.saxutils import escape

from cfngen.graph.page import SCRIPT, STYLE
from cfngen.graph.picture import Picture
from cfngen.graph.svg import clean, svg

_STYLE_ELEMENT = re.compile(r"<style>(.*?)</style>", re.DOTALL)


def html(picture: Picture) -> str:
    """Return a picture as an HTML page."""
    image = svg(picture)
    styles = [STYLE, *_STYLE_ELEMENT.findall(image)]
    policy = (
        "default-src 'none'; "
        f"style-src {' '.join(map(_digest, styles))}; script-src {_digest(SCRIPT)}; base-uri 'none'; form-action 'none'"
    )
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(clean(picture.title))}</title>
<style>{STYLE}</style>
</head>
<body>
<main id="view" tabindex="-1">
{image}</main>
<nav id="zoom" aria-label="Zoom">
<button type="button" id="closer" title="Zoom in (+)" aria-label="Zoom in">+</button>
<button type="button" id="farther" title="Zoom out (-)" aria-label="Zoom out">\N{MINUS SIGN}</button>
<button type="button" id="whole" title="Show the whole picture (0)">Fit</button>
</nav>
<p id="hint">Click an element to see its template. Drag to move, Ctrl and wheel to zoom.</p>
<aside id="panel" aria-live="polite" aria-label="Template of the selected element" hidden>
<button type="button" id="close" title="Close (Esc)" aria-label="Close">\N{MULTIPLICATION SIGN}</button>
<h2 id="what"></h2>
<div id="snippets"></div>
</aside>
<script type="application/json" id="resources">{_data(picture)}</script>
<script>{SCRIPT}</script>
</body>
</html>
"""


def _data(picture: Picture) -> str:
    """Return the resources as JSON within a page: no text ends the element, or begins a comment in it."""
    resources = {name: clean(text) for name, text in picture.snippets.items()}
    text = json.dumps({"snippets": resources, "changes": dict(picture.changes)}, sort_keys=True)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _digest(text: str) -> str:
    """Return the source expression of an inline element (https://www.w3.org/TR/CSP3/#grammardef-hash-source)."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
