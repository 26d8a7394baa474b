"""cfngen's rule about mixed instances policies and launch templates that request Spot Instances themselves."""

from __future__ import annotations

from typing import Any

import pytest

SPOT = {"InstanceMarketOptions": {"MarketType": "spot"}}
POLICY = ("Resources", "Group", "Properties", "MixedInstancesPolicy", "LaunchTemplate")


def mixed(*, own: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """A group whose policy uses one launch template for its first type, and another one for the second."""
    specification = {
        name: {"LaunchTemplateId": {"Ref": name}, "Version": {"Fn::GetAtt": [name, "LatestVersionNumber"]}}
        for name in ("Own", "Other")
    }
    policy = {
        "LaunchTemplateSpecification": specification["Own"],
        "Overrides": [
            {"InstanceType": "m7i.large"},
            {"InstanceType": "m7g.large", "LaunchTemplateSpecification": specification["Other"]},
        ],
    }
    properties = {"MinSize": "1", "MaxSize": "1", "MixedInstancesPolicy": {"LaunchTemplate": policy}}
    templates = {
        name: {"Type": "AWS::EC2::LaunchTemplate", "Properties": {"LaunchTemplateData": data}}
        for name, data in (("Own", own), ("Other", other))
    }
    group = {"Type": "AWS::AutoScaling::AutoScalingGroup", "Properties": properties}
    return {"Resources": {**templates, "Group": group}}


@pytest.mark.parametrize(
    ("own", "other", "paths"),
    [
        ({}, {}, []),
        (SPOT, {}, [(*POLICY, "LaunchTemplateSpecification")]),
        ({}, SPOT, [(*POLICY, "Overrides", 1, "LaunchTemplateSpecification")]),
    ],
)
def test_a_launch_template_that_requests_spot(
    reported_paths: Any, own: dict[str, Any], other: dict[str, Any], paths: list[Any]
) -> None:
    assert reported_paths("E9023", mixed(own=own, other=other)) == paths


def test_a_launch_template_that_requests_spot_by_itself(reported_paths: Any) -> None:
    template = mixed(own=SPOT, other={})
    properties = template["Resources"]["Group"]["Properties"]
    policy = properties.pop("MixedInstancesPolicy")["LaunchTemplate"]
    properties["LaunchTemplate"] = policy["LaunchTemplateSpecification"]
    assert reported_paths("E9023", template) == []
