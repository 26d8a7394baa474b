"""A living cluster gets a group for each zone, loses a zone and gets another: what the plan shows, and what stays."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator

from cfngen.deploy.plan.plan import Plan

pytestmark = pytest.mark.drill


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def file(**group: Any) -> dict[str, Any]:
    subnets = [{"zone": f"us-west-2{zone}"} for zone in "abc"]
    return {"name": "one", "network": {"subnets": subnets}, "nodeGroups": [{"name": "work", "minSize": 1, **group}]}


def zones(names: str) -> dict[str, Any]:
    return {"oneGroupPerZone": True, "zones": [f"us-west-2{zone}" for zone in names]}


def phases(plan: Plan) -> list[tuple[str, tuple[str, ...]]]:
    return [(phase.kind, phase.groups) for phase in plan.phases]


def test_the_new_groups_come_first_and_the_old_one_goes_last(operator: Operator) -> None:
    operator.deploy(file())
    finished = operator.deploy(file(**zones("ab")))
    assert finished.succeeded
    [plan] = operator.reported(Plan)
    assert phases(plan) == [
        ("node-groups", ("NodeGroupWorkAStack",)),
        ("node-groups", ("NodeGroupWorkBStack",)),
        ("removed-node-groups", ("NodeGroupWorkStack",)),
    ]
    assert operator.deploy(file(**zones("ab"))).action == "none"


def test_a_zone_that_comes_or_goes_leaves_the_other_groups_alone(operator: Operator) -> None:
    operator.deploy(file(**zones("ab")))
    for wanted, changed in (("abc", {"NodeGroupWorkCStack"}), ("ca", {"NodeGroupWorkBStack"})):
        assert operator.deploy(file(**zones(wanted))).status == "UPDATE_COMPLETE"
        [plan] = operator.reported(Plan)
        changes = {change.logical_id for stack in plan.stacks if not stack.path for change in stack.changes}
        stacks = {stack.path[0] for stack in plan.stacks if stack.path and stack.changes}
        assert {name for name in changes | stacks if name.startswith("NodeGroup")} == changed
