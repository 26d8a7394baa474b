"""The lock of one master of several: taken by one, renewed, taken over from one that fell silent, given back."""

from __future__ import annotations

from typing import Any

import pytest
from helm_cluster import Cluster, Master

from cfngen.boot.machine import Pending
from cfngen.boot.master import lease

NAME = "cfngen-addons"
FIRST, SECOND = "i-0000000000000000a", "i-0000000000000000b"


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


@pytest.fixture
def masters(cluster: Cluster) -> tuple[Master, Master]:
    return cluster.master(FIRST), cluster.master(SECOND)


def held(cluster: Cluster) -> dict[str, Any]:
    spec: dict[str, Any] = cluster.objects["lease", NAME]["spec"]
    return spec


def test_lock_that_is_renewed_says_since_when_it_is_held(cluster: Cluster, masters: tuple[Master, Master]) -> None:
    lease.acquire(masters[0], NAME, FIRST)
    spec = {"holderIdentity": FIRST, "leaseDurationSeconds": 420, "acquireTime": "2026-09-01T12:00:00.000000Z"}
    assert held(cluster) == {**spec, "renewTime": "2026-09-01T12:00:00.000000Z"}
    cluster.passed = 300
    lease.acquire(masters[0], NAME, FIRST)
    assert held(cluster) == {**spec, "renewTime": "2026-09-01T12:05:00.000000Z"}
    cluster.passed = 719
    with pytest.raises(Pending, match=rf"^{FIRST} has held the lease since 2026-09-01T12:00:00Z$"):
        lease.acquire(masters[1], NAME, SECOND)
    cluster.passed = 720
    lease.acquire(masters[1], NAME, SECOND)
    assert held(cluster)["holderIdentity"] == SECOND
    assert held(cluster)["acquireTime"] == "2026-09-01T12:12:00.000000Z"


def test_lock_lasts_as_long_as_its_holder_says(cluster: Cluster, masters: tuple[Master, Master]) -> None:
    """A master of another version may mean another time."""
    lease.acquire(masters[0], NAME, FIRST)
    held(cluster)["leaseDurationSeconds"] = 60
    cluster.passed = 59
    with pytest.raises(Pending):
        lease.acquire(masters[1], NAME, SECOND)
    cluster.passed = 60
    lease.acquire(masters[1], NAME, SECOND)


def test_lock_is_given_back_by_its_holder_alone(cluster: Cluster, masters: tuple[Master, Master]) -> None:
    lease.acquire(masters[0], NAME, FIRST)
    lease.release(masters[1], NAME, SECOND)
    assert held(cluster)["holderIdentity"] == FIRST
    lease.release(masters[0], NAME, FIRST)
    assert held(cluster) == {}
    lease.acquire(masters[1], NAME, SECOND)
    assert held(cluster)["holderIdentity"] == SECOND


def test_lock_that_another_master_took_a_moment_earlier_is_not_had(
    cluster: Cluster, masters: tuple[Master, Master], monkeypatch: pytest.MonkeyPatch
) -> None:
    lease.acquire(masters[0], NAME, FIRST)
    lease.release(masters[0], NAME, FIRST)
    read = lease._read_lease

    def late(machine: Master, name: str) -> dict[str, Any]:
        found = read(machine, name)
        cluster.objects["lease", NAME]["metadata"]["resourceVersion"] = "another"
        return found

    monkeypatch.setattr(lease, "_read_lease", late)
    with pytest.raises(Pending, match="another master may have been faster"):
        lease.acquire(masters[1], NAME, SECOND)
