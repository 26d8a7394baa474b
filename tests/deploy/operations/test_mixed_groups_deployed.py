"""Node groups of several types in an account: created, changed from one type to several and back."""

from __future__ import annotations

from typing import Any

import pytest
from cloud import Cloud
from clusters import golden
from deployed import Place, place
from deployments import Operator

from cfngen.deploy.messages.message import Danger
from cfngen.deploy.status.cluster_status import GroupState
from cfngen.deploy.status.derived_status import read_status
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


def in_service(described: dict[str, Any]) -> set[str]:
    """The instances of a group that are not about to go."""
    return {each["InstanceId"] for each in described["Instances"] if each["LifecycleState"] == "InService"}


def test_from_one_type_to_a_list_and_back(cloud: Cloud) -> None:
    operator = Operator(cloud)
    assert operator.deploy(ONE).succeeded
    before = group(cloud)
    cloud.clock.sleep(60)
    plan = operator.plan(LIST)
    assert plan.danger is Danger.DISRUPTIVE
    impacts = [change.impact.text for stack in plan.stacks for change in stack.changes if change.impact]
    text = "instances of node group `nodes` are of m5.large, m5a.large or m6i.large, all of them On-Demand Instances"
    assert any(text in impact for impact in impacts), impacts
    assert operator.deploy(LIST).succeeded
    mixed = group(cloud)
    overrides = mixed["MixedInstancesPolicy"]["LaunchTemplate"]["Overrides"]
    assert [each["InstanceType"] for each in overrides] == LIST["nodeGroups"][0]["instanceTypes"]  # type: ignore[index]
    assert mixed["AutoScalingGroupName"] == before["AutoScalingGroupName"]
    assert in_service(mixed).isdisjoint(in_service(before))
    cloud.clock.sleep(60)
    assert operator.plan(LIST).is_empty
    assert operator.deploy(ONE).succeeded
    after = group(cloud)
    assert not after.get("MixedInstancesPolicy")
    assert after["AutoScalingGroupName"] == before["AutoScalingGroupName"]
    cloud.clock.sleep(60)
    assert operator.plan(ONE).is_empty


def read_groups(where: Place) -> tuple[GroupState, ...]:
    return read_status(where.account, where.name, where.cluster, find_url_override=where.override).node_groups


def test_a_group_without_instances_says_what_it_may_launch() -> None:
    with place(golden("spot-mixed")) as where:
        where.create()
        mixed = next(group for group in read_groups(where) if group.name == "mixed")
        assert mixed.types == ("m7i.large",)
        [name] = [
            each["AutoScalingGroupName"]
            for each in where.account.client("autoscaling").describe_auto_scaling_groups()["AutoScalingGroups"]
            if "GroupMixed" in each["AutoScalingGroupName"]
        ]
        where.account.client("autoscaling").update_auto_scaling_group(
            AutoScalingGroupName=name, MinSize=0, DesiredCapacity=0
        )
        where.clock.sleep(600)
        mixed = next(group for group in read_groups(where) if group.name == "mixed")
        assert (mixed.in_service, mixed.types) == (0, ("m7i.large", "m7a.large", "m6i.large", "m6a.large"))
