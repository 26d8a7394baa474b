"""An AWS account in memory for each test that asks for one."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Clusters and machines are those of the tests of templates; only the directory of a test file is on the path.
sys.path.insert(0, str(Path(__file__).parents[1] / "aws"))

from cloud import Cloud, default_cloud


@pytest.fixture
def cloud() -> Iterator[Cloud]:
    """An account ready for the golden default cluster, in us-west-2."""
    with default_cloud() as made:
        yield made
