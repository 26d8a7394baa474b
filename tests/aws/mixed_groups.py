"""Groups with a mixed instances policy, and questions about their instances."""

from __future__ import annotations

from collections import Counter
from typing import Any

from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID
from small_stacks import REGION, group

from cfngen.sandbox.cloudformation import Stack, client
from cfngen.sandbox.services import scaling_activities

ZONES = [f"{REGION}{letter}" for letter in "abc"]
TYPES = ("m5.large", "m5a.large", "m6i.large")
OWN_TEMPLATE = {"LaunchTemplateId": {"Ref": "Template"}, "Version": {"Fn::GetAtt": "Template.LatestVersionNumber"}}


def override(name: str, **more: Any) -> dict[str, Any]:
    return {"InstanceType": name, **more}


def requiring(**requirements: Any) -> dict[str, Any]:
    """An override that selects types by attributes: by default, 2 vCPUs and 8 GiB."""
    basic = {"VCpuCount": {"Min": 2, "Max": 2}, "MemoryMiB": {"Min": 8192, "Max": 8192}}
    return {"InstanceRequirements": {**basic, **requirements}}


def mixed(
    count: int,
    *overrides: dict[str, Any],
    most: int | None = None,
    zones: list[str] = ZONES,
    distribution: dict[str, Any] | None = None,
    user_data: str = "",
    signals: bool = False,
    rolling: dict[str, Any] | None = None,
    **properties: Any,
) -> dict[str, Any]:
    """A group of several instance types; without signals, it waits for nobody."""
    resources = group(count, most=most, **(rolling or {}))
    if user_data:
        resources["Template"]["Properties"]["LaunchTemplateData"]["UserData"] = user_data
    if not signals:
        del resources["Group"]["CreationPolicy"]
        resources["Group"]["UpdatePolicy"]["AutoScalingRollingUpdate"] |= {"WaitOnResourceSignals": False}
    settings = resources["Group"]["Properties"]
    del settings["LaunchTemplate"]
    policy: dict[str, Any] = {
        "LaunchTemplate": {
            "LaunchTemplateSpecification": OWN_TEMPLATE,
            "Overrides": list(overrides) or [override(name) for name in TYPES],
        }
    }
    if distribution is not None:
        policy["InstancesDistribution"] = distribution
    settings.update({"AvailabilityZones": zones, "MixedInstancesPolicy": policy, **properties})
    return resources


def spot(strategy: str = "price-capacity-optimized", **more: Any) -> dict[str, Any]:
    """A distribution of Spot Instances only."""
    return {"OnDemandPercentageAboveBaseCapacity": 0, "SpotAllocationStrategy": strategy, **more}


def group_name(stack: Stack) -> str:
    return str(stack.resources["Group"].physical_id)


def described(stack: Stack) -> dict[str, Any]:
    """The group as DescribeAutoScalingGroups shows it."""
    response = client("autoscaling", REGION).describe_auto_scaling_groups(AutoScalingGroupNames=[group_name(stack)])
    [found] = response["AutoScalingGroups"]
    return dict(found)


def instances() -> list[dict[str, Any]]:
    """The running instances, as EC2 shows them."""
    pages = (
        client("ec2", REGION)
        .get_paginator("describe_instances")
        .paginate(Filters=[{"Name": "instance-state-name", "Values": ["running"]}])
    )
    return [instance for page in pages for reservation in page["Reservations"] for instance in reservation["Instances"]]


def ids() -> set[str]:
    return {instance["InstanceId"] for instance in instances()}


def types() -> Counter[str]:
    return Counter(instance["InstanceType"] for instance in instances())


def markets() -> Counter[str]:
    return Counter(instance.get("InstanceLifecycle", "on-demand") for instance in instances())


def zones_in_use() -> Counter[str]:
    return Counter(instance["Placement"]["AvailabilityZone"] for instance in instances())


def failures(stack: Stack) -> list[str]:
    """What the failed activities of a group say, the first one first."""
    backend = autoscaling_backends[DEFAULT_ACCOUNT_ID][REGION]
    activities = scaling_activities.recorded_activities(backend, group_name(stack))
    return [activity["StatusMessage"] for activity in reversed(activities) if activity["StatusCode"] == "Failed"]


def resized(stack: Stack, size: int) -> None:
    client("autoscaling", REGION).set_desired_capacity(AutoScalingGroupName=group_name(stack), DesiredCapacity=size)
