"""Lives of clusters by chance, as many as are asked for: `make soak EXAMPLES=100 SEED=1`.

Each is a test of its own, and the number behind its name chooses it: `make soak EXAMPLES=1 SEED=17` lives the 17th
alone. A life that goes wrong is made smaller and printed.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from chance import tried
from drawn_lives import lives
from living import live

EXAMPLES = int(os.environ.get("CFNGEN_SOAK_EXAMPLES", "50"))
SEED = int(os.environ.get("CFNGEN_SOAK_SEED", "1"))


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What lint has found of stacks that other lives have too."""
    return tmp_path_factory.mktemp("verdicts")


@pytest.mark.soak
@pytest.mark.parametrize("number", range(SEED, SEED + EXAMPLES))
def test_a_life_goes_as_planned(number: int, counted: Counter[str], verdicts: Path) -> None:
    tried(number, lives(), lambda life: live(life, counted, verdicts), shrink=True)
