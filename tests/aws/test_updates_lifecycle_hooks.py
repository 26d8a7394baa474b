"""The double itself: lifecycle hooks come, change and go with their group."""

from __future__ import annotations

from typing import Any

from small_stacks import REGION, created, group, signalling, updated

from cfngen.sandbox.cloudformation import client

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
    found = client("autoscaling", REGION).describe_lifecycle_hooks(AutoScalingGroupName=name)["LifecycleHooks"]
    return {each["LifecycleHookName"]: each["HeartbeatTimeout"] for each in found}


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
