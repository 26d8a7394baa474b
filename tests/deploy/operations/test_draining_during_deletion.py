"""A deletion does not wait for nodes that move their pods; a cluster that lives on has its draining again."""

from __future__ import annotations

import pytest
from cloud import Cloud
from clusters import resources
from deleting import NAME, REGION, Operator, created

from cfngen.deploy.aws.account import connect
from cfngen.deploy.messages.message import Notice

pytestmark = pytest.mark.drill

HOOK = {
    "LifecycleHookName": "cfngen-drain",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    "HeartbeatTimeout": 120,
    "DefaultResult": "CONTINUE",
}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(connect(cloud.session, REGION, clock=cloud.clock))


def hooks(operator: Operator, group: str) -> list[dict[str, object]]:
    found = operator.account.client("autoscaling").describe_lifecycle_hooks(AutoScalingGroupName=group)
    return [{key: lifecycle_hook[key] for key in HOOK} for lifecycle_hook in found["LifecycleHooks"]]


def test_a_deletion_does_not_wait_for_pods_to_move(cloud: Cloud, operator: Operator) -> None:
    group = resources(created(cloud))["NodeGroupNodesAutoScalingGroup"].physical_id
    assert hooks(operator, group) == [HOOK]
    deleted = operator.deletes()
    assert deleted.succeeded
    assert deleted.seconds < HOOK["HeartbeatTimeout"]


def test_without_permission_it_waits_and_says_why(cloud: Cloud, operator: Operator) -> None:
    created(cloud)
    cloud.faults.deny("autoscaling:DeleteLifecycleHook")
    deleted = operator.deletes()
    assert deleted.succeeded
    assert deleted.seconds >= HOOK["HeartbeatTimeout"]
    assert any("nodes are still drained before they are terminated" in notice.text for notice in operator.heard(Notice))


def test_a_refused_deletion_leaves_draining_alone(cloud: Cloud, operator: Operator) -> None:
    group = resources(created(cloud))["NodeGroupNodesAutoScalingGroup"].physical_id
    cloud.faults.deny("cloudformation:DeleteStack")
    with pytest.raises(Exception, match="not allowed to call DeleteStack"):
        operator.deletes()
    assert hooks(operator, group) == [HOOK]


def test_nodes_that_a_failed_deletion_leaves_are_drained_again(cloud: Cloud, operator: Operator) -> None:
    group = resources(created(cloud))["NodeGroupNodesAutoScalingGroup"].physical_id
    cloud.engine.fail("NodeGroupNodesAutoScalingGroup", "scaling activity in progress", during="DELETE", times=9)
    operator.answers = lambda question: bool(question.name)
    deleted = operator.deletes()
    assert deleted.status == "DELETE_FAILED"
    assert hooks(operator, group) == [HOOK]


def test_who_leaves_does_not_leave_nodes_draining(cloud: Cloud, operator: Operator) -> None:
    group = resources(created(cloud))["NodeGroupNodesAutoScalingGroup"].physical_id
    assert operator.deletes(detach=True).in_progress
    assert hooks(operator, group) == []
    assert operator.deletes().stack == NAME
