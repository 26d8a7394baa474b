"""What the check of an existing network says of it as EC2 describes it: ranges, routes and gateways."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from existing_network import EVERYWHERE, REGION
from judged_network import (
    IN_A,
    NAT,
    PRIVATE,
    PUBLIC_A,
    PUBLIC_B,
    TABLE,
    TO_NAT,
    VPC,
    A,
    B,
    given,
)

from cfngen.deploy.preflight.network import routes
from cfngen.deploy.preflight.network.situation import Situation
from cfngen.deploy.preflight.network.vpc import find_overlaps, find_range_problems


@pytest.mark.parametrize(
    ("state", "counts"),
    [
        ("associated", True),
        ("associating", True),
        ("disassociating", False),
        ("disassociated", False),
        ("failing", False),
        ("failed", False),
    ],
)
def test_a_further_range_is_the_vpcs_until_it_is_taken_away(state: str, counts: bool) -> None:
    other = {"vpc": {"id": VPC, "cidr": "10.22.0.0/16"}, "subnets": [{**IN_A, "cidr": "10.22.0.0/24"}]}
    [finding] = find_range_problems(given(other, associations=(("10.21.0.0/16", state),)))
    ranges = "ranges 10.20.0.0/16 and 10.21.0.0/16" if counts else "range 10.20.0.0/16"
    assert finding.text == f"{VPC} has the {ranges} and not 10.22.0.0/16"


@pytest.mark.parametrize(("gateways", "named"), [((), "INTERNET_GATEWAY"), (("igw-1", "igw-2"), "igw-1")])
def test_the_route_to_the_internet_is_added_by_the_gateway_that_is_there(gateways: tuple[str, ...], named: str) -> None:
    attached = tuple({"InternetGatewayId": gateway} for gateway in gateways)
    [finding] = routes.find_unrouted_subnets(given({"subnets": [IN_A]}, A, internet_gateways=attached))
    assert finding.text == f"{A} has no default route: {TABLE} does not lead to an internet gateway"
    assert finding.commands == (
        (
            f"aws ec2 create-route --region {REGION} --route-table-id {TABLE} "
            f"--destination-cidr-block 0.0.0.0/0 --gateway-id {named}"
        ),
    )


@pytest.mark.parametrize(
    "target",
    [
        "GatewayId",
        "NatGatewayId",
        "TransitGatewayId",
        "NetworkInterfaceId",
        "InstanceId",
        "VpcPeeringConnectionId",
        "LocalGatewayId",
        "CarrierGatewayId",
        "CoreNetworkArn",
    ],
)
def test_a_route_that_leads_nowhere_is_told_with_where_it_led(target: str) -> None:
    route = {"DestinationCidrBlock": EVERYWHERE, target: "x-00000001", "State": "blackhole"}
    [finding] = routes.find_unrouted_subnets(given({"subnets": [IN_A]}, A, route=route))
    assert finding.text.startswith(f"the default route of {A} in {TABLE} leads to x-00000001, which no longer exists")


@pytest.mark.parametrize(
    ("gateway", "says"),
    [
        ({}, f"the NAT gateway {NAT} is in {PUBLIC_A}, which has no route to an internet gateway"),
        ({"ConnectivityType": "public"}, f"the NAT gateway {NAT} is in {PUBLIC_A}, which has no route to an internet"),
        ({"State": "pending"}, f"the NAT gateway {NAT} is pending and not available"),
        ({"NatGatewayId": "nat-00000002"}, f"there is no NAT gateway {NAT} in {VPC}"),
        # It leads to other networks.
        ({"ConnectivityType": "private"}, ""),
        # It is in no subnet.
        ({"SubnetId": None}, ""),
    ],
)
def test_a_nat_gateway_has_to_be_available_and_has_to_lead_out(gateway: dict[str, Any], says: str) -> None:
    described = {"NatGatewayId": NAT, "State": "available", "SubnetId": PUBLIC_A, **gateway}
    known = {name: value for name, value in described.items() if value}
    situation = given({"topology": "private", "subnets": [IN_A]}, A, PUBLIC_A, route=TO_NAT, nat_gateways=(known,))
    found = list(routes.find_unrouted_subnets(situation))
    assert [finding.text[: len(says)] for finding in found] == ([says] if says else [])
    assert {finding.key for finding in found} <= {"network.subnets[0].id"}


ONE_TABLE = {"plugin": "vpc-routes", "podCidr": "10.244.0.0/16", "subnets": [IN_A]}


@pytest.mark.parametrize(
    ("situation", "remedy"),
    [
        (given(ONE_TABLE, A), [f"set it to {TABLE}"]),
        # No subnet exists yet, or the tables could not be read.
        (given(ONE_TABLE), []),
        (given(ONE_TABLE, A, route_tables=()), []),
    ],
    ids=["subnet and table", "no subnet", "no table"],
)
def test_the_table_of_pods_routes_is_asked_for_where_there_is_one(situation: Situation, remedy: list[str]) -> None:
    assert [finding.remedy for finding in routes.find_divided_route_tables(situation)] == remedy


TUNNELLED, WITH_VPC_ROUTES = {"plugin": "cilium", "podCidr": "10.244.0.0/16"}, {**ONE_TABLE, "podCidr": "10.244.0.0/16"}
OTHER_RANGE = "choose another range, which nothing in the VPC's surroundings has"
SERVICE_KEY, POD_KEY = "network.serviceCidr", "network.podCidr"
PEER, PEERING = "vpc-00000002", "pcx-00000001"
NOT_REACHED = f"({PEERING}), which pods therefore do not reach"
UNROUTED, MISROUTED = "; pods do not reach what is there", ", so packets to pods would go there"


def side(vpc: str, block: str = "", *blocks: str) -> dict[str, Any]:
    """One side of a peering connection; EC2 lists all ranges of a VPC only while the connection is active."""
    described = {"VpcId": vpc, "CidrBlock": block, "CidrBlockSet": [{"CidrBlock": of} for of in blocks]}
    return {key: value for key, value in described.items() if value}


def peering(requester: dict[str, Any], accepter: dict[str, Any] | None) -> tuple[dict[str, Any], ...]:
    sides = {"RequesterVpcInfo": requester, "AccepterVpcInfo": accepter}
    return ({"VpcPeeringConnectionId": PEERING, **{key: value for key, value in sides.items() if value is not None}},)


def overlapping(situation: Situation) -> list[tuple[str, str, str]]:
    """The severity, the key and the text of what overlaps."""
    findings = list(find_overlaps(situation))
    assert {finding.remedy for finding in findings} <= {OTHER_RANGE}
    return [(str(finding.severity), finding.key, finding.text) for finding in findings]


@pytest.mark.parametrize(
    ("network", "block", "says"),
    [
        (TUNNELLED, "10.249.0.0/16", []),
        (TUNNELLED, "10.251.0.0/16", []),
        (TUNNELLED, "10.250.128.0/24", [(SERVICE_KEY, "10.250.0.0/16")]),
        (TUNNELLED, "10.244.255.0/24", [(POD_KEY, "10.244.0.0/16")]),
        (TUNNELLED, "10.224.0.0/11", [(SERVICE_KEY, "10.250.0.0/16"), (POD_KEY, "10.244.0.0/16")]),
        # Nobody wrote the range.
        ({"plugin": "cilium"}, "10.244.0.0/16", [(POD_KEY, "10.244.0.0/16, the default,")]),
        # Pods have addresses of the VPC.
        ({"plugin": "amazon-vpc"}, "10.244.0.0/16", []),
        ({"plugin": "amazon-vpc"}, "10.250.0.0/24", [(SERVICE_KEY, "10.250.0.0/16")]),
    ],
)
def test_pods_and_services_have_no_addresses_of_the_vpc_or_of_its_peers(
    network: dict[str, Any], block: str, says: list[tuple[str, str]]
) -> None:
    file = {**network, "subnets": [IN_A]}
    assert overlapping(given(file, A, associations=((block, "associated"),))) == [
        ("problem", key, f"{shown} overlaps {block} of {VPC}") for key, shown in says
    ]
    assert overlapping(given(file, A, peerings=peering(side(VPC, "10.20.0.0/16"), side(PEER, block)))) == [
        ("warning", key, f"{shown} overlaps {block} of {PEER} {NOT_REACHED}") for key, shown in says
    ]


PEER_BLOCK, FURTHER_BLOCK = "10.250.16.0/20", "10.250.32.0/20"
OWN_SIDE = side(VPC, "10.250.64.0/20")  # would overlap, and is told as a range of the VPC already


@pytest.mark.parametrize(
    ("peerings", "blocks"),
    [
        ((), []),
        (peering(OWN_SIDE, side(PEER, PEER_BLOCK)), [PEER_BLOCK]),
        (peering(side(PEER, PEER_BLOCK), OWN_SIDE), [PEER_BLOCK]),
        (peering(OWN_SIDE, side(PEER, PEER_BLOCK, PEER_BLOCK, FURTHER_BLOCK)), [PEER_BLOCK, FURTHER_BLOCK]),
        (peering(OWN_SIDE, side(PEER, "", "10.30.0.0/16", FURTHER_BLOCK)), [FURTHER_BLOCK]),
        (peering(OWN_SIDE, side(PEER, "10.30.0.0/16")), []),
        # EC2 does not show the ranges of the other side, or not the side.
        (peering(OWN_SIDE, side(PEER)), []),
        (peering(OWN_SIDE, None), []),
        (peering(OWN_SIDE, side(PEER, PEER_BLOCK)) + peering(side(PEER, FURTHER_BLOCK), OWN_SIDE),
         [PEER_BLOCK, FURTHER_BLOCK]),
    ],
)  # fmt: skip
def test_ranges_of_peers_are_all_those_of_the_other_side(
    peerings: tuple[dict[str, Any], ...], blocks: list[str]
) -> None:
    assert overlapping(given({**TUNNELLED, "subnets": [IN_A]}, A, peerings=peerings)) == [
        ("warning", SERVICE_KEY, f"10.250.0.0/16 overlaps {block} of {PEER} {NOT_REACHED}") for block in blocks
    ]


def way(destination: str, **target: str) -> dict[str, Any]:
    return {"DestinationCidrBlock": destination, **(target or {"TransitGatewayId": "tgw-1"})}


TO_PODS, TO_SERVICES = "10.244.0.0/16", "10.250.0.0/16"


@pytest.mark.parametrize(
    ("network", "route", "says"),
    [
        (WITH_VPC_ROUTES, way("10.245.0.0/16"), []),
        (WITH_VPC_ROUTES, way("10.250.8.0/24"), [("warning", SERVICE_KEY, TO_SERVICES, UNROUTED)]),
        # EC2 takes the most specific route, and that of a node's pods is a /24.
        (WITH_VPC_ROUTES, way("10.244.7.0/24"), [("problem", POD_KEY, TO_PODS, MISROUTED)]),
        (WITH_VPC_ROUTES, way("10.244.0.0/16"), [("problem", POD_KEY, TO_PODS, MISROUTED)]),
        (WITH_VPC_ROUTES, way("10.240.0.0/12"), [
            ("warning", SERVICE_KEY, TO_SERVICES, UNROUTED), ("warning", POD_KEY, TO_PODS, UNROUTED)]),
        # With a tunnel, no route is asked for.
        ({**TUNNELLED, "subnets": [IN_A]}, way("10.244.7.0/24"), [("warning", POD_KEY, TO_PODS, UNROUTED)]),
        ({"plugin": "amazon-vpc", "subnets": [IN_A]}, way("10.244.7.0/24"), []),
        # The default route, the VPC's own, and those of this cluster's pods are no others.
        (WITH_VPC_ROUTES, way(EVERYWHERE), []),
        (WITH_VPC_ROUTES, way("10.244.0.0/16", GatewayId="local"), []),
        (WITH_VPC_ROUTES, way("10.244.7.0/24", InstanceId="i-own"), []),
        (WITH_VPC_ROUTES, way("10.244.7.0/24", InstanceId="i-other"), [("problem", POD_KEY, TO_PODS, MISROUTED)]),
        (WITH_VPC_ROUTES, {"DestinationPrefixListId": "pl-1", "GatewayId": "vpce-1"}, []),
        (WITH_VPC_ROUTES, {"DestinationIpv6CidrBlock": "::/0", "GatewayId": "igw-1"}, []),
    ],
)  # fmt: skip
def test_routes_to_the_addresses_of_pods_and_services(
    network: dict[str, Any], route: dict[str, Any], says: list[tuple[str, str, str, str]]
) -> None:
    situation = replace(given(network, A, route=route), own_instances=frozenset({"i-own"}))
    target = next((route[key] for key in ("InstanceId", "TransitGatewayId") if key in route), "")
    destination = route.get("DestinationCidrBlock")
    assert overlapping(situation) == [
        (severity, key, f"{cidr} overlaps the route to {destination} ({target}) in {TABLE}{meaning}")
        for severity, key, cidr, meaning in says
    ]


def test_a_table_that_several_subnets_share_is_judged_once_and_that_of_public_subnets_is_not() -> None:
    of_instances = [way("10.30.0.0/16"), way("10.250.8.0/24")]
    shared = {"RouteTableId": TABLE, "Routes": of_instances, "Associations": [{"Main": True}]}
    public = {
        "RouteTableId": "rtb-00000002",
        "Routes": [way("10.250.9.0/24")],
        "Associations": [{"SubnetId": PUBLIC_A}, {"SubnetId": PUBLIC_B}],
    }
    situation = given(PRIVATE, A, B, PUBLIC_A, PUBLIC_B, route_tables=(shared, public))
    [(_, _, text)] = overlapping(situation)
    assert text == f"10.250.0.0/16 overlaps the route to 10.250.8.0/24 (tgw-1) in {TABLE}{UNROUTED}"
