"""How often the emulator says yes where AWS says no: wrong creations and updates, and faults that we once had."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from wrong_templates import Row, attempt, rows

pytestmark = pytest.mark.drill

# What the emulator accepts although AWS does not, and why it is not modelled.
ACCEPTED: Mapping[str, str] = {}
# What it refuses in other words than AWS: a part of its own.
OTHER_WORDS: Mapping[str, str] = {}


ALL = [row for name in ("creations", "updates", "mends_taken_out") for row in rows(name)]


@pytest.mark.parametrize("row", ALL, ids=lambda row: row["id"])
def test_it_is_refused_for_the_right_reason(row: Row) -> None:
    refused = attempt(row)
    if row["id"] in ACCEPTED:
        assert refused is None, f"no longer accepted: {refused}"
        return
    assert refused, f"accepted: {row['why']} {row.get('source', '')}"
    assert OTHER_WORDS.get(row["id"], row["says"]) in refused.words
    if row["refused_by"] == "resource" and refused.resources:
        assert row["resource"] in refused.resources


def test_fewer_than_one_in_ten_is_accepted() -> None:
    drawn_up = rows("creations") + rows("updates")
    assert len(drawn_up) == 100
    assert len(ACCEPTED) < len(drawn_up) / 10
