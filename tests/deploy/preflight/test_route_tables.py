"""VPC routes need existing subnets that share a route table: said before anything is created."""

from __future__ import annotations

import pytest
from recorded import RefusedError

from cfngen.cluster.load import parse
from cfngen.deploy.aws.account import connect
from cfngen.deploy.preflight.network import routes
from cfngen.deploy.preflight.network.routes import RouteTablesError

REGION = "us-west-2"


@pytest.fixture
def account(cloud):
    return connect(cloud.session, REGION, clock=cloud.clock, attempts=1)


@pytest.fixture
def given(account):
    """A VPC of someone else's with two subnets, and a table that both use."""
    ec2 = account.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.20.0.0/16")["Vpc"]["VpcId"]
    values = {"VpcId": vpc, "RouteTableId": table(account, vpc)}
    for letter, third in (("A", 0), ("B", 16)):
        cidr, zone = f"10.20.{third}.0/20", f"{REGION}{letter.lower()}"
        made = ec2.create_subnet(VpcId=vpc, CidrBlock=cidr, AvailabilityZone=zone)["Subnet"]
        values[f"Subnet{letter}Id"] = made["SubnetId"]
        ec2.associate_route_table(RouteTableId=values["RouteTableId"], SubnetId=made["SubnetId"])
    return values


def table(account, vpc):
    return account.client("ec2").create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]


def own_table(account, given):
    """Give the second subnet a table of its own."""
    ec2, other = account.client("ec2"), table(account, given["VpcId"])
    [shared] = ec2.describe_route_tables(RouteTableIds=[given["RouteTableId"]])["RouteTables"]
    [association] = [
        association for association in shared["Associations"] if association.get("SubnetId") == given["SubnetBId"]
    ]
    ec2.replace_route_table_association(AssociationId=association["RouteTableAssociationId"], RouteTableId=other)
    return other


def cluster(given, plugin="vpc-routes"):
    subnets = [
        {"zone": f"{REGION}{letter}", "id": given[f"Subnet{letter.upper()}Id"], "cidr": f"10.20.{third}.0/20"}
        for letter, third in (("a", 0), ("b", 16))
    ]
    vpc = {"id": given["VpcId"], "cidr": "10.20.0.0/16"}
    network = {"plugin": plugin, "vpc": vpc, "subnets": subnets, "serviceCidr": "10.250.0.0/16"}
    return parse({"network": network})


def ignore(message):
    """Take a message that a test does not look at."""


def test_subnets_that_share_a_table_are_fine(account, given):
    routes.check(account, cluster(given), given, ignore)


def test_public_subnets_of_a_private_cluster_have_a_table_of_their_own(account, given):
    ec2 = account.client("ec2")
    public = ec2.create_subnet(VpcId=given["VpcId"], CidrBlock="10.20.32.0/26")["Subnet"]["SubnetId"]
    ec2.associate_route_table(RouteTableId=table(account, given["VpcId"]), SubnetId=public)
    routes.check(account, cluster(given), {**given, "PublicSubnetAId": public}, ignore)


def test_a_table_for_each_zone_is_refused_with_the_reason(account, given):
    other = own_table(account, given)
    with pytest.raises(RouteTablesError, match=f"{given['SubnetBId']} uses {other}") as raised:
        routes.check(account, cluster(given), given, ignore)
    assert "set network.plugin to cilium" in raised.value.hint
    assert given["SubnetAId"] not in str(raised.value)


def test_a_subnet_with_the_vpcs_main_table_is_seen(account, given):
    ec2 = account.client("ec2")
    made = ec2.create_subnet(VpcId=given["VpcId"], CidrBlock="10.20.32.0/20")["Subnet"]["SubnetId"]
    with pytest.raises(RouteTablesError, match=made):
        routes.check(account, cluster(given), {**given, "SubnetBId": made}, ignore)


def test_a_subnet_in_a_local_zone_is_seen(account, given):
    ec2 = account.client("ec2")
    made = ec2.create_subnet(VpcId=given["VpcId"], CidrBlock="10.20.32.0/20")["Subnet"]["SubnetId"]
    with pytest.raises(RouteTablesError, match=made):
        routes.check(account, cluster(given), {**given, "SubnetLax1AId": made}, ignore)


@pytest.mark.parametrize("plugin", ["cilium", "calico", "flannel", "amazon-vpc", "none"])
def test_other_plugins_take_any_tables(account, given, plugin):
    own_table(account, given)
    routes.check(account, cluster(given, plugin), given, ignore)


def test_what_cannot_be_found_out_stops_nobody(account, given):
    routes.check(account, cluster(given), {**given, "VpcId": "vpc-0ffffffffffffffff"}, ignore)


def test_tables_that_may_not_be_read_are_said_and_stop_nobody(account, given, aws):
    aws.given["ec2:DescribeRouteTables"] = RefusedError("UnauthorizedOperation")
    told = []
    routes.check(aws.account, cluster(given), given, told.append)
    assert [notice.text.partition(" cannot be read")[0] for notice in told] == ["which route tables the subnets use"]
