"""The pictures of the pages are current; `make docs` writes them again."""

from __future__ import annotations

import pytest
from drawn import EXAMPLES, ROOT

from cfngen.graph.reference import EXAMPLES as PICTURES
from cfngen.graph.reference import pictures


@pytest.fixture(scope="module")
def drawn() -> dict[str, str]:
    return pictures(EXAMPLES)


@pytest.mark.parametrize("name", PICTURES)
def test_a_picture_of_the_pages_is_current(drawn: dict[str, str], name: str) -> None:
    assert (ROOT / "docs" / "pictures" / name).read_text(encoding="utf-8") == drawn[name], "make docs"


def test_every_picture_is_on_a_page() -> None:
    page = (ROOT / "docs/build/graph.md").read_text(encoding="utf-8")
    assert all(f"(../pictures/{name})" in page for name in PICTURES)
