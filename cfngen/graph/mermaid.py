"""The picture as a Mermaid flowchart, which GitHub, GitLab and many wikis draw by themselves.

Syntax: https://mermaid.js.org/syntax/flowchart.html. Ids of nodes are made of letters, digits and `_` and begin with
the kind of the box, so that none is a word of the language, such as `end`. Labels stand in quotes; characters that end
a quoted label, or that Mermaid would read as Markdown or HTML, are written as its entity codes, e.g. `#quot;`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cfngen.graph.changes import COLOURS, captions, change_of
from cfngen.graph.picture import Arrow, Picture

_ENTITIES = {
    "#": "#35;",
    "&": "#amp;",
    '"': "#quot;",
    "<": "#lt;",
    ">": "#gt;",
    "`": "#96;",
    "\\": "#92;",
    "*": "#42;",
    "_": "#95;",
    "|": "#124;",
}
# Mermaid leaves room for one line of a subgraph's title; boxes within would cover others. So a single further line
# stands behind the title if both fit (narrow subgraphs are some 250 pixels wide, and a letter 8); otherwise the further
# lines are a node without a border in the subgraph.
_LETTERS_IN_TITLE = 32
_ARROWS = {"traffic": "-->", "route": "-.->", "permission": "==>", "use": "-.->"}


def mermaid(picture: Picture) -> str:
    """Return a picture as a Mermaid flowchart."""
    names = _names(picture)
    lines = ["---", f"title: {_yaml_text(picture.title)}", "---", "flowchart LR"]
    lines += _boxes(picture, None, names, "    ")
    lines += [f"    {_arrow(arrow, names)}" for arrow in picture.arrows]
    if texts := captions(picture):
        lines.append(f"    captions({_label(*texts)}):::lines")
    if any(":::lines" in line for line in lines):
        lines.append("    classDef lines fill:none,stroke:none")
    lines += _changes(picture, names)
    return "\n".join(lines) + "\n"


def _names(picture: Picture) -> dict[str, str]:
    """Return a node's id for each box, by the box's id."""
    names: dict[str, str] = {}
    for box in picture.boxes:
        name = re.sub(r"[^A-Za-z0-9]+", "_", f"{box.kind}_{box.id}")
        number = 2
        candidate = name
        while candidate in names.values():
            candidate = f"{name}_{number}"
            number += 1
        names[box.id] = candidate
    return names


def _boxes(picture: Picture, parent: str | None, names: dict[str, str], indentation: str) -> Iterator[str]:
    """Yield the lines for the boxes within a box: a node, or a subgraph if there are boxes in it."""
    for box in picture.children(parent):
        if any(True for _ in picture.children(box.id)):
            title = ": ".join((box.title, *box.lines))
            fits = len(title) <= _LETTERS_IN_TITLE and len(box.lines) < 2
            yield f"{indentation}subgraph {names[box.id]}[{_label(title if fits else box.title)}]"
            if not fits and box.lines:
                yield f"{indentation}    {names[box.id]}_lines({_label(*box.lines)}):::lines"
            yield from _boxes(picture, box.id, names, indentation + "    ")
            yield f"{indentation}end"
        else:
            yield f"{indentation}{names[box.id]}[{_label(box.title, *box.lines)}]"


def _label(*lines: str) -> str:
    return f'"{"<br/>".join(escape(line) for line in lines)}"'


def escape(text: str) -> str:
    """Return a text as part of a quoted label, on one line."""
    return "".join(_ENTITIES.get(character, character) for character in " ".join(text.split()))


def _yaml_text(text: str) -> str:
    escaped = " ".join(text.split()).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _arrow(arrow: Arrow, names: dict[str, str]) -> str:
    label = f'|"{escape(arrow.label)}"|' if arrow.label else ""
    return f"{names[arrow.source]} {_ARROWS[arrow.kind]}{label} {names[arrow.target]}"


def _changes(picture: Picture, names: dict[str, str]) -> Iterator[str]:
    for change, (fill, line) in COLOURS.items():
        changed = [names[box.id] for box in picture.boxes if change_of(picture, box) == change]
        numbers = [str(index) for index, arrow in enumerate(picture.arrows) if change_of(picture, arrow) == change]
        if changed:
            yield f"    classDef {change} fill:{fill},stroke:{line},stroke-width:2px,color:#1f2328"
            yield f"    class {','.join(changed)} {change}"
        if numbers:
            yield f"    linkStyle {','.join(numbers)} stroke:{line},stroke-width:2px"
