"""Sizes of groups that somebody changes: what is protected or suspended stays, and goes once it may."""

from __future__ import annotations

from typing import Any

import pytest
from small_stacks import REGION, created, group

from cfngen.sandbox.cloudformation import CloudFormation, client


@pytest.fixture
def name(cloud: CloudFormation) -> str:
    resources = group(2)
    del resources["Group"]["CreationPolicy"]
    return str(created(cloud, resources).resources["Group"].physical_id)


def described(name: str) -> dict[str, Any]:
    [found] = client("autoscaling", REGION).describe_auto_scaling_groups(AutoScalingGroupNames=[name])[
        "AutoScalingGroups"
    ]
    return dict(found)


def resized(name: str, size: int) -> None:
    client("autoscaling", REGION).update_auto_scaling_group(
        AutoScalingGroupName=name, MinSize=size, MaxSize=size, DesiredCapacity=size
    )


def test_a_protected_instance_stays_until_it_is_no_longer_protected(cloud: CloudFormation, name: str) -> None:
    autoscaling = client("autoscaling", REGION)
    protected = described(name)["Instances"][0]["InstanceId"]
    autoscaling.set_instance_protection(AutoScalingGroupName=name, InstanceIds=[protected], ProtectedFromScaleIn=True)
    resized(name, 0)
    cloud.advance(600)
    assert [instance["InstanceId"] for instance in described(name)["Instances"]] == [protected]
    assert described(name)["DesiredCapacity"] == 0
    autoscaling.set_instance_protection(AutoScalingGroupName=name, InstanceIds=[protected], ProtectedFromScaleIn=False)
    cloud.advance(600)
    assert described(name)["Instances"] == []


@pytest.mark.parametrize(("process", "size"), [("Terminate", 0), ("Launch", 3)])
def test_a_suspended_process_does_nothing_until_it_is_resumed(
    cloud: CloudFormation, name: str, process: str, size: int
) -> None:
    autoscaling = client("autoscaling", REGION)
    autoscaling.suspend_processes(AutoScalingGroupName=name, ScalingProcesses=[process])
    resized(name, size)
    cloud.advance(600)
    assert len(described(name)["Instances"]) == 2
    autoscaling.resume_processes(AutoScalingGroupName=name, ScalingProcesses=[process])
    cloud.advance(600)
    assert len(described(name)["Instances"]) == size


def test_an_update_of_sizes_leaves_what_it_does_not_name(cloud: CloudFormation, name: str) -> None:
    before = described(name)
    resized(name, 0)
    cloud.advance(600)
    resized(name, 2)
    after = described(name)
    for unchanged in ("LaunchTemplate", "AvailabilityZones", "Tags", "HealthCheckType"):
        assert after[unchanged] == before[unchanged]
