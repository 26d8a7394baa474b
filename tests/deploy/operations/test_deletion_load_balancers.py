"""Load balancers and target groups as the two generations of their service describe them."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, pairs
from aws_descriptions import OWNED, resource
from recorded import RefusedError

from cfngen.deploy.aws import load_balancers
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.operations.deletion import removal

PREFIX = "arn:aws:elasticloadbalancing:us-west-2:123456789012"
HERE = Inventory("one", vpc_id="vpc-1")
WEB = {**OWNED, "kubernetes.io/service-name": "default/web"}


def arn(name: str, kind: str = "loadbalancer/net") -> str:
    return f"{PREFIX}:{kind}/{name}/0123456789abcdef"


def classic(aws: Answers, *balancers: tuple[str, str, dict[str, str]]) -> None:
    """Classic Load Balancers: name, VPC, tags."""
    listed = [{"LoadBalancerName": name, **({"VPCId": vpc} if vpc else {})} for name, vpc, _ in balancers]
    tags = {name: tags for name, _, tags in balancers}
    aws.given["elb:DescribeLoadBalancers"] = {"LoadBalancerDescriptions": listed}
    aws.given["elb:DescribeTags"] = lambda sent: {
        "TagDescriptions": [
            {"LoadBalancerName": name, **({"Tags": pairs(tags[name])} if tags[name] else {})}
            for name in sent["LoadBalancerNames"]
        ]
    }


def current(aws: Answers, *balancers: tuple[str, str, dict[str, str]], protection: str = "false") -> None:
    """Load balancers of the second generation, and target groups of the same names."""
    tags = {arn(name, kind): of for name, _, of in balancers for kind in ("loadbalancer/net", "targetgroup")}
    aws.given["elbv2:DescribeLoadBalancers"] = {
        "LoadBalancers": [
            {"LoadBalancerArn": arn(name), "LoadBalancerName": name, **({"VpcId": vpc} if vpc else {})}
            for name, vpc, _ in balancers
        ]
    }
    aws.given["elbv2:DescribeTargetGroups"] = {
        "TargetGroups": [
            {"TargetGroupArn": arn(name, "targetgroup"), "TargetGroupName": name, **({"VpcId": vpc} if vpc else {})}
            for name, vpc, _ in balancers
        ]
    }
    aws.given["elbv2:DescribeTags"] = lambda sent: {
        "TagDescriptions": [
            {"ResourceArn": resource_arn, **({"Tags": pairs(tags[resource_arn])} if tags[resource_arn] else {})}
            for resource_arn in sent["ResourceArns"]
        ]
    }
    attributes = [
        {"Key": "load_balancing.cross_zone.enabled", "Value": "true"},
        {"Key": "deletion_protection.enabled", "Value": protection},
    ]
    aws.given["elbv2:DescribeLoadBalancerAttributes"] = {"Attributes": attributes}


@pytest.mark.parametrize(
    ("vpc_id", "tags", "ours"),
    [
        ("vpc-1", WEB, True),
        ("vpc-2", WEB, False),
        ("", WEB, False),
        ("vpc-1", {}, False),
        ("vpc-1", {"kubernetes.io/cluster/two": "owned"}, False),
        ("vpc-1", {**WEB, "cfngen:cluster": "one"}, False),
        ("vpc-1", {**WEB, "aws:cloudformation:stack-id": "arn"}, False),
    ],
)
def test_of_either_generation_only_the_clusters_own_in_its_network_are_taken(
    aws: Answers, vpc_id: str, tags: dict[str, str], ours: bool
) -> None:
    classic(aws, ("web", vpc_id, tags), ("other", "vpc-1", {}))
    current(aws, ("api", vpc_id, tags), ("other", "vpc-1", {}))
    orphans = load_balancers.find_orphaned_load_balancers(aws.account, HERE)
    assert orphans == (
        (
            OrphanedResource("load balancer", "web", "web", "default/web", generation="classic", vpc_id="vpc-1"),
            OrphanedResource("load balancer", arn("api"), "api", "default/web", vpc_id="vpc-1"),
            OrphanedResource("target group", arn("api", "targetgroup"), "api", "default/web", vpc_id="vpc-1"),
        )
        if ours
        else ()
    )


def test_where_no_network_is_known_all_networks_are_looked_at_and_named(aws: Answers) -> None:
    classic(aws, ("web", "vpc-1", WEB), ("old", "", WEB))
    current(aws, ("api", "vpc-2", WEB), ("lambda", "", WEB))
    orphans = load_balancers.find_orphaned_load_balancers(aws.account, Inventory("one"))
    assert [(each.name, each.vpc_id) for each in orphans] == [
        ("web", "vpc-1"),
        ("old", ""),
        ("api", "vpc-2"),
        ("lambda", ""),
        ("api", "vpc-2"),
        ("lambda", ""),
    ]


def test_what_the_stacks_have_is_left_to_them(aws: Answers) -> None:
    classic(aws, ("web", "vpc-1", WEB))
    current(aws, ("api", "vpc-1", WEB))
    members = tuple(
        resource(each, type_name="AWS::ElasticLoadBalancingV2::LoadBalancer")
        for each in ("web", arn("api"), arn("api", "targetgroup"))
    )
    assert load_balancers.find_orphaned_load_balancers(aws.account, Inventory("one", members, vpc_id="vpc-1")) == ()


@pytest.mark.parametrize(("number", "calls"), [(20, [20]), (21, [20, 1])])
def test_tags_are_asked_for_twenty_at_a_time(aws: Answers, number: int, calls: list[int]) -> None:
    """As many as DescribeTags takes, of either generation."""
    many = [(f"n{each}", "vpc-1", WEB) for each in range(number)]
    classic(aws, *many)
    current(aws, *many)
    assert len(load_balancers.find_orphaned_load_balancers(aws.account, HERE)) == 3 * number
    assert [len(each["LoadBalancerNames"]) for each in aws.named("elb:DescribeTags")] == calls
    assert [len(each["ResourceArns"]) for each in aws.named("elbv2:DescribeTags")] == [*calls, *calls]


@pytest.mark.parametrize("code", ["LoadBalancerNotFound", "AccessDenied"])
def test_one_that_goes_meanwhile_hides_no_other(aws: Answers, code: str) -> None:
    current(aws, ("api", "vpc-1", WEB), ("gone", "vpc-1", WEB))
    describe: Any = aws.given["elbv2:DescribeTags"]

    def missing(sent: dict[str, Any]) -> dict[str, Any]:
        if arn("gone") in sent["ResourceArns"]:
            raise RefusedError(code)
        answer: dict[str, Any] = describe(sent)
        return answer

    aws.given["elbv2:DescribeTags"] = missing
    if code == "AccessDenied":
        with pytest.raises(Exception, match=code):
            load_balancers.find_orphaned_load_balancers(aws.account, HERE)
        return
    orphans = load_balancers.find_orphaned_load_balancers(aws.account, HERE)
    assert [(each.kind, each.name) for each in orphans] == [
        ("load balancer", "api"),
        ("target group", "api"),
        ("target group", "gone"),
    ]


@pytest.mark.parametrize("protection", ["true", "false"])
def test_protection_is_lifted_where_there_is_one(aws: Answers, protection: str) -> None:
    current(aws, ("api", "vpc-1", WEB), protection=protection)
    orphans = load_balancers.find_orphaned_load_balancers(aws.account, HERE)
    assert orphans[0].protected is (protection == "true")
    assert aws.named("elbv2:DescribeLoadBalancerAttributes") == [{"LoadBalancerArn": arn("api")}]
    assert removal.remove_load_balancers(aws.account, orphans) == orphans
    off = {
        "LoadBalancerArn": arn("api"),
        "Attributes": [{"Key": "deletion_protection.enabled", "Value": "false"}],
    }
    assert aws.named("elbv2:ModifyLoadBalancerAttributes") == ([off] if protection == "true" else [])
    assert aws.written()[-2:] == [
        ("elbv2:DeleteLoadBalancer", {"LoadBalancerArn": arn("api")}),
        ("elbv2:DeleteTargetGroup", {"TargetGroupArn": arn("api", "targetgroup")}),
    ]


def test_one_whose_protection_cannot_be_read_any_more_is_still_named(aws: Answers) -> None:
    current(aws, ("api", "vpc-1", WEB))
    aws.given["elbv2:DescribeLoadBalancerAttributes"] = RefusedError("LoadBalancerNotFound")
    assert [orphan.protected for orphan in load_balancers.find_orphaned_load_balancers(aws.account, HERE)] == [
        False,
        False,
    ]


def test_each_is_deleted_by_its_own_generation_and_what_is_in_use_stays(aws: Answers) -> None:
    found = (
        OrphanedResource("load balancer", "web", "web", generation="classic"),
        OrphanedResource("target group", arn("api", "targetgroup"), "api"),
    )
    aws.given["elbv2:DeleteTargetGroup"] = RefusedError("ResourceInUse")
    assert removal.remove_load_balancers(aws.account, found) == found[:1]
    assert aws.named("elb:DeleteLoadBalancer") == [{"LoadBalancerName": "web"}]


def test_all_load_balancers_of_a_network_are_listed_whoever_made_them(aws: Answers) -> None:
    classic(aws, ("web", "vpc-1", {}), ("old", "", {}))
    current(aws, ("api", "vpc-1", {}), ("far", "vpc-2", {}))
    assert load_balancers.list_load_balancer_names(aws.account) == {"web", "old", "api", "far"}
    found = load_balancers.find_in_vpc(aws.account, "vpc-1")
    assert [(each.id, each.name) for each in found] == [("web", "web"), (arn("api"), "api")]
