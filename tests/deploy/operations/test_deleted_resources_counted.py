"""What a deletion says of each kind of resource: how many are gone, and which are left."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from botocore.session import get_session
from recorded import NOW, RefusedError

from cfngen.deploy.aws import existing_resources
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.stacks import ResourceView, StackResource
from cfngen.deploy.operations.deletion import report

# How resources of a type are counted: in which words, by which call, and where its answer has their ids.
LISTED = [
    ("AWS::AutoScaling::AutoScalingGroup", "Auto Scaling groups", "autoscaling:DescribeAutoScalingGroups",
     "AutoScalingGroups", "AutoScalingGroupName"),
    ("AWS::EC2::LaunchTemplate", "launch templates", "ec2:DescribeLaunchTemplates",
     "LaunchTemplates", "LaunchTemplateId"),
    ("AWS::ElasticLoadBalancingV2::LoadBalancer", "load balancers", "elbv2:DescribeLoadBalancers",
     "LoadBalancers", "LoadBalancerArn"),
    ("AWS::ElasticLoadBalancingV2::TargetGroup", "target groups", "elbv2:DescribeTargetGroups",
     "TargetGroups", "TargetGroupArn"),
    ("AWS::EC2::Volume", "volumes", "ec2:DescribeVolumes", "Volumes", "VolumeId"),
    ("AWS::EC2::EIP", "Elastic IPs", "ec2:DescribeAddresses", "Addresses", "PublicIp"),
    ("AWS::EC2::NetworkInterface", "network interfaces", "ec2:DescribeNetworkInterfaces",
     "NetworkInterfaces", "NetworkInterfaceId"),
    ("AWS::EC2::SecurityGroup", "security groups", "ec2:DescribeSecurityGroups", "SecurityGroups", "GroupId"),
    ("AWS::EC2::VPC", "VPCs", "ec2:DescribeVpcs", "Vpcs", "VpcId"),
    ("AWS::EC2::Subnet", "subnets", "ec2:DescribeSubnets", "Subnets", "SubnetId"),
    ("AWS::EC2::RouteTable", "route tables", "ec2:DescribeRouteTables", "RouteTables", "RouteTableId"),
    ("AWS::EC2::InternetGateway", "internet gateways", "ec2:DescribeInternetGateways",
     "InternetGateways", "InternetGatewayId"),
    ("AWS::EC2::NatGateway", "NAT gateways", "ec2:DescribeNatGateways", "NatGateways", "NatGatewayId"),
    ("AWS::EC2::VPCEndpoint", "VPC endpoints", "ec2:DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId"),
    ("AWS::EC2::DHCPOptions", "DHCP options", "ec2:DescribeDhcpOptions", "DhcpOptions", "DhcpOptionsId"),
    ("AWS::EC2::KeyPair", "key pairs", "ec2:DescribeKeyPairs", "KeyPairs", "KeyName"),
]  # fmt: skip
DESCRIBED = [
    ("AWS::IAM::Role", "roles", "iam:GetRole"),
    ("AWS::IAM::OIDCProvider", "OIDC providers", "iam:GetOpenIDConnectProvider"),
    ("AWS::CloudFront::Distribution", "CloudFront distributions", "cloudfront:GetDistribution"),
    ("AWS::IAM::InstanceProfile", "instance profiles", "iam:GetInstanceProfile"),
    ("AWS::SecretsManager::Secret", "secrets", "secretsmanager:DescribeSecret"),
]


# What Auto Scaling says of every group.
OF_EACH_GROUP = {
    **dict.fromkeys(("MinSize", "MaxSize", "DesiredCapacity", "DefaultCooldown"), 1),
    "AvailabilityZones": [],
    "HealthCheckType": "EC2",
    "CreatedTime": NOW,
}


def counted(aws: Answers, kind: str, *ids: str) -> list[Any]:
    views = [ResourceView(f"It{number}", id_, kind, "DELETE_COMPLETE") for number, id_ in enumerate(ids)]
    scope = Inventory("one", tuple(StackResource("arn", (), view) for view in views))
    return list(report.count_deleted_resources(aws.account, scope))


@pytest.mark.parametrize(("kind", "name", "call", "key", "id_key"), LISTED, ids=[row[0] for row in LISTED])
def test_what_is_still_listed_is_left(kind: str, name: str, call: str, key: str, id_key: str) -> None:
    more = OF_EACH_GROUP if key == "AutoScalingGroups" else {}
    [count] = counted(Answers({call: {key: [{id_key: "there", **more}]}}), kind, "gone", "there")
    assert (count.kind, count.gone, count.left, count.unknown) == (name, 1, ("there",), ())


@pytest.mark.parametrize(("kind", "name", "call"), DESCRIBED)
def test_what_its_service_does_not_find_is_gone(kind: str, name: str, call: str) -> None:
    """By the code that the service's model has for it."""
    service, _, operation = call.partition(":")
    errors = get_session().get_service_model(service).operation_model(operation).error_shapes
    codes = {shape.metadata.get("error", {}).get("code", shape.name) for shape in errors}
    [code] = {code for code in codes if code.startswith("NoSuch") or code.endswith("NotFoundException")}
    id_ = "arn:aws:iam::123456789012:oidc-provider/example.com"
    [count] = counted(Answers({call: RefusedError(code)}), kind, id_)
    assert (count.kind, count.gone, count.left, count.unknown) == (name, 1, (), ())


def test_these_kinds_are_counted_and_no_others() -> None:
    kinds = [resource_kind.type for resource_kind in existing_resources.RESOURCE_KINDS]
    assert sorted(kinds) == sorted(row[0] for row in (*LISTED, *DESCRIBED))


def test_a_key_that_its_service_does_not_find_is_not_pending_deletion() -> None:
    aws = Answers({"kms:DescribeKey": RefusedError("NotFoundException")})
    assert existing_resources.find_keys_pending_deletion(aws.account, ["k-1"]) == {}


def test_every_kind_can_be_asked_for_after_the_deletion(account: Account) -> None:
    """EC2's calls do not all call their filters alike."""
    ids = {"AWS::EC2::EIP": "198.51.100.7", "AWS::SecretsManager::Secret": "arn:aws:secretsmanager:::secret:one"}
    kinds = [resource_kind.type for resource_kind in existing_resources.RESOURCE_KINDS]
    views = [ResourceView(kind.rpartition(":")[2], ids.get(kind, "gone-1"), kind, "DELETE_COMPLETE") for kind in kinds]
    scope = Inventory("one", tuple(StackResource("arn", (), view) for view in views))
    counts = report.count_deleted_resources(account, scope)
    assert {(count.gone, count.left, count.unknown) for count in counts} == {(1, (), ())}
    assert len(counts) == len(kinds)
