"""A picture as SVG and as a page: valid, readable, and safe with any text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from typing import get_args

import pytest
from drawn_pictures import pictures
from example_pictures import EXAMPLES
from hypothesis import given, settings

from cfngen.graph.html import html
from cfngen.graph.picture import ArrowKind, Box, BoxKind, Change, Picture
from cfngen.graph.style import DARK, DASHES, LIGHT, SYMBOLS, Scheme
from cfngen.graph.svg import svg

SVG = "{http://www.w3.org/2000/svg}"


@settings(max_examples=8)
@given(pictures())
def test_any_picture_is_valid_xml_and_a_page_that_keeps_texts_as_texts(picture: Picture) -> None:
    check_svg_and_page(picture)


@pytest.mark.drill
@settings(max_examples=100)
@given(pictures())
def test_many_pictures_are_valid_xml_and_pages_that_keep_texts_as_texts(picture: Picture) -> None:
    check_svg_and_page(picture)


def check_svg_and_page(picture: Picture) -> None:
    root = ET.fromstring(svg(picture))
    assert root.tag == f"{SVG}svg"
    allowed = {"svg", "title", "desc", "style", "rect", "path", "g", "text", "circle"}
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= allowed
    assert len(elements(root, "box")) == len(picture.boxes)
    page = Page(html(picture))
    assert page.scripts == 2
    assert set(json.loads(page.resources)["snippets"]) == set(picture.snippets)


@pytest.mark.parametrize("name", EXAMPLES)
def test_each_text_of_a_cluster_stands_in_its_picture(name: str) -> None:
    picture = EXAMPLES[name]()
    root = ET.fromstring(svg(picture))
    for box, element in zip(picture.boxes, sorted_by_box(root, picture), strict=True):
        texts = " ".join(text.text or "" for text in element.iter(f"{SVG}text"))
        for wanted in (box.title, *box.lines):
            assert "".join(wanted.split()) in "".join(texts.split())
        title = element.findtext(f"{SVG}title") or ""
        assert [logical_id for logical_id in box.logical_ids if logical_id not in title] == []
    titles = " ".join(element.findtext(f"{SVG}title") or "" for element in elements(root, "arrow"))
    titles += " ".join(element.findtext(f"{SVG}title") or "" for element in elements(root, "box"))
    logical_ids = {logical_id for arrow in picture.arrows for logical_id in arrow.logical_ids}
    assert {logical_id for logical_id in logical_ids if logical_id not in titles} == set()


def test_a_picture_says_what_it_is_to_screen_readers() -> None:
    root = ET.fromstring(svg(EXAMPLES["default"]()))
    assert root.get("role") == "img"
    named = {element.get("id"): element.text or "" for element in root}
    names = (root.get("aria-labelledby") or "").split()
    assert [named[name] for name in names] == ["kubernetes in us-west-2", named["picture-description"]]
    assert "nodes to master a (TCP 443)" in named["picture-description"]


def test_all_symbols_of_a_picture_lie_within_it() -> None:
    root = ET.fromstring(svg(EXAMPLES["production"]()))
    w, h = float(root.get("width") or 0), float(root.get("height") or 0)
    for text in root.iter(f"{SVG}text"):
        assert 0 <= float(text.get("x") or 0) <= w
        assert 0 <= float(text.get("y") or 0) <= h


def test_the_legend_explains_what_occurs_and_nothing_else() -> None:
    access = texts_of(svg(EXAMPLES["access"]()))
    assert "may open connections to" in access
    assert "uses" not in access
    assert "is added" not in access
    deployment = texts_of(svg(EXAMPLES["deployment"]()))
    assert {"may open connections to", "routes to", "may use or change", "uses"} <= deployment
    assert {"is added", "is changed in place", "is replaced by a new one", "is removed"} <= deployment


def test_changes_have_a_sign_besides_their_colour() -> None:
    root = ET.fromstring(svg(EXAMPLES["deployment"]()))
    badges = [(element.get("class"), element.findtext(f"{SVG}text")) for element in elements(root, "badge")]
    assert ("badge added", "+") in badges
    assert ("badge replaced", "!") in badges
    assert {"+ TCP 443", "\N{MINUS SIGN} TCP 22", "\N{GREEK CAPITAL LETTER DELTA} TCP 10250"} <= texts_of(
        ET.tostring(root, encoding="unicode")
    )


def test_the_same_picture_gives_the_same_bytes() -> None:
    for write in (svg, html):
        assert write(EXAMPLES["deployment"]()) == write(EXAMPLES["deployment"]())


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_everything_that_is_to_be_read_has_enough_contrast(scheme: Scheme) -> None:
    backgrounds = [scheme.page, *scheme.fills.values()]
    for colour in (scheme.text, scheme.quiet, *scheme.arrows.values(), *scheme.changes.values()):
        assert min(contrast(colour, background) for background in backgrounds) >= 4.5
    for kind, border in scheme.borders.items():
        assert contrast(border, scheme.fills[kind]) >= 3
    for change in scheme.changes.values():
        assert contrast(scheme.on_change, change) >= 4.5


def test_all_kinds_have_colours_symbols_and_dashes() -> None:
    for scheme in (LIGHT, DARK):
        assert set(scheme.fills) == set(scheme.borders) == set(SYMBOLS) == set(get_args(BoxKind))
        assert set(scheme.arrows) == set(DASHES) == set(get_args(ArrowKind))
        assert set(scheme.changes) == set(get_args(Change))
    assert len(set(DASHES.values())) == len(DASHES)


def test_a_picture_is_light_in_print_and_follows_the_page_on_screens() -> None:
    text = svg(EXAMPLES["default"]())
    light, dark = text.split("@media screen and (prefers-color-scheme:dark){")
    assert LIGHT.page in light
    assert DARK.page not in light
    assert DARK.page in dark
    assert "@media print{" in text
    # Dark colours are for screens alone, and a picture that is a document of its own fits the page.
    assert "@media (prefers-color-scheme:dark)" not in text
    assert ".picture:root{width:100%;height:auto;max-height:100vh}" in text


def test_paper_is_white_and_has_nothing_that_only_a_screen_needs() -> None:
    text = html(EXAMPLES["deployment"]())
    for rule in (
        "#zoom,#hint,#panel{display:none!important}",
        ".picture .heading,.picture .name,.picture .line:not(.loop){fill:#000}",
        ".picture .outline,.picture .label rect{fill:#fff}",
        "#view>svg{width:100%;height:auto;max-height:100vh}",
    ):
        assert rule in text
        assert text.index("@media print{") < text.index(rule)


def test_a_page_loads_nothing_and_allows_only_its_own_script() -> None:
    text = html(EXAMPLES["production"]())
    page = Page(text)
    assert not page.loaded
    assert not page.handlers
    allowed = set(re.findall(r"'sha256-[^']+'", page.policy))
    parts = re.findall(r"<style>(.*?)</style>|<script>(.*?)</script>", text, re.DOTALL)
    assert allowed == {digest(style or script) for style, script in parts}
    assert page.policy.startswith("default-src 'none'")


def test_a_page_has_the_template_of_each_resource() -> None:
    picture = EXAMPLES["default"]()
    assert json.loads(Page(html(picture)).resources)["snippets"] == picture.snippets


def test_a_picture_without_anything_is_a_picture() -> None:
    assert ET.fromstring(svg(Picture("empty", ()))).find(f".//{SVG}text") is not None


def test_a_picture_of_one_box_needs_no_legend() -> None:
    picture = Picture("bucket", (Box("Bucket", "bucket", "Backups", (), None, ("Bucket",)),))
    assert texts_of(svg(picture)) == {"bucket", "Backups"}


class Page(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.policy = ""
        self.resources = ""
        self.scripts = 0
        self.loaded: list[str] = []
        self.handlers: list[str] = []
        self._in_resources = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag == "meta" and attributes.get("http-equiv") == "Content-Security-Policy":
            self.policy = attributes["content"] or ""
        self.scripts += tag == "script"
        self._in_resources = attributes.get("id") == "resources"
        links = {name: attributes[name] or "" for name in ("src", "href", "xlink:href", "srcset") if name in attributes}
        self.loaded += [link for link in links.values() if not link.startswith("#")]  # others are parts of the page
        self.handlers += [name for name in attributes if name.startswith("on") or name == "style"]

    def handle_data(self, data: str) -> None:
        if self._in_resources:
            self.resources += data

    def handle_endtag(self, tag: str) -> None:
        self._in_resources = False


def elements(root: ET.Element, name: str) -> list[ET.Element]:
    """Return the groups of a picture that have a class and a title, or a badge's text."""
    groups = [group for group in root.iter(f"{SVG}g") if name in (group.get("class") or "").split()]
    return [group for group in groups if name == "badge" or group.find(f"{SVG}title") is not None]


def sorted_by_box(root: ET.Element, picture: Picture) -> list[ET.Element]:
    by_box = {element.get("data-box"): element for element in elements(root, "box")}
    return [by_box[box.id.replace(" ", "%20")] for box in picture.boxes]


def texts_of(text: str) -> set[str]:
    return {element.text or "" for element in ET.fromstring(text).iter(f"{SVG}text")}


def digest(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def contrast(one: str, other: str) -> float:
    """Return the contrast of two colours (https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio)."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def luminance(colour: str) -> float:
    """Return the relative luminance of a colour (https://www.w3.org/TR/WCAG22/#dfn-relative-luminance)."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
