"""A creation that failed and was kept, and what leads out of it: trying again, as often as it takes."""

from __future__ import annotations

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.plan.plan import Plan

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general")}
GROUP = "NodeGroupGeneralAutoScalingGroup"
MORE = {"name": "one", "nodeGroups": groups("general", "late")}
LATE = "NodeGroupLateAutoScalingGroup"


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def inside(operator: Operator) -> set[str]:
    engine = operator.cloud.engine
    return {
        resource.physical_id
        for stack in engine.stacks()
        for resource in stack.resources.values()
        if resource.exists and resource.child is None and resource.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE")
    }


@pytest.mark.parametrize("resource", ["MasterAVolume", "MasterAAutoScalingGroup", GROUP])
def test_a_kept_creation_is_tried_again_until_it_works(operator: Operator, resource: str):
    operator.cloud.engine.fail(resource, "not yet", times=3)
    assert operator.deploy(ONE, on_failure="keep").status == "CREATE_FAILED"
    for _ in range(2):
        kept = inside(operator)
        assert operator.deploy(ONE).status == "UPDATE_FAILED"
        assert kept <= inside(operator)
    assert operator.deploy(ONE).status == "UPDATE_COMPLETE"
    stack = operator.cloud.engine.stack("one")
    assert stack.protected
    assert {each.status for each in stack.children.values()} <= {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
    assert operator.deploy(ONE).action == "none"


def exhausted(operator: Operator) -> None:
    """A kept update that has failed again, so that the stack has all templates and values."""
    operator.deploy(ONE)
    operator.cloud.engine.fail(LATE, "no capacity", times=2)
    for _ in range(2):
        operator.deploy(MORE, on_failure="keep")
    operator.questions.clear()
    operator.messages.clear()
    assert operator.cloud.engine.stack("one").status == "UPDATE_FAILED"


def test_a_plan_says_that_deploying_would_try_again(operator: Operator):
    exhausted(operator)
    plan = operator.plan(MORE)
    assert (plan.is_empty, plan.change_set_id) == (False, "")
    assert f"NodeGroupLateStack/{LATE}" in plan.retries
    assert operator.cloud.engine.stack("one").status == "UPDATE_FAILED"


def test_a_plan_names_what_it_tries_again_beside_its_changes(operator: Operator):
    operator.deploy(ONE)
    operator.cloud.engine.fail(GROUP, "no capacity", during="UPDATE")
    larger = {"name": "one", "nodeGroups": groups("general", instanceType="m5.large")}
    operator.deploy(larger, on_failure="keep")
    assert operator.cloud.engine.stack("one").status == "UPDATE_FAILED"
    plan = operator.plan(larger)
    assert plan.templates_only
    assert plan.unfinished == (f"NodeGroupGeneralStack/{GROUP}",)


def test_trying_again_is_asked_for(operator: Operator):
    exhausted(operator)
    operator.answer = lambda question: False
    with pytest.raises(DeclinedError):
        operator.deploy(MORE)
    assert len(operator.questions) == 1
    assert operator.reported(Plan)[0].retries
    assert operator.cloud.engine.stack("one").status == "UPDATE_FAILED"
