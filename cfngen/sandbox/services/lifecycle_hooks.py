"""Lifecycle hooks: their settings, and lifecycle actions that are completed or extended by a heartbeat.

Auto Scaling API reference, PutLifecycleHook, LifecycleHookSpecification and CompleteLifecycleAction.
"""

from __future__ import annotations

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error
from cfngen.sandbox.services.scaling_activities import LAUNCHING, TERMINATING, held_state, hold_of

HEARTBEAT_TIMEOUTS = range(30, 7201)  # seconds
ACTION_RESULTS = {"CONTINUE", "ABANDON"}
MAX_HOOKS = 50  # of a group; Auto Scaling user guide, "Quotas for Auto Scaling resources and groups"


@rule("autoscaling", "PutLifecycleHook")
def check_hook(call: PendingCall) -> None:
    """Refuse an invalid hook, or more hooks than a group can have."""
    existing = call.backend.describe_lifecycle_hooks(call.get("AutoScalingGroupName"))
    name = call.get("LifecycleHookName", "")
    is_new = name not in [existing_hook.name for existing_hook in existing]
    if is_new and len(existing) >= MAX_HOOKS:
        raise Refused("LimitExceeded", f"A group has {MAX_HOOKS} lifecycle hooks at most")
    check_specification(call.parameters, is_new=is_new)


@rule("autoscaling", "CreateAutoScalingGroup")
def check_hooks(call: PendingCall) -> None:
    """Refuse a group with invalid hooks."""
    specifications = call.get("LifecycleHookSpecificationList", [])
    names = [specification.get("LifecycleHookName") for specification in specifications]
    if len(set(names)) < len(names):
        raise validation_error(f"Lifecycle hooks have names of their own: {', '.join(names)}")
    if len(specifications) > MAX_HOOKS:
        raise Refused("LimitExceeded", f"A group has {MAX_HOOKS} lifecycle hooks at most")
    for specification in specifications:
        check_specification(specification, is_new=True)


def check_specification(specification: JsonObject, *, is_new: bool) -> None:
    """Refuse an invalid hook; one that is new in its group must have a transition."""
    transition = specification.get("LifecycleTransition")
    if transition not in (LAUNCHING, TERMINATING) and (is_new or transition is not None):
        raise validation_error(f"Lifecycle transition {transition} is none of {LAUNCHING}, {TERMINATING}")
    timeout = specification.get("HeartbeatTimeout")
    if timeout is not None and int(timeout) not in HEARTBEAT_TIMEOUTS:
        raise validation_error(
            f"Heartbeat timeout must be between {HEARTBEAT_TIMEOUTS[0]} and {HEARTBEAT_TIMEOUTS[-1]} seconds, and is "
            f"{timeout}"
        )
    result = specification.get("DefaultResult")
    if result is not None and result not in ACTION_RESULTS:
        raise validation_error(f"Lifecycle action result {result} is none of {', '.join(sorted(ACTION_RESULTS))}")


@rule("autoscaling", "CompleteLifecycleAction", "RecordLifecycleActionHeartbeat")
def check_active_action(call: PendingCall) -> None:
    """Refuse to complete or extend the lifecycle action of an instance that the hook does not hold."""
    if call.operation == "CompleteLifecycleAction" and call.get("LifecycleActionResult") not in ACTION_RESULTS:
        raise validation_error(f"Lifecycle action result {call.get('LifecycleActionResult')} is invalid")
    instance_id = call.get("InstanceId")
    instance_state = held_state(call.backend, call.get("AutoScalingGroupName"), instance_id)
    hold = hold_of(instance_state) if instance_state else None
    if hold is None or hold.hook.name != call.get("LifecycleHookName"):
        raise validation_error(f"No active Lifecycle Action found with instance ID {instance_id}")
