"""The emulator itself: rolling updates of Auto Scaling groups, and updates that are stopped while instances boot."""

from __future__ import annotations

from typing import Any

import pytest
from small_stacks import (
    GATEWAY,
    REGION,
    gateways,
    group,
    nested,
    reasons,
    signalling,
    since,
    statuses,
    tagged,
    text,
    types,
)

from cfngen.sandbox.cloudformation import CloudFormation, Stack, ValidationError, client


def created(cloud: CloudFormation, resources: dict[str, Any]) -> Stack:
    stack = cloud.wait(cloud.create_stack("s", body=text(resources)))
    assert stack.status == "CREATE_COMPLETE", stack.reason
    return stack


def updated(cloud: CloudFormation, resources: dict[str, Any], **arguments: Any) -> Stack:
    return cloud.wait(cloud.update_stack("s", body=text(resources), **arguments))


def told(stack: Stack) -> list[str]:
    """What the group's events of the last update say."""
    operations = {identity for identity, kind in stack.operations if kind == "UPDATE_STACK"}
    found = (event for event in stack.events if event.operation_id in operations and event.logical_id == "Group")
    return [each.reason for each in found if each.reason]


def test_instances_are_replaced_one_at_a_time() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 4)
    stack = created(cloud, group(2))
    launched = list(cloud.launched)
    updated(cloud, group(2, size="t3.large"))
    assert (stack.status, types(), cloud.clock.now) == ("UPDATE_COMPLETE", ["t3.large"] * 2, 90)
    new = list(cloud.launched)[2:]
    waiting = "New instance(s) added to autoscaling group - Waiting on 1 resource signal(s) with a timeout of PT10M."
    begun = (
        "Rolling update initiated. Terminating 2 obsolete instance(s) in batches of 1. Waiting on resource signals "
        "with a timeout of PT10M when new instances are added to the autoscaling group."
    )
    assert told(stack) == [
        begun,
        f"Terminating instance(s) [{launched[0]}]; replacing with 1 new instance(s).",
        f"Successfully terminated instance(s) [{launched[0]}] (Progress 50%).",
        waiting,
        f"Received SUCCESS signal with UniqueId {new[0]}",
        f"Terminating instance(s) [{launched[1]}]; replacing with 1 new instance(s).",
        f"Successfully terminated instance(s) [{launched[1]}] (Progress 100%).",
        waiting,
        f"Received SUCCESS signal with UniqueId {new[1]}",
    ]
    [found] = client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"]
    assert {instance["InstanceId"] for instance in found["Instances"]} == set(new)
    assert {instance["LaunchTemplate"]["Version"] for instance in found["Instances"]} == {"2"}
    assert stack.resources["Template"].attributes["LatestVersionNumber"] == "2"


def test_batches_keep_so_many_in_service() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 8)
    stack = created(cloud, group(4))
    updated(cloud, group(4, size="t3.large", MaxBatchSize=3, MinInstancesInService=2))
    terminated = [each for each in told(stack) if each.startswith("Terminating")]
    assert ["replacing with 2" in each for each in terminated] == [True, True]
    assert (types(), cloud.clock.now) == (["t3.large"] * 4, 90)


def test_a_group_that_can_spare_nothing_grows_for_the_time() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 4)
    stack = created(cloud, group(2, most=3))
    updated(cloud, group(2, most=3, size="t3.large", MinInstancesInService=2))
    assert told(stack)[1] == "Temporarily setting autoscaling group MinSize and DesiredCapacity to 3."
    assert [each.split("; ")[1] for each in told(stack) if each.startswith("Terminating")] == [
        "replacing with 1 new instance(s).", "replacing with 0 new instance(s)."
    ]  # fmt: skip
    assert (stack.status, types()) == ("UPDATE_COMPLETE", ["t3.large"] * 2)


def sizes() -> tuple[int, int, int]:
    """MinSize and DesiredCapacity of the only group, and the number of its instances."""
    [found] = client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"]
    return found["MinSize"], found["DesiredCapacity"], len(found["Instances"])


def replaced(stack: Stack) -> list[str]:
    """How many instances each batch of the last update terminated, and how many replaced them."""
    terminated = (each for each in told(stack) if each.startswith("Terminating instance(s)"))
    return [f"{each.count('i-')} by {each.split('replacing with ')[1].split()[0]}" for each in terminated]


@pytest.mark.parametrize(
    ("desired", "in_service", "batch", "raised", "batches"),
    [
        # guardian/testing-asg-rolling-update, observations/: what was measured of groups of 3 to 9 instances.
        (6, 3, 9, 9, ["6 by 3"]),  # healthy-to-healthy-partially-scaled.md
        (6, 6, 9, 9, ["3 by 3", "3 by 0"]),  # healthy-to-healthy-partially-scaled-v2.md
        (9, 3, 9, None, ["6 by 6", "3 by 3"]),  # healthy-to-healthy-fully-scaled.md
        (9, 8, 9, None, ["1 by 1"] * 9),  # healthy-to-healthy-fully-scaled-v2.md
        # A batch out of service and a surge beyond it.
        (6, 5, 3, 8, ["3 by 3", "3 by 1"]),
    ],
)
def test_batches_and_surges_as_measured(
    desired: int, in_service: int, batch: int, raised: int | None, batches: list[str]
) -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 30)
    stack = created(cloud, group(3, most=9))
    name = stack.resources["Group"].physical_id
    client("autoscaling", REGION).set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=desired)
    cloud.update_stack(
        "s", body=text(group(3, most=9, size="t3.large", MaxBatchSize=batch, MinInstancesInService=in_service))
    )
    cloud.advance(1)
    assert sizes()[:2] == ((raised, raised) if raised else (3, desired))
    cloud.wait(stack)
    assert (stack.status, types(), sizes()) == ("UPDATE_COMPLETE", ["t3.large"] * desired, (3, desired, desired))
    assert replaced(stack) == batches


def test_what_an_autoscaler_adds_during_a_surge_is_undone() -> None:
    """healthy-scale-out-mid-deploy.md of guardian/testing-asg-rolling-update: 3, raised to 6, scaled to 8, then 3."""
    cloud = signalling(*[(30, "SUCCESS")] * 30)
    stack = created(cloud, group(3, most=9))
    name = stack.resources["Group"].physical_id
    cloud.update_stack("s", body=text(group(3, most=9, size="t3.large", MaxBatchSize=9, MinInstancesInService=3)))
    cloud.advance(1)
    assert sizes() == (6, 6, 6)
    client("autoscaling", REGION).set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=8)
    cloud.wait(stack)
    assert (stack.status, types(), sizes()) == ("UPDATE_COMPLETE", ["t3.large"] * 3, (3, 3, 3))


@pytest.mark.parametrize(("desired_in_template", "left"), [(False, 9), (True, 6)])
def test_a_failed_surge_leaves_the_group_large_unless_the_template_sizes_it(
    desired_in_template: bool, left: int
) -> None:
    """healthy-to-unhealthy-partially-scaled-v2.md: 6, raised to 9; MinSize is put back, DesiredCapacity stays."""
    never = [(100_000.0, "SUCCESS")] * 2
    cloud = signalling(*[(30, "SUCCESS")] * 6, (30, "FAILURE"), *never, *[(30, "SUCCESS")] * 9)

    def of(size: str) -> dict[str, Any]:
        resources = group(6, most=9, size=size, MaxBatchSize=3, MinInstancesInService=6)
        resources["Group"]["Properties"] |= {"MinSize": 3} | ({"DesiredCapacity": "6"} if desired_in_template else {})
        resources["Group"]["CreationPolicy"]["ResourceSignal"]["Count"] = 6 if desired_in_template else 3
        return resources

    stack = created(cloud, of("t3.small"))
    if not desired_in_template:
        name = stack.resources["Group"].physical_id
        client("autoscaling", REGION).set_desired_capacity(AutoScalingGroupName=name, DesiredCapacity=6)
        cloud.advance(60)
    updated(cloud, of("t3.large"))
    assert (stack.status, types(), sizes()) == ("UPDATE_ROLLBACK_COMPLETE", ["t3.small"] * left, (3, left, left))


def test_an_instance_that_an_autoscaler_took_meanwhile_is_passed_over() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 6)
    stack = created(cloud, group(3))
    resources = group(3, size="t3.large")
    resources["Group"]["Properties"]["MinSize"] = 1
    cloud.update_stack("s", body=text(resources))
    cloud.advance(1)
    last = list(cloud.launched)[2]
    client("autoscaling", REGION).terminate_instance_in_auto_scaling_group(
        InstanceId=last, ShouldDecrementDesiredCapacity=True
    )
    cloud.wait(stack)
    assert (stack.status, types(), sizes()) == ("UPDATE_COMPLETE", ["t3.large"] * 2, (1, 2, 2))


def test_as_many_in_service_as_the_group_can_have_is_refused() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 4)
    stack = created(cloud, group(2))
    updated(cloud, group(2, size="t3.large", MinInstancesInService=2))
    assert reasons(stack, "Group", "UPDATE_FAILED") == [
        "MinInstancesInService must be less than the autoscaling group's MaxSize"
    ]
    # The template's old data are its version 3 now, so that the rollback replaces instances of version 1.
    assert (stack.status, cloud.clock.now) == ("UPDATE_ROLLBACK_COMPLETE", 90)


def test_without_signals_each_batch_waits_its_time() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 2)
    stack = created(cloud, group(2))
    updated(cloud, group(2, size="t3.large", WaitOnResourceSignals=False, PauseTime="PT2M"))
    assert (stack.status, cloud.clock.now, types()) == ("UPDATE_COMPLETE", 30 + 2 * 120, ["t3.large"] * 2)


def test_a_group_that_grows_waits_for_nobody() -> None:
    cloud = signalling((30, "SUCCESS"))
    stack = created(cloud, group(1))
    resources = group(3)
    resources["Group"]["CreationPolicy"]["ResourceSignal"]["Count"] = 1
    updated(cloud, resources)
    assert (stack.status, cloud.clock.now, len(types())) == ("UPDATE_COMPLETE", 30, 3)
    assert len(cloud.launched) == 3
    updated(cloud, group(1))
    assert (stack.status, len(types())) == ("UPDATE_COMPLETE", 1)


def test_without_a_policy_instances_stay_as_they_are() -> None:
    cloud = signalling((30, "SUCCESS"))
    created(cloud, group(1))
    resources = group(1, size="t3.large")
    del resources["Group"]["UpdatePolicy"]
    assert updated(cloud, resources).status == "UPDATE_COMPLETE"
    assert types() == ["t3.small"]


def test_a_policy_may_replace_the_whole_group() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 2)
    stack = created(cloud, group(1))
    before = stack.resources["Group"].physical_id
    resources = group(1, size="t3.large")
    resources["Group"]["UpdatePolicy"] = {"AutoScalingReplacingUpdate": {"WillReplace": True}}
    updated(cloud, resources)
    assert stack.status == "UPDATE_COMPLETE"
    assert stack.resources["Group"].physical_id != before
    assert (types(), cloud.clock.now) == (["t3.large"], 60)


@pytest.mark.parametrize("outcome", [(30, "FAILURE"), None])
def test_an_instance_that_does_not_come_up_puts_the_group_back(outcome: tuple[float, str] | None) -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 2, outcome or (10_000, "SUCCESS"), *[(30, "SUCCESS")] * 2)
    stack = created(cloud, group(2))
    updated(cloud, group(2, size="t3.large"))
    assert reasons(stack, "Group", "UPDATE_FAILED") == [
        "Received 0 SUCCESS signal(s) out of 1.  Unable to satisfy 100% MinSuccessfulInstancesPercent requirement"
    ]
    assert (stack.status, types()) == ("UPDATE_ROLLBACK_COMPLETE", ["t3.small"] * 2)
    failed = next(event.time for event in stack.events if event.status == "UPDATE_FAILED")
    assert (failed - stack.events[0].time).total_seconds() == (60 if outcome else 30 + 600)
    assert [key for key, status in since(stack, "ROLLBACK") if status == "UPDATE_COMPLETE"] == ["Template", "Group"]


def test_some_may_fail_if_the_policy_says_so() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 2, (30, "FAILURE"), (30, "SUCCESS"))
    stack = created(cloud, group(2))
    updated(cloud, group(2, size="t3.large", MaxBatchSize=2, MinSuccessfulInstancesPercent=50))
    assert (stack.status, types()) == ("UPDATE_COMPLETE", ["t3.large"] * 2)


def test_processes_are_suspended_during_the_update() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 2)
    created(cloud, group(1))
    cloud.update_stack("s", body=text(group(1, size="t3.large", SuspendProcesses=["AZRebalance"])))

    def suspended() -> list[str]:
        [found] = client("autoscaling", REGION).describe_auto_scaling_groups()["AutoScalingGroups"]
        return [suspended_process["ProcessName"] for suspended_process in found["SuspendedProcesses"]]

    assert suspended() == ["AZRebalance"]
    cloud.advance(60)
    assert (suspended(), cloud.stack("s").status) == ([], "UPDATE_COMPLETE")
    cloud.update_stack("s", body=text(group(1, size="t3.nano", SuspendProcesses=["AZRebalance"])))
    cloud.advance(60)
    cloud.cancel_update("s")
    assert suspended() == ["AZRebalance"]
    cloud.advance(3600)
    assert suspended() == []


def test_an_update_can_be_cancelled() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 5)
    stack = created(cloud, {**group(2), "G": tagged(a="1")})
    with pytest.raises(ValidationError, match="CREATE_COMPLETE"):
        cloud.cancel_update("s")
    cloud.update_stack("s", body=text({**group(2, size="t3.large"), "G": tagged(a="2")}))
    cloud.advance(40)
    cloud.cancel_update("s")
    assert (stack.status, stack.reason) == ("UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated")
    with pytest.raises(ValidationError, match="UPDATE_ROLLBACK_IN_PROGRESS"):
        cloud.cancel_update("s")
    assert reasons(stack, "Group", "UPDATE_FAILED") == ["Resource update cancelled"]
    cloud.wait(stack)
    assert (stack.status, types()) == ("UPDATE_ROLLBACK_COMPLETE", ["t3.small"] * 2)


def test_a_cancelled_update_cancels_nested_ones() -> None:
    remaining = [(30, "SUCCESS")] * 4

    def boot(launched: Any) -> None:
        seconds, status = remaining.pop(0)
        name = cloud.stack("s").children["Child"].name
        cloud.clock.schedule(seconds, lambda: cloud.signal_resource(name, "Group", launched.instance_id, status))

    cloud = CloudFormation(REGION, on_launch=boot)
    stack = created(cloud, {"Child": nested("child", text(group(1)))})
    cloud.update_stack("s", body=text({"Child": nested("other", text({**group(1, size="t3.large"), "G": GATEWAY}))}))
    cloud.advance(10)
    child = stack.children["Child"]
    assert (stack.status, child.status) == ("UPDATE_IN_PROGRESS", "UPDATE_IN_PROGRESS")
    cloud.cancel_update("s")
    cloud.wait(stack)
    assert (stack.status, child.status) == ("UPDATE_ROLLBACK_COMPLETE", "UPDATE_ROLLBACK_COMPLETE")
    assert (types(), gateways()) == (["t3.small"], [])


def test_a_cancelled_update_gives_up_a_new_nested_stack(cloud: CloudFormation) -> None:
    stack = created(cloud, {"G": GATEWAY})
    cloud.update_stack("s", body=text({"G": GATEWAY, "Child": nested("child", text(group(1)))}))
    child = stack.children["Child"]
    cloud.cancel_update("s")
    assert cloud.wait(stack).status == "UPDATE_ROLLBACK_COMPLETE"
    assert (child.status, types(), list(stack.children)) == ("DELETE_COMPLETE", [], [])
    assert reasons(stack, "Child", "CREATE_FAILED") == ["Resource creation cancelled"]


@pytest.mark.parametrize("during", ["CREATE", "UPDATE", "DELETE"])
def test_a_nested_stack_can_be_made_to_fail(cloud: CloudFormation, during: str) -> None:
    cloud.fail("Child", "because", during=during)
    stack = cloud.wait(cloud.create_stack("s", body=text({"Child": nested("one", text({"G": tagged(a="1")}))})))
    if during == "UPDATE":
        cloud.wait(cloud.update_stack("s", body=text({"Child": nested("two", text({"G": tagged(a="2")}))})))
    elif during == "DELETE":
        cloud.wait(cloud.delete_stack("s"))
    assert reasons(stack, "Child", f"{during}_FAILED") == ["because"]
    assert stack.status == {"CREATE": "ROLLBACK_COMPLETE", "UPDATE": "UPDATE_ROLLBACK_COMPLETE"}.get(
        during, "DELETE_FAILED"
    )


def test_a_busy_stack_is_left_alone() -> None:
    cloud = signalling(*[(30, "SUCCESS")] * 2)
    stack = created(cloud, group(1))
    cloud.update_stack("s", body=text(group(1, size="t3.large")))
    busy = f"Stack:{stack.id} is in UPDATE_IN_PROGRESS state and can not be updated."
    for call in (
        lambda: cloud.update_stack("s", body=text(group(1))),
        lambda: cloud.create_change_set("s", "c", body=text(group(1))),
    ):
        with pytest.raises(ValidationError) as refused:
            call()
        assert str(refused.value) == busy
    with pytest.raises(ValidationError, match="cannot be deleted while in status UPDATE_IN_PROGRESS"):
        cloud.delete_stack("s")


def test_a_creation_under_way_can_be_deleted() -> None:
    cloud = CloudFormation(REGION)
    stack = cloud.create_stack("s", body=text({**group(1), "Child": nested("child", text(group(1)))}))
    assert stack.status == "CREATE_IN_PROGRESS"
    child = stack.children["Child"]
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert (child.status, types(), cloud.clock.now) == ("DELETE_COMPLETE", [], 0)
    assert ("Group", "CREATE_FAILED") in statuses(stack)


def test_resources_take_as_long_as_they_are_told_to() -> None:
    cloud = CloudFormation(REGION, durations={"AWS::EC2::VPC": 900, "*": 5})  # within half of each
    stack = cloud.create_stack("s", body=text({"G": GATEWAY, "H": {**GATEWAY, "DependsOn": "G"}}))
    cloud.advance(2)
    assert {key: each.status for key, each in stack.resources.items()} == {"G": "CREATE_IN_PROGRESS"}
    assert cloud.wait(stack).status == "CREATE_COMPLETE"
    created_at = cloud.clock.now
    assert 5 <= created_at <= 15
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert 5 <= cloud.clock.now - created_at <= 15
