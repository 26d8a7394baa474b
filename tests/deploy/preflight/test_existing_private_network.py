"""Existing public subnets, NAT gateways and route tables: what makes them useless is said before anything changes."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from moto.ec2.models import ec2_backends

from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import Account
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.existing.network import find_private_network_problems
from cfngen.deploy.preflight.existing.objects import ForeignObjectsError

ZONE, OTHER_ZONE = "us-west-2a", "us-west-2b"
RANGE = "10.20.240.0/24"


class Landlord:
    """A VPC with a public subnet that has a NAT gateway, and a private route table; a cluster file names all three."""

    def __init__(self, account: Account) -> None:
        self.account = account
        self.ec2: Any = account.client("ec2")
        self.vpc = self.make_vpc()
        self.gateway = self.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        self.ec2.attach_internet_gateway(InternetGatewayId=self.gateway, VpcId=self.vpc)
        self.public_table = self.make_table(self.vpc)
        self.ec2.create_route(RouteTableId=self.public_table, DestinationCidrBlock="0.0.0.0/0", GatewayId=self.gateway)
        self.public = self.make_subnet(self.vpc, RANGE)
        self.ec2.associate_route_table(RouteTableId=self.public_table, SubnetId=self.public)
        self.nat = self.make_nat_gateway(self.public)
        self.private_table = self.make_table(self.vpc)
        self.range = RANGE

    def make_vpc(self) -> str:
        return str(self.ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"])

    def make_subnet(self, vpc: str, cidr: str, zone: str = ZONE) -> str:
        made = self.ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)
        return str(made["Subnet"]["SubnetId"])

    def make_table(self, vpc: str) -> str:
        return str(self.ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"])

    def make_nat_gateway(self, subnet: str, **arguments: Any) -> str:
        if not arguments:
            arguments = {"AllocationId": self.ec2.allocate_address(Domain="vpc")["AllocationId"]}
        return str(self.ec2.create_nat_gateway(SubnetId=subnet, **arguments)["NatGateway"]["NatGatewayId"])

    def make_public_subnet(self, cidr: str, zone: str = ZONE) -> str:
        subnet = self.make_subnet(self.vpc, cidr, zone)
        self.ec2.associate_route_table(RouteTableId=self.public_table, SubnetId=subnet)
        return subnet

    def check(self) -> None:
        subnet = {"zone": ZONE, "cidr": "10.20.0.0/20", "public": {"id": self.public, "cidr": self.range}}
        network = {
            "topology": "private",
            "plugin": "cilium",
            "vpc": {"id": self.vpc, "cidr": "10.20.0.0/16"},
            "subnets": [subnet],
            "serviceCidr": "10.250.0.0/16",
        }
        values = {
            "VpcId": self.vpc, "ZoneA": ZONE, "PublicSubnetAId": self.public, "NatGatewayAId": self.nat,
            "RouteTableAId": self.private_table,
        }  # fmt: skip
        objects.check(self.account, parse({"network": network}), values, None, lambda message: None)

    def problem(self) -> str:
        """The one problem of the file."""
        with pytest.raises(ForeignObjectsError) as raised:
            self.check()
        [problem] = map(str, raised.value.problems)
        return problem


@pytest.fixture
def here(account: Account) -> Landlord:
    landlord = Landlord(account)
    landlord.check()
    return landlord


def test_a_public_subnet_must_exist(here: Landlord) -> None:
    here.public = "subnet-00000001"
    assert here.problem().startswith("network.subnets[0].public.id: there is no subnet subnet-00000001 in us-west-2;")


def test_a_public_subnet_must_be_in_the_vpc(here: Landlord) -> None:
    here.public = here.make_subnet(here.make_vpc(), RANGE)
    assert f"network.subnets[0].public.id: {here.public} belongs to vpc-" in here.problem()
    assert f"use one of {here.vpc}" in here.problem()


def test_a_public_subnet_must_be_in_the_zone(here: Landlord) -> None:
    here.public = here.make_public_subnet("10.20.241.0/24", OTHER_ZONE)
    assert "is in us-west-2b and not in us-west-2a; use a public subnet in us-west-2a" in here.problem()


def test_a_public_subnet_has_the_range_of_the_file(here: Landlord) -> None:
    here.range = "10.20.240.0/25"
    assert here.problem() == (
        f"network.subnets[0].public.cidr: {here.public} has the range 10.20.240.0/24 and not 10.20.240.0/25; correct "
        "it, or remove the key"
    )


def test_a_public_subnet_needs_a_route_to_the_internet(here: Landlord) -> None:
    here.range = "10.20.242.0/24"
    here.public = here.make_subnet(here.vpc, here.range)
    assert f"network.subnets[0].public.id: {here.public} has no route to an internet gateway" in here.problem()


def test_the_main_table_makes_a_subnet_public_too(here: Landlord) -> None:
    here.range = "10.20.242.0/24"
    here.public = here.make_subnet(here.vpc, here.range)
    tables = here.ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [here.vpc]}])["RouteTables"]
    [main] = [table["RouteTableId"] for table in tables if any(each.get("Main") for each in table["Associations"])]
    here.ec2.create_route(RouteTableId=main, DestinationCidrBlock="0.0.0.0/0", GatewayId=here.gateway)
    here.check()


@pytest.mark.parametrize("is_deleted", [False, True])
def test_a_nat_gateway_must_exist(here: Landlord, is_deleted: bool) -> None:
    if is_deleted:
        here.ec2.delete_nat_gateway(NatGatewayId=here.nat)
    else:
        here.nat = "nat-00000001"
    assert f"network.subnets[0].natGateway: there is no NAT gateway {here.nat} in us-west-2" in here.problem()


@pytest.mark.parametrize("state", ["pending", "failed", "deleting"])
def test_a_nat_gateway_must_be_available(here: Landlord, state: str) -> None:
    backend = ec2_backends["123456789012"]["us-west-2"]
    backend.nat_gateways[here.nat]._state = backend.nat_gateways[here.nat].state = state
    assert f"{here.nat} is {state} and not available; wait until it is, or use another" in here.problem()


def test_a_nat_gateway_must_be_in_the_vpc(here: Landlord) -> None:
    here.nat = here.make_nat_gateway(here.make_subnet(here.make_vpc(), RANGE))
    assert f"network.subnets[0].natGateway: {here.nat} belongs to vpc-" in here.problem()


def test_a_nat_gateway_must_be_in_the_zone(here: Landlord) -> None:
    here.nat = here.make_nat_gateway(here.make_public_subnet("10.20.241.0/24", OTHER_ZONE))
    assert "is in us-west-2b and not in us-west-2a; use a NAT gateway in us-west-2a" in here.problem()


def test_a_nat_gateway_must_lead_to_the_internet(here: Landlord) -> None:
    here.nat = here.make_nat_gateway(here.public, ConnectivityType="private")
    assert "is a private NAT gateway" in here.problem()
    closed = here.make_subnet(here.vpc, "10.20.243.0/24")
    here.nat = here.make_nat_gateway(closed)
    assert f"the subnet {closed} of {here.nat} has no route to an internet gateway" in here.problem()


def test_a_route_table_must_exist_in_the_vpc(here: Landlord) -> None:
    here.private_table = "rtb-00000001"
    assert "network.subnets[0].routeTable: there is no route table rtb-00000001 in us-west-2" in here.problem()
    here.private_table = here.make_table(here.make_vpc())
    assert f"network.subnets[0].routeTable: {here.private_table} belongs to vpc-" in here.problem()


def test_a_route_table_of_public_subnets_is_of_no_use(here: Landlord) -> None:
    here.private_table = here.public_table
    assert "through which instances without public addresses reach nothing" in here.problem()


def test_a_route_table_of_a_public_cluster_leads_to_an_internet_gateway(here: Landlord) -> None:
    network = {
        "plugin": "cilium",
        "vpc": {"id": here.vpc, "cidr": "10.20.0.0/16"},
        "subnets": [{"zone": ZONE, "cidr": "10.20.0.0/20", "routeTable": here.public_table}],
        "serviceCidr": "10.250.0.0/16",
    }
    values = {"VpcId": here.vpc, "ZoneA": ZONE, "RouteTableAId": here.public_table}
    objects.check(here.account, parse({"network": network}), values, None, lambda message: None)


@pytest.mark.parametrize(("route", "is_public"), [
    ({}, True),
    ({"State": "active"}, True),
    ({"State": "blackhole"}, False),  # the gateway was detached
    ({"GatewayId": "vgw-00000001"}, False),
    ({"GatewayId": ""}, False),
    ({"DestinationCidrBlock": "192.168.0.0/16"}, False),
])  # fmt: skip
def test_only_a_route_that_leads_to_an_internet_gateway_makes_a_subnet_public(
    aws: Answers, route: dict[str, Any], is_public: bool
) -> None:
    routes = [{"DestinationCidrBlock": "10.20.0.0/16", "GatewayId": "local"}]
    routes += [{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-00000001"} | route]
    associations = [{"SubnetId": "subnet-00000001"}]
    table = {"RouteTableId": "rtb-00000001", "VpcId": "vpc-1", "Routes": routes, "Associations": associations}
    aws.given["ec2:DescribeRouteTables"] = {"RouteTables": [table]}
    subnet = {"SubnetId": "subnet-00000001", "VpcId": "vpc-1", "AvailabilityZone": ZONE, "CidrBlock": RANGE}
    aws.given["ec2:DescribeSubnets"] = {"Subnets": [subnet]}
    network = {"topology": "private", "subnets": [{"zone": ZONE}]}
    values = {"PublicSubnetAId": "subnet-00000001"}
    problems = list(find_private_network_problems(aws.account, parse({"network": network}), values, "vpc-1"))
    assert ["has no route to an internet gateway" in str(problem) for problem in problems] == [True] * (not is_public)
