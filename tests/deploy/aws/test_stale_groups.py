"""A group that CloudFormation believes to be rolled back, and that launches from another version all the same."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator, groups

from cfngen.deploy.aws.launched_versions import StaleGroup, find_stale_groups
from cfngen.deploy.aws.stacks import find_stack, list_resource_tree
from cfngen.deploy.messages.message import Danger, Notice
from cfngen.deploy.operations.recovery import rollback
from cfngen.userdata.first_stage import unpacked

pytestmark = pytest.mark.drill

GROUP = "NodeGroupGeneralAutoScalingGroup"
BLUE = {"name": "one", "nodeGroups": groups("general", labels={"colour": "blue"})}
GREEN = {"name": "one", "nodeGroups": groups("general", labels={"colour": "green"})}
OTHER = {"name": "one", "nodeGroups": groups("general", "extra", labels={"colour": "green"})}


@pytest.fixture
def operator(cloud: Cloud) -> Operator:
    return Operator(cloud)


def behind(operator: Operator) -> tuple[StaleGroup, ...]:
    account = operator.account
    return find_stale_groups(
        account, [tree_stack.view for tree_stack in list_resource_tree(account, find_stack(account, "one").id)]
    )


def group(operator: Operator) -> dict[str, Any]:
    found = operator.cloud.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
    return next(each for each in found if GROUP in each["AutoScalingGroupName"])


def launch_from(operator: Operator, version: str) -> None:
    """As a rollback leaves it that was told to skip the group."""
    found = group(operator)
    source = {"LaunchTemplateId": found["LaunchTemplate"]["LaunchTemplateId"], "Version": version}
    operator.cloud.client("autoscaling").update_auto_scaling_group(
        AutoScalingGroupName=found["AutoScalingGroupName"], LaunchTemplate=source
    )


def boots(operator: Operator) -> bool:
    """Whether the stack has the program that a new instance of the group would ask for."""
    found = group(operator)["LaunchTemplate"]
    [version] = operator.cloud.client("ec2").describe_launch_template_versions(
        LaunchTemplateId=found["LaunchTemplateId"], Versions=[found["Version"]]
    )["LaunchTemplateVersions"]
    stage = unpacked(version["LaunchTemplateData"]["UserData"])
    stack = json.loads(stage.references)["stack"]
    nested = operator.cloud.engine.stack(stack)
    held = nested.resources.get(stage.program)
    program = held.definition.body["Metadata"]["cfngen"]["program"] if held and held.exists else ""
    return hashlib.sha256(program.encode()).hexdigest() == stage.sha256


def test_groups_of_a_deployed_cluster_are_where_they_should_be(operator: Operator):
    operator.deploy(BLUE)
    assert behind(operator) == ()
    operator.deploy(GREEN)
    assert behind(operator) == ()
    assert operator.reported(Notice) == []


def test_an_update_that_was_taken_back_leaves_nobody_behind(operator: Operator):
    """The launch template has a third version then, with what the first one had."""
    operator.deploy(BLUE)
    operator.cloud.engine.fail(GROUP, "no capacity", during="UPDATE")
    assert operator.deploy(GREEN).status == "UPDATE_ROLLBACK_COMPLETE"
    assert behind(operator) == ()
    # Another one, which the group is not told of, as where it was not touched before the update failed.
    source, ec2 = group(operator)["LaunchTemplate"], operator.cloud.client("ec2")
    [own] = ec2.describe_launch_template_versions(
        LaunchTemplateId=source["LaunchTemplateId"], Versions=[source["Version"]]
    )["LaunchTemplateVersions"]
    ec2.create_launch_template_version(
        LaunchTemplateId=source["LaunchTemplateId"], LaunchTemplateData=own["LaunchTemplateData"]
    )
    assert behind(operator) == ()


def test_a_group_that_a_forced_rollback_leaves_behind_is_noticed(operator: Operator):
    operator.deploy(BLUE)
    engine = operator.cloud.engine
    operator.cloud.machines.outcomes[GROUP] = None
    nested = next(stack for stack in engine.stacks() if "NodeGroupGeneralStack" in stack.name)

    def meanwhile() -> None:
        if nested.resources[GROUP].status == "UPDATE_IN_PROGRESS" and not struck:
            struck.append(True)
            engine.fail(GROUP, "access denied", during="UPDATE", times=9)

    struck: list[bool] = []
    seen = sum(call.operation == "DescribeStackEvents" for call in operator.cloud.faults.calls)
    for nth in range(seen + 1, seen + 40):
        operator.cloud.faults.after("DescribeStackEvents", meanwhile, nth=nth)
    assert operator.deploy(GREEN).status == "UPDATE_ROLLBACK_FAILED"
    assert rollback(operator.account, "one", "one", operator.waiting, force=True).status.succeeded is False
    assert f"{GROUP} launches from version 2" in operator.reported(Notice)[-1].text
    [found] = behind(operator)
    assert (found.group, found.unbootable) == (GROUP, True)
    assert not boots(operator)


@pytest.fixture
def skipped(operator: Operator) -> Operator:
    """An operator whose group was left on the version before the one that the stack has."""
    operator.deploy(BLUE)
    operator.deploy(GREEN)
    launch_from(operator, "1")
    assert not boots(operator)
    return operator


def test_the_program_of_a_group_left_behind_comes_back_and_goes_again(skipped: Operator):
    found = skipped.plan(GREEN)
    [added] = found.changes
    assert (added.action, added.logical_id) == ("add", behind(skipped)[0].program)
    [meaning] = found.predicted
    assert (meaning.danger, "new instances cannot boot" in meaning.text) == (Danger.DISRUPTIVE, True)
    assert skipped.deploy(GREEN).status == "UPDATE_COMPLETE"
    assert boots(skipped)
    [left] = behind(skipped)
    assert not left.unbootable
    # As long as the group names it, it stays, and is no change.
    assert skipped.deploy(GREEN).action == "none"
    assert "launches from version 1" in skipped.reported(Notice)[0].text
    assert boots(skipped)
    launch_from(skipped, "2")
    assert [change.action for change in skipped.plan(GREEN).changes] == ["remove"]
    skipped.deploy(GREEN)
    assert (behind(skipped), skipped.deploy(GREEN).action) == ((), "none")


def test_other_changes_carry_the_program_over_as_well(skipped: Operator):
    assert skipped.deploy(OTHER).status == "UPDATE_COMPLETE"
    assert boots(skipped)
