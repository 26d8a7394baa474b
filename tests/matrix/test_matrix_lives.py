"""Clusters in which every pair of values of two dimensions occurs that go together: each lives in the emulator."""

from __future__ import annotations

import pytest
from combinations import lived
from matrix_lives import live

# How many combinations there are: to find them takes a second, in which every process would import this.
ROWS = 53
# The rows are drawn greedily: the first ones have most of the pairs. `make soak` lives the others, too.
DRILLS = 4


@pytest.mark.parametrize(
    "number",
    [pytest.param(n, marks=pytest.mark.drill if n < DRILLS else pytest.mark.soak) for n in range(ROWS)],
)
def test_a_cluster_is_created_healthy_unchanged_and_deleted(number: int) -> None:
    live(lived()[number])


@pytest.mark.drill
def test_every_combination_lives():
    assert len(lived()) == ROWS
