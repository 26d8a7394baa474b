"""Lives of clusters by chance, as many as are asked for: `make soak EXAMPLES=100 SEED=1`.

A life that goes wrong is made smaller, for some minutes, and printed; the same seed finds it again.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from drawn_lives import Life, lives
from hypothesis import HealthCheck, given, seed, settings
from living import live

EXAMPLES = int(os.environ.get("CFNGEN_SOAK_EXAMPLES", "50"))
SEED = int(os.environ.get("CFNGEN_SOAK_SEED", "0"))


@pytest.mark.soak
def test_lives_go_as_planned(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    counted: Counter[str] = Counter()

    @seed(SEED)
    @settings(max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(lives())
    def lived(life: Life) -> None:
        counted["lives"] += 1
        live(life, counted, tmp_path)

    try:
        lived()
    finally:
        with capsys.disabled():
            print("".join(f"\n{number:6} {what}" for what, number in counted.most_common()))
    assert counted["updated"] > counted["lives"] // 10, "hardly any change was carried out"
