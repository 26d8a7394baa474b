"""Handlers of what instances signal to: Auto Scaling groups, and wait conditions with their handles."""

from __future__ import annotations

from collections.abc import Collection

from cfngen.sandbox.cloudformation.handlers.handler import (
    CreatedResource,
    Handler,
    HandlerCall,
    Tag,
    leave_to_rollback_on_failure,
    whole_number,
)
from cfngen.sandbox.untyped import JsonDict, JsonObject, Properties

GROUP_SIZE_KEYS = frozenset({"MinSize", "MaxSize", "DesiredCapacity"})
NUMBER_KEYS = GROUP_SIZE_KEYS | {"MaxInstanceLifetime"}
HOOKS_KEY = "LifecycleHookSpecificationList"
TARGET_GROUPS_KEY = "TargetGroupARNs"
NOTIFICATIONS_KEY = "NotificationConfigurations"


class AutoScalingGroup(Handler):
    """An Auto Scaling group; this handler updates only the group itself, and `rolling` replaces its instances."""

    supported_properties = frozenset({
        "MinSize", "MaxSize", "DesiredCapacity", "AvailabilityZones", "VPCZoneIdentifier", "LaunchTemplate",
        "MixedInstancesPolicy", "CapacityRebalance", "CapacityReservationSpecification", "MaxInstanceLifetime",
        TARGET_GROUPS_KEY, "Tags", HOOKS_KEY, NOTIFICATIONS_KEY,
    })  # fmt: skip

    def create(self, call: HandlerCall) -> CreatedResource:
        name = call.generate_name()
        lifecycle_hooks = _lifecycle_hooks(call)
        call.client("autoscaling").create_auto_scaling_group(
            AutoScalingGroupName=name,
            Tags=_group_tags(name, call.properties.get("Tags", [])),
            **_group_settings(call, set(self.supported_properties)),
            **({HOOKS_KEY: lifecycle_hooks} if lifecycle_hooks else {}),
        )
        created = CreatedResource(name)
        with leave_to_rollback_on_failure(created):
            update_notifications(call, name, {})
        return created

    def update_properties(self, call: HandlerCall, old_properties: Properties, changed: set[str]) -> None:
        changed_settings = _group_settings(call, changed - {TARGET_GROUPS_KEY})
        if arguments := _update_arguments(changed_settings, removed=changed - set(call.properties)):
            call.client("autoscaling").update_auto_scaling_group(AutoScalingGroupName=call.physical_id, **arguments)
        if TARGET_GROUPS_KEY in changed:
            update_target_groups(call, old_properties)
        if HOOKS_KEY in changed:
            _update_lifecycle_hooks(call, old_properties)
        if NOTIFICATIONS_KEY in changed:
            update_notifications(call, call.physical_id, old_properties)

    def add_tags(self, call: HandlerCall, tags: list[Tag]) -> None:
        call.client("autoscaling").create_or_update_tags(Tags=_group_tags(call.physical_id, tags))

    def remove_tags(self, call: HandlerCall, keys: list[str]) -> None:
        removed = _group_tags(call.physical_id, [{"Key": key} for key in keys])
        call.client("autoscaling").delete_tags(Tags=removed)

    def must_replace(self, call: HandlerCall) -> bool:
        """Reference, "UpdatePolicy": only AutoScalingReplacingUpdate replaces a group."""
        return bool(call.update_policy.get("AutoScalingReplacingUpdate", {}).get("WillReplace", False))

    def read_actual(self, call: HandlerCall) -> Properties | None:
        groups = call.client("autoscaling").describe_auto_scaling_groups(AutoScalingGroupNames=[call.physical_id])[
            "AutoScalingGroups"
        ]
        if not groups:
            return None
        [group] = groups
        actual: JsonDict = {}
        for key in ("MinSize", "MaxSize", "DesiredCapacity"):
            if key in call.properties:
                actual[key] = str(group[key])
        if "LaunchTemplate" in call.properties and "LaunchTemplate" in group:
            actual["LaunchTemplate"] = {key: group["LaunchTemplate"][key] for key in call["LaunchTemplate"]}
        if group["Tags"] or "Tags" in call.properties:
            tag_keys = ("Key", "Value", "PropagateAtLaunch")
            actual["Tags"] = [{key: tag[key] for key in tag_keys} for tag in group["Tags"]]
        return actual

    def delete(self, call: HandlerCall) -> None:
        if self.read_actual(call) is None:
            return  # Auto Scaling's error for a group that does not exist has no code of its own
        call.client("autoscaling").delete_auto_scaling_group(AutoScalingGroupName=call.physical_id, ForceDelete=True)


def _group_settings(call: HandlerCall, keys: set[str]) -> JsonDict:
    """The arguments of CreateAutoScalingGroup and UpdateAutoScalingGroup, without what has calls of its own.

    Args:
        keys: the properties to include, if the template sets them
    """
    settings = call.pick(*sorted(keys - {"Tags", HOOKS_KEY, NOTIFICATIONS_KEY}))
    for key in NUMBER_KEYS & set(settings):
        settings[key] = whole_number(key, settings[key])
    if subnet_ids := settings.get("VPCZoneIdentifier"):
        settings["VPCZoneIdentifier"] = ",".join(subnet_ids)
    return settings


def _update_lifecycle_hooks(call: HandlerCall, old_properties: Properties) -> None:
    autoscaling = call.client("autoscaling")
    new_hooks = _lifecycle_hooks(call)
    old_names = {hook["LifecycleHookName"] for hook in old_properties.get(HOOKS_KEY, [])}
    new_names = {hook["LifecycleHookName"] for hook in new_hooks}
    for name in old_names - new_names:
        autoscaling.delete_lifecycle_hook(AutoScalingGroupName=call.physical_id, LifecycleHookName=name)
    for hook in new_hooks:
        autoscaling.put_lifecycle_hook(AutoScalingGroupName=call.physical_id, **hook)


def _lifecycle_hooks(call: HandlerCall) -> list[JsonDict]:
    hooks = []
    for template_hook in call.properties.get(HOOKS_KEY, []):
        hook = dict(template_hook)
        if "HeartbeatTimeout" in hook:
            hook["HeartbeatTimeout"] = int(hook["HeartbeatTimeout"])
        hooks.append(hook)
    return hooks


def _group_tags(group_name: str, tags: list[JsonDict]) -> list[JsonDict]:
    """A group's tags in the form of Auto Scaling's API, which names the group in each tag."""
    return [{**tag, "ResourceId": group_name, "ResourceType": "auto-scaling-group"} for tag in tags]


# A property that the template no longer has is cleared by an update of the group with the value here: the property's
# default, or the value that clears it according to the API reference. That CloudFormation does so is assumed.
CLEARED_SETTINGS: JsonObject = {
    "CapacityRebalance": False,
    "CapacityReservationSpecification": {"CapacityReservationPreference": "default"},
    "MaxInstanceLifetime": 0,
}
# What a policy has where it leaves something out (API reference, InstancesDistribution).
DEFAULT_DISTRIBUTION: JsonObject = {
    "OnDemandBaseCapacity": 0,
    "OnDemandPercentageAboveBaseCapacity": 100,
    "SpotMaxPrice": "",
    "SpotAllocationStrategy": "lowest-price",
}


def _update_arguments(changed_settings: JsonObject, *, removed: Collection[str]) -> JsonDict:
    """The arguments of UpdateAutoScalingGroup, which also clear what the template no longer has.

    A group keeps each part of its mixed instances policy that the call leaves out. So that a part that the template
    no longer has does not stay in effect, the call names all parts: those that the template lacks with their defaults.

    Args:
        changed_settings: the arguments for properties that have changed
        removed: the names of the properties that only the old template has
    """
    cleared = {key: value for key, value in CLEARED_SETTINGS.items() if key in removed}
    policy = changed_settings.get("MixedInstancesPolicy")
    if policy is None:
        return {**changed_settings, **cleared}
    distribution = {**DEFAULT_DISTRIBUTION, **(policy.get("InstancesDistribution") or {})}
    template = {"Overrides": [], **(policy.get("LaunchTemplate") or {})}
    complete_policy = {"LaunchTemplate": template, "InstancesDistribution": distribution}
    return {**changed_settings, **cleared, "MixedInstancesPolicy": complete_policy}


def update_target_groups(call: HandlerCall, old_properties: Properties) -> None:
    """Attach the new target groups of a group, and detach those that only its old properties have."""
    autoscaling = call.client("autoscaling")
    old_arns, new_arns = (list(source.get(TARGET_GROUPS_KEY, [])) for source in (old_properties, call.properties))
    if detached := [arn for arn in old_arns if arn not in new_arns]:
        autoscaling.detach_load_balancer_target_groups(AutoScalingGroupName=call.physical_id, TargetGroupARNs=detached)
    if attached := [arn for arn in new_arns if arn not in old_arns]:
        autoscaling.attach_load_balancer_target_groups(AutoScalingGroupName=call.physical_id, TargetGroupARNs=attached)


def update_notifications(call: HandlerCall, group_name: str, old_properties: Properties) -> None:
    """Have messages about a group sent to its topics, and no longer to those that only its old properties have."""
    autoscaling = call.client("autoscaling")
    old_types, new_types = (
        {
            topic: each["NotificationTypes"]
            for each in source.get(NOTIFICATIONS_KEY, [])
            for topic in ([each["TopicARN"]] if isinstance(each["TopicARN"], str) else each["TopicARN"])
        }
        for source in (old_properties, call.properties)
    )
    for topic in old_types.keys() - new_types.keys():
        autoscaling.delete_notification_configuration(AutoScalingGroupName=group_name, TopicARN=topic)
    for topic, types in new_types.items():
        autoscaling.put_notification_configuration(
            AutoScalingGroupName=group_name, TopicARN=topic, NotificationTypes=types
        )


class WaitCondition(Handler):
    """A wait condition with a creation policy, which waits for signals and has no properties.

    Wait conditions without a creation policy, which wait for data sent to a handle, are not supported.
    """

    def create(self, call: HandlerCall) -> CreatedResource:
        """Return a generated name; `creation` waits for the signals."""
        return CreatedResource(call.generate_name())

    def delete(self, call: HandlerCall) -> None:
        """There is nothing to delete."""


class WaitConditionHandle(Handler):
    """A presigned URL to which data could be sent; it creates nothing in the account, but its metadata can be read."""

    def create(self, call: HandlerCall) -> CreatedResource:
        """Return a handle, whose physical id is the URL."""
        return CreatedResource(
            f"https://cloudformation-waitcondition-{call.region}.s3.{call.region}.amazonaws.com/{call.generate_name()}"
        )

    def delete(self, call: HandlerCall) -> None:
        """There is nothing to delete."""
