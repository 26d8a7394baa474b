"""Capacity reservations of masters in plans: what they mean, what they cost, and room for them in the quotas."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from cloud import Cloud, cloud_of
from deployments import Operator, groups

from cfngen.cluster.load import parse
from cfngen.deploy.operations.deletion.execution import preview_with_refusal
from cfngen.deploy.plan.deletion.plan import DeletionRequest
from cfngen.deploy.plan.plan import Plan
from cfngen.sandbox.services import capacity

ONE: dict[str, Any] = {"name": "one", "nodeGroups": groups("general")}
RESERVED: dict[str, Any] = {**ONE, "controlPlane": {"capacityReservation": True}}
LARGER: dict[str, Any] = {**ONE, "controlPlane": {"capacityReservation": True, "instanceType": "m5.xlarge"}}


@pytest.fixture
def operator() -> Iterator[Operator]:
    with cloud_of(parse(dict(ONE))) as cloud:
        yield Operator(cloud)
        capacity.reset(cloud.cluster.region)


def impacts(plan: Plan) -> str:
    return "\n".join(change.impact.text for change in plan.changes if change.impact)


def vcpus(plan: Plan) -> int:
    """How many vCPUs the plan needs beside those in use; 0 if it needs no more."""
    return sum(quota.needed for quota in plan.quotas if quota.name.startswith("vCPUs of on-demand standard"))


def reservations(cloud: Cloud) -> list[str]:
    filters = [{"Name": "state", "Values": ["active"]}]
    described = cloud.client("ec2").describe_capacity_reservations(Filters=filters)["CapacityReservations"]
    return [reservation["InstanceType"] for reservation in described]


def test_a_new_cluster_says_what_is_reserved_and_needs_no_more_quota_for_it(operator: Operator) -> None:
    without, plan = operator.plan(ONE), operator.plan(RESERVED)
    assert vcpus(plan) == vcpus(without) == 6
    assert plan.creation is not None
    [item] = [item for item in plan.creation.items if "reservation" in item.what]
    assert (item.count, item.what) == (1, "capacity reservation of a master")
    [cost] = [cost for cost in plan.creation.costs if cost.unit == "reservation"]
    assert "as much as the instance, while none runs in it" in cost.detail


def test_reserving_later_is_planned_with_its_quota_and_costs(operator: Operator) -> None:
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"
    plan = operator.plan(RESERVED)
    assert "EC2 reserves capacity of t3.medium for master a" in impacts(plan)
    assert vcpus(plan) == 2
    assert [cost.quantity for cost in plan.costs if cost.unit == "reservation"] == [1]


@pytest.mark.drill
def test_reserving_later_and_another_type_count_both_and_are_made_first(operator: Operator) -> None:
    assert operator.deploy(ONE).status == "CREATE_COMPLETE"
    plan = operator.plan(RESERVED)
    assert "EC2 reserves capacity of t3.medium for master a" in impacts(plan)
    assert "the update fails before an instance is terminated" in impacts(plan)
    assert vcpus(plan) == 2
    assert [cost.quantity for cost in plan.costs if cost.unit == "reservation"] == [1]
    assert operator.deploy(RESERVED).status == "UPDATE_COMPLETE"
    assert reservations(operator.cloud) == ["t3.medium"]

    plan = operator.plan(LARGER)
    assert "by one of m5.xlarge, which is made first" in impacts(plan)
    assert vcpus(plan) == 2 + 4  # the master grows by two, and for a while both reservations are there
    capacity.remove_capacity(operator.cloud.cluster.region, "m5.xlarge")
    assert operator.deploy(LARGER).status == "UPDATE_ROLLBACK_COMPLETE"
    assert reservations(operator.cloud) == ["t3.medium"]

    removal = preview_with_refusal(operator.account, DeletionRequest("one", "one"))[0]
    assert ("capacity reservations", 1) in [(part.kind, len(part.ids)) for part in removal.deleted_parts]
    plan = operator.plan(ONE)
    assert "the capacity reservation of master a is cancelled" in impacts(plan)
    assert operator.deploy(ONE).status == "UPDATE_COMPLETE"
    assert reservations(operator.cloud) == []
