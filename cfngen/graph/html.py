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

from cfngen.graph.picture import Picture
from cfngen.graph.style import DARK, FONTS, LIGHT, Scheme
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


def _colours(scheme: Scheme) -> str:
    return (
        f"html{{--page:{scheme.page};--panel:{scheme.fills['source']};--text:{scheme.text};--quiet:{scheme.quiet};"
        f"--line:{scheme.borders['source']};--mark:{scheme.arrows['traffic']}}}"
    )


STYLE = f"""
{_colours(LIGHT)}
@media screen and (prefers-color-scheme:dark){{{_colours(DARK)}}}
*{{box-sizing:border-box}}
html,body{{height:100%;margin:0;background:var(--page);color:var(--text);font:14px/1.5 {FONTS}}}
body{{display:flex}}
#view{{flex:1;min-width:0;height:100%;overflow:auto;outline:none;cursor:grab;display:flex;padding-bottom:56px}}
#view.moving{{cursor:grabbing;user-select:none}}
#view>svg{{flex:none;margin:auto;display:block}}
.box,.arrow{{cursor:pointer;outline:none}}
.box:hover>.outline,.box:focus-visible>.outline,.box.selected>.outline{{stroke-width:3}}
.arrow.selected .way,.arrow:focus-visible .way,.arrow.linked .way{{stroke-width:3}}
.box:focus-visible>.outline,.arrow:focus-visible .way{{filter:drop-shadow(0 0 3px var(--mark))}}
.picture.tracing .arrow:not(.linked):not(.selected),.picture.tracing .label:not(.linked){{opacity:.15}}
.legend .arrow{{opacity:1!important}}
.legend .arrow{{cursor:auto;pointer-events:none}}
#zoom{{position:fixed;left:12px;bottom:12px;display:flex;gap:4px}}
#hint{{position:fixed;left:140px;bottom:12px;margin:0;padding:4px 10px;color:var(--quiet);background:var(--page);
border-radius:6px}}
button{{font:inherit;min-width:34px;height:34px;color:var(--text);background:var(--panel);border:1px solid var(--line);
border-radius:6px;cursor:pointer}}
button:focus-visible{{outline:2px solid var(--mark);outline-offset:1px}}
#panel{{flex:none;width:min(460px,45vw);height:100%;overflow:auto;padding:16px 18px;background:var(--panel);
border-left:1px solid var(--line)}}
#panel[hidden]{{display:none}}
#close{{float:right}}
h2{{font-size:16px;line-height:1.35;margin:2px 44px 12px 0;white-space:pre-line;overflow-wrap:anywhere}}
h3{{font-size:13px;margin:16px 0 4px;overflow-wrap:anywhere}}
h3 span{{font-weight:400;color:var(--quiet)}}
pre{{margin:0;padding:10px;background:var(--page);border-radius:6px;overflow:auto;tab-size:2;
font:12px/1.5 ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace}}
@media (max-width:700px){{body{{flex-direction:column}}#panel{{width:100%;height:45%;border-left:0;
border-top:1px solid var(--line)}}#hint{{display:none}}
#zoom{{left:auto;right:12px;bottom:auto;top:12px}}#view{{padding-top:48px}}}}
@page{{margin:10mm}}
@media print{{#zoom,#hint,#panel{{display:none!important}}html,body{{height:auto;color:#000;background:#fff}}
body,#view{{display:block;padding:0}}#view>svg{{width:100%;height:auto;max-height:100vh}}
.picture .arrow,.picture .label{{opacity:1!important}}}}
"""

SCRIPT = """
'use strict';
(() => {
  const data = JSON.parse(document.getElementById('resources').textContent);
  const view = document.getElementById('view');
  const picture = view.querySelector('svg');
  const panel = document.getElementById('panel');
  const hint = document.getElementById('hint');
  const snippets = document.getElementById('snippets');
  const elements = [...picture.querySelectorAll('[data-logical-ids]')];
  const whole = picture.viewBox.baseVal;
  let scale = 1;
  let chosen = null;

  function add(parent, tag, text) {
    const element = document.createElement(tag);
    element.textContent = text;
    parent.append(element);
    return element;
  }
  function wordsOf(element, name) {
    return (element.getAttribute(name) || '').split(' ').filter(Boolean);
  }
  function trace(element) {
    const box = element && element.getAttribute('data-box');
    const edge = element && element.getAttribute('data-edge');
    let linked = 0;
    for (const other of picture.querySelectorAll('[data-edge]')) {
      const ends = wordsOf(other, 'data-ends');
      const on = Boolean(element) && (box ? ends.includes(box) : other.getAttribute('data-edge') === edge);
      other.classList.toggle('linked', on);
      linked += on;
    }
    picture.classList.toggle('tracing', linked > 0);
  }
  function close() {
    panel.hidden = true;
    if (chosen) chosen.classList.remove('selected');
    chosen = null;
    trace(null);
  }
  function choose(element) {
    if (chosen) chosen.classList.remove('selected');
    chosen = element;
    chosen.classList.add('selected');
    hint.hidden = true;
    trace(element);
    document.getElementById('what').textContent = element.querySelector('title').textContent;
    snippets.replaceChildren();
    const names = wordsOf(element, 'data-logical-ids');
    for (const name of names) {
      const heading = add(snippets, 'h3', name);
      if (data.changes[name]) add(heading, 'span', ' (' + data.changes[name] + ')');
      add(snippets, 'pre', Object.hasOwn(data.snippets, name) ? data.snippets[name] : 'not in the templates');
    }
    if (!names.length) add(snippets, 'p', 'No resource of its own.');
    panel.hidden = false;
    panel.scrollTop = 0;
  }
  function zoom(to, x, y) {
    const before = scale;
    scale = Math.min(4, Math.max(0.2, to));
    picture.setAttribute('width', whole.width * scale);
    picture.setAttribute('height', whole.height * scale);
    view.scrollLeft = (view.scrollLeft + x) * scale / before - x;
    view.scrollTop = (view.scrollTop + y) * scale / before - y;
  }
  function zoomBy(factor) { zoom(scale * factor, view.clientWidth / 2, view.clientHeight / 2); }
  function fit() { zoom(Math.min(1, view.clientWidth / whole.width, view.clientHeight / whole.height), 0, 0); }

  for (const element of elements) {
    element.setAttribute('tabindex', '0');
    element.setAttribute('role', 'button');
    element.setAttribute('aria-label', element.querySelector('title').textContent);
    element.addEventListener('click', () => { if (!dragged) choose(element); });
    element.addEventListener('keydown', event => {
      if (event.key === 'Enter' || event.key === ' ') { event.preventDefault(); choose(element); }
    });
    element.addEventListener('mouseenter', () => { if (!chosen) trace(element); });
    element.addEventListener('mouseleave', () => { if (!chosen) trace(null); });
  }
  picture.setAttribute('role', 'group');
  document.getElementById('close').addEventListener('click', close);
  document.getElementById('closer').addEventListener('click', () => zoomBy(1.25));
  document.getElementById('farther').addEventListener('click', () => zoomBy(0.8));
  document.getElementById('whole').addEventListener('click', fit);
  document.addEventListener('keydown', event => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === 'Escape') close();
    if (event.key === '+') zoomBy(1.25);
    if (event.key === '-') zoomBy(0.8);
    if (event.key === '0') fit();
  });
  view.addEventListener('wheel', event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = view.getBoundingClientRect();
    zoom(scale * Math.exp(-event.deltaY / 400), event.clientX - frame.left, event.clientY - frame.top);
  }, {passive: false});

  let grip = null;
  let dragged = false;
  view.addEventListener('pointerdown', event => {
    dragged = false;
    if (event.button || event.pointerType === 'touch' || event.target.closest('text')) return;
    grip = {x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop};
  });
  window.addEventListener('pointermove', event => {
    if (!grip) return;
    const x = event.clientX - grip.x, y = event.clientY - grip.y;
    if (Math.abs(x) + Math.abs(y) > 4) { dragged = true; view.classList.add('moving'); }
    view.scrollLeft = grip.left - x;
    view.scrollTop = grip.top - y;
  });
  window.addEventListener('pointerup', () => { grip = null; view.classList.remove('moving'); });

  if (whole.width > view.clientWidth) zoom(Math.max(view.clientWidth / whole.width, 0.5), 0, 0);
})();
"""
