"""What became of everything a cluster's stacks had: asked of each service after the deletion, not of CloudFormation.

kube-up's own deletion left key pairs, roles, DHCP options and buckets behind without a word; here each kind is counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DENIED, error_code
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.stacks import GROUP

AT_ONCE = 100  # values in one filter; EC2 takes 200
ABSENT = frozenset({"NoSuchEntity", "ResourceNotFoundException", "NotFoundException"})


@dataclass(frozen=True)
class Counted:
    """Things of one kind that a cluster's stacks had.

    Attributes:
        kind: what they are, in the plural.
        gone: how many of them no longer exist.
        left: ids of those that do.
        unknown: ids of those the caller may not look for.
    """

    kind: str
    gone: int
    left: tuple[str, ...] = ()
    unknown: tuple[str, ...] = ()


def count(account: Account, scope: Scope) -> tuple[Counted, ...]:
    """Return what exists of the resources that a cluster's stacks had, for every kind that outlives mistakes."""
    return tuple(
        _counted(account, kind, ids, existing)
        for kind, type_name, existing in _KINDS
        if (ids := sorted(scope.ids(type_name)))
    )


def _counted(
    account: Account, kind: str, ids: list[str], existing: Callable[[Account, list[str]], set[str]]
) -> Counted:
    from botocore.exceptions import ClientError

    try:
        left = existing(account, ids)
    except ClientError as error:
        # Who may delete stacks by a service role need not see what is in them.
        if error_code(error) not in DENIED:
            raise
        return Counted(kind, 0, unknown=tuple(ids))
    return Counted(kind, len(ids) - len(left), tuple(sorted(left)))


def _ec2(
    operation: str, answer: str, filter_name: str, key: str, argument: str = "Filters"
) -> Callable[[Account, list[str]], set[str]]:
    def existing(account: Account, ids: list[str]) -> set[str]:
        found: set[str] = set()
        # By filters: EC2 refuses a whole call for one id that is gone.
        for start in range(0, len(ids), AT_ONCE):
            filters = [{"Name": filter_name, "Values": ids[start : start + AT_ONCE]}]
            items = getattr(account.client("ec2"), operation)(**{argument: filters})[answer]
            found |= {str(each[key]) for each in items if each.get("State") not in ("deleting", "deleted")}
        return found

    return existing


def _addresses(account: Account, ids: list[str]) -> set[str]:
    # Ref of an Elastic IP is the address itself, not its allocation id.
    filters = [{"Name": "public-ip", "Values": ids}]
    return {
        str(address["PublicIp"]) for address in account.client("ec2").describe_addresses(Filters=filters)["Addresses"]
    }


def _groups(account: Account, ids: list[str]) -> set[str]:
    scaling, found = account.client("autoscaling"), set()
    for start in range(0, len(ids), 50):
        answer = scaling.describe_auto_scaling_groups(AutoScalingGroupNames=ids[start : start + 50])
        found |= {str(auto_scaling_group["AutoScalingGroupName"]) for auto_scaling_group in answer["AutoScalingGroups"]}
    return found


def _launch_templates(account: Account, ids: list[str]) -> set[str]:
    # EC2 has no filter for their ids.
    pages = account.client("ec2").get_paginator("describe_launch_templates").paginate()
    return {
        launch_template["LaunchTemplateId"] for page in pages for launch_template in page["LaunchTemplates"]
    }.intersection(ids)


def _load_balancers(account: Account, ids: list[str]) -> set[str]:
    # One that is gone fails the whole call, whatever else was asked for.
    pages = account.client("elbv2").get_paginator("describe_load_balancers").paginate()
    return {balancer["LoadBalancerArn"] for page in pages for balancer in page["LoadBalancers"]}.intersection(ids)


def _target_groups(account: Account, ids: list[str]) -> set[str]:
    pages = account.client("elbv2").get_paginator("describe_target_groups").paginate()
    return {target_group["TargetGroupArn"] for page in pages for target_group in page["TargetGroups"]}.intersection(ids)


def _roles(account: Account, ids: list[str]) -> set[str]:
    iam = account.client("iam")
    return _each(ids, lambda name: iam.get_role(RoleName=name))


def _profiles(account: Account, ids: list[str]) -> set[str]:
    iam = account.client("iam")
    return _each(ids, lambda name: iam.get_instance_profile(InstanceProfileName=name))


def _secrets(account: Account, ids: list[str]) -> set[str]:
    secrets = account.client("secretsmanager")
    return _each(ids, lambda arn: secrets.describe_secret(SecretId=arn), gone=lambda answer: "DeletedDate" in answer)


def _each(
    ids: Iterable[str], describe: Callable[[str], Any], gone: Callable[[Any], bool] = lambda answer: False
) -> set[str]:
    return {id_ for id_ in ids if _exists(id_, describe, gone)}


def _exists(identity: str, describe: Callable[[str], Any], gone: Callable[[Any], bool]) -> bool:
    from botocore.exceptions import ClientError

    try:
        return not gone(describe(identity))
    except ClientError as error:
        if error_code(error) in ABSENT:
            return False
        raise


_KINDS: tuple[tuple[str, str, Callable[[Account, list[str]], set[str]]], ...] = (
    ("Auto Scaling groups", GROUP, _groups),
    ("launch templates", "AWS::EC2::LaunchTemplate", _launch_templates),
    ("load balancers", "AWS::ElasticLoadBalancingV2::LoadBalancer", _load_balancers),
    ("target groups", "AWS::ElasticLoadBalancingV2::TargetGroup", _target_groups),
    ("volumes", "AWS::EC2::Volume", _ec2("describe_volumes", "Volumes", "volume-id", "VolumeId")),
    ("Elastic IPs", "AWS::EC2::EIP", _addresses),
    (
        "network interfaces",
        "AWS::EC2::NetworkInterface",
        _ec2("describe_network_interfaces", "NetworkInterfaces", "network-interface-id", "NetworkInterfaceId"),
    ),
    (
        "security groups",
        "AWS::EC2::SecurityGroup",
        _ec2("describe_security_groups", "SecurityGroups", "group-id", "GroupId"),
    ),
    ("VPCs", "AWS::EC2::VPC", _ec2("describe_vpcs", "Vpcs", "vpc-id", "VpcId")),
    ("subnets", "AWS::EC2::Subnet", _ec2("describe_subnets", "Subnets", "subnet-id", "SubnetId")),
    (
        "route tables",
        "AWS::EC2::RouteTable",
        _ec2("describe_route_tables", "RouteTables", "route-table-id", "RouteTableId"),
    ),
    (
        "internet gateways",
        "AWS::EC2::InternetGateway",
        _ec2("describe_internet_gateways", "InternetGateways", "internet-gateway-id", "InternetGatewayId"),
    ),
    (
        "NAT gateways",
        "AWS::EC2::NatGateway",
        _ec2("describe_nat_gateways", "NatGateways", "nat-gateway-id", "NatGatewayId", "Filter"),
    ),
    (
        "DHCP options",
        "AWS::EC2::DHCPOptions",
        _ec2("describe_dhcp_options", "DhcpOptions", "dhcp-options-id", "DhcpOptionsId"),
    ),
    ("key pairs", "AWS::EC2::KeyPair", _ec2("describe_key_pairs", "KeyPairs", "key-name", "KeyName")),
    ("roles", "AWS::IAM::Role", _roles),
    ("instance profiles", "AWS::IAM::InstanceProfile", _profiles),
    ("secrets", "AWS::SecretsManager::Secret", _secrets),
)
