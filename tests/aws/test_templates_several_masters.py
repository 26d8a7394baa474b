"""Three masters on the emulator at CREATE_COMPLETE: who waited for whom, and what stands in the account."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from clusters import Account, describe, golden, in_memory, prepared, resources, tags

from cfngen.sandbox.cloudformation import Resource, Stack, client

LETTERS = "ABC"


class Three(NamedTuple):
    where: Account
    stack: Stack
    found: dict[str, Resource]


@pytest.fixture(scope="module", params=["standalone", "cluster"])
def three(request: pytest.FixtureRequest) -> Iterator[Three]:
    """Three masters as one stack, or as a root with nested stacks; tests only look at them."""
    with in_memory():
        where = prepared(golden("three-masters"))
        stack = where.create(request.param)
        assert stack.status == "CREATE_COMPLETE", stack.reason
        yield Three(where, stack, resources(stack))


def elastic_load_balancing(where: Account) -> Any:
    return client("elbv2", where.cluster.region)


def test_the_load_balancer_stands_before_the_fixed_addresses(three: Three) -> None:
    where, stack, found = three
    elbv2 = elastic_load_balancing(where)
    [balancer] = elbv2.describe_load_balancers()["LoadBalancers"]
    assert (balancer["LoadBalancerName"], balancer["Type"], balancer["Scheme"]) == (
        "prod-api", "network", "internet-facing",
    )  # fmt: skip
    assert stack.outputs["ApiEndpoint"] == f"https://{balancer['DNSName']}:6443"
    assert {availability_zone["SubnetId"] for availability_zone in balancer["AvailabilityZones"]} == {
        found[f"Subnet{letter}"].physical_id for letter in LETTERS
    }
    attributes = elbv2.describe_load_balancer_attributes(LoadBalancerArn=balancer["LoadBalancerArn"])["Attributes"]
    assert {"Key": "load_balancing.cross_zone.enabled", "Value": "true"} in attributes
    [listener] = elbv2.describe_listeners(LoadBalancerArn=balancer["LoadBalancerArn"])["Listeners"]
    assert (listener["Protocol"], listener["Port"]) == ("TCP", 6443)
    arn = listener["DefaultActions"][0]["TargetGroupArn"]
    targets = elbv2.describe_target_health(TargetGroupArn=arn)["TargetHealthDescriptions"]
    assert {(target["Target"]["Id"], target["Target"]["Port"]) for target in targets} == {
        (f"172.20.{number}.9", 6443) for number in range(3)
    }


def test_masters_may_reach_themselves_through_it(three: Three) -> None:
    """With their own address preserved, a packet that comes back to its sender would be dropped."""
    where, _, found = three
    arn = found["ApiTargetGroup"].physical_id
    attributes = elastic_load_balancing(where).describe_target_group_attributes(TargetGroupArn=arn)["Attributes"]
    assert {"Key": "preserve_client_ip.enabled", "Value": "false"} in attributes


def test_only_the_load_balancer_is_open_to_people(three: Three) -> None:
    where, _, found = three

    def sources(group: str, port: int) -> set[str]:
        rules = describe(where, "security_groups", GroupIds=[found[group].physical_id])["IpPermissions"]
        return {
            each.get("CidrIp") or each["GroupId"]
            for rule in rules
            if rule.get("FromPort") == port
            for each in (*rule["IpRanges"], *rule["UserIdGroupPairs"])
        }

    balancer = found["ApiLoadBalancerSecurityGroup"].physical_id
    assert sources("ApiLoadBalancerSecurityGroup", 6443) == {"203.0.113.0/24"}
    assert sources("MasterSecurityGroup", 6443) == {balancer, found["NodeSecurityGroup"].physical_id}


def test_its_security_group_is_not_taken_for_the_clusters(three: Three) -> None:
    where, _, found = three
    group = describe(where, "security_groups", GroupIds=[found["ApiLoadBalancerSecurityGroup"].physical_id])
    assert "kubernetes.io/cluster/prod" not in tags(group)
    assert tags(group)["KubernetesCluster"] == "prod"
    [out] = group["IpPermissionsEgress"]
    assert [user_id_group_pair["GroupId"] for user_id_group_pair in out["UserIdGroupPairs"]] == [
        found["MasterSecurityGroup"].physical_id
    ]
    assert (out["FromPort"], out["ToPort"], out["IpRanges"]) == (6443, 6443, [])


def test_every_master_has_an_address_a_volume_and_a_way_out_of_its_own(three: Three) -> None:
    where, _, found = three
    for number, letter in enumerate(LETTERS):
        identifier = found[f"Master{letter}NetworkInterface"].physical_id
        interface = describe(where, "network_interfaces", NetworkInterfaceIds=[identifier])
        assert interface["PrivateIpAddress"] == f"172.20.{number}.9"
        volume = describe(where, "volumes", VolumeIds=[found[f"Master{letter}Volume"].physical_id])
        assert volume["AvailabilityZone"] == f"us-west-2{letter.lower()}"
        allocation = found[f"Master{letter}ElasticIp"].attributes["AllocationId"]
        assert describe(where, "addresses", AllocationIds=[allocation])["NetworkInterfaceId"] == identifier


def test_masters_are_told_the_load_balancers_name_and_their_condition(three: Three) -> None:
    where, stack, _ = three
    told = {
        reference["resource"]: reference
        for reference in where.machines.references
        if reference["resource"].startswith("Master")
    }
    for letter in LETTERS:
        mine = told[f"Master{letter}AutoScalingGroup"]
        assert mine["condition"] == f"Master{letter}WaitCondition"
        assert stack.outputs["ApiEndpoint"] == f"https://{mine['publicAddress']}:6443"


def test_groups_do_not_wait_for_each_others_masters(three: Three) -> None:
    """kube-aws stood still like that: the first waits for a majority, and the second is not launched before it."""
    _, stack, _ = three
    masters = next(iter([each for key, each in stack.children.items() if key == "MasterStack"]), stack)
    events = [*stack.events, *(masters.events if masters is not stack else ())]
    complete = {event.logical_id: event.time for event in events if event.status == "CREATE_COMPLETE"}
    signalled = [event.time for event in events if "SUCCESS signal" in event.reason and "Master" in event.logical_id]
    assert len(signalled) == 3
    assert max(complete[f"Master{letter}AutoScalingGroup"] for letter in LETTERS) < min(signalled)
    assert min(complete[f"Master{letter}WaitCondition"] for letter in LETTERS) >= min(signalled)
