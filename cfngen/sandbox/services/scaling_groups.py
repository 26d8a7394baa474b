"""Auto Scaling groups: sizes, zones and subnets, launch templates, tags, lifecycle hooks, and what else they refuse.

Ranges and values: Amazon EC2 Auto Scaling API reference, CreateAutoScalingGroup and the types it names,
PutLifecycleHook, LifecycleHookSpecification and CompleteLifecycleAction.
"""

from __future__ import annotations

from moto.elbv2.models import elbv2_backends

from cfngen.sandbox.services.rules import PendingCall, Refused, rule, validation_error
from cfngen.sandbox.services.scaling_activities import held_state, hold_of, is_terminating
from cfngen.sandbox.untyped import MotoModel

SCALING_PROCESSES = {
    "Launch", "Terminate", "AddToLoadBalancer", "AlarmNotification", "AZRebalance", "HealthCheck", "InstanceRefresh",
    "ReplaceUnhealthy", "ScheduledActions",
}  # fmt: skip
MAX_TAGS = 50
MAX_HOOKS = 50  # of a group; Auto Scaling user guide, "Quotas for Auto Scaling resources and groups"
MAX_TAGS_IN_CALL = 25  # for CreateOrUpdateTags and DeleteTags
RESERVED_PREFIX = "aws:"
HEARTBEAT_TIMEOUTS = range(30, 7201)  # seconds


@rule("autoscaling", "CreateAutoScalingGroup")
def check_name(call: PendingCall) -> None:
    """Refuse a name that is in use or invalid."""
    name = call.get("AutoScalingGroupName", "")
    if name in call.backend.autoscaling_groups:
        raise Refused(
            "AlreadyExists",
            f"AutoScalingGroup by this name already exists - A group with the name {name} already exists",
        )
    if ":" in name:
        raise validation_error(f"The name of an Auto Scaling group cannot have a colon: {name}")


@rule("autoscaling", "UpdateAutoScalingGroup", "DeleteAutoScalingGroup", "SetDesiredCapacity", "PutLifecycleHook",
      "DescribeLifecycleHooks", "SuspendProcesses", "ResumeProcesses", "DeleteLifecycleHook",
      "PutNotificationConfiguration", "DeleteNotificationConfiguration")  # fmt: skip
def check_group_exists(call: PendingCall) -> None:
    """Refuse operations on a group that does not exist."""
    name = call.get("AutoScalingGroupName", "")
    if name not in call.backend.autoscaling_groups:
        raise validation_error(f"AutoScalingGroup name not found - AutoScalingGroup '{name}' not found")


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_sizes(call: PendingCall) -> None:
    """Refuse a minimum size above the maximum size, and a desired capacity that is not between them."""
    group = _get_group(call)
    min_size = call.get("MinSize", getattr(group, "min_size", 0))
    max_size = call.get("MaxSize", getattr(group, "max_size", 0))
    desired = call.get("DesiredCapacity")
    if min_size > max_size:
        raise validation_error(f"Max bound, {max_size}, must be greater than or equal to min bound, {min_size}")
    if desired is not None and not min_size <= desired <= max_size:
        raise validation_error(
            f"Desired capacity:{desired} must be between the specified min size:{min_size} and max size:{max_size}"
        )


@rule("autoscaling", "SetDesiredCapacity")
def check_desired_capacity(call: PendingCall) -> None:
    """Refuse a desired capacity below the group's minimum size or above its maximum size."""
    group, desired = _get_group(call), call.get("DesiredCapacity")
    for bound, name, is_beyond in (
        (group.max_size, "above max", desired > group.max_size),
        (group.min_size, "below min", desired < group.min_size),
    ):
        if is_beyond:
            raise validation_error(
                f"New SetDesiredCapacity value {desired} is {name} value {bound} for the AutoScalingGroup."
            )


@rule("autoscaling", "CreateAutoScalingGroup", "UpdateAutoScalingGroup")
def check_zones_and_subnets(call: PendingCall) -> None:
    """Refuse unknown zones and subnets, subnets of several VPCs, and zones that do not match the subnets."""
    ec2 = call.backend.ec2_backend
    region_zones = {availability_zone.name for availability_zone in ec2.describe_availability_zones()}
    zones = call.get("AvailabilityZones", [])
    if unknown := sorted(set(zones) - region_zones):
        raise validation_error(f"Invalid availability zones: [{', '.join(unknown)}]")
    subnet_ids = [subnet_id for subnet_id in (call.get("VPCZoneIdentifier") or "").split(",") if subnet_id]
    known_subnets = {subnet_id: subnet for in_zone in ec2.subnets.values() for subnet_id, subnet in in_zone.items()}
    if missing := [subnet_id for subnet_id in subnet_ids if subnet_id not in known_subnets]:
        raise validation_error(f"The subnet ID '{missing[0]}' does not exist")
    subnets = [known_subnets[subnet_id] for subnet_id in subnet_ids]
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise validation_error(f"The subnets [{', '.join(subnet_ids)}] are of several VPCs")
    if zones and subnets and {subnet.availability_zone for subnet in subnets} != set(zones):
        raise validation_error(
            "The availability zones of the specified subnets and the Auto Scaling group do not match"
        )
    if call.operation == "CreateAutoScalingGroup" and not zones and not subnets:
        raise validation_error("At least one Availability Zone or VPC Subnet is required.")


@rule("autoscaling", "CreateAutoScalingGroup", "AttachLoadBalancerTargetGroups")
def check_target_groups(call: PendingCall) -> None:
    """Refuse unknown target groups, and those whose targets are not instances."""
    if arns := call.get("TargetGroupARNs", []):
        target_groups = elbv2_backends[call.backend.account_id][call.region].target_groups
        for arn in arns:
            if arn not in target_groups:
                raise validation_error(
                    "Provided Target Groups may not be valid. Please ensure they exist and try again."
                )
            if target_groups[arn].target_type not in ("", None, "instance"):
                raise validation_error(
                    f"Provided Target Group '{arn}' has invalid target type. Please ensure all provided Target "
                    "Groups have target type of instance."
                )


@rule("autoscaling", "CreateOrUpdateTags", "DeleteTags")
def check_tag_calls(call: PendingCall) -> None:
    """Refuse too many tags in a call, tags of a group that does not exist, and more than a group can have.

    "The maximum number of tags per resource is 50. The maximum number of tags that you can add or remove using a single
    call is 25" ("Tag naming and usage restrictions", Auto Scaling user guide). The codes are assumptions: the API lists
    LimitExceeded among the errors of CreateOrUpdateTags, and no other that would fit.
    """
    tags = call.get("Tags", [])
    if len(tags) > MAX_TAGS_IN_CALL:
        raise validation_error(f"The number of tags in a call must not exceed {MAX_TAGS_IN_CALL}")
    for tag in tags:
        group = call.backend.autoscaling_groups.get(tag.get("ResourceId"))
        if group is None:
            raise validation_error(f"AutoScalingGroup name not found - AutoScalingGroup '{tag.get('ResourceId')}'")
        keys = {existing["Key"] for existing in group.tags} | {new["Key"] for new in tags}
        own_keys = [key for key in keys if not key.startswith(RESERVED_PREFIX)]
        if call.operation == "CreateOrUpdateTags" and len(own_keys) > MAX_TAGS:
            raise Refused("LimitExceeded", f"A group has {MAX_TAGS} tags at most")


@rule("autoscaling", "CreateAutoScalingGroup", "CreateOrUpdateTags")
def check_tags(call: PendingCall) -> None:
    """Refuse more tags than a group can have, and two tags with the same key."""
    if len(tags := call.get("Tags", [])) > MAX_TAGS:
        raise validation_error(f"The number of tags must not exceed {MAX_TAGS}, and is {len(tags)}")
    keys = [tag["Key"] for tag in tags]
    if duplicates := sorted({key for key in keys if keys.count(key) > 1}):
        raise validation_error(f"Duplicate Keys Specified: {', '.join(duplicates)}")


@rule("autoscaling", "SuspendProcesses", "ResumeProcesses")
def check_processes(call: PendingCall) -> None:
    """Refuse unknown scaling processes."""
    if unknown := sorted(set(call.get("ScalingProcesses", [])) - SCALING_PROCESSES):
        raise validation_error(f"Unknown process type: {', '.join(unknown)}")


@rule("autoscaling", "DeleteAutoScalingGroup")
def check_empty_group(call: PendingCall) -> None:
    """Refuse to delete a group that has instances, unless with ForceDelete."""
    group = _get_group(call)
    if call.get("ForceDelete"):
        return
    if any(is_terminating(instance_state) for instance_state in group.instance_states):
        raise Refused(
            "ScalingActivityInProgress",
            "You cannot delete an AutoScalingGroup while there are scaling activities in progress for that group.",
        )
    if group.instance_states:
        raise Refused(
            "ResourceInUse",
            "You cannot delete an AutoScalingGroup while there are instances or pending Spot instance request(s) still "
            "in the group.",
        )


@rule("autoscaling", "TerminateInstanceInAutoScalingGroup", "SetInstanceProtection")
def check_members(call: PendingCall) -> None:
    """Refuse instances that are in no group, and a decrement of the desired capacity below the minimum."""
    instance_ids = call.get("InstanceIds") or [call.get("InstanceId")]
    group_by_instance = {
        state.instance.id: group
        for group in call.backend.autoscaling_groups.values()
        for state in group.instance_states
    }
    if unknown := [instance_id for instance_id in instance_ids if instance_id not in group_by_instance]:
        raise validation_error(f"Instance Id not found - No managed instance found for instance ID {unknown[0]}")
    if call.operation == "TerminateInstanceInAutoScalingGroup" and call.get("ShouldDecrementDesiredCapacity"):
        group = group_by_instance[instance_ids[0]]
        if group.desired_capacity <= (group.min_size or 0):
            raise validation_error(
                f"Currently, desiredSize equals minSize ({group.min_size}). Terminating instance without replacement "
                "will violate group's min size constraint. Either set shouldDecrementDesiredCapacity flag to false or "
                "lower group's min size."
            )


def _get_group(call: PendingCall) -> MotoModel:
    return call.backend.autoscaling_groups.get(call.get("AutoScalingGroupName"))


@rule("autoscaling", "CreateAutoScalingGroup", "PutLifecycleHook")
def check_hook(call: PendingCall) -> None:
    """Refuse two hooks of one name, and one that may hold an instance for longer than allowed without a heartbeat."""
    hooks = call.get("LifecycleHookSpecificationList") or [call.parameters]
    names = [hook.get("LifecycleHookName") for hook in hooks]
    if len(set(names)) < len(names):
        raise validation_error(f"Lifecycle hooks have names of their own: {', '.join(names)}")
    if len(hooks) > MAX_HOOKS:
        raise Refused("LimitExceeded", f"A group has {MAX_HOOKS} lifecycle hooks at most")
    for hook in hooks:
        if int(hook.get("HeartbeatTimeout") or HEARTBEAT_TIMEOUTS[-1]) not in HEARTBEAT_TIMEOUTS:
            raise validation_error(
                f"Heartbeat timeout must be between {HEARTBEAT_TIMEOUTS[0]} and {HEARTBEAT_TIMEOUTS[-1]} seconds"
            )


@rule("autoscaling", "CompleteLifecycleAction", "RecordLifecycleActionHeartbeat")
def check_active_action(call: PendingCall) -> None:
    """Refuse to complete or extend the lifecycle action of an instance that the hook does not hold."""
    instance_id = call.get("InstanceId")
    instance_state = held_state(call.backend, call.get("AutoScalingGroupName"), instance_id)
    hold = hold_of(instance_state) if instance_state else None
    if hold is None or hold.hook.name != call.get("LifecycleHookName"):
        raise validation_error(f"No active Lifecycle Action found with instance ID {instance_id}")
