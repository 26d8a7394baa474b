"""What node groups of several types count in quotas and costs: shares of Spot Instances, and the largest type."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.load import parse
from cfngen.deploy.plan.costs.costs import cost_differences
from cfngen.deploy.preflight.quotas.demand import Demand, count_demand
from cfngen.deploy.preflight.quotas.instance_counts import InstanceCount, on_demand_share
from cfngen.templates import generate

TYPES = ["m7i.large", "m7a.large"]


def demand(**group: Any) -> Demand:
    return count_demand(generate(parse({"nodeGroups": [{"name": "n", **group}]})), {})


def nodes(**group: Any) -> list[InstanceCount]:
    return [each for each in demand(**group).instances if each.instance_type != "t3.medium"]


@pytest.mark.parametrize(
    ("base", "percentage", "count", "share"),
    [(0, 100, 5, 5), (0, 0, 5, 0), (2, 0, 5, 2), (2, 50, 5, 4), (9, 0, 5, 5), (1, 25, 5, 2)],
)
def test_the_share_of_on_demand_instances(base: int, percentage: int, count: int, share: int) -> None:
    distribution = {"OnDemandBaseCapacity": base, "OnDemandPercentageAboveBaseCapacity": percentage}
    assert on_demand_share(count, distribution) == share


def test_a_list_counts_as_one_of_its_types() -> None:
    [counted] = nodes(instanceTypes=TYPES, minSize=2, maxSize=6)
    assert counted == InstanceCount("m7i.large", 2, is_spot=False, max_count=6, other_types=("m7a.large",))


def test_spot_instances_count_apart() -> None:
    group = {"instanceTypes": TYPES, "instancesDistribution": {"onDemandBase": 1, "onDemandPercentage": 50}}
    counts = [(each.is_spot, each.count, each.max_count) for each in nodes(**group, minSize=3, maxSize=9)]
    assert counts == [(False, 2, 5), (True, 1, 4)]


def test_volumes_and_addresses_count_as_those_of_one_type() -> None:
    one, several = demand(instanceType="m7i.large", minSize=3), demand(instanceTypes=TYPES, minSize=3)
    assert several.gib_by_volume_type == one.gib_by_volume_type
    assert several.public_addresses == one.public_addresses


def test_requirements_count_with_the_least_that_they_ask_for() -> None:
    [counted] = nodes(instanceRequirements={"vcpus": {"min": 4}, "memory": {"min": 8}}, minSize=3)
    assert (counted.least_vcpus, counted.count, counted.types) == (4, 3, ())


def test_an_update_names_the_types() -> None:
    group = {"instancesDistribution": {"onDemandPercentage": 0}, "minSize": 2}
    differences = cost_differences(demand(instanceType="m7i.large", minSize=2), demand(instanceTypes=TYPES, **group))
    assert [(each.quantity, each.what) for each in differences] == [
        (-2, "m7i.large"),
        (2, "m7i.large or m7a.large (spot)"),
    ]
