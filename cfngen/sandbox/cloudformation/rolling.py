"""How an Auto Scaling group is changed: its settings at once, its instances in batches as the UpdatePolicy says.

Template reference, "UpdatePolicy attribute": instances that do not come from the group's present launch template are
terminated in batches and replaced, each batch waiting for as many signals, or for PauseTime.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cfngen.sandbox.cloudformation import properties, signals, update_policies
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.cloudformation.update_policies import RollingPolicy

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region


def change(service: Region, stack: Stack, resource: Resource, before: Mapping[str, Any]) -> Operation:
    """Change a group to its properties, and replace instances that its launch template no longer makes.

    Raises:
        ResourceError: it could not be changed, or too many new instances have not become ready
    """
    group = resource.physical_id
    policy = update_policies.rolling(service, stack, resource)
    old, earlier = set(signals.instances(service, group)), signals.launches(service)
    HANDLERS[resource.type].update(properties.call(service, stack, resource), before)
    signals.announce(service, resource, old)
    signals.check_launches(service, resource, earlier)
    if policy is None or not _rolls(resource, before):
        return
    present = json.dumps(resource.properties.get("LaunchTemplate"))
    obsolete = [instance for instance in signals.instances(service, group) if service.launched.get(instance) != present]
    if obsolete:
        yield from _roll(service, stack, resource, policy, obsolete)


def _rolls(resource: Resource, before: Mapping[str, Any]) -> bool:
    keys = ("LaunchTemplate", "VPCZoneIdentifier")
    return resource.status == "UPDATE_FAILED" or any(resource.properties.get(key) != before.get(key) for key in keys)


def _roll(service: Region, stack: Stack, resource: Resource, policy: RollingPolicy, obsolete: list[str]) -> Operation:
    autoscaling, group = client("autoscaling", service.region), {"AutoScalingGroupName": resource.physical_id}
    described = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[resource.physical_id])
    [found] = described["AutoScalingGroups"]
    capacity, most = int(found["DesiredCapacity"]), int(found["MaxSize"])
    if policy.in_service >= most:
        raise ResourceError("MinInstancesInService must be less than the autoscaling group's MaxSize")
    # A rollback returns to what the group had before, not to what the failed update made of it for a time.
    capacity = service.capacities.setdefault(resource.physical_id, capacity)
    _tell(service, stack, resource, _announcement(policy, obsolete))
    turn = resource.turn
    if policy.suspended:
        autoscaling.suspend_processes(**group, ScalingProcesses=list(policy.suspended))
    try:
        yield from _batches(service, stack, resource, policy, obsolete, capacity, most)
    except ResourceError:
        _resume(service, resource, policy)
        raise
    if resource.turn == turn:  # otherwise it was cancelled, and the rollback has begun to do the same
        del service.capacities[resource.physical_id]
        _resume(service, resource, policy)


def _resume(service: Region, resource: Resource, policy: RollingPolicy) -> None:
    if policy.suspended:
        client("autoscaling", service.region).resume_processes(
            AutoScalingGroupName=resource.physical_id, ScalingProcesses=list(policy.suspended)
        )


def _announcement(policy: RollingPolicy, obsolete: list[str]) -> str:
    text = f"Rolling update initiated. Terminating {len(obsolete)} obsolete instance(s) in batches of {policy.batch}"
    if policy.in_service:
        text += f", while keeping at least {policy.in_service} instance(s) in service"
    if policy.signals:
        text += (f". Waiting on resource signals with a timeout of {policy.timeout} when new instances are added to "
                 "the autoscaling group")  # fmt: skip
    return f"{text}."


def _batches(
    service: Region,
    stack: Stack,
    resource: Resource,
    policy: RollingPolicy,
    obsolete: list[str],
    capacity: int,
    most: int,
) -> Operation:
    turn, total, group = resource.turn, len(obsolete), resource.physical_id
    made = len(signals.instances(service, group)) - total
    spare = capacity - policy.in_service
    if spare <= 0:
        # Nothing can be taken away: the group grows for the time of the update, as far as its MaxSize allows.
        spare = min(policy.batch, most - capacity)
        size = capacity + spare
        text = f"Temporarily setting autoscaling group MinSize and DesiredCapacity to {size}."
        _tell(service, stack, resource, text)
        yield from _launch(service, stack, resource, policy, size)
        made += spare
    while obsolete and resource.turn == turn:
        batch = obsolete[: max(min(policy.batch, spare), 1)]
        obsolete = obsolete[len(batch) :]
        wanted = max(min(len(batch), capacity - made), 0)
        text = f"Terminating instance(s) [{','.join(batch)}]; replacing with {wanted} new instance(s)."
        _tell(service, stack, resource, text)
        before = set(signals.instances(service, group))
        resource.signals, resource.signals_wanted = {}, wanted if policy.signals else 0
        for number, each in enumerate(batch):
            # The group itself launches what takes the place of an instance (awslabs/amazon-eks-ami#66).
            client("autoscaling", service.region).terminate_instance_in_auto_scaling_group(
                InstanceId=each, ShouldDecrementDesiredCapacity=number >= wanted
            )
        text = f"Successfully terminated instance(s) [{','.join(batch)}]"
        _tell(service, stack, resource, f"{text} (Progress {100 * (total - len(obsolete)) // total}%).")
        if wanted:
            yield from _ready(service, stack, resource, policy, wanted, before)
            made += wanted


def _launch(service: Region, stack: Stack, resource: Resource, policy: RollingPolicy, size: int) -> Operation:
    """Let the group have so many instances and wait for the new ones.

    Raises:
        ResourceError: too few are ready
    """
    before = set(signals.instances(service, resource.physical_id))
    count = size - len(before)
    resource.signals, resource.signals_wanted = {}, count if policy.signals else 0
    client("autoscaling", service.region).set_desired_capacity(
        AutoScalingGroupName=resource.physical_id, DesiredCapacity=size
    )
    yield from _ready(service, stack, resource, policy, count, before)


def _ready(
    service: Region, stack: Stack, resource: Resource, policy: RollingPolicy, count: int, before: set[str]
) -> Operation:
    """Wait for so many instances that a group did not have before.

    Raises:
        ResourceError: too few are ready
    """
    turn = resource.turn
    if policy.signals:
        text = f"New instance(s) added to autoscaling group - Waiting on {count} resource signal(s)"
        _tell(service, stack, resource, f"{text} with a timeout of {policy.timeout}.")
    signals.announce(service, resource, before)
    deadline = service.clock.now + policy.pause
    service.clock.later(policy.pause, lambda: None)

    def decided() -> bool:
        if resource.turn != turn or service.clock.now >= deadline:
            return True
        failures = sum(signal == "FAILURE" for signal in resource.signals.values())
        hopeless = 100 * (count - failures) < policy.percent * count
        return policy.signals and (hopeless or len(resource.signals) >= count)

    yield decided
    if resource.turn != turn or not policy.signals:
        return
    resource.signals_wanted = 0
    ready = sum(signal == "SUCCESS" for signal in resource.signals.values())
    if 100 * ready < policy.percent * count:
        raise ResourceError(
            f"Received {ready} SUCCESS signal(s) out of {count}.  Unable to satisfy {policy.percent}% "
            "MinSuccessfulInstancesPercent requirement"
        )


def _tell(service: Region, stack: Stack, resource: Resource, text: str) -> None:
    service.record(stack, resource, "UPDATE_IN_PROGRESS", text)
