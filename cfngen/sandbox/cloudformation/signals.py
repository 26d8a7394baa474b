"""Calls `on_launch` for new instances, and waits for the signals that a CreationPolicy requires."""

from __future__ import annotations

import json
import re
from collections.abc import Collection

from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers import client
from cfngen.sandbox.cloudformation.handlers.handler import whole_number
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_stack
from cfngen.sandbox.cloudformation.simulation import Operation
from cfngen.sandbox.cloudformation.stack import LaunchedInstance, Resource, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP, WAIT_CONDITION
from cfngen.sandbox.services import scaling_activities
from cfngen.sandbox.untyped import Properties

DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
MAX_TIMEOUT_SECONDS = 12 * 3600  # template reference, "CreationPolicy attribute"


def parse_duration(duration: str, subject: str) -> int:
    """Return the number of seconds of an ISO 8601 duration of hours, minutes and seconds.

    Args:
        subject: the name of the setting, for the error message

    Raises:
        ResourceError: it is not such a duration
    """
    match = DURATION.fullmatch(duration)
    if not match or not any(match.groups()):
        raise ResourceError(f"{subject} {duration} is no duration")
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def signals_to_await(cloud: Region, stack: Stack, resource: Resource) -> tuple[int, int]:
    """Return the number of signals that a resource's CreationPolicy requires, and the timeout in seconds.

    Both are 0 without a CreationPolicy, and in express mode, which does not wait for signals.
    """
    policy = scope_of_stack(cloud, stack).resolve(resource.definition.body.get("CreationPolicy", {}))
    if not policy:
        if resource.type == WAIT_CONDITION:
            raise NotModelledError("a WaitCondition without a CreationPolicy")
        return 0, 0
    signal = policy.get("ResourceSignal", {})
    if (
        resource.type not in (AUTO_SCALING_GROUP, WAIT_CONDITION)
        or set(policy) != {"ResourceSignal"}
        or set(signal) - {"Count", "Timeout"}
    ):
        raise NotModelledError(f"CreationPolicy {policy} of {resource.type}")
    seconds = parse_duration(signal.get("Timeout", "PT5M"), "CreationPolicy Timeout")
    if seconds > MAX_TIMEOUT_SECONDS:
        raise ResourceError(f"CreationPolicy Timeout {signal['Timeout']} is longer than the maximum of 12 hours")
    count = whole_number("CreationPolicy Count", signal.get("Count", 1))
    if count < 0:
        raise ResourceError(f"CreationPolicy Count {count} is negative")
    return (0, 0) if stack.leader.express else (count, seconds)


def group_instance_ids(cloud: Region, group: str) -> list[str]:
    """The ids of a group's instances that are not terminating, in the order of their launch.

    moto's own order changes when a group shrinks.
    """
    response = client("autoscaling", cloud.region).describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    instance_ids = [
        instance["InstanceId"]
        for described in response["AutoScalingGroups"]  # none if somebody has deleted the group
        for instance in described["Instances"]
        if not instance["LifecycleState"].startswith("Terminat")  # Terminating, Terminating:Wait, Terminated, ...
    ]
    in_launch_order = [instance_id for instance_id in cloud.launched if instance_id in instance_ids]
    just_launched = [instance_id for instance_id in instance_ids if instance_id not in cloud.launched]
    return in_launch_order + just_launched


def notify_launches(cloud: Region, resource: Resource, known_instances: set[str]) -> None:
    """Call `cloud.on_launch` for each instance of a group that is not among the known ones."""
    instance_ids = group_instance_ids(cloud, resource.physical_id)
    _notify(cloud, resource, [instance_id for instance_id in instance_ids if instance_id not in known_instances])


def notify_later_launches(cloud: Region, group: str, instance_ids: list[str]) -> None:
    """Call `cloud.on_launch` for instances that a group launched outside of an operation, e.g. as replacements."""
    for stack in cloud.stacks():
        for resource in stack.resources.values():
            if resource.type == AUTO_SCALING_GROUP and resource.physical_id == group and resource.exists:
                _notify(cloud, resource, instance_ids)


def _notify(cloud: Region, resource: Resource, instance_ids: list[str]) -> None:
    """Call `cloud.on_launch` for each instance that is new to the region, and record the group's launch template."""
    for instance_id in instance_ids:
        if instance_id not in cloud.launched:
            cloud.launched[instance_id] = launch_source(resource.properties)
            cloud.on_launch(LaunchedInstance(instance_id, resource.physical_id))


def launch_source(properties: Properties) -> str:
    """Return as JSON what a group's instances are launched from: its launch template, or those of a mixed policy.

    The overrides are part of it: the reference has "Update requires: Some interruptions" for them and the launch
    template (AWS::AutoScaling::AutoScalingGroup LaunchTemplate). That the distribution is not is assumed, and so is
    that a change of the overrides makes instances of unchanged types obsolete.
    """
    policy = properties.get("MixedInstancesPolicy") or {}
    return json.dumps([properties.get("LaunchTemplate"), policy.get("LaunchTemplate")], sort_keys=True)


def activity_ids(cloud: Region) -> Collection[str]:
    """Ids of all scaling activities so far, of all groups of the region."""
    backend = autoscaling_backends[DEFAULT_ACCOUNT_ID][cloud.region]
    return {activity["ActivityId"] for activity in scaling_activities.recorded_activities(backend, "")}


def check_launches(cloud: Region, resource: Resource, earlier_activities: Collection[str]) -> None:
    """Check whether the group's latest launch succeeded.

    Args:
        earlier_activities: ids of scaling activities that started before this operation.

    Raises:
        ResourceError: the launch failed; CloudFormation reports no more than the activity (eksctl-io/eksctl#8383)
    """
    backend = autoscaling_backends[DEFAULT_ACCOUNT_ID][cloud.region]
    activities = scaling_activities.recorded_activities(backend, resource.physical_id)
    if not activities:
        return
    latest_activity = activities[0]
    if latest_activity["StatusCode"] == "Failed" and latest_activity["ActivityId"] not in earlier_activities:
        raise ResourceError(f"Group did not stabilize. Last scaling activity: {latest_activity['StatusMessage']}")


def await_signals(cloud: Region, resource: Resource, timeout_seconds: int) -> Operation:
    """Wait for a resource's expected signals; on return they have arrived, or the resource was cancelled.

    Raises:
        ResourceError: a FAILURE signal, or too few signals before the timeout
    """
    generation = resource.generation
    deadline = cloud.clock.now + timeout_seconds
    cloud.clock.schedule(timeout_seconds, lambda: None)  # so that the clock stops at the deadline

    def is_over() -> bool:
        return (
            resource.is_superseded(generation)
            or "FAILURE" in resource.signals.values()
            or len(resource.signals) >= resource.expected_signals
            or cloud.clock.now >= deadline
        )

    yield is_over
    expected_signals, resource.expected_signals = resource.expected_signals, 0
    if resource.is_superseded(generation):
        return
    for unique_id, status in resource.signals.items():
        if status == "FAILURE":
            raise ResourceError(f"Received FAILURE signal with UniqueId {unique_id}")
    if len(resource.signals) < expected_signals:
        missing = expected_signals - len(resource.signals)
        raise ResourceError(f"Failed to receive {missing} resource signal(s) within the specified duration")
