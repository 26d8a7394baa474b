"""An existing VPC, and what is in it: each is looked for where EC2 has it, and what may not be read is named."""

from __future__ import annotations

from typing import Any

import pytest
from answers import Answers
from recorded import RefusedError

from cfngen.deploy.aws.network import read_network

# By attribute: the call, the key and the id of its answer, and the filter by a VPC (Amazon EC2 API Reference).
PARTS = {
    "subnets": ("DescribeSubnets", "Subnets", "SubnetId", "vpc-id"),
    "route_tables": ("DescribeRouteTables", "RouteTables", "RouteTableId", "vpc-id"),
    "internet_gateways": ("DescribeInternetGateways", "InternetGateways", "InternetGatewayId", "attachment.vpc-id"),
    "nat_gateways": ("DescribeNatGateways", "NatGateways", "NatGatewayId", "vpc-id"),
    "network_acls": ("DescribeNetworkAcls", "NetworkAcls", "NetworkAclId", "vpc-id"),
    "endpoints": ("DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId", "vpc-id"),
    "security_groups": ("DescribeSecurityGroups", "SecurityGroups", "GroupId", "vpc-id"),
    "interfaces": ("DescribeNetworkInterfaces", "NetworkInterfaces", "NetworkInterfaceId", "vpc-id"),
}
VPC = {"ec2:DescribeVpcs": {"Vpcs": [{"VpcId": "vpc-1"}]}}


def listed(key: str, item: dict[str, Any], *names: str) -> Any:
    """Answers a call with an item if it asks for the VPC by one of these filters, and with nothing otherwise."""

    def answer(sent: dict[str, Any]) -> dict[str, Any]:
        asked = [item for item in sent.get("Filters", sent.get("Filter", ())) if item["Values"] == ["vpc-1"]]
        return {key: [item] if {item["Name"] for item in asked} & set(names) else []}

    return answer


@pytest.mark.parametrize("attribute", PARTS)
def test_what_is_in_the_vpc_is_read(attribute: str) -> None:
    call, key, id_key, name = PARTS[attribute]
    facts = read_network(Answers({**VPC, f"ec2:{call}": listed(key, {id_key: "it"}, name)}).account, "vpc-1")
    assert getattr(facts, attribute) == ({id_key: "it"},)
    unread = {name for name, _ in facts.unread}
    assert unread == {*PARTS, "peerings", "has_dns_support", "has_dns_host_names"} - {attribute}


@pytest.mark.parametrize("side", ["requester-vpc-info.vpc-id", "accepter-vpc-info.vpc-id"])
@pytest.mark.parametrize(("status", "count"), [("active", 1), ("deleted", 0), ("pending-acceptance", 0)])
def test_an_active_peering_is_read_from_either_side(side: str, status: str, count: int) -> None:
    peering = {"VpcPeeringConnectionId": "pcx-1", "Status": {"Code": status}}
    call = {"ec2:DescribeVpcPeeringConnections": listed("VpcPeeringConnections", peering, side)}
    assert read_network(Answers({**VPC, **call}).account, "vpc-1").peerings == (peering,) * count


def test_where_there_is_no_vpc_nothing_else_is_asked() -> None:
    aws = Answers({"ec2:DescribeVpcs": {"Vpcs": []}})
    assert read_network(aws.account, "vpc-1").vpc is None
    assert len(aws.calls) == 1


def test_a_vpc_that_may_not_be_read_is_an_error() -> None:
    aws = Answers({"ec2:DescribeVpcs": RefusedError("UnauthorizedOperation")})
    with pytest.raises(Exception, match="DescribeVpcs"):
        read_network(aws.account, "vpc-1")
