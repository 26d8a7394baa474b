"""A stack that the console, the AWS CLI or the CDK made from cfngen's templates: what may be done, its handover."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator

from cfngen.cluster.load import parse
from cfngen.deploy.aws.stacks import require_stack
from cfngen.deploy.messages.message import Notice
from cfngen.deploy.operations.etcd.restore import restore
from cfngen.deploy.operations.pausing.pause import pause
from cfngen.deploy.operations.pausing.resume import resume
from cfngen.deploy.operations.recovery import rollback
from cfngen.deploy.operations.replacing.replace import replace
from cfngen.deploy.preflight.stack_checks import ForeignStackError, MadeElsewhereError, NameConflictError
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.errors import CfngenError

LARGER = {"nodeGroups": [{"name": "nodes", "minSize": 4, "maxSize": 4, "instanceType": "t3.large"}]}
OPERATIONS: dict[str, Callable[[Operator, Any], object]] = {
    "plan": lambda operator, cluster: operator.plan(cluster, stack_name="pipe"),
    "deploy": lambda operator, cluster: operator.deploy(cluster, stack_name="pipe"),
    "pause": lambda operator, cluster: pause(operator.account, "pipe", cluster, operator.waiting),
    "resume": lambda operator, cluster: resume(operator.account, "pipe", cluster, operator.waiting),
    "rollback": lambda operator, cluster: rollback(operator.account, "pipe", cluster.name, operator.waiting),
    "replace": lambda operator, cluster: replace(
        operator.account, "pipe", cluster, "z", consent=lambda question: False, report=operator.messages.append
    ),
    "etcd restore": lambda operator, cluster: restore(
        operator.account, "pipe", cluster, "none", consent=lambda question: False, report=operator.messages.append
    ),
}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


@pytest.mark.parametrize("form", ["standalone", pytest.param("cluster", marks=pytest.mark.drill)])
def test_it_is_planned_for_but_not_updated_until_it_is_handed_over(operator: Operator, form: str) -> None:
    operator.cloud.account.create(form, name="pipe")
    plan = operator.plan(LARGER, stack_name="pipe")
    assert {change.logical_id for change in plan.changes} == {
        "NodeGroupNodesLaunchTemplate",
        "NodeGroupNodesAutoScalingGroup",
    }
    assert {(cost.quantity, cost.what) for cost in plan.costs} == {(4, "t3.large"), (-4, "t3.medium")}
    [notice] = [each for each in operator.reported(Notice) if "the CDK" in each.text]
    assert "give it the tag cfngen:cluster=kubernetes" in str(notice.hint)
    with pytest.raises(MadeElsewhereError):
        operator.deploy(LARGER, stack_name="pipe")
    stack = require_stack(operator.account, "pipe")
    operator.cloud.client("cloudformation").update_stack(
        StackName="pipe",
        UsePreviousTemplate=True,
        Parameters=[{"ParameterKey": name, "UsePreviousValue": True} for name in stack.parameters],
        Tags=[{"Key": "cfngen:cluster", "Value": "kubernetes"}],
        Capabilities=["CAPABILITY_IAM"],
    )
    operator.cloud.clock.sleep(3600)
    assert operator.deploy(LARGER, stack_name="pipe").status == "UPDATE_COMPLETE"
    assert operator.plan(LARGER, stack_name="pipe").is_empty


def test_what_may_be_done_with_a_stack_depends_on_what_made_it(operator: Operator) -> None:
    cluster, another = operator.cloud.cluster, parse({"name": "another"})
    operator.cloud.account.create(name="pipe")

    def refusal(name: str, cluster: Any) -> type[Exception] | None:
        try:
            OPERATIONS[name](operator, cluster)
        except CfngenError as error:
            return type(error)
        return None

    refused = {name: refusal(name, cluster) for name in OPERATIONS}
    assert {name for name, error in refused.items() if error is MadeElsewhereError} == {"deploy", "pause"}
    assert ForeignStackError not in refused.values()
    assert {refusal(name, another) for name in OPERATIONS} == {ForeignStackError}


def test_its_cluster_has_its_name_alone(operator: Operator) -> None:
    """It has no tag that says whose it is; of other people's stacks, only what looks like a cluster is read."""
    operator.cloud.account.create(name="pipe")
    body = json.dumps({"Resources": {"Own": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}})
    operator.cloud.engine.wait(operator.cloud.engine.create_stack("foreign", body=body))
    with pytest.raises(NameConflictError, match="already exists in the stack pipe"):
        operator.deploy(operator.cloud.cluster, stack_name="second")
    asked = {call.parameters["StackName"] for call in operator.cloud.faults.called("GetTemplateSummary")}
    assert not any("foreign" in each for each in asked)


def test_what_a_failed_update_advises_is_not_refused(operator: Operator) -> None:
    operator.cloud.account.create(name="pipe")
    operator.cloud.engine.fail("NodeGroupNodesAutoScalingGroup", "no capacity", during="UPDATE")
    client = operator.cloud.client("cloudformation")
    parameters = {**require_stack(operator.account, "pipe").parameters, "NodeGroupNodesInstanceType": "t3.large"}
    client.update_stack(
        StackName="pipe",
        UsePreviousTemplate=True,
        Parameters=[{"ParameterKey": name, "ParameterValue": value} for name, value in parameters.items()],
        Capabilities=["CAPABILITY_IAM"],
    )
    operator.cloud.clock.sleep(3600)
    diagnosis = diagnose(operator.account, "pipe")
    assert diagnosis.status == "UPDATE_ROLLBACK_COMPLETE"
    assert [str(step.command) for step in diagnosis.next_steps] == ["cfngen plan --stack-name pipe"]
    operator.plan(stack_name="pipe")
