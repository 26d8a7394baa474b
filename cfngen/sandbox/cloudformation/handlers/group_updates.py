"""Updates of a group's settings, which the API keeps unless a call clears them, and of its target groups."""

from __future__ import annotations

from collections.abc import Collection

from cfngen.sandbox.cloudformation.handlers.handler import HandlerCall, client
from cfngen.sandbox.json_types import JsonDict, JsonObject, Properties

TARGET_GROUPS_KEY = "TargetGroupARNs"
# What UpdateAutoScalingGroup is called with for a property that the template no longer has: its default, or the value
# that the API documents to clear it. That CloudFormation does so is assumed.
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


def with_cleared_settings(settings: JsonObject, *, removed: Collection[str]) -> JsonDict:
    """Return the arguments of UpdateAutoScalingGroup with values that clear what the template no longer has.

    Args:
        settings: the arguments for properties that have changed
        removed: the names of the properties that only the old template has
    """
    cleared = {key: value for key, value in CLEARED_SETTINGS.items() if key in removed}
    policy = settings.get("MixedInstancesPolicy")
    if policy is None:
        return {**settings, **cleared}
    distribution = {**DEFAULT_DISTRIBUTION, **(policy.get("InstancesDistribution") or {})}
    template = {"Overrides": [], **(policy.get("LaunchTemplate") or {})}
    complete_policy = {"LaunchTemplate": template, "InstancesDistribution": distribution}
    return {**settings, **cleared, "MixedInstancesPolicy": complete_policy}


def update_target_groups(call: HandlerCall, old_properties: Properties) -> None:
    """Attach the new target groups of a group, and detach those that only its old properties have."""
    autoscaling = client("autoscaling", call.region)
    old_arns, new_arns = (list(source.get(TARGET_GROUPS_KEY, [])) for source in (old_properties, call.properties))
    if detached := [arn for arn in old_arns if arn not in new_arns]:
        autoscaling.detach_load_balancer_target_groups(AutoScalingGroupName=call.physical_id, TargetGroupARNs=detached)
    if attached := [arn for arn in new_arns if arn not in old_arns]:
        autoscaling.attach_load_balancer_target_groups(AutoScalingGroupName=call.physical_id, TargetGroupARNs=attached)
