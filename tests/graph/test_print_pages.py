"""A picture on paper: as wide as the page, readable, and with nothing in two pages that belongs together."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import pytest
from drawn import EXAMPLES as CLUSTERS
from drawn import picture
from example_pictures import EXAMPLES

from cfngen.graph.html import html
from cfngen.graph.layout import layout
from cfngen.graph.layout.boxes import TRACK
from cfngen.graph.picture import Box, Picture
from cfngen.graph.print_pages import PAGE_HEIGHT, PAGE_WIDTH
from cfngen.graph.svg import svg, svg_with_pages

PICTURES = {
    **{name: make() for name, make in EXAMPLES.items()},
    "production network": picture(CLUSTERS / "production.yaml"),
    "pod roles": picture(CLUSTERS / "pod-roles.yaml", "all"),
    "many roles": Picture("many roles", tuple(Box(f"b{n}", "role", f"role {n}", ("line",) * 4) for n in range(90))),
}


def pages(name: str) -> list[tuple[float, float, float]]:
    """Top, width and height of each page."""
    _, view_boxes = svg_with_pages(PICTURES[name])
    return [(y, w, h) for _, y, w, h in (map(float, view_box.split()) for view_box in view_boxes)]


@pytest.mark.parametrize("name", PICTURES)
def test_pages_have_all_of_the_picture_once(name: str) -> None:
    root = ET.fromstring(svg(PICTURES[name]))
    end = 0.0
    for top, width, height in pages(name):
        assert (top, width) == (end, float(root.get("width") or 0))
        end = top + height
    assert end == float(root.get("height") or 0)


@pytest.mark.parametrize("name", PICTURES)
def test_each_page_can_be_read(name: str) -> None:
    for _, width, height in pages(name):
        scale = min(PAGE_WIDTH / width, PAGE_HEIGHT / height)
        assert scale >= min(0.5, PAGE_WIDTH / width)


@pytest.mark.parametrize("name", PICTURES)
def test_no_page_ends_within_a_box_or_a_label(name: str) -> None:
    drawing = layout(PICTURES[name])
    root = ET.fromstring(svg(PICTURES[name]))
    [moved] = [
        element.get("transform")
        for element in root.iter()
        if re.match(r"translate\(\d+ 42\)", element.get("transform") or "")
    ]
    top = float(re.findall(r"\d+", moved or "")[1])
    areas = [(placed.y * TRACK, placed.height * TRACK) for placed in drawing.boxes if not placed.children]
    areas += [(line.label.area[1], line.label.area[3]) for line in drawing.lines if line.label]
    for end in [start for start, _, _ in pages(name)][1:]:
        assert [area for area in areas if top + area[0] < end < top + area[0] + area[1]] == []


def test_what_fits_on_one_page_is_one() -> None:
    assert len(pages("production network")) == 1
    assert len(pages("pod roles")) > 1
    text = html(PICTURES["production network"])
    assert text.count("<figure>") == 1
    assert "page 1 of" not in text


def test_each_page_of_several_says_which_it_is() -> None:
    text = html(PICTURES["pod roles"])
    count = len(pages("pod roles"))
    assert count > 1
    assert re.findall(r"<figcaption>[^<]*, page (\d) of (\d)</figcaption>", text) == [
        (str(number), str(count)) for number in range(1, count + 1)
    ]
    assert text.count('<use href="#drawing"/>') == count


def test_paper_is_white_and_has_nothing_that_only_a_screen_needs() -> None:
    text = html(PICTURES["deployment"])
    for rule in (
        "#zoom,#hint,#panel,#view{display:none!important}",
        ".picture .heading,.picture .name,.picture .line:not(.loop){fill:#000}",
        ".picture .outline,.picture .label rect{fill:#fff}",
        "figure svg{display:block;width:100%;height:auto;max-height:calc(100vh - 30px)}",
    ):
        assert rule in text
        assert text.index("@media print{") < text.index(rule)
    # Dark colours are for screens alone, and a picture that is a document of its own fits the page as well.
    assert "@media (prefers-color-scheme:dark)" not in text
    assert ".picture:root{width:100%;height:auto;max-height:100vh}" in svg(PICTURES["default"])
