"""Clusters from before node groups came after masters, brought to today's templates by `deploy`."""

from __future__ import annotations

import json

import pytest
from cloud import cloud_of
from clusters import BUCKET
from deployments import Operator
from earlier import CASES, Earlier, earlier

from cfngen.cli.render.plan import plan_lines
from cfngen.deploy.aws.stacks import CLUSTER_TAG
from cfngen.deploy.messages.message import Event
from cfngen.deploy.plan.plan import Plan

pytestmark = pytest.mark.drill


def create(operator: Operator, before: Earlier) -> None:
    """Create the cluster with the templates of then, as one did without change sets."""
    s3, engine = operator.cloud.client("s3"), operator.cloud.engine
    for name, body in before.templates.items():
        s3.put_object(Bucket=BUCKET, Key=f"earlier/{name}.json", Body=json.dumps(body).encode())
    stack = engine.create_stack(
        before.cluster.name,
        url=f"https://{BUCKET}.s3.{engine.region}.amazonaws.com/earlier/cluster.json",
        parameters={"TemplateBucket": BUCKET, "TemplatePrefix": "earlier/"},
        capabilities=["CAPABILITY_IAM"],
        tags={CLUSTER_TAG: before.cluster.name},
    )
    assert engine.wait(stack).status == "CREATE_COMPLETE"


@pytest.mark.parametrize("case", CASES)
def test_a_cluster_of_before_is_brought_to_today(case: str) -> None:
    before = earlier(case)
    names = [f"NodeGroup{each['name'].title()}Stack" for each in before.file["nodeGroups"]]
    with cloud_of(before.cluster) as cloud:
        operator = Operator(cloud)
        create(operator, before)
        finished = operator.deploy(before.cluster, flags={})
        assert finished.status == "UPDATE_COMPLETE"
        [plan] = operator.reported(Plan)
        rolled = [each.logical_id for each in operator.reported(Event) if "Rolling update initiated" in each.reason]
        assert operator.deploy(before.cluster, flags={}).action == "none"
    assert [(each.kind, each.groups, each.predicted) for each in plan.phases] == [
        ("control-plane", (), False),
        *(("node-groups", (name,), True) for name in names),
    ]
    letters = "ABC" if case == "three-masters" else "A"
    assert rolled == [
        *(f"Master{letter}AutoScalingGroup" for letter in letters),
        *(name.replace("Stack", "AutoScalingGroup") for name in names),
    ]
    text = "\n".join(plan_lines(plan, width=100))
    assert f"Phase 1 of {len(names) + 1}: control plane" in text
    assert "predicted" in text


def test_an_update_of_a_cluster_of_before_is_taken_back() -> None:
    """The second master does not come back; the conditions that the new templates move stay where they were."""
    before = earlier("three-masters")
    with cloud_of(before.cluster) as cloud:
        operator = Operator(cloud)
        create(operator, before)
        cloud.machines.outcomes = {"MasterBAutoScalingGroup": "FAILURE"}
        operator.messages = Recovering(operator)
        finished = operator.deploy(before.cluster, flags={})
        assert finished.status == "UPDATE_ROLLBACK_COMPLETE"
        [masters] = [each for each in cloud.engine.stacks() if "MasterStack" in each.name]
        assert masters.resources["MasterAWaitCondition"].status == "CREATE_COMPLETE"
        assert operator.deploy(before.cluster, flags={}).status == "UPDATE_COMPLETE"


class Recovering(list):
    """Messages; once something has failed all instances boot again."""

    def __init__(self, operator: Operator) -> None:
        super().__init__()
        self.operator = operator

    def append(self, message) -> None:
        super().append(message)
        if isinstance(message, Event) and message.status == "UPDATE_FAILED":
            self.operator.cloud.machines.outcomes = {}
