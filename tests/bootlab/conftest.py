"""Labs for clusters; see README.md for what they need."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from lab import Lab, laboratory
from lab_mirror import URL

ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")
TIMING = "CFNGEN_BOOT_TIMING"


def cluster_file(folder: Path, masters: int, nodes: int, **more: object) -> Path:
    """Write the file of a cluster of so many masters, each in its own zone, and of nodes; it names the mirror."""
    subnets = [{"zone": zone, "cidr": f"172.20.{number}.0/24"} for number, zone in enumerate(ZONES[:masters])]
    content = {
        "name": "kubernetes",
        "region": "us-west-2",
        "assets": {"mirror": URL},
        "network": {"subnets": subnets},
        "controlPlane": {"count": masters},
        "nodeGroups": [{"name": "nodes", "minSize": nodes, "maxSize": nodes + 2}],
        **more,
    }
    file = folder / "cluster.yaml"
    file.write_text(yaml.safe_dump(content))
    return file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is in this folder."""
    for item in items:
        if Path(item.path).is_relative_to(Path(__file__).parent):
            item.add_marker(pytest.mark.bootlab)


@pytest.fixture(scope="module")
def one_master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab for a cluster of one master and one node; nothing is created yet."""
    with laboratory(cluster_file(tmp_path_factory.mktemp("one"), 1, 1)) as made:
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
