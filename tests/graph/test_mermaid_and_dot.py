"""Mermaid and DOT: every box and arrow is in the text, and no name can break it."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from drawn import EXAMPLES, picture

from cfngen.graph.dot import dot
from cfngen.graph.mermaid import mermaid
from cfngen.graph.picture import Arrow, Box, Picture

ODD_NAMES = (
    'a "quoted" name', "end", "graph", "a <b>bold</b> & one", "semi; colon", "pipe | pipe", "back\\slash", "`code`",
    "#35;", "[x](y)", "{n}", "*stars* and _lines_", "two\nlines", "Größe → 3", "%% comment", "--> arrow", "\\N",
    "subgraph x",
)  # fmt: skip


def odd_picture() -> Picture:
    """Boxes whose names are odd, within one box, with arrows between them."""
    inner = [
        Box(f"odd:{name}", "instances", name, (name,), "outer", (f"Id{index}",)) for index, name in enumerate(ODD_NAMES)
    ]
    pairs = pairwise(inner)
    arrows = tuple(Arrow(first.id, second.id, "traffic", second.title, ("Rule",)) for first, second in pairs)
    changes = {"Id0": "added", "Id1": "removed", "Rule": "changed"}
    return Picture(ODD_NAMES[0], (Box("outer", "vpc", 'the "VPC"'), *inner), arrows, {}, changes)


def test_mermaid_has_every_box_once_and_every_arrow() -> None:
    drawn = picture(EXAMPLES / "production.yaml", "all")
    text = mermaid(drawn)
    nodes = re.findall(r'^ +(?:subgraph )?(\w+)\["', text, re.MULTILINE)
    assert len(nodes) == len(set(nodes)) == len(drawn.boxes)
    ends = re.findall(r'^ +(\w+) (?:-->|-\.->|==>)(?:\|"[^"]*"\|)? (\w+)$', text, re.MULTILINE)
    assert len(ends) == len(drawn.arrows)
    assert {node for pair in ends for node in pair} <= set(nodes)
    assert text.count("subgraph ") == len(re.findall(r"^ +end$", text, re.MULTILINE))


def test_mermaid_covers_no_line_of_a_subgraph() -> None:
    lines = [line.strip() for line in mermaid(picture(EXAMPLES / "production.yaml")).splitlines()]
    assert 'subgraph vpc_Vpc["production-vpc: 10.40.0.0/16"]' in lines
    start = lines.index('subgraph instances_MasterAAutoScalingGroup["master a"]')
    assert lines[start + 1].endswith('_lines("m6i.large<br/>10.40.0.9"):::lines')
    assert "classDef lines fill:none,stroke:none" in lines


def test_no_name_breaks_mermaid() -> None:
    lines = mermaid(odd_picture()).splitlines()
    assert lines[:4] == ["---", 'title: "a \\"quoted\\" name"', "---", "flowchart LR"]
    for line in lines[4:]:
        for label in re.findall(r'\["(.*)"\]|\|"(.*)"\|', line):
            inside = "".join(label).replace("<br/>", "")
            assert not set('"<>`\\|*_') & set(inside), line
            assert not re.sub(r"#(\w+);", "", inside).count("#"), line
    assert len([line for line in lines if '["' in line]) == len(ODD_NAMES) + 1
    assert "    class instances_odd_a_quoted_name added" in lines
    assert any(line.startswith("    linkStyle 0,1,2") for line in lines)
    # The words of the language are no ids of nodes.
    assert not re.search(r"^ *(end|graph)\[", "\n".join(lines), re.MULTILINE)


def test_no_name_breaks_dot() -> None:
    text = dot(odd_picture())
    without_strings = re.sub(r'"(?:[^"\\]|\\.)*"', "TEXT", text)
    assert '"' not in without_strings
    assert "\\" not in without_strings
    assert without_strings.count("{") == without_strings.count("}") == 2
    assert without_strings.count(" -> ") == len(ODD_NAMES) - 1
    assert r"\\N" in text, "an escape of labels stands for itself"
    assert 'fillcolor="#dcf5e3"' in text


@pytest.mark.parametrize("view", ["network", "access", "iam", "all"])
def test_dot_leads_arrows_to_the_borders_of_boxes(view) -> None:
    drawn = picture(EXAMPLES / "production.yaml", view)
    text = dot(drawn)
    clusters = set(re.findall(r'subgraph "(cluster_[^"]+)"', text))
    assert len(re.findall(r'^  ".*" -> ".*"', text, re.MULTILINE)) == len(drawn.arrows)
    assert set(re.findall(r'l(?:head|tail)="([^"]+)"', text)) <= clusters
    assert len(clusters) == len({box.parent for box in drawn.boxes if box.parent})
