"""Updates one resource in place, in an update or in its rollback; an Auto Scaling group with its instances.

A group gets its settings at once, its new instances by a rolling update according to the UpdatePolicy.

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
from dataclasses import dataclass

from cfngen.sandbox.cloudformation import properties, signals, update_policies
from cfngen.sandbox.cloudformation.errors import NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.simulation import Operation
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP
from cfngen.sandbox.cloudformation.update_policies import RollingPolicy
from cfngen.sandbox.untyped import AwsClient, JsonDict, Properties


def await_update_duration(cloud: Region, stack: Stack, resource: Resource, old_properties: Properties) -> Operation:
    """Wait for as long as the update of a resource takes, or raise the failure that was injected for it.

    Raises:
        ResourceError: the injected failure; the resource still has its old properties
    """
    try:
        cloud.failures.raise_injected(stack.name, resource.logical_id, "UPDATE")
    except ResourceError:
        resource.attempted_properties = dict(old_properties)
        raise
    yield from cloud.wait_for_duration(resource.type, "update")


def modify(cloud: Region, stack: Stack, resource: Resource, old_properties: Properties) -> Operation:
    """Update a resource in place; on return it is complete, or was cancelled.

    Raises:
        ResourceError: the update failed
    """
    generation = resource.generation
    yield from await_update_duration(cloud, stack, resource, old_properties)
    if resource.is_superseded(generation):
        return
    if resource.type == AUTO_SCALING_GROUP:
        yield from update_group(cloud, stack, resource, old_properties)
        return
    try:
        changed_attributes = HANDLERS[resource.type].update(
            properties.handler_call(cloud, stack, resource), old_properties
        )
    except (ResourceError, NotModelledError):
        # The update was refused before anything was changed, so there is nothing to roll back.
        resource.attempted_properties = dict(old_properties)
        raise
    resource.attributes = {**resource.attributes, **changed_attributes}


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
        yield from _RollingUpdate(cloud, stack, resource, policy).replace(obsolete)


def _must_replace_instances(resource: Resource, old_properties: Properties) -> bool:
    """Whether an update of a group replaces its instances (reference, "UpdatePolicy attribute")."""
    if resource.status == "UPDATE_FAILED":
        return True
    subnets, old_subnets = (source.get("VPCZoneIdentifier") for source in (resource.properties, old_properties))
    is_same_source = signals.launch_source(resource.properties) == signals.launch_source(old_properties)
    return subnets != old_subnets or not is_same_source


@dataclass
class _RollingUpdate:
    """Replaces the instances of one group in batches, with the scaling processes of its policy suspended meanwhile."""

    cloud: Region
    stack: Stack
    group: Resource
    policy: RollingPolicy

    def replace(self, obsolete: list[str]) -> Operation:
        """Replace the instances with these ids.

        Raises:
            ResourceError: the policy does not fit the group, or too few new instances signalled success
        """
        max_size, min_size, capacity = self._sizes()
        batch_size = max(min(self.policy.max_batch_size, len(obsolete), max_size - self.policy.min_in_service), 1)
        self.policy = dataclasses.replace(self.policy, max_batch_size=batch_size)
        self._record_progress(_announcement(self.policy, obsolete))
        generation = self.group.generation
        if self.policy.suspended_processes:
            self._scaling.suspend_processes(**self._suspended_processes)
        try:
            yield from self._replace_in_batches(obsolete, min_size=min_size, capacity=capacity)
        except ResourceError:
            self._resume_processes()
            raise
        # Otherwise the update was cancelled, and its rollback is in progress.
        if not self.group.is_superseded(generation):
            del self.cloud.capacities_before_update[self._name]
            self._resume_processes()

    @property
    def _scaling(self) -> AwsClient:
        return client("autoscaling", self.cloud.region)

    @property
    def _name(self) -> str:
        return self.group.physical_id

    @property
    def _suspended_processes(self) -> JsonDict:
        return {"AutoScalingGroupName": self._name, "ScalingProcesses": list(self.policy.suspended_processes)}

    def _sizes(self) -> tuple[int, int, int]:
        """The group's MaxSize, and the MinSize and the number of instances that it shall have in the end."""
        response = self._scaling.describe_auto_scaling_groups(AutoScalingGroupNames=[self._name])
        [description] = response["AutoScalingGroups"]
        max_size = int(description["MaxSize"])
        if self.policy.min_in_service >= max_size:
            raise ResourceError("MinInstancesInService must be less than the autoscaling group's MaxSize")
        current_min_size, current_capacity = int(description["MinSize"]), int(description["DesiredCapacity"])
        # A rollback returns to the sizes before the failed update, which may have raised them temporarily.
        has_failed_before = self._name in self.cloud.capacities_before_update
        capacity = self.cloud.capacities_before_update.setdefault(self._name, current_capacity)
        if "DesiredCapacity" not in self.group.properties:
            capacity = current_capacity
        min_size = int(self.group.properties["MinSize"]) if has_failed_before else current_min_size
        if current_min_size != min_size:
            self._scaling.update_auto_scaling_group(AutoScalingGroupName=self._name, MinSize=min_size)
        return max_size, min_size, capacity

    def _resume_processes(self) -> None:
        if self.policy.suspended_processes:
            self._scaling.resume_processes(**self._suspended_processes)

    def _replace_in_batches(self, obsolete: list[str], *, min_size: int, capacity: int) -> Operation:
        """Terminate obsolete instances batch by batch; wait for the replacements of each batch.

        Args:
            min_size: the MinSize that the group shall have in the end
            capacity: the number of instances that the group shall have in the end
        """
        generation, obsolete_count = self.group.generation, len(obsolete)
        up_to_date_count = len(self._members()) - obsolete_count
        raised_capacity = self.policy.max_batch_size + self.policy.min_in_service
        is_raised = raised_capacity > capacity
        if is_raised:
            text = f"Temporarily setting autoscaling group MinSize and DesiredCapacity to {raised_capacity}."
            self._record_progress(text)
            # None, if this is the rollback of an update that had raised the capacity already.
            up_to_date_count += max(raised_capacity - len(self._members()), 0)
            yield from self._launch_and_await(raised_capacity)
        remaining = obsolete
        while remaining and not self.group.is_superseded(generation):
            # Meanwhile the group may have replaced some by itself, such as Spot Instances at risk, and an autoscaler
            # may have terminated some without a replacement. Both are assumed to be passed over.
            members = self._members()
            present = [instance_id for instance_id in remaining if instance_id in members]
            up_to_date_count += len(remaining) - len(present)
            batch, remaining = present[: self.policy.max_batch_size], present[self.policy.max_batch_size :]
            replacement_count = max(min(len(batch), capacity - up_to_date_count), 0)
            text = f"Terminating instance(s) [{','.join(batch)}]; replacing with {replacement_count} new instance(s)."
            self._record_progress(text)
            last_sizes = (min_size, capacity) if is_raised and not remaining else None
            self._terminate(batch, replacement_count, last_sizes)
            percent = 100 * (obsolete_count - len(remaining)) // obsolete_count
            text = f"Successfully terminated instance(s) [{','.join(batch)}] (Progress {percent}%)."
            self._record_progress(text)
            if replacement_count:
                yield from self._await_new_instances(replacement_count, members)
                up_to_date_count += replacement_count

    def _terminate(self, batch: list[str], replacement_count: int, last_sizes: tuple[int, int] | None) -> None:
        """Terminate a batch; with the last one, put back the MinSize and DesiredCapacity that had been raised."""
        self._expect_signals(replacement_count)
        if last_sizes:
            self._scaling.update_auto_scaling_group(AutoScalingGroupName=self._name, MinSize=last_sizes[0])
        for number, instance_id in enumerate(batch):
            # The group itself launches the replacement of an instance (awslabs/amazon-eks-ami#66), unless its desired
            # capacity is decremented.
            self._scaling.terminate_instance_in_auto_scaling_group(
                InstanceId=instance_id, ShouldDecrementDesiredCapacity=number >= replacement_count
            )
        if last_sizes:
            self._scaling.set_desired_capacity(AutoScalingGroupName=self._name, DesiredCapacity=last_sizes[1])

    def _launch_and_await(self, capacity: int) -> Operation:
        """Raise the minimum size and the desired capacity of the group, and wait for the new instances."""
        instances_before = self._members()
        new_instance_count = capacity - len(instances_before)
        self._expect_signals(new_instance_count)
        self._scaling.update_auto_scaling_group(
            AutoScalingGroupName=self._name, MinSize=capacity, DesiredCapacity=capacity
        )
        yield from self._await_new_instances(new_instance_count, instances_before)

    def _members(self) -> set[str]:
        return set(signals.group_instance_ids(self.cloud, self._name))

    def _expect_signals(self, count: int) -> None:
        self.group.signals, self.group.expected_signals = {}, count if self.policy.waits_for_signals else 0

    def _await_new_instances(self, count: int, instances_before: set[str]) -> Operation:
        """Wait for the signals of a number of new instances, or without signals for PauseTime.

        Raises:
            ResourceError: too few new instances signalled success
        """
        policy, generation = self.policy, self.group.generation
        if policy.waits_for_signals:
            text = f"New instance(s) added to autoscaling group - Waiting on {count} resource signal(s)"
            self._record_progress(f"{text} with a timeout of {policy.timeout}.")
        signals.notify_launches(self.cloud, self.group, instances_before)
        deadline = self.cloud.clock.now + policy.pause_seconds
        self.cloud.clock.schedule(policy.pause_seconds, lambda: None)  # so that the clock stops at the deadline

        def is_over() -> bool:
            if self.group.is_superseded(generation) or self.cloud.clock.now >= deadline:
                return True
            return policy.waits_for_signals and self._signals_decide(count)

        yield is_over
        if self.group.is_superseded(generation) or not policy.waits_for_signals:
            return
        self.group.expected_signals = 0
        successes = sum(signal == "SUCCESS" for signal in self.group.signals.values())
        if 100 * successes < policy.min_successful_percent * count:
            raise ResourceError(
                f"Received {successes} SUCCESS signal(s) out of {count}.  Unable to satisfy "
                f"{policy.min_successful_percent}% MinSuccessfulInstancesPercent requirement"
            )

    def _signals_decide(self, count: int) -> bool:
        """Whether all new instances have signalled, or too many have failed."""
        failures = sum(signal == "FAILURE" for signal in self.group.signals.values())
        too_many_failures = 100 * (count - failures) < self.policy.min_successful_percent * count
        return too_many_failures or len(self.group.signals) >= count

    def _record_progress(self, text: str) -> None:
        self.cloud.record_event(self.stack, self.group, "UPDATE_IN_PROGRESS", text)


def _announcement(policy: RollingPolicy, obsolete: list[str]) -> str:
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
