"""Pictures that Hypothesis draws: any boxes in any others, any arrows, any texts."""

from __future__ import annotations

import itertools
from typing import get_args

from hypothesis import strategies as st

from cfngen.graph.picture import Arrow, ArrowKind, Box, BoxKind, Change, Picture

TEXTS = st.text(max_size=40) | st.sampled_from(
    [
        "nodes",
        "TCP 2379-2380",
        "ec2:DescribeInstances",
        "a" * 90,
        "x" * 20 + " " + "y" * 30,
        "]]>",
        "<b>&amp;",
        "节点组",
        "\0",
    ]
)


@st.composite
def pictures(draw: st.DrawFn) -> Picture:
    """Draw a picture."""
    boxes: list[Box] = []
    for index in range(draw(st.integers(0, 8))):
        parent = draw(st.none() | st.sampled_from([box.id for box in boxes])) if boxes else None
        kind = draw(st.sampled_from(get_args(BoxKind)))
        lines = tuple(draw(st.lists(TEXTS, max_size=2)))
        boxes.append(Box(f"box {index}", kind, draw(TEXTS), lines, parent, (f"Box{index}",)))
    ends = st.sampled_from([box.id for box in boxes]) if boxes else st.nothing()
    arrows = draw(
        st.lists(
            st.builds(Arrow, ends, ends, st.sampled_from(get_args(ArrowKind)), TEXTS, st.just(("Rule",))), max_size=8
        )
    )
    names = [name for part in itertools.chain(boxes, arrows) for name in part.logical_ids]
    changes = draw(st.dictionaries(st.sampled_from(names), st.sampled_from(get_args(Change)))) if names else {}
    snippets = {name: draw(TEXTS) for name in names[:2]}
    return Picture(draw(TEXTS), tuple(boxes), tuple(arrows), snippets, changes)
