"""The emulator itself: lifecycle hooks, and how instances of a group come and go over time."""

from __future__ import annotations

from typing import Any

from small_stacks import REGION, created, group, running, signalling, text, types, updated

from cfngen.sandbox.cloudformation import CloudFormation, client
from cfngen.sandbox.services.scaling_activities import REPLACEMENT, SHUTTING_DOWN

HOOK = {
    "LifecycleHookName": "drain",
    "LifecycleTransition": "autoscaling:EC2_INSTANCE_TERMINATING",
    "HeartbeatTimeout": "120",
    "DefaultResult": "CONTINUE",
}


def hooked(*hooks: dict[str, Any]) -> dict[str, Any]:
    resources = group(1)
    if hooks:
        resources["Group"]["Properties"]["LifecycleHookSpecificationList"] = list(hooks)
    return resources


def hooks_of(name: str) -> dict[str, int]:
    lifecycle_hooks = client("autoscaling", REGION).describe_lifecycle_hooks(AutoScalingGroupName=name)[
        "LifecycleHooks"
    ]
    return {
        lifecycle_hook["LifecycleHookName"]: lifecycle_hook["HeartbeatTimeout"] for lifecycle_hook in lifecycle_hooks
    }


def test_hooks_follow_the_template_without_another_group_or_instance() -> None:
    cloud = signalling((60, "SUCCESS"))
    stack = created(cloud, hooked(HOOK))
    name = stack.resources["Group"].physical_id
    assert hooks_of(name) == {"drain": 120}
    for wanted, expected in (
        ([{**HOOK, "HeartbeatTimeout": 300}], {"drain": 300}),
        ([{**HOOK, "LifecycleHookName": "other"}], {"other": 120}),
        ([], {}),
        ([HOOK], {"drain": 120}),
    ):
        updated(cloud, hooked(*wanted))
        assert stack.status == "UPDATE_COMPLETE"
        assert stack.resources["Group"].physical_id == name
        assert hooks_of(name) == expected


def state(instance: str) -> str:
    """Lifecycle state of an instance; nothing if its group has it no more."""
    response = client("autoscaling", REGION).describe_auto_scaling_instances(InstanceIds=[instance])
    return "".join(
        auto_scaling_instance["LifecycleState"] for auto_scaling_instance in response["AutoScalingInstances"]
    )


def held() -> tuple[CloudFormation, dict[str, str], str]:
    """A group whose hook holds an instance, in the words of the API, and what replaces it."""
    cloud = signalling((60, "SUCCESS"))
    stack = created(cloud, hooked(HOOK))
    [instance] = running()
    client("autoscaling", REGION).terminate_instance_in_auto_scaling_group(
        InstanceId=instance, ShouldDecrementDesiredCapacity=False
    )
    [new] = running().keys() - {instance}
    name = stack.resources["Group"].physical_id
    return cloud, {"AutoScalingGroupName": name, "LifecycleHookName": "drain", "InstanceId": instance}, new


def test_an_instance_stays_until_its_hook_lets_it_go_and_is_replaced_meanwhile() -> None:
    cloud, action, new = held()
    cloud.advance(119)
    assert (state(action["InstanceId"]), state(new)) == ("Terminating:Wait", "InService")
    assert action["InstanceId"] in running()
    client("autoscaling", REGION).complete_lifecycle_action(**action, LifecycleActionResult="CONTINUE")
    assert list(running()) == [new]


def test_a_hooks_time_runs_out_and_heartbeats_prolong_it_up_to_a_hundred_times() -> None:
    cloud, action, new = held()
    begin = cloud.clock.now
    while action["InstanceId"] in running():
        client("autoscaling", REGION).record_lifecycle_action_heartbeat(**action)
        cloud.advance(100)
    assert list(running()) == [new]
    assert cloud.clock.now - begin == 100 * 120


def test_a_hook_that_is_deleted_lets_go() -> None:
    _, action, new = held()
    client("autoscaling", REGION).delete_lifecycle_hook(
        AutoScalingGroupName=action["AutoScalingGroupName"], LifecycleHookName="drain"
    )
    assert list(running()) == [new]


def test_a_group_is_deleted_once_its_hooks_have_let_go() -> None:
    cloud = signalling((60, "SUCCESS"))
    created(cloud, hooked(HOOK))
    begin = cloud.clock.now
    assert cloud.wait(cloud.delete_stack("s")).status == "DELETE_COMPLETE"
    assert cloud.clock.now - begin == 120


def test_a_rolling_update_goes_on_while_a_hook_holds_what_it_has_terminated() -> None:
    """awslabs/amazon-eks-ami#66: "Successfully terminated", and the next batch, long before the instance is gone."""
    cloud = signalling(*[(10, "SUCCESS")] * 4)
    resources = {**group(2), "Group": hooked(HOOK)["Group"]}
    resources["Group"]["Properties"] |= {"MinSize": 2, "MaxSize": 2}
    resources["Group"]["CreationPolicy"]["ResourceSignal"]["Count"] = 2
    stack = created(cloud, resources)
    begin = cloud.clock.now
    resources["Template"] = group(2, size="t3.large")["Template"]
    updated(cloud, resources)
    assert (stack.status, cloud.clock.now - begin) == ("UPDATE_COMPLETE", 20)
    assert types() == ["t3.large"] * 2 + ["t3.small"] * 2
    cloud.advance(120)
    assert types() == ["t3.large"] * 2


def test_instances_take_their_time_to_go_and_to_come() -> None:
    cloud = signalling(*[(10, "SUCCESS")] * 2)
    created(cloud, group(1))
    cloud.durations |= {SHUTTING_DOWN: 60, REPLACEMENT: 14}
    begin = cloud.clock.now
    cloud.update_stack("s", body=text(group(1, size="t3.large")))
    cloud.advance(13)
    assert running() == {}
    cloud.advance(11)
    assert (types(), cloud.stack("s").status) == (["t3.large"], "UPDATE_COMPLETE")
    states = client("ec2", REGION).describe_instances()["Reservations"]
    assert "shutting-down" in str(states)
    cloud.advance(36)
    assert cloud.clock.now - begin == 60
    assert "shutting-down" not in str(client("ec2", REGION).describe_instances()["Reservations"])
