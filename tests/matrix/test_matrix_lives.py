"""Clusters in which every pair of values of two dimensions occurs that go together: each lives in the emulator."""

from __future__ import annotations

import pytest
from combinations import lived
from matrix_lives import live

ROWS = lived()
# The rows are drawn greedily: the first ones have most of the pairs. `make soak` lives the others, too.
DRILLS = 4


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=pytest.mark.drill if n < DRILLS else pytest.mark.soak) for n in range(len(ROWS))],
)
def test_a_cluster_is_created_healthy_unchanged_and_deleted(number: int) -> None:
    live(ROWS[number])
