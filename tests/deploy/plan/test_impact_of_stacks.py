"""What it means that a node group's stack comes or goes."""

from __future__ import annotations

from typing import Any

import pytest
from test_impact import ASG, DISRUPTIVE, NONE, TEMPLATE

from cfngen.cluster.load import parse
from cfngen.deploy.plan.impact import ImpactAssessment

SPARE = parse({"nodeGroups": [{"name": "spare", "instanceType": "m5.large", "minSize": 2, "maxSize": 4}]})


def resources(size: dict[str, Any], data: dict[str, Any] | None = None) -> dict[str, dict[str, Any]]:
    return {
        "NodeGroupSpareAutoScalingGroup": {"Type": ASG, "Properties": size},
        "NodeGroupSpareLaunchTemplate": {"Type": TEMPLATE, "Properties": {"LaunchTemplateData": data or {}}},
        "NodeGroupOtherAutoScalingGroup": {"Type": ASG, "Properties": {"MinSize": 9, "MaxSize": 9}},
    }


@pytest.mark.parametrize(
    ("new_resources", "text"),
    [
        (None, "new node group `spare`: 2-4 nodes of m5.large"),
        (resources({}), "new node group `spare`: 2-4 nodes of m5.large"),
        (resources({"MinSize": "1", "MaxSize": "1"}), "new node group `spare`: 1 node of m5.large"),
        (resources({"MinSize": "3"}), "new node group `spare`: 3-4 nodes of m5.large"),
        (
            resources({"MinSize": {"Ref": "Other"}}, {"InstanceType": {"Ref": "Other"}}),
            "new node group `spare`: 2-4 nodes of m5.large",
        ),
        (
            resources({"MaxSize": "2"}, {"InstanceType": "c5.large"}),
            "new node group `spare`: 2 nodes of c5.large",
        ),
    ],
)
def test_a_node_group_that_comes_is_told_with_the_values_of_its_template(new_resources: Any, text: str) -> None:
    told = ImpactAssessment(SPARE, 1, new_resources).of_stack(("NodeGroupSpareStack",), "create")
    assert told is not None
    assert (told.text, told.danger) == (text, NONE)


def test_stacks_that_come_and_go() -> None:
    meanings = ImpactAssessment(SPARE)
    assert meanings.of_stack(("MasterStack",), "delete") is None
    gone = meanings.of_stack(("NodeGroupOldStack",), "delete")
    assert gone is not None
    assert gone.danger is DISRUPTIVE
    assert gone.text.startswith("node group `old` is removed with its instances, all at once")
    other = meanings.of_stack(("NodeGroupOldStack",), "create")
    assert other is not None
    assert other.text == "new node group `old`"
