"""Several masters on the emulator: what fails, how they are updated one after another, added, and deleted."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clusters import (
    ALLOWED,
    BUCKET,
    PREFIX,
    Account,
    golden,
    inventory,
    leftovers,
    prepared,
    resources,
    running_instances,
    templates_of,
)

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.sandbox.cloudformation import Stack, client

pytestmark = pytest.mark.drill

LETTERS = "ABC"


def zones(count: int, letters: str = "abc", **more: Any) -> Cluster:
    subnets = [{"zone": f"us-west-2{letter}"} for letter in letters]
    return parse({"network": {"subnets": subnets}, "controlPlane": {"count": count}, **more})


def updated(where: Account, stack: Stack, cluster: Cluster) -> Stack:
    """Make the stack that of another cluster, as one template, and wait."""
    body = {each.name: each.body for each in templates_of(cluster)}["standalone"]
    client("s3", cluster.region).put_object(Bucket=BUCKET, Key=f"{PREFIX}next.json", Body=json.dumps(body).encode())
    where.cloud.update_stack(
        stack.name, url=where.url("next"), parameters={"ApiAllowedCidr": ALLOWED}, capabilities=["CAPABILITY_IAM"]
    )
    return where.cloud.wait(stack)


def elastic_load_balancing(where: Account) -> Any:
    return client("elbv2", where.cluster.region)


def test_a_master_that_reports_failure_fails_its_condition() -> None:
    where = prepared(golden("three-masters"), MasterBAutoScalingGroup="FAILURE")
    stack = where.create("standalone")
    assert stack.status == "ROLLBACK_COMPLETE"
    failed = {event.logical_id: event.reason for event in stack.events if event.status == "CREATE_FAILED"}
    assert failed["MasterBWaitCondition"].startswith("Received FAILURE signal with UniqueId i-")
    assert "MasterBAutoScalingGroup" not in failed


def test_a_master_that_says_nothing_runs_out_of_time() -> None:
    where = prepared(golden("three-masters"), MasterCAutoScalingGroup=None)
    stack = where.create("standalone")
    assert stack.status == "ROLLBACK_COMPLETE"
    failed = {event.logical_id: event.reason for event in stack.events if event.status == "CREATE_FAILED"}
    assert failed["MasterCWaitCondition"] == "Failed to receive 1 resource signal(s) within the specified duration"


def rolled(stack: Stack, beginning: int) -> list[tuple[str, str]]:
    """What happened to the masters' instances in an update, in order: a group, and gone or back."""
    words = {"Successfully terminated": "gone", "Received SUCCESS": "back"}
    return [
        (event.logical_id[6], what)
        for event in stack.events[beginning:]
        if event.logical_id.startswith("Master") and event.logical_id.endswith("AutoScalingGroup")
        for begin, what in words.items()
        if event.reason.startswith(begin)
    ]


def test_an_update_rolls_one_after_the_other_and_waits_for_no_condition() -> None:
    where = prepared(zones(3))
    stack = where.create("standalone")
    beginning = len(stack.events)
    updated(where, stack, zones(3, controlPlane={"count": 3, "instanceType": "t3.large"}))
    assert stack.status == "UPDATE_COMPLETE", stack.reason
    order = [(letter, what) for letter in LETTERS for what in ("gone", "back")]
    assert rolled(stack, beginning) == order
    assert not [event for event in stack.events[beginning:] if event.logical_id.endswith("WaitCondition")]


def test_a_master_that_does_not_come_back_ends_the_update_before_the_next() -> None:
    where = prepared(zones(3))
    stack = where.create("standalone")
    beginning = len(stack.events)
    where.machines.outcomes = {"MasterBAutoScalingGroup": "FAILURE"}
    where.cloud.clock.schedule(2000, lambda: setattr(where.machines, "outcomes", {}))
    updated(where, stack, zones(3, controlPlane={"count": 3, "instanceType": "t3.large"}))
    assert "C" not in {letter for letter, _ in rolled(stack, beginning)}


@pytest.mark.parametrize(("before", "after"), [(1, 3), (3, 5)])
def test_masters_are_added(before: int, after: int) -> None:
    where = prepared(zones(before))
    stack = where.create("standalone")
    kept = {
        key: stack.resources[key].physical_id
        for key in ("MasterAVolume", "MasterANetworkInterface", "MasterAElasticIp", "MasterAAutoScalingGroup")
    }
    updated(where, stack, zones(after))
    assert stack.status == "UPDATE_COMPLETE", [
        (event.logical_id, event.reason) for event in stack.events if event.reason
    ]
    assert {key: stack.resources[key].physical_id for key in kept} == kept
    groups = [key for key in stack.resources if key.startswith("Master") and key.endswith("AutoScalingGroup")]
    assert len(groups) == after
    for letter in "ABCDE"[:after]:
        assert stack.resources[f"Master{letter}WaitCondition"].status == "CREATE_COMPLETE"
    [balancer] = elastic_load_balancing(where).describe_load_balancers()["LoadBalancers"]
    assert stack.outputs["ApiEndpoint"] == f"https://{balancer['DNSName']}"


def test_the_internal_load_balancer_of_a_private_api() -> None:
    ec2 = client("ec2", "us-west-2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.20.0.0/20", AvailabilityZone="us-west-2a")["Subnet"]["SubnetId"]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    cluster = parse(
        {
            "name": "inside",
            "api": {"public": False},
            "controlPlane": {"count": 3},
            "network": {
                "vpc": {"id": vpc, "cidr": "10.20.0.0/16"},
                "subnets": [{"zone": "us-west-2a", "id": subnet, "cidr": "10.20.0.0/20"}],
                "routeTable": table,
                "serviceCidr": "10.250.0.0/16",
            },
            "nodeGroups": [{"publicIp": False}],
        }
    )
    where = prepared(cluster)
    stack = where.create("cluster")
    assert stack.status == "CREATE_COMPLETE", stack.reason
    [balancer] = elastic_load_balancing(where).describe_load_balancers()["LoadBalancers"]
    assert (balancer["LoadBalancerName"], balancer["Scheme"]) == ("inside-int", "internal")
    assert ec2.describe_addresses()["Addresses"] == []
    found = resources(stack)
    assert {"ApiLoadBalancerFromMasters", "ApiLoadBalancerFromNodes"} <= set(found)


def test_everything_goes_with_the_stack() -> None:
    where = prepared(golden("three-masters"))
    before = inventory(where.cluster.region)
    stack = where.create("cluster")
    assert where.delete(stack).status == "DELETE_COMPLETE"
    left = leftovers(where, before)
    assert set(left) <= {"snapshots", "buckets"}
    assert len(left["snapshots"]) == 3
    assert not running_instances(where.cluster.region)
