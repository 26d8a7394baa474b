"""Updates an Auto Scaling group: its settings at once, its instances by a rolling update according to the UpdatePolicy.

Template reference, "UpdatePolicy attribute": instances that were launched from another launch template than the group's
current one are terminated and replaced in batches; after each batch CloudFormation waits for the signals of its new
instances, or for PauseTime.

How batches are formed, and when a group grows for the time of an update, AWS does not document. It was measured by The
Guardian (guardian/testing-asg-rolling-update, `observations/`, read in November 2026), and is modelled from that:

- A batch has at most MaxBatchSize instances, and at most MaxSize - MinInstancesInService
  (healthy-to-healthy-fully-scaled.md: 9 of 9 instances, 3 of them in service, in batches of 6).
- If a batch and MinInstancesInService are together more than the desired capacity, MinSize and DesiredCapacity are
  first raised to their sum (healthy-to-healthy-partially-scaled.md: desired 6, 3 in service, batches of 6; raised to
  9).
- With the last batch the sizes become what they were when the update began, whatever an autoscaler has set meanwhile
  (healthy-scale-out-mid-deploy.md). Sizes that were not raised are never set (healthy-to-healthy-fully-scaled-v2.md).
- After a failure MinSize is put back, and DesiredCapacity only if the template has it
  (healthy-to-unhealthy-partially-scaled-v2.md).
"""

from __future__ import annotations

import dataclasses

from cfngen.sandbox.cloudformation import properties, signals, update_policies
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.handlers.handler import client
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.cloudformation.update_policies import RollingPolicy
from cfngen.sandbox.json_types import Properties


def update_group(cloud: Region, stack: Stack, resource: Resource, old_properties: Properties) -> Operation:
    """Update a group to its new properties, and replace instances that come from another launch template.

    Raises:
        ResourceError: the update failed, or too few new instances signalled success
    """
    group_name = resource.physical_id
    policy = update_policies.rolling_policy(cloud, stack, resource)
    old_instances = set(signals.group_instance_ids(cloud, group_name))
    earlier_activities = signals.activity_ids(cloud)
    HANDLERS[resource.type].update(properties.handler_call(cloud, stack, resource), old_properties)
    signals.notify_launches(cloud, resource, old_instances)
    signals.check_launches(cloud, resource, earlier_activities)
    if policy is None or not _must_replace_instances(resource, old_properties):
        return
    launch_source = signals.launch_source(resource.properties)
    obsolete = [
        instance
        for instance in signals.group_instance_ids(cloud, group_name)
        if cloud.launched.get(instance) != launch_source
    ]
    if obsolete:
        yield from _replace_instances(cloud, stack, resource, policy, obsolete)


def _must_replace_instances(resource: Resource, old_properties: Properties) -> bool:
    """Whether an update of a group replaces its instances (reference, "UpdatePolicy attribute")."""
    if resource.status == "UPDATE_FAILED":
        return True
    subnets, old_subnets = (source.get("VPCZoneIdentifier") for source in (resource.properties, old_properties))
    is_same_source = signals.launch_source(resource.properties) == signals.launch_source(old_properties)
    return subnets != old_subnets or not is_same_source


def _replace_instances(
    cloud: Region, stack: Stack, resource: Resource, policy: RollingPolicy, obsolete: list[str]
) -> Operation:
    """Replace obsolete instances in batches, with the scaling processes of the policy suspended meanwhile.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: the group's stack
        resource: the group
        policy: its rolling update policy
        obsolete: ids of the instances to replace
    """
    autoscaling, group_name = client("autoscaling", cloud.region), resource.physical_id
    response = autoscaling.describe_auto_scaling_groups(AutoScalingGroupNames=[group_name])
    [group_description] = response["AutoScalingGroups"]
    max_size = int(group_description["MaxSize"])
    if policy.min_in_service >= max_size:
        raise ResourceError("MinInstancesInService must be less than the autoscaling group's MaxSize")
    current_min_size, current_capacity = int(group_description["MinSize"]), int(group_description["DesiredCapacity"])
    # A rollback returns to the sizes before the failed update, which may have raised them temporarily.
    has_failed_before = group_name in cloud.capacities_before_update
    capacity = cloud.capacities_before_update.setdefault(group_name, current_capacity)
    if "DesiredCapacity" not in resource.properties:
        capacity = current_capacity
    min_size = int(resource.properties["MinSize"]) if has_failed_before else current_min_size
    if current_min_size != min_size:
        autoscaling.update_auto_scaling_group(AutoScalingGroupName=group_name, MinSize=min_size)
    batch_size = max(min(policy.max_batch_size, len(obsolete), max_size - policy.min_in_service), 1)
    policy = dataclasses.replace(policy, max_batch_size=batch_size)
    _record_progress(cloud, stack, resource, _rolling_update_text(policy, obsolete))
    generation = resource.generation
    if policy.suspended_processes:
        autoscaling.suspend_processes(
            AutoScalingGroupName=group_name, ScalingProcesses=list(policy.suspended_processes)
        )
    try:
        yield from _replace_in_batches(cloud, stack, resource, policy, obsolete, min_size=min_size, capacity=capacity)
    except ResourceError:
        _resume_processes(cloud, resource, policy)
        raise
    if resource.generation == generation:  # otherwise the update was cancelled, and its rollback is in progress
        del cloud.capacities_before_update[group_name]
        _resume_processes(cloud, resource, policy)


def _resume_processes(cloud: Region, resource: Resource, policy: RollingPolicy) -> None:
    """Resume the scaling processes that the policy suspends."""
    if policy.suspended_processes:
        client("autoscaling", cloud.region).resume_processes(
            AutoScalingGroupName=resource.physical_id, ScalingProcesses=list(policy.suspended_processes)
        )


def _rolling_update_text(policy: RollingPolicy, obsolete: list[str]) -> str:
    """The status reason of the event that announces a rolling update."""
    text = (
        f"Rolling update initiated. Terminating {len(obsolete)} obsolete instance(s) in batches of "
        f"{policy.max_batch_size}"
    )
    if policy.min_in_service:
        text += f", while keeping at least {policy.min_in_service} instance(s) in service"
    if policy.waits_for_signals:
        text += (f". Waiting on resource signals with a timeout of {policy.timeout} when new instances are added to "
                 "the autoscaling group")  # fmt: skip
    return f"{text}."


def _replace_in_batches(
    cloud: Region,
    stack: Stack,
    resource: Resource,
    policy: RollingPolicy,
    obsolete: list[str],
    *,
    min_size: int,
    capacity: int,
) -> Operation:
    """Terminate obsolete instances batch by batch; wait for the replacements of each batch.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: the group's stack
        resource: the group
        policy: its rolling update policy; `max_batch_size` is the size of the batches
        obsolete: ids of the instances to replace
        min_size: the MinSize that the group shall have in the end
        capacity: the number of instances that the group shall have in the end
    """
    autoscaling = client("autoscaling", cloud.region)
    generation, obsolete_count, group_name = resource.generation, len(obsolete), resource.physical_id
    up_to_date_count = len(signals.group_instance_ids(cloud, group_name)) - obsolete_count
    raised_capacity = policy.max_batch_size + policy.min_in_service
    is_raised = raised_capacity > capacity
    if is_raised:
        text = f"Temporarily setting autoscaling group MinSize and DesiredCapacity to {raised_capacity}."
        _record_progress(cloud, stack, resource, text)
        # None, if this is the rollback of an update that had raised the capacity already.
        up_to_date_count += max(raised_capacity - len(signals.group_instance_ids(cloud, group_name)), 0)
        yield from _launch_and_await(cloud, stack, resource, policy, raised_capacity)
    remaining = obsolete
    while remaining and resource.generation == generation:
        # Meanwhile the group may have replaced some by itself, such as Spot Instances at risk, and an autoscaler may
        # have terminated some without a replacement. Both are assumed to be passed over.
        members = set(signals.group_instance_ids(cloud, group_name))
        present = [instance_id for instance_id in remaining if instance_id in members]
        up_to_date_count += len(remaining) - len(present)
        remaining = present
        batch, remaining = remaining[: policy.max_batch_size], remaining[policy.max_batch_size :]
        replacement_count = max(min(len(batch), capacity - up_to_date_count), 0)
        instances_before = set(signals.group_instance_ids(cloud, group_name))
        text = f"Terminating instance(s) [{','.join(batch)}]; replacing with {replacement_count} new instance(s)."
        _record_progress(cloud, stack, resource, text)
        resource.signals, resource.expected_signals = {}, replacement_count if policy.waits_for_signals else 0
        if is_raised and not remaining:
            autoscaling.update_auto_scaling_group(AutoScalingGroupName=group_name, MinSize=min_size)
        for number, instance_id in enumerate(batch):
            # The group itself launches the replacement of an instance (awslabs/amazon-eks-ami#66), unless its desired
            # capacity is decremented.
            autoscaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=number >= replacement_count
            )
        if is_raised and not remaining:
            autoscaling.set_desired_capacity(AutoScalingGroupName=group_name, DesiredCapacity=capacity)
        percent = 100 * (obsolete_count - len(remaining)) // obsolete_count
        text = f"Successfully terminated instance(s) [{','.join(batch)}] (Progress {percent}%)."
        _record_progress(cloud, stack, resource, text)
        if replacement_count:
            yield from _await_new_instances(cloud, stack, resource, policy, replacement_count, instances_before)
            up_to_date_count += replacement_count


def _launch_and_await(
    cloud: Region, stack: Stack, resource: Resource, policy: RollingPolicy, capacity: int
) -> Operation:
    """Raise the minimum size and the desired capacity of a group, and wait for the new instances.

    Raises:
        ResourceError: too few new instances signalled success
    """
    instances_before = set(signals.group_instance_ids(cloud, resource.physical_id))
    new_instance_count = capacity - len(instances_before)
    resource.signals, resource.expected_signals = {}, new_instance_count if policy.waits_for_signals else 0
    client("autoscaling", cloud.region).update_auto_scaling_group(
        AutoScalingGroupName=resource.physical_id, MinSize=capacity, DesiredCapacity=capacity
    )
    yield from _await_new_instances(cloud, stack, resource, policy, new_instance_count, instances_before)


def _await_new_instances(
    cloud: Region, stack: Stack, resource: Resource, policy: RollingPolicy, count: int, instances_before: set[str]
) -> Operation:
    """Wait for the signals of a group's new instances, or without signals for PauseTime.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: the group's stack
        resource: the group
        policy: its rolling update policy
        count: the number of new instances
        instances_before: ids of the instances that the group had before

    Raises:
        ResourceError: too few new instances signalled success
    """
    generation = resource.generation
    if policy.waits_for_signals:
        text = f"New instance(s) added to autoscaling group - Waiting on {count} resource signal(s)"
        _record_progress(cloud, stack, resource, f"{text} with a timeout of {policy.timeout}.")
    signals.notify_launches(cloud, resource, instances_before)
    deadline = cloud.clock.now + policy.pause_seconds
    cloud.clock.schedule(policy.pause_seconds, lambda: None)  # so that the clock stops at the deadline

    def is_over() -> bool:
        if resource.generation != generation or cloud.clock.now >= deadline:
            return True
        if not policy.waits_for_signals:
            return False
        failures = sum(signal == "FAILURE" for signal in resource.signals.values())
        too_many_failures = 100 * (count - failures) < policy.min_successful_percent * count
        return too_many_failures or len(resource.signals) >= count

    yield is_over
    if resource.generation != generation or not policy.waits_for_signals:
        return
    resource.expected_signals = 0
    successes = sum(signal == "SUCCESS" for signal in resource.signals.values())
    if 100 * successes < policy.min_successful_percent * count:
        raise ResourceError(
            f"Received {successes} SUCCESS signal(s) out of {count}.  Unable to satisfy "
            f"{policy.min_successful_percent}% MinSuccessfulInstancesPercent requirement"
        )


def _record_progress(cloud: Region, stack: Stack, resource: Resource, text: str) -> None:
    """Add an event about the progress of a group's update."""
    cloud.record_event(stack, resource, "UPDATE_IN_PROGRESS", text)
