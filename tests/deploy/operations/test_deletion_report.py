"""What of a deleted cluster still exists: each kind asked of its service by the call, and the filter, that has it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from answers import Answers, filtered
from aws_descriptions import resource
from recorded import RefusedError

from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.operations.deletion import report

HAS: dict[str, tuple[str, dict[str, Any]]] = {
    "AWS::AutoScaling::AutoScalingGroup": ("autoscaling:DescribeAutoScalingGroups", {}),
    "AWS::EC2::LaunchTemplate": (
        "ec2:DescribeLaunchTemplates",
        {"LaunchTemplates": [{"LaunchTemplateId": "id-1"}, {"LaunchTemplateId": "other"}]},
    ),
    "AWS::ElasticLoadBalancingV2::LoadBalancer": (
        "elbv2:DescribeLoadBalancers",
        {"LoadBalancers": [{"LoadBalancerArn": "id-1"}, {"LoadBalancerArn": "other"}]},
    ),
    "AWS::ElasticLoadBalancingV2::TargetGroup": (
        "elbv2:DescribeTargetGroups",
        {"TargetGroups": [{"TargetGroupArn": "id-1"}, {"TargetGroupArn": "other"}]},
    ),
    "AWS::EC2::Volume": ("ec2:DescribeVolumes", {"Volumes": [{"VolumeId": "id-1", "State": "available"}]}),
    "AWS::EC2::EIP": ("ec2:DescribeAddresses", {"Addresses": [{"PublicIp": "id-1"}]}),
    "AWS::EC2::NetworkInterface": (
        "ec2:DescribeNetworkInterfaces",
        {"NetworkInterfaces": [{"NetworkInterfaceId": "id-1"}]},
    ),
    "AWS::EC2::SecurityGroup": ("ec2:DescribeSecurityGroups", {"SecurityGroups": [{"GroupId": "id-1"}]}),
    "AWS::EC2::VPC": ("ec2:DescribeVpcs", {"Vpcs": [{"VpcId": "id-1"}]}),
    "AWS::EC2::Subnet": ("ec2:DescribeSubnets", {"Subnets": [{"SubnetId": "id-1"}]}),
    "AWS::EC2::RouteTable": ("ec2:DescribeRouteTables", {"RouteTables": [{"RouteTableId": "id-1"}]}),
    "AWS::EC2::InternetGateway": (
        "ec2:DescribeInternetGateways",
        {"InternetGateways": [{"InternetGatewayId": "id-1"}]},
    ),
    "AWS::EC2::NatGateway": (
        "ec2:DescribeNatGateways",
        {
            "NatGateways": [
                {"NatGatewayId": "id-1", "State": "available"},
                {"NatGatewayId": "id-0", "State": "deleted"},
                {"NatGatewayId": "id-2", "State": "deleting"},
            ]
        },
    ),
    "AWS::EC2::VPCEndpoint": (
        "ec2:DescribeVpcEndpoints",
        {
            "VpcEndpoints": [
                {"VpcEndpointId": "id-1", "State": "available"},
                {"VpcEndpointId": "id-2", "State": "deleting"},
                {"VpcEndpointId": "id-3", "State": "Deleted"},
            ]
        },
    ),
    "AWS::EC2::DHCPOptions": ("ec2:DescribeDhcpOptions", {"DhcpOptions": [{"DhcpOptionsId": "id-1"}]}),
    "AWS::EC2::KeyPair": ("ec2:DescribeKeyPairs", {"KeyPairs": [{"KeyName": "id-1"}]}),
}
FILTERS = {
    "AWS::EC2::Volume": "volume-id",
    "AWS::EC2::EIP": "public-ip",
    "AWS::EC2::NetworkInterface": "network-interface-id",
    "AWS::EC2::SecurityGroup": "group-id",
    "AWS::EC2::VPC": "vpc-id",
    "AWS::EC2::Subnet": "subnet-id",
    "AWS::EC2::RouteTable": "route-table-id",
    "AWS::EC2::InternetGateway": "internet-gateway-id",
    "AWS::EC2::NatGateway": "nat-gateway-id",
    "AWS::EC2::VPCEndpoint": "vpc-endpoint-id",
    "AWS::EC2::DHCPOptions": "dhcp-options-id",
    "AWS::EC2::KeyPair": "key-name",
}


def had(kind: str, *ids: str) -> Inventory:
    return Inventory("one", tuple(resource(each, "DELETE_COMPLETE", type_name=kind) for each in ids))


@pytest.mark.parametrize("kind", sorted(set(HAS) - {"AWS::AutoScaling::AutoScalingGroup"}))
def test_what_still_exists_of_a_kind_is_counted(aws: Answers, kind: str) -> None:
    call, answer = HAS[kind]
    aws.given[call] = answer
    [counted] = report.count_deleted_resources(aws.account, had(kind, "id-1", "id-2", "id-3"))
    assert (counted.gone, counted.left, counted.unknown) == (2, ("id-1",), ())
    if kind in FILTERS:
        assert filtered(aws.named(call)[0], FILTERS[kind]) == ["id-1", "id-2", "id-3"]
    aws.given[call] = RefusedError("UnauthorizedOperation")
    [counted] = report.count_deleted_resources(aws.account, had(kind, "id-2", "id-1"))
    assert (counted.gone, counted.left, counted.unknown) == (0, (), ("id-1", "id-2"))
    aws.given[call] = RefusedError("InternalError")
    with pytest.raises(Exception, match="InternalError"):
        report.count_deleted_resources(aws.account, had(kind, "id-1"))


@pytest.mark.parametrize(
    ("kind", "call", "argument", "absent"),
    [
        ("AWS::IAM::Role", "iam:GetRole", "RoleName", "NoSuchEntity"),
        ("AWS::IAM::InstanceProfile", "iam:GetInstanceProfile", "InstanceProfileName", "NoSuchEntity"),
        ("AWS::SecretsManager::Secret", "secretsmanager:DescribeSecret", "SecretId", "ResourceNotFoundException"),
    ],
)
def test_what_is_asked_for_by_its_name_is_counted(
    aws: Answers, kind: str, call: str, argument: str, absent: str
) -> None:
    made = {"Path": "/", "Arn": "arn-of-something-made", "CreateDate": datetime(2026, 1, 1, tzinfo=UTC)}
    profile = {"InstanceProfileName": "x", "InstanceProfileId": "0123456789abcdef", "Roles": []}
    described: dict[str, dict[str, Any]] = {
        "iam:GetRole": {"Role": {**made, "RoleName": "x", "RoleId": "0123456789abcdef"}},
        "iam:GetInstanceProfile": {"InstanceProfile": {**made, **profile}},
        "secretsmanager:DescribeSecret": {},
    }

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        assert set(sent) == {argument}
        return RefusedError(absent) if sent[argument] == "a-name-that-is-gone" else described[call]

    aws.given[call] = answer
    [counted] = report.count_deleted_resources(aws.account, had(kind, "a-name-that-is-gone", "a-name-that-stays"))
    assert (counted.gone, counted.left) == (1, ("a-name-that-stays",))
    aws.given[call] = RefusedError("AccessDenied")
    [counted] = report.count_deleted_resources(aws.account, had(kind, "a-name-that-stays"))
    assert counted.unknown == ("a-name-that-stays",)


def test_a_secret_in_its_recovery_window_counts_as_gone(aws: Answers) -> None:
    aws.given["secretsmanager:DescribeSecret"] = {"DeletedDate": datetime(2026, 2, 3, tzinfo=UTC)}
    [counted] = report.count_deleted_resources(aws.account, had("AWS::SecretsManager::Secret", "a-secret-with-a-name"))
    assert (counted.gone, counted.left) == (1, ())


@pytest.mark.parametrize(
    ("kind", "number", "sizes"),
    [
        ("AWS::EC2::Volume", 200, [200]),
        ("AWS::EC2::Volume", 201, [200, 1]),
        ("AWS::AutoScaling::AutoScalingGroup", 50, [50]),
        ("AWS::AutoScaling::AutoScalingGroup", 51, [50, 1]),
    ],
)
def test_services_are_asked_for_as_many_as_they_take(aws: Answers, kind: str, number: int, sizes: list[int]) -> None:
    ids = [f"id-{each}" for each in range(number)]
    [counted] = report.count_deleted_resources(aws.account, had(kind, *ids))
    assert counted.gone == number
    call = HAS[kind][0]
    batches = [
        sent["AutoScalingGroupNames"] if "AutoScaling" in kind else filtered(sent, FILTERS[kind])
        for sent in aws.named(call)
    ]
    assert [len(batch) for batch in batches] == sizes
    assert sorted(each for batch in batches for each in batch) == sorted(ids)


def test_groups_that_still_exist_are_counted(aws: Answers) -> None:
    group = {
        "AutoScalingGroupName": "group-1",
        "MinSize": 1,
        "MaxSize": 1,
        "DesiredCapacity": 1,
        "DefaultCooldown": 300,
        "AvailabilityZones": ["us-west-2a"],
        "HealthCheckType": "EC2",
        "CreatedTime": datetime(2026, 1, 1, tzinfo=UTC),
    }
    aws.given["autoscaling:DescribeAutoScalingGroups"] = {"AutoScalingGroups": [group]}
    [counted] = report.count_deleted_resources(
        aws.account, had("AWS::AutoScaling::AutoScalingGroup", "group-1", "group-2")
    )
    assert (counted.kind, counted.gone, counted.left) == ("Auto Scaling groups", 1, ("group-1",))
    assert aws.named("autoscaling:DescribeAutoScalingGroups") == [
        {"AutoScalingGroupNames": ["group-1", "group-2"], "MaxRecords": 100}
    ]
