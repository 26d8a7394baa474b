"""Network interfaces and security groups that Kubernetes leaves: whose they are, told by what EC2 says of them."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers, filtered, pairs
from aws_descriptions import OWNED, resource
from recorded import RefusedError

from cfngen.deploy.aws import kubernetes_made
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.kubernetes_made import ReferringGroup
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.operations.deletion import removal

INSTANCE = "node.k8s.amazonaws.com/instance_id"
SCOPE = Inventory(
    "one", (resource("sg-own"),), vpc_id="vpc-1", instances={"i-1": "running"}, security_groups=("sg-own",)
)


def interface(description: str = "", group: str = "", status: str = "available", **tags: str) -> dict[str, Any]:
    return {
        "NetworkInterfaceId": "eni-1",
        "Description": description,
        "Status": status,
        "VpcId": "vpc-1",
        "TagSet": pairs(tags),
        **({"Groups": [{"GroupId": group}]} if group else {}),
    }


def found(
    aws: Answers, described: dict[str, Any], scope: Inventory = SCOPE, **more: Any
) -> tuple[OrphanedResource, ...]:
    aws.given["ec2:DescribeNetworkInterfaces"] = {"NetworkInterfaces": [described]}
    return kubernetes_made.find_orphaned_interfaces(aws.account, scope, **more)


@pytest.mark.parametrize(
    ("described", "ours"),
    [
        (interface(**OWNED), True),
        (interface(**{"cluster.k8s.amazonaws.com/name": "one"}), True),
        (interface(**{"kubernetes.io/cluster/two": "owned"}), False),
        (interface(status="in-use", **OWNED), False),
        (interface(**OWNED, **{"cfngen:cluster": "one"}), False),
        # The VPC CNI without the cluster's name.
        (interface(**{INSTANCE: "i-1"}), True),
        (interface(**{INSTANCE: "i-2"}), False),
        (interface(group="sg-own", **{INSTANCE: "i-2"}), True),
        (interface("aws-K8S-i-1", "sg-own"), True),
        (interface("aws-K8S-i-1", "sg-other"), False),
        (interface("by hand", "sg-own"), False),
        (interface(), False),
    ],
)
def test_what_nobody_else_will_delete_is_the_clusters_or_is_not(
    aws: Answers, described: dict[str, Any], ours: bool
) -> None:
    leftover = OrphanedResource("network interface", "eni-1", "eni-1", described["Description"], vpc_id="vpc-1")
    assert found(aws, described) == ((leftover,) if ours else ())
    assert filtered(aws.named("ec2:DescribeNetworkInterfaces")[0], "vpc-id") == ["vpc-1"]


def test_an_interface_of_the_stacks_is_theirs_and_without_a_network_nothing_is_asked(aws: Answers) -> None:
    own = resource("eni-1", type_name="AWS::EC2::NetworkInterface")
    assert found(aws, interface(**OWNED), Inventory("one", (own,), vpc_id="vpc-1")) == ()
    aws.calls.clear()
    assert found(aws, interface(**OWNED), Inventory("one")) == ()
    assert aws.calls == []


@pytest.mark.parametrize(
    ("own_vpc", "group", "balancer", "ours"),
    [
        (False, "sg-made", "web", True),
        (False, "sg-other", "gone", False),
        (True, "sg-other", "gone", True),
        (True, "sg-other", "web", False),
        (True, "sg-made", "web", True),
    ],
)
@pytest.mark.parametrize("form", ["ELB {}", "ELB app/{}/0123456789abcdef", "ELB net/{}/0123456789abcdef"])
def test_an_interface_of_a_load_balancer_that_is_gone_is_waited_for(
    aws: Answers, form: str, own_vpc: bool, group: str, balancer: str, ours: bool
) -> None:
    """Elastic Load Balancing releases it, and nobody else may; where it still is, it is no leftover."""
    aws.given["elb:DescribeLoadBalancers"] = {"LoadBalancerDescriptions": [{"LoadBalancerName": "web"}]}
    scope = Inventory("one", vpc_id="vpc-1", own_vpc=own_vpc)
    description = form.format(balancer)
    leftovers = found(aws, interface(description, group, status="in-use"), scope, groups=["sg-made"])
    assert [(each.id, each.deleted_by_aws, each.purpose) for each in leftovers] == (
        [("eni-1", True, f"load balancer {balancer}")] if ours else []
    )
    assert removal.remove_interfaces(aws.account, leftovers) == ()
    assert aws.written() == []


@pytest.mark.parametrize(
    ("description", "name"),
    [
        ("ELB web", "web"),
        ("ELB app/web/0123456789abcdef", "web"),
        ("ELB net/api/0123456789abcdef", "api"),
        ("ELB a/b", "a"),
        ("an ELB web", ""),
        ("", ""),
    ],
)
def test_the_load_balancer_is_named_in_the_description(description: str, name: str) -> None:
    assert kubernetes_made.load_balancer_name(description) == name


def test_unused_interfaces_are_deleted_and_used_ones_left(aws: Answers) -> None:
    leftover = OrphanedResource("network interface", "eni-1", "eni-1")
    assert removal.remove_interfaces(aws.account, [leftover]) == (leftover,)
    assert aws.written() == [("ec2:DeleteNetworkInterface", {"NetworkInterfaceId": "eni-1"})]
    aws.given["ec2:DeleteNetworkInterface"] = RefusedError("InvalidNetworkInterface.InUse")
    assert removal.remove_interfaces(aws.account, [leftover]) == ()


def group(identity: str, name: str = "web", **tags: str) -> dict[str, Any]:
    return {"GroupId": identity, "GroupName": name, "Description": "made for", "VpcId": "vpc-1", "Tags": pairs(tags)}


@pytest.mark.parametrize(
    ("described", "purpose"),
    [
        (group("sg-1", **OWNED), "made for"),
        (group("sg-1", **OWNED, **{"kubernetes.io/service-name": "default/web"}), "default/web"),
        (group("sg-1", **{"elbv2.k8s.aws/cluster": "one", "ingress.k8s.aws/stack": "shop/front"}), "shop/front"),
        (group("sg-own", **OWNED), None),
        (group("sg-1", **OWNED, **{"cfngen:cluster": "one"}), None),
        (group("sg-1", **{"kubernetes.io/cluster/one": "shared"}), None),
        (group("sg-1"), None),
    ],
)
def test_security_groups_are_known_by_their_tags(aws: Answers, described: dict[str, Any], purpose: str | None) -> None:
    aws.given["ec2:DescribeSecurityGroups"] = {"SecurityGroups": [described]}
    expected = () if purpose is None else (OrphanedResource("security group", "sg-1", "web", purpose, vpc_id="vpc-1"),)
    assert kubernetes_made.find_orphaned_groups(aws.account, SCOPE) == expected
    assert filtered(aws.named("ec2:DescribeSecurityGroups")[0], "vpc-id") == ["vpc-1"]
    assert kubernetes_made.find_orphaned_groups(aws.account, Inventory("one", (resource("sg-own"),))) == expected
    assert aws.named("ec2:DescribeSecurityGroups")[1].get("Filters", []) == []


def test_groups_whose_rules_name_others_are_found_in_both_directions(aws: Answers) -> None:
    holders = {
        "ip-permission.group-id": [group("sg-own"), group("sg-1"), group("sg-db", "database")],
        "egress.ip-permission.group-id": [group("sg-tagged", "tagged", **OWNED)],
    }
    aws.given["ec2:DescribeSecurityGroups"] = lambda sent: {"SecurityGroups": holders[sent["Filters"][0]["Name"]]}
    assert kubernetes_made.find_references(aws.account, SCOPE, ["sg-1"]) == (
        ReferringGroup("sg-own", "web", owned=True),
        ReferringGroup("sg-db", "database", owned=False),
        ReferringGroup("sg-tagged", "tagged", owned=True),
    )
    assert [each["Filters"][0]["Values"] for each in aws.named("ec2:DescribeSecurityGroups")] == [["sg-1"], ["sg-1"]]


@pytest.mark.parametrize(("number", "calls"), [(0, []), (200, [200, 200]), (201, [200, 1, 200, 1])])
def test_references_are_asked_for_two_hundred_at_a_time(aws: Answers, number: int, calls: list[int]) -> None:
    kubernetes_made.find_references(aws.account, SCOPE, [f"sg-{each}" for each in range(number)])
    assert [len(each["Filters"][0]["Values"]) for each in aws.named("ec2:DescribeSecurityGroups")] == calls


def test_rules_that_name_a_group_leave_the_clusters_groups_before_it_is_deleted(aws: Answers) -> None:
    """By their ids, each direction by its own call; a rule for another group or for addresses stays."""
    aws.given["ec2:DescribeSecurityGroups"] = lambda sent: {
        "SecurityGroups": (
            [group("sg-own"), group("sg-db")] if sent["Filters"][0]["Name"] == "ip-permission.group-id" else []
        )
    }
    rules: dict[str, list[dict[str, Any]]] = {
        "sg-own": [
            {"SecurityGroupRuleId": "sgr-1", "IsEgress": False, "ReferencedGroupInfo": {"GroupId": "sg-1"}},
            {"SecurityGroupRuleId": "sgr-2", "IsEgress": True, "ReferencedGroupInfo": {"GroupId": "sg-1"}},
            {"SecurityGroupRuleId": "sgr-3", "IsEgress": False, "ReferencedGroupInfo": {"GroupId": "sg-other"}},
            {"SecurityGroupRuleId": "sgr-4", "IsEgress": False, "CidrIpv4": "0.0.0.0/0"},
        ],
        "sg-1": [{"SecurityGroupRuleId": "sgr-5", "IsEgress": False, "ReferencedGroupInfo": {"GroupId": "sg-1"}}],
    }
    aws.given["ec2:DescribeSecurityGroupRules"] = lambda sent: {
        "SecurityGroupRules": rules[filtered(sent, "group-id")[0]]
    }
    leftover = OrphanedResource("security group", "sg-1", "web")
    assert removal.remove_security_groups(aws.account, SCOPE, [leftover]) == (leftover,)
    assert aws.written() == [
        ("ec2:RevokeSecurityGroupEgress", {"GroupId": "sg-own", "SecurityGroupRuleIds": ["sgr-2"]}),
        ("ec2:RevokeSecurityGroupIngress", {"GroupId": "sg-own", "SecurityGroupRuleIds": ["sgr-1"]}),
        ("ec2:DeleteSecurityGroup", {"GroupId": "sg-1"}),
    ]
    # A rule that someone else has just taken out is no error.
    aws.given["ec2:RevokeSecurityGroupIngress"] = RefusedError("InvalidSecurityGroupRuleId.NotFound")
    aws.given["ec2:DeleteSecurityGroup"] = RefusedError("DependencyViolation")
    assert removal.remove_security_groups(aws.account, SCOPE, [leftover]) == ()


def test_two_leftover_groups_that_name_each_other_both_go(aws: Answers) -> None:
    aws.given["ec2:DescribeSecurityGroupRules"] = lambda sent: {
        "SecurityGroupRules": [
            {
                "SecurityGroupRuleId": f"sgr-of-{filtered(sent, 'group-id')[0]}",
                "IsEgress": False,
                "ReferencedGroupInfo": {"GroupId": {"sg-1": "sg-2", "sg-2": "sg-1"}[filtered(sent, "group-id")[0]]},
            }
        ]
    }
    both = [OrphanedResource("security group", each, each) for each in ("sg-1", "sg-2")]
    assert removal.remove_security_groups(aws.account, SCOPE, both) == tuple(both)
    revoked = [each["SecurityGroupRuleIds"] for each in aws.named("ec2:RevokeSecurityGroupIngress")]
    assert revoked == [["sgr-of-sg-1"], ["sgr-of-sg-2"]]
