"""The accounts and operators that clusters by chance live with are those of the other tests of deployment."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

for part in ("aws", "deploy"):
    sys.path.insert(0, str(Path(__file__).parents[1] / part))

COUNTED = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def counted(pytestconfig: pytest.Config) -> Counter[str]:
    """How often what happened; told at the end, for lives in which nothing is carried out find nothing."""
    return pytestconfig.stash.setdefault(COUNTED, Counter())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Tell what the lives were made of."""
    for what, number in config.stash.get(COUNTED, Counter()).most_common():
        terminalreporter.write_line(f"{number:6} {what}")
