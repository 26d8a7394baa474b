"""Updates in phases: what an operator is shown, and what stands after each of them has succeeded or failed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.cli.exit_codes import error_exit_code
from cfngen.deploy.messages.message import Event, Notice, Step
from cfngen.deploy.operations.deployment.update_series import UnfinishedError
from cfngen.deploy.plan.plan import Plan
from cfngen.sandbox.cloudformation import client

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": groups("general", "work", minSize=1, maxSize=1)}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def with_pods(number: int, **more: Any) -> dict[str, Any]:
    """The cluster with other kubelets, which replaces masters and nodes."""
    return {**ONE, "kubernetes": {"kubeletConfiguration": {"maxPods": number}}, **more}


def phases(plan: Plan) -> list[tuple[str, tuple[str, ...], bool]]:
    return [(each.kind, each.groups, each.predicted) for each in plan.phases]


def statuses(operator: Operator) -> dict[str, str]:
    """The status of each stack by the logical id that the root has for it."""
    found = {each.name: each for each in operator.cloud.engine.stacks() if each.status != "DELETE_COMPLETE"}
    return {name.removeprefix("one-").rpartition("-")[0] or "root": each.status for name, each in found.items()}


def rolled(operator: Operator) -> list[str]:
    """The groups whose instances were replaced, in order."""
    return [each.logical_id for each in operator.reported(Event) if "Rolling update initiated" in each.reason]


def test_masters_and_node_groups_are_phases_of_their_own(operator: Operator) -> None:
    """Also where a newer image would replace the nodes: those of later phases are held at the one they have."""
    operator.deploy(ONE)
    publish_image(operator)
    finished = operator.deploy(with_pods(90))
    assert (finished.action, finished.status, finished.succeeded) == ("update", "UPDATE_COMPLETE", True)
    [shown] = operator.reported(Plan)
    assert phases(shown) == [
        ("control-plane", (), False),
        ("node-groups", ("NodeGroupGeneralStack",), True),
        ("node-groups", ("NodeGroupWorkStack",), True),
    ]
    assert len(operator.questions) == 1
    groups_rolled = ["MasterAAutoScalingGroup", "NodeGroupGeneralAutoScalingGroup", "NodeGroupWorkAutoScalingGroup"]
    assert rolled(operator) == groups_rolled
    again = operator.deploy(with_pods(90))
    assert again.action == "none"


def test_a_group_that_fails_leaves_the_masters_and_the_other_groups_as_they_are(operator: Operator) -> None:
    operator.deploy(ONE)
    operator.cloud.machines.outcomes = {"NodeGroupWorkAutoScalingGroup": "FAILURE"}
    hear(operator, lambda said: isinstance(said, Event) and said.status == "UPDATE_FAILED", recovered)
    finished = operator.deploy(with_pods(90))
    assert (finished.status, finished.succeeded) == ("UPDATE_ROLLBACK_COMPLETE", False)
    taken_back = [
        each.path for each in operator.reported(Event) if each.status == "UPDATE_ROLLBACK_IN_PROGRESS" and each.of_stack
    ]
    assert set(taken_back) == {(), ("NodeGroupWorkStack",)}
    [left] = [notice for notice in operator.reported(Notice) if "Remaining" in notice.text]
    assert "Work" in left.text
    assert "General" not in left.text
    assert "`cfngen deploy`" in str(left.hint)
    again = operator.deploy(with_pods(90))
    assert again.status == "UPDATE_COMPLETE"
    assert rolled(operator) == ["NodeGroupWorkAutoScalingGroup"]
    assert operator.reported(Plan)[0].phases == ()


def test_a_volume_grows_before_anything_that_may_fail(operator: Operator) -> None:
    operator.deploy(ONE)
    operator.cloud.machines.outcomes = {"MasterAAutoScalingGroup": "FAILURE"}
    hear(operator, lambda said: isinstance(said, Event) and said.status == "UPDATE_FAILED", recovered)
    wanted = with_pods(90, controlPlane={"volume": {"size": 40, "iops": 4000}})
    finished = operator.deploy(wanted)
    [shown] = operator.reported(Plan)
    assert [each[0] for each in phases(shown)] == ["volumes", "control-plane", "node-groups", "node-groups"]
    # Without the phase: UPDATE_ROLLBACK_FAILED, since EBS shrinks nothing.
    assert finished.status == "UPDATE_ROLLBACK_COMPLETE"
    volumes = client("ec2", operator.cloud.cluster.region).describe_volumes()["Volumes"]
    assert [(each["Size"], each["Iops"]) for each in volumes if each["Size"] == 40] == [(40, 4000)]
    finished = operator.deploy(wanted)
    assert finished.status == "UPDATE_COMPLETE"


def test_what_touches_one_phase_stays_one(operator: Operator) -> None:
    operator.deploy(ONE)
    assert operator.reported(Plan)[0].phases == ()
    operator.deploy({**ONE, "nodeGroups": [ONE["nodeGroups"][0], {**ONE["nodeGroups"][1], "instanceType": "m5.large"}]})
    assert operator.reported(Plan)[0].phases == ()
    assert len([step for step in operator.reported(Step) if "creating a change set" in step.text]) == 1


def test_new_groups_come_before_those_that_go(operator: Operator) -> None:
    operator.deploy(ONE)
    finished = operator.deploy({**ONE, "nodeGroups": groups("general", "spare", minSize=1, maxSize=1)})
    assert finished.succeeded
    assert phases(operator.reported(Plan)[0]) == [
        ("node-groups", ("NodeGroupSpareStack",), False),
        ("removed-node-groups", ("NodeGroupWorkStack",), True),
    ]
    assert {each.split("-")[0] for each in statuses(operator)} >= {"NodeGroupGeneralStack", "NodeGroupSpareStack"}
    assert "NodeGroupWorkStack" not in statuses(operator)


def test_leaving_a_phase_to_itself_says_what_is_left(operator: Operator) -> None:
    operator.deploy(ONE)
    hear(operator, lambda said: isinstance(said, Event) and said.logical_id == "MasterAAutoScalingGroup", interrupted)
    finished = operator.deploy(with_pods(90))
    assert (finished.in_progress, finished.succeeded) == (True, False)
    [left] = [notice for notice in operator.reported(Notice) if "not started" in notice.text]
    assert "node group General, node group Work" in left.text
    assert "cfngen watch --stack-name one" in str(left.hint)
    assert "`cfngen deploy`" in str(left.hint)


def test_ctrl_c_between_two_phases_names_the_command_that_goes_on(operator: Operator) -> None:
    operator.deploy(ONE)
    planning = "creating a change set: node group General"
    hear(operator, lambda said: isinstance(said, Step) and said.text == planning, interrupted)
    with pytest.raises(UnfinishedError) as raised:
        operator.deploy(with_pods(90))
    assert error_exit_code(raised.value.code) == 6
    assert raised.value.left == ("node group General", "node group Work")
    assert "`cfngen deploy`" in str(raised.value.hint)
    assert operator.cloud.client("cloudformation").list_change_sets(StackName="one")["Summaries"] == []
    assert operator.deploy(with_pods(90)).succeeded


def test_a_phase_that_turns_out_worse_is_asked_for_again(operator: Operator) -> None:
    """A newer image is published meanwhile: the group that should only grow would be replaced."""
    operator.deploy(ONE)

    hear(operator, lambda said: isinstance(said, Step) and said.text.startswith("phase 1"), publish_image)
    operator.answer = lambda question: "more than was predicted" not in question.text
    larger = [{"name": name, "minSize": 1, "maxSize": 2} for name in ("general", "work")]
    with pytest.raises(UnfinishedError, match="you did not agree to node groups General, Work"):
        operator.deploy({**ONE, "nodeGroups": larger, "controlPlane": {"instanceType": "t3.large"}})
    assert operator.questions[-1].consequences
    assert rolled(operator) == ["MasterAAutoScalingGroup"]


def publish_image(operator: Operator) -> None:
    """Let the parameters of image publishers lead to a newer image."""
    engine = operator.cloud.engine
    newer = client("ec2", engine.region).register_image(Name="newer")["ImageId"]
    engine.parameter_store = dict.fromkeys(engine.parameter_store, newer)


def interrupted(operator: Operator) -> None:
    raise KeyboardInterrupt


def recovered(operator: Operator) -> None:
    """Let all instances boot from now on."""
    operator.cloud.machines.outcomes = {}


def hear(operator: Operator, what: Callable[[Any], bool], then: Callable[[Operator], None]) -> None:
    """Do something once, when something is reported."""
    done: list[Any] = []

    class Messages(list[Any]):
        def append(self, message: Any) -> None:
            super().append(message)
            if not done and what(message):
                done.append(message)
                then(operator)

    operator.messages = Messages()


def test_a_volume_that_a_rollback_left_large_is_seen_as_it_is(operator: Operator) -> None:
    """After the rollback was forced the stack believes in the size of before, and a change set with it."""
    operator.deploy(ONE)
    ec2 = client("ec2", operator.cloud.cluster.region)
    named = [{"Name": "tag:Name", "Values": ["one-master-a-data"]}]
    [volume] = [each["VolumeId"] for each in ec2.describe_volumes(Filters=named)["Volumes"]]
    ec2.modify_volume(VolumeId=volume, Size=40)

    operator.deploy(ONE)
    [notice] = [each for each in operator.reported(Notice) if volume in each.text]
    assert f"{volume} has 40 GiB already, though the stack records 20" in notice.text
    assert "controlPlane.volume.size to 40" in notice.hint
    less = operator.plan({**ONE, "controlPlane": {"volume": {"size": 30}}})
    assert "must be at least 40, not 30" in less.refusal_reason
    assert operator.deploy({**ONE, "controlPlane": {"volume": {"size": 40}}}).succeeded
    operator.messages.clear()
    assert operator.plan({**ONE, "controlPlane": {"volume": {"size": 40}}}).is_empty
    assert not [each for each in operator.reported(Notice) if volume in each.text]
