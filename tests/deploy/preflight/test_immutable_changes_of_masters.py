"""More masters, fewer masters, masters elsewhere: what a plan says, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.messages.message import Danger
from cfngen.deploy.preflight.immutable_settings import ImmutableSettingError, setting_impacts
from cfngen.templates import generate


def cluster(count: int, zones: str = "abc", **more: Any) -> dict[str, Any]:
    subnets = [{"zone": f"us-west-2{letter}"} for letter in zones]
    return {"network": {"subnets": subnets}, "controlPlane": {"count": count, **more}}


def root(configuration: dict[str, Any]) -> dict[str, Any]:
    return {each.name: each.body for each in generate(parse(configuration))}["cluster"]


@pytest.mark.parametrize(("before", "after"), [(3, 1), (5, 3), (5, 1)])
def test_masters_never_become_fewer(before: int, after: int):
    with pytest.raises(
        ImmutableSettingError, match=rf"^controlPlane.count: is {before} and cannot be changed to {after}: "
    ):
        setting_impacts(root(cluster(before)), parse(cluster(after)))


def test_one_master_becoming_three_is_dangerous_and_says_why():
    [meaning] = setting_impacts(root(cluster(1)), parse(cluster(3)))
    assert meaning.danger is Danger.DANGEROUS
    for words in ("1 master becomes 3", "fetch kubeconfigs again", "API is unavailable", "--on-failure keep"):
        assert words in meaning.text


def test_three_becoming_five_keeps_the_api():
    [meaning] = setting_impacts(root(cluster(3)), parse(cluster(5)))
    assert "the API stays up" in meaning.text
    assert "kubeconfig" not in meaning.text


def test_a_master_cannot_move_to_another_zone():
    before = cluster(3, "ab")
    with pytest.raises(ImmutableSettingError, match="master c is in us-west-2a and cannot move to us-west-2c"):
        setting_impacts(root(before), parse(cluster(3, "abc")))


def test_a_subnet_is_added_beside_masters_whose_addresses_are_written():
    before = cluster(3, "ab")
    addresses = [str(address) for address in parse(before).control_plane.addresses]
    assert setting_impacts(root(before), parse(cluster(3, "abc", addresses=addresses))) == ()


def test_as_many_masters_as_before_mean_nothing():
    assert setting_impacts(root(cluster(3)), parse(cluster(3))) == ()


def test_a_stack_that_noted_no_number_is_not_judged():
    template = root(cluster(3))
    notes = template["Metadata"]["cfngen"]["immutableSettings"]
    del notes["controlPlane.count"], notes["controlPlane.zones"]
    assert setting_impacts(template, parse(cluster(1))) == ()
