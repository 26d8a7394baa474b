"""The picture in the DOT language, for Graphviz: `cfngen graph --format dot | dot -Tsvg`.

Grammar: https://graphviz.org/doc/info/lang.html. A box with boxes in it is a cluster. Edges lead from node to node, so
a cluster has an invisible point, and `lhead` and `ltail` cut the line off at the cluster's border
(https://graphviz.org/docs/attrs/compound/).
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.graph.changes import COLOURS, captions, change_of
from cfngen.graph.picture import Arrow, Box, Picture

_STYLES = {"traffic": "solid", "route": "dashed", "permission": "bold", "use": "dotted"}


def dot(picture: Picture) -> str:
    """Return a picture in the DOT language."""
    containers = {box.parent for box in picture.boxes if box.parent is not None}
    lines = [
        "digraph cluster {",
        f"  label={_lines(picture.title, *captions(picture))} labelloc=t",
        "  compound=true rankdir=LR newrank=true ranksep=0.9",
        '  fontname="Helvetica" fontsize=18',
        '  node [shape=box style="rounded,filled" fillcolor=white color="#57606a" fontname="Helvetica" fontsize=11]',
        '  edge [color="#57606a" fontname="Helvetica" fontsize=10]',
    ]
    lines += _boxes(picture, None, containers, "  ")
    lines += [f"  {_arrow(picture, arrow, containers)}" for arrow in picture.arrows]
    return "\n".join([*lines, "}"]) + "\n"


def quote(text: str) -> str:
    """Return a text as a quoted string; a backslash is doubled, since it begins the escapes of labels."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _label(box: Box) -> str:
    return _lines(box.title, *box.lines)


def _lines(*lines: str, end: str = "") -> str:
    """Return a label of several lines, which are centred, or flush left if each has an end that says so."""
    texts = [quote(" ".join(line.split()))[1:-1] for line in lines]
    return '"' + ((end or "\\n").join(texts) + end) + '"'


def _boxes(picture: Picture, parent: str | None, containers: set[str], indentation: str) -> Iterator[str]:
    for box in picture.children(parent):
        if box.id not in containers:
            yield f"{indentation}{quote(box.id)} [label={_label(box)}{_colours(picture, box)}]"
            continue
        colours = _colours(picture, box).replace("fillcolor", "bgcolor") or ' color="#8c959f"'
        yield f"{indentation}subgraph {quote(f'cluster_{box.id}')} {{"
        # Labels of edges are in the middle, so titles are at the left.
        label = _lines(box.title, *box.lines, end="\\l")
        yield f"{indentation}  graph [label={label} labeljust=l style=rounded fontsize=12{colours}]"
        yield f"{indentation}  {quote(_anchor(box.id))} [shape=point style=invis width=0 height=0]"
        yield from _boxes(picture, box.id, containers, indentation + "  ")
        yield f"{indentation}}}"


def _anchor(box_id: str) -> str:
    return f"anchor of {box_id}"


def _colours(picture: Picture, box: Box) -> str:
    """Return the attributes that colour what a deployment changes; empty for what it does not change."""
    change = change_of(picture, box)
    if change is None:
        return ""
    fill, line = COLOURS[change]
    return f' fillcolor="{fill}" color="{line}" penwidth=2'


def _arrow(picture: Picture, arrow: Arrow, containers: set[str]) -> str:
    ends = [_anchor(end) if end in containers else end for end in (arrow.source, arrow.target)]
    attributes = [f"style={_STYLES[arrow.kind]}"]
    if arrow.label:
        attributes.insert(0, f"label={quote(arrow.label)}")
    if arrow.source in containers:
        attributes.append(f"ltail={quote(f'cluster_{arrow.source}')}")
    if arrow.target in containers:
        attributes.append(f"lhead={quote(f'cluster_{arrow.target}')}")
    change = change_of(picture, arrow)
    if change:
        attributes.append(f'color="{COLOURS[change].line}" penwidth=2')
    return f"{quote(ends[0])} -> {quote(ends[1])} [{' '.join(attributes)}]"
