"""Clusters in which every pair of values of two dimensions occurs that go together: each lives in the emulator."""

from __future__ import annotations

import pytest
from combinations import lived
from matrix_lives import live

pytestmark = pytest.mark.drill
ROWS = lived()


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_cluster_is_created_healthy_unchanged_and_deleted(number: int) -> None:
    live(ROWS[number])
