"""What belongs to a cluster that is deleted: its machines and its network, and not those of a namesake."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, filtered
from aws_descriptions import OWNED, arn, instance, pairs, resource, running, stack, stacked

from cfngen.deploy.aws.inventory import Inventory, read_inventory
from cfngen.deploy.aws.stacks import find_stack

LAUNCHED = {**OWNED, "aws:autoscaling:groupName": "group-1"}
FAMILY = (resource("vpc-1"), resource("group-1"), resource("sg-1"), resource("rtb-1"))


def scope(aws: Answers, **more: Any) -> Inventory:
    return read_inventory(aws.account, find_stack(aws.account, "one"), cluster="one", **more)


def grouped(**states: str) -> dict[str, Any]:
    """What DescribeAutoScalingGroups answers of one group."""
    group = {
        "AutoScalingGroupName": "group-1",
        "MinSize": 1,
        "MaxSize": 1,
        "DesiredCapacity": 1,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-west-2a"],
        "HealthCheckType": "EC2",
        "CreatedTime": "2026-01-01T00:00:00Z",
    }
    members = [
        {
            "InstanceId": key.replace("_", "-"),
            "LifecycleState": state,
            "AvailabilityZone": "us-west-2a",
            "HealthStatus": "Healthy",
            "ProtectedFromScaleIn": False,
        }
        for key, state in states.items()
    ]
    return {"AutoScalingGroups": [{**group, "Instances": members}]}


def test_machines_are_those_of_the_groups_and_those_that_bear_the_tag_in_its_network(aws: Answers) -> None:
    stacked(aws, stack(), resources={"one": FAMILY})
    aws.given["autoscaling:DescribeAutoScalingGroups"] = grouped(i_1="InService", i_2="Terminating:Wait")
    aws.given["ec2:DescribeInstances"] = running(
        instance("i-1"),
        instance("i-3", "stopped", **LAUNCHED),
        instance("i-4", "pending"),
        instance("i-5", "shutting-down"),
        instance("i-6", "terminated"),
        instance("i-7", **{"kubernetes.io/cluster/two": "owned"}),
        instance("i-8", vpc_id="vpc-2"),
        instance("i-9", "stopping", **{**OWNED, "aws:autoscaling:groupName": "group-of-others"}),
    )
    deletion_scope = scope(aws)
    assert deletion_scope.instances == {
        "i-1": "running",
        "i-2": "Terminating:Wait",
        "i-3": "stopped",
        "i-4": "pending",
        "i-5": "shutting-down",
        "i-9": "stopping",
    }
    assert deletion_scope.unmanaged_instances == {"i-4", "i-9"}
    assert (
        deletion_scope.vpc_id,
        deletion_scope.own_vpc,
        deletion_scope.security_groups,
        deletion_scope.has_infrastructure,
    ) == (
        "vpc-1",
        True,
        ("sg-1",),
        True,
    )
    assert deletion_scope.route_tables == ()


def test_a_group_that_is_gone_still_names_what_it_launched(aws: Answers) -> None:
    stacked(aws, stack(), resources={"one": (resource("vpc-1"), resource("group-1", "DELETE_COMPLETE"))})
    aws.given["ec2:DescribeInstances"] = running(instance("i-1", **LAUNCHED), instance("i-2"))
    deletion_scope = scope(aws)
    assert (deletion_scope.instances.keys(), deletion_scope.unmanaged_instances) == ({"i-1", "i-2"}, {"i-2"})
    assert aws.named("autoscaling:DescribeAutoScalingGroups") == []


@pytest.mark.parametrize("members", [(), (resource("vol-1", "DELETE_COMPLETE"),)], ids=["empty", "deleted"])
def test_a_stack_that_has_nothing_owns_no_machines(aws: Answers, members: tuple[Any, ...]) -> None:
    stacked(aws, stack(), resources={"one": members})
    aws.given["ec2:DescribeVpcs"] = {"Vpcs": [{"VpcId": "vpc-1", "Tags": pairs(OWNED)}]}
    aws.given["ec2:DescribeInstances"] = running(instance("i-1"), instance("i-2", "shutting-down"))
    deletion_scope = scope(aws)
    assert (deletion_scope.instances, deletion_scope.unmanaged_instances, deletion_scope.vpc_id) == (
        {"i-2": "shutting-down"},
        frozenset(),
        "",
    )
    assert (deletion_scope.has_infrastructure, deletion_scope.own_vpc) == (False, False)


@pytest.mark.parametrize(
    ("vpcs", "known"),
    [
        ([{"VpcId": "vpc-9", "Tags": pairs(OWNED)}], "vpc-9"),
        ([{"VpcId": "vpc-8", "Tags": pairs(OWNED)}, {"VpcId": "vpc-9", "Tags": pairs(OWNED)}], ""),
        ([{"VpcId": "vpc-9", "Tags": pairs(OWNED | {"kubernetes.io/cluster/two": "owned"})}], ""),
        ([{"VpcId": "vpc-9"}], ""),
        ([], ""),
    ],
)
def test_the_network_of_a_stack_that_is_forgotten_is_known_by_its_tag(
    aws: Answers, vpcs: list[dict[str, Any]], known: str
) -> None:
    aws.given["ec2:DescribeVpcs"] = {"Vpcs": vpcs}
    found = read_inventory(aws.account, None, cluster="one")
    assert (found.vpc_id, found.own_vpc, found.unmanaged_instances) == (known, bool(known), frozenset())
    assert filtered(aws.named("ec2:DescribeVpcs")[0], "tag:kubernetes.io/cluster/one") == ["owned"]


@pytest.mark.parametrize("known_by", ["parameter", "cluster file"])
def test_a_network_that_was_lent_is_not_its_own(aws: Answers, known_by: str) -> None:
    given = {"VpcId": "vpc-7", "RouteTableId": "rtb-7"}
    parameters = given if known_by == "parameter" else {}
    stacked(aws, stack(parameters=parameters), resources={"one": (resource("group-1"), resource("rtb-1"))})
    aws.given["autoscaling:DescribeAutoScalingGroups"] = grouped(i_1="InService")
    deletion_scope = scope(aws, vpc_id="vpc-7" if known_by == "cluster file" else "", pod_cidr="10.244.0.0/16")
    assert (deletion_scope.vpc_id, deletion_scope.own_vpc, deletion_scope.pod_cidr) == ("vpc-7", False, "10.244.0.0/16")
    assert deletion_scope.route_tables == (("rtb-7",) if parameters else ())
    assert "ec2:DescribeVpcs" not in [name for name, _ in aws.calls]
    assert (deletion_scope.has_infrastructure, deletion_scope.existing_ids("AWS::AutoScaling::AutoScalingGroup")) == (
        True,
        ("group-1",),
    )


def test_a_route_table_of_its_own_is_not_lent(aws: Answers) -> None:
    stacked(aws, stack(parameters={"RouteTableId": "rtb-1"}), resources={"one": FAMILY})
    assert scope(aws).route_tables == ()


@pytest.mark.parametrize(("number", "calls"), [(50, [50]), (51, [50, 1])])
def test_groups_are_asked_for_fifty_at_a_time(aws: Answers, number: int, calls: list[int]) -> None:
    """As many names as DescribeAutoScalingGroups takes."""
    groups = tuple(resource(f"group-{each}") for each in range(number))
    stacked(aws, stack(), resources={"one": groups})
    scope(aws)
    sent = aws.named("autoscaling:DescribeAutoScalingGroups")
    assert [len(each["AutoScalingGroupNames"]) for each in sent] == calls
    assert len({name for each in sent for name in each["AutoScalingGroupNames"]}) == number


def test_what_the_stacks_had_and_what_they_have_are_told_apart() -> None:
    balancer = "AWS::ElasticLoadBalancingV2::LoadBalancer"
    prefix = "arn:aws:elasticloadbalancing:us-west-2:123456789012:loadbalancer"
    found = Inventory(
        "one",
        (
            resource("vpc-1"),
            resource("vpc-2", "DELETE_COMPLETE"),
            resource("", type_name="AWS::EC2::VPC"),
            resource(f"{prefix}/net/api/0123456789abcdef", type_name=balancer),
            resource(f"{prefix}/web", "DELETE_COMPLETE", type_name=balancer),
        ),
    )
    assert found.ids("AWS::EC2::VPC") == {"vpc-1", "vpc-2"}
    assert found.existing_ids("AWS::EC2::VPC") == ("vpc-1",)
    assert len(found.ids()) == 4
    assert found.load_balancers == {"api"}
    assert arn("one") in {resource.stack_id for resource in found.resources}
