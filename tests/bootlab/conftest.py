"""Labs for clusters; see README.md for what they need."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Only the directory of a test file is on the path; the lab's account is served as in tests of the emulator.
sys.path.insert(0, str(Path(__file__).parents[1] / "aws"))

from lab import Lab, laboratory
from lab_file import SPOT_GROUP, cluster_file

TIMING = "CFNGEN_BOOT_TIMING"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in this folder, but for the tests of the lab's own parts: they need no machine of their own."""
    folder = Path(__file__).parent
    for item in items:
        if item.path.parent == folder and not item.path.name.startswith("test_lab_"):
            item.add_marker(pytest.mark.bootlab)


@pytest.fixture(scope="module")
def one_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab for a cluster of one master, one node, and one on a Spot Instance; nothing is created yet."""
    with laboratory(cluster_file(tmp_path_factory.mktemp("one"), 1, 1, [SPOT_GROUP])) as made:
        yield made


@pytest.fixture(scope="module")
def three_masters(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab for a cluster of three masters and one node; nothing is created yet."""
    with laboratory(cluster_file(tmp_path_factory.mktemp("three"), 3, 1, kubernetesVersion="1.36.2")) as made:
        yield made


@pytest.fixture
def empty(tmp_path: Path) -> Iterator[Lab]:
    """A lab of one test's own for a cluster of one master and no node."""
    with laboratory(cluster_file(tmp_path, 1, 0)) as made:
        yield made


@pytest.fixture(scope="session")
def timing_page() -> str:
    """Where to write how long the boots took; nowhere, if it is empty."""
    return os.environ.get(TIMING, "")
