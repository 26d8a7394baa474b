"""Signals of instances: who is told of launches, how many signals are awaited and for how long."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import TYPE_CHECKING

from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers import client
from cfngen.sandbox.cloudformation.properties import GROUP, WAIT_CONDITION
from cfngen.sandbox.cloudformation.stack import Launched, Resource, Stack
from cfngen.sandbox.services import scaling_activities

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
LONGEST_WAIT = 12 * 3600  # seconds, CreationPolicy attribute reference


def seconds_of(duration: str, subject: str) -> int:
    """An ISO 8601 duration, as far as CloudFormation takes it, in seconds.

    Raises:
        ResourceError: it is none
    """
    match = DURATION.fullmatch(duration)
    if not match or not any(match.groups()):
        raise ResourceError(f"{subject} {duration} is no duration")
    hours, minutes, seconds = (int(group or 0) for group in match.groups())
    return 3600 * hours + 60 * minutes + seconds


def creation_policy(service: Region, stack: Stack, resource: Resource) -> tuple[int, int]:
    """Signals to wait for, and for how many seconds; none in express mode."""
    policy = service.scope(stack).resolve(resource.definition.body.get("CreationPolicy", {}))
    if not policy:
        if resource.type == WAIT_CONDITION:
            raise NotModelledError("a WaitCondition without a CreationPolicy")
        return 0, 0
    signal = policy.get("ResourceSignal", {})
    if (
        resource.type not in (GROUP, WAIT_CONDITION)
        or set(policy) != {"ResourceSignal"}
        or set(signal) - {"Count", "Timeout"}
    ):
        raise NotModelledError(f"CreationPolicy {policy} of {resource.type}")
    seconds = seconds_of(signal.get("Timeout", "PT5M"), "CreationPolicy Timeout")
    if seconds > LONGEST_WAIT:
        raise ResourceError(f"CreationPolicy Timeout {signal['Timeout']} is longer than the maximum of 12 hours")
    count = int(signal.get("Count", 1))
    if count < 0:
        raise ResourceError(f"CreationPolicy Count {count} is negative")
    return (0, 0) if stack.root.express else (count, seconds)


def instances(service: Region, group: str) -> list[str]:
    """Instances that a group has and keeps, in the order of launch; moto shuffles them when a group shrinks."""
    answer = client("autoscaling", service.region).describe_auto_scaling_groups(AutoScalingGroupNames=[group])
    members = answer["AutoScalingGroups"][0]["Instances"]
    found = [member["InstanceId"] for member in members if not member["LifecycleState"].startswith("Terminat")]
    order = list(service.launched)
    return sorted(found, key=lambda each: order.index(each) if each in service.launched else len(order))


def announce(service: Region, resource: Resource, before: set[str]) -> None:
    """Tell of each instance that a group has launched, and remember from what."""
    _tell(
        service, resource, [instance for instance in instances(service, resource.physical_id) if instance not in before]
    )


def launched_by_itself(service: Region, group: str, launched: list[str]) -> None:
    """Tell of instances that a group has launched some time after it was asked to, or in place of others."""
    for stack in service.stacks():
        for resource in stack.resources.values():
            if resource.type == GROUP and resource.physical_id == group and resource.exists:
                _tell(service, resource, launched)


def _tell(service: Region, resource: Resource, launched: list[str]) -> None:
    for each in launched:
        if each not in service.launched:
            service.launched[each] = json.dumps(resource.properties.get("LaunchTemplate"))
            service.instances(Launched(each, resource.physical_id))


def launches(service: Region) -> Collection[str]:
    """Ids of the activities of all groups up to now."""
    scaling = autoscaling_backends[DEFAULT_ACCOUNT_ID][service.region]
    return {activity["ActivityId"] for activity in scaling_activities.activities(scaling, "")}


def check_launches(service: Region, resource: Resource, earlier: Collection[str]) -> None:
    """Look whether a group could launch what it was asked to.

    Args:
        service: the region.
        resource: the group.
        earlier: ids of activities that are none of this operation.

    Raises:
        ResourceError: a launch has failed, in which CloudFormation sees no more than that (eksctl-io/eksctl#8383)
    """
    scaling = autoscaling_backends[DEFAULT_ACCOUNT_ID][service.region]
    activities = scaling_activities.activities(scaling, resource.physical_id)
    if activities and activities[0]["StatusCode"] == "Failed" and activities[0]["ActivityId"] not in earlier:
        raise ResourceError(f"Group did not stabilize. Last scaling activity: {activities[0]['StatusMessage']}")


def stabilize(service: Region, resource: Resource, earlier: Collection[str]) -> Operation:
    """Wait until a new group has its instances; hooks may hold them.

    Args:
        service: the region.
        resource: the group.
        earlier: ids of activities that are none of this operation.

    Raises:
        ResourceError: a launch has failed
    """
    check_launches(service, resource, earlier)
    turn, scaling = resource.turn, autoscaling_backends[DEFAULT_ACCOUNT_ID][service.region]
    states = scaling.autoscaling_groups[resource.physical_id].instance_states
    if any(state.lifecycle_state == "Pending:Wait" for state in states):
        yield (
            lambda: (
                resource.turn != turn
                or not any(
                    instance_state.lifecycle_state == "Pending:Wait"
                    for instance_state in scaling.autoscaling_groups[resource.physical_id].instance_states
                )
            )
        )


def await_signals(service: Region, resource: Resource, seconds: int) -> Operation:
    """Wait for as many signals as the resource wants; on return they have come, or the resource was cancelled.

    Raises:
        ResourceError: a FAILURE, or too few in time
    """
    turn = resource.turn
    deadline = service.clock.now + seconds
    service.clock.later(seconds, lambda: None)

    def decided() -> bool:
        return (
            resource.turn != turn
            or "FAILURE" in resource.signals.values()
            or len(resource.signals) >= resource.signals_wanted
            or service.clock.now >= deadline
        )

    yield decided
    wanted, resource.signals_wanted = resource.signals_wanted, 0
    if resource.turn != turn:
        return
    for unique_id, status in resource.signals.items():
        if status == "FAILURE":
            raise ResourceError(f"Received FAILURE signal with UniqueId {unique_id}")
    if len(resource.signals) < wanted:
        missing = wanted - len(resource.signals)
        raise ResourceError(f"Failed to receive {missing} resource signal(s) within the specified duration")
