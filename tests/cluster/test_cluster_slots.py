"""Slots: which master is where, and that a master stays where it is when the network grows."""

from __future__ import annotations

from ipaddress import IPv4Address

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster


def zones(*letters: str) -> dict[str, object]:
    return {"subnets": [{"zone": f"us-west-2{letter}"} for letter in letters]}


def places(cluster: Cluster) -> list[tuple[str, str]]:
    return [(slot.letter, slot.subnet.zone[-1]) for slot in cluster.slots]


@pytest.mark.parametrize(
    ("count", "letters", "expected"),
    [
        (1, "ab", "a"),
        (3, "abc", "abc"),
        (3, "a", "aaa"),
        (3, "ab", "aba"),
        (5, "abc", "abcab"),
    ],
)
def test_masters_take_turns_over_the_subnets(count: int, letters: str, expected: str) -> None:
    cluster = parse({"network": zones(*letters), "controlPlane": {"count": count}})
    assert places(cluster) == list(zip("abcde", expected, strict=False))


def test_every_master_has_an_address_of_its_own_inside_its_subnet() -> None:
    cluster = parse({"network": zones("a", "b"), "controlPlane": {"count": 5}})
    assert len({slot.address for slot in cluster.slots}) == 5
    assert all(slot.address in slot.subnet.cidr for slot in cluster.slots)


def test_growth_leaves_the_masters_that_are_there_where_they_are() -> None:
    one, three, five = (
        parse({"network": zones("a", "b", "c"), "controlPlane": {"count": count}}).slots for count in (1, 3, 5)
    )
    assert five[:3] == three
    assert three[:1] == one


def test_a_written_address_keeps_its_master_in_place_when_a_subnet_is_added() -> None:
    addresses = ["172.20.0.9", "172.20.1.9", "172.20.0.10"]
    network = zones("a", "b")
    before = parse({"network": network, "controlPlane": {"count": 3, "addresses": addresses}})
    after = parse({"network": zones("a", "b", "c"), "controlPlane": {"count": 3, "addresses": addresses}})
    assert before.slots == after.slots
    assert after.slots[2].address == IPv4Address("172.20.0.10")
