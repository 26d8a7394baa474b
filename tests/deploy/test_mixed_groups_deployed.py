"""Node groups of several types in an account: created, changed from one type to several and back."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from deployments import Operator

from cfngen.sandbox.cloudformation import client

pytestmark = pytest.mark.drill

ONE = {"name": "one", "nodeGroups": [{"name": "nodes", "instanceType": "m5.large", "minSize": 2}]}
LIST = {
    "name": "one",
    "nodeGroups": [{"name": "nodes", "instanceTypes": ["m5.large", "m5a.large", "m6i.large"], "minSize": 2}],
}


def group(cloud: Cloud) -> dict[str, Any]:
    """The Auto Scaling group of the nodes as Auto Scaling describes it."""
    pages = client("autoscaling", cloud.cluster.region).describe_auto_scaling_groups()["AutoScalingGroups"]
    [found] = [each for each in pages if "NodeGroupNodes" in each["AutoScalingGroupName"]]
    return dict(found)


def test_from_one_type_to_a_list_and_back(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy(ONE).succeeded
    before = group(cloud)
    assert operator.deploy(LIST).succeeded
    mixed = group(cloud)
    overrides = mixed["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
    assert [each["InstanceType"] for each in overrides] == LIST["nodeGroups"][0]["instanceTypes"]  # type: ignore[index]
    assert mixed["AutoScalingGroupName"] == before["AutoScalingGroupName"]
    assert {each["InstanceId"] for each in mixed["Instances"]} & {
        each["InstanceId"] for each in before["Instances"]
    } == (set())
    assert operator.plan(LIST).is_empty
    assert operator.deploy(ONE).succeeded
    after = group(cloud)
    assert not after.get("MixedInstancesPolicy")
    assert after["AutoScalingGroupName"] == before["AutoScalingGroupName"]
    assert operator.plan(ONE).is_empty
