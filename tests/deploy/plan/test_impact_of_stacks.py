"""What it means that a node group's stack comes or goes."""

from __future__ import annotations

from typing import Any

import pytest
from test_impact import ASG, DISRUPTIVE, NONE, TEMPLATE

from cfngen.cluster.load import parse
from cfngen.deploy.aws.change_sets import ChangeSet, ResourceChange
from cfngen.deploy.plan.impact import ImpactAssessment

SPARE = parse({"nodeGroups": [{"name": "spare", "instanceType": "m5.large", "minSize": 2, "maxSize": 4}]})


def described(size: dict[str, Any] | None, data: dict[str, Any] | None) -> ChangeSet:
    group = ResourceChange("Add", "G", "", ASG, after={} if size is None else {"Properties": size})
    template = ResourceChange("Add", "T", "", TEMPLATE, after={} if data is None else {"Properties": data})
    other = ResourceChange("Add", "R", "", "AWS::IAM::Role", after={"Properties": {"MinSize": 9, "MaxSize": 9}})
    return ChangeSet("arn", "arn", "one", "CREATE_COMPLETE", resource_changes={"G": group, "T": template, "R": other})


@pytest.mark.parametrize(
    ("description", "text"),
    [
        (None, "new node group `spare`: 2-4 nodes of m5.large"),
        (described(None, None), "new node group `spare`: 2-4 nodes of m5.large"),
        (described({"MinSize": "1", "MaxSize": "1"}, {}), "new node group `spare`: 1 node of m5.large"),
        (described({"MinSize": "3"}, {"LaunchTemplateData": {}}), "new node group `spare`: 3-4 nodes of m5.large"),
        (
            described({"MaxSize": "2"}, {"LaunchTemplateData": {"InstanceType": "c5.large"}}),
            "new node group `spare`: 2 nodes of c5.large",
        ),
    ],
)
def test_a_node_group_that_comes_is_told_with_the_values_of_its_change_set(
    description: ChangeSet | None, text: str
) -> None:
    told = ImpactAssessment(SPARE).of_stack(description, ("NodeGroupSpareStack",), "create")
    assert told is not None
    assert (told.text, told.danger) == (text, NONE)


def test_stacks_that_come_and_go() -> None:
    meanings = ImpactAssessment(SPARE)
    assert meanings.of_stack(None, ("MasterStack",), "delete") is None
    gone = meanings.of_stack(None, ("NodeGroupOldStack",), "delete")
    assert gone is not None
    assert gone.danger is DISRUPTIVE
    assert gone.text.startswith("node group `old` is removed with its instances, all at once")
    other = meanings.of_stack(None, ("NodeGroupOldStack",), "create")
    assert other is not None
    assert other.text == "new node group `old`"
