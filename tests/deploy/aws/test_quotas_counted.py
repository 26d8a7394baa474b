"""What counts against quotas: NAT gateways of the fullest zone, and load balancers of one kind alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from answers import Answers

from cfngen.deploy.aws import usage
from cfngen.deploy.aws.account import Account


@pytest.fixture
def subnets(account: Account) -> dict[str, str]:
    """Three subnets by their names, two of them in one zone."""
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    return {
        name: ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{index}.0/24", AvailabilityZone=f"us-west-2{name[0]}")[
            "Subnet"
        ]["SubnetId"]
        for index, name in enumerate(("a", "a too", "b"))
    }


def gateways(account: Account, subnets: Sequence[str]) -> list[str]:
    ec2 = account.client("ec2")
    return [
        ec2.create_nat_gateway(SubnetId=subnet, ConnectivityType="private")["NatGateway"]["NatGatewayId"]
        for subnet in subnets
    ]


def used(account: Account, *zones: str) -> int:
    return usage.count_nat_gateways(zones)(account)


def test_of_nat_gateways_those_of_the_fullest_zone_count(account: Account, subnets: dict[str, str]) -> None:
    assert used(account, "us-west-2a", "us-west-2b") == 0
    gateways(account, [subnets["b"]])
    assert used(account, "us-west-2a", "us-west-2b") == 1
    gateways(account, [subnets["a"], subnets["a too"], subnets["a"]])
    assert used(account, "us-west-2a", "us-west-2b") == 3


def test_nat_gateways_of_zones_that_get_none_do_not_count(account: Account, subnets: dict[str, str]) -> None:
    gateways(account, [subnets["a"], subnets["a"], subnets["b"]])
    assert used(account, "us-west-2b") == 1
    assert used(account, "us-west-2c") == 0


def test_a_nat_gateway_that_is_gone_does_not_count(account: Account, subnets: dict[str, str]) -> None:
    gone, _ = gateways(account, [subnets["a"], subnets["a"]])
    account.client("ec2").delete_nat_gateway(NatGatewayId=gone)
    assert used(account, "us-west-2a") == 1


def test_only_network_load_balancers_count(account: Account, subnets: dict[str, str]) -> None:
    elbv2: Any = account.client("elbv2")
    for name, kind in (("one", "network"), ("two", "application"), ("three", "network")):
        elbv2.create_load_balancer(Name=name, Type=kind, Subnets=[subnets["a"], subnets["b"]])
    assert usage.count_network_load_balancers(account) == 2


def test_a_regional_nat_gateway_counts_in_no_zone() -> None:
    """It has no subnet."""
    regional = {"NatGatewayId": "nat-1", "AvailabilityMode": "regional"}
    api = Answers({"ec2:DescribeNatGateways": {"NatGateways": [regional]}})
    assert used(api.account, "us-west-2a") == 0
