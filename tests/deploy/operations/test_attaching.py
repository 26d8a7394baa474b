"""Leaving a deployment and coming back: what `watch` finishes, and how long it says that things took."""

from __future__ import annotations

import json

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.deploy.aws import protection
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Event, Finished, Notice
from cfngen.deploy.operations.deployment.attaching import attach
from cfngen.deploy.operations.recovery import rollback
from cfngen.deploy.preflight.stack_checks import BusyError

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
LARGER = {"name": "one", "nodeGroups": groups("general", instanceType="m5.large")}
MOVED = {**ONE, "controlPlane": {"addresses": ["172.20.0.50"]}}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    cloud.engine.durations["*"] = 20
    return Operator(cloud)


def interrupt() -> None:
    raise KeyboardInterrupt


def left(operator: Operator, cluster=ONE, **options) -> Finished:
    """A deployment that its operator leaves after some seconds."""
    operator.cloud.faults.after("DescribeStackEvents", interrupt, nth=3)
    finished = operator.deploy(cluster, **options)
    assert finished.in_progress
    return finished


def came_back(operator: Operator, cluster: str = "one") -> Finished:
    operator.messages.clear()
    return attach(operator.account, "one", cluster, operator.waiting)


def policies(operator: Operator) -> list[str]:
    return [stack.name.rpartition("-")[0] for stack in operator.cloud.engine.stacks() if stack.policy]


def test_a_new_stack_is_protected_before_anything_is_in_it(operator: Operator):
    left(operator)
    assert find_stack(operator.account, "one").protected
    calls = [call.operation for call in operator.cloud.faults.calls]
    assert calls.index("UpdateTerminationProtection") < calls.index("ExecuteChangeSet")


def test_who_comes_back_finishes_the_deployment(operator: Operator):
    left(operator)
    assert policies(operator) == []
    assert len(protection.find_stacks_without_policy(operator.account, find_stack(operator.account, "one"))) >= 1
    assert came_back(operator).status == "CREATE_COMPLETE"
    assert protection.find_stacks_without_policy(operator.account, find_stack(operator.account, "one")) == ()
    assert len(policies(operator)) == 3


def test_what_was_not_to_be_protected_is_not(operator: Operator):
    left(operator, protect=False)
    came_back(operator)
    assert not find_stack(operator.account, "one").protected
    assert len(policies(operator)) == 3


def test_one_that_is_deleted_on_failure_is_protected_at_the_end(operator: Operator):
    left(operator, on_failure="delete")
    assert not find_stack(operator.account, "one").protected
    came_back(operator)
    assert find_stack(operator.account, "one").protected


def test_the_stack_of_another_cluster_is_only_watched(operator: Operator):
    left(operator)
    came_back(operator, cluster="two")
    assert policies(operator) == []


def test_a_creation_that_fails_leaves_nothing_protected(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    left(operator)
    assert came_back(operator).status == "ROLLBACK_COMPLETE"
    operator.cloud.client("cloudformation").delete_stack(StackName="one")
    operator.cloud.engine.fail("MasterAVolume", "broken")
    assert operator.deploy(ONE).status == "ROLLBACK_COMPLETE"
    assert not find_stack(operator.account, "one").protected


def test_a_kept_creation_is_rolled_back_although_it_is_protected(operator: Operator):
    operator.cloud.engine.fail("MasterAVolume", "broken")
    operator.deploy(ONE, on_failure="keep")
    assert find_stack(operator.account, "one").protected
    assert not rollback(operator.account, "one", "one", operator.waiting).status.exists


def test_policies_that_were_lifted_are_set_by_who_comes_back(operator: Operator):
    operator.deploy(ONE)
    left(operator, MOVED)
    assert any("stay lifted" in each.text for each in operator.reported(Notice))
    root = operator.cloud.engine.stack("one")
    assert json.loads(root.policy) == protection.ALLOW_ALL_POLICY
    came_back(operator)
    assert json.loads(root.policy) == protection.ROOT_POLICY


def test_a_second_deployer_is_told_who_deploys_and_since_when(operator: Operator):
    left(operator)
    operator.cloud.clock.sleep(120)
    before = len(operator.cloud.faults.calls)
    events = operator.cloud.engine.stack("one").events
    begun = next(event.time for event in events if event.status == "CREATE_IN_PROGRESS")
    minutes = round((operator.cloud.clock.now() - begun).seconds / 60)
    since = rf"since {begun:%H:%M} UTC \({minutes} minutes ago\), started by arn:aws:"
    with pytest.raises(BusyError, match=since) as raised:
        Operator(operator.cloud).deploy(LARGER)
    assert raised.value.since.endswith(operator.account.caller)
    assert not {"PutObject", "CreateChangeSet"} & {call.operation for call in operator.cloud.faults.calls[before:]}


def test_what_somebody_else_began_is_nobodys_by_name(operator: Operator):
    operator.deploy(ONE, protect=False)
    operator.cloud.client("cloudformation").delete_stack(StackName="one")
    with pytest.raises(BusyError, match="not started by a deployment of cfngen"):
        operator.deploy(ONE)


@pytest.mark.parametrize("existing", [False, True])
def test_who_is_about_to_deploy_is_told_of_before_anything_is_uploaded(operator: Operator, existing: bool):
    if existing:
        operator.deploy(ONE)
    second = Operator(operator.cloud, made=100)

    def meanwhile(question):
        """The first operator looks at the plan while the second one begins."""
        operator.cloud.clock.sleep(240)
        second.plan(LARGER)
        return False

    operator.answer = meanwhile
    with pytest.raises(Exception, match="you declined"):
        operator.deploy(LARGER)
    told = second.messages[0]
    assert isinstance(told, Notice)
    assert told.text.startswith(f"{operator.account.caller} has been planning a change of one since ")
    assert "(4 minutes ago)" in told.text


def test_durations_are_those_of_the_operation(operator: Operator):
    """Neither of the time that was spent at a question, nor of that since somebody came back."""

    def slowly(question):
        operator.cloud.clock.sleep(3600)
        return True

    operator.answer = slowly
    finished = operator.deploy(ONE)
    events = operator.reported(Event)
    assert finished.seconds == (events[-1].time - events[0].time).total_seconds() < 600
    seconds = finished.seconds
    operator.cloud.clock.sleep(300)
    assert came_back(operator).seconds == seconds
