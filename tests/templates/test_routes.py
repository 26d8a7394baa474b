"""Further ranges of the VPC, and routes to networks beyond it."""

from __future__ import annotations

from typing import Any

import pytest

ZONES = [{"zone": "us-west-2a"}, {"zone": "us-west-2b"}]
TRANSIT_GATEWAY = "tgw-0123456789abcdef0"
PRIVATE: dict[str, Any] = {"topology": "private", "plugin": "cilium", "subnets": ZONES}


def _routes(generated: Any, target: str) -> dict[tuple[str, str], str]:
    """The logical id of each route to a target, by destination and route table."""
    return {
        (
            item["Properties"].get("DestinationCidrBlock") or item["Properties"]["DestinationPrefixListId"],
            item["Properties"]["RouteTableId"]["Ref"],
        ): logical_id
        for logical_id, item in generated.of_type("AWS::EC2::Route").items()
        if target in item["Properties"].values()
    }


@pytest.mark.parametrize(
    ("network", "tables", "expected"),
    [
        ({"subnets": ZONES}, "all", {"RouteTable"}),
        ({"subnets": ZONES}, "public", {"RouteTable"}),
        (PRIVATE, "all", {"RouteTable", "PrivateRouteTableA", "PrivateRouteTableB"}),
        (PRIVATE, "private", {"PrivateRouteTableA", "PrivateRouteTableB"}),
        (PRIVATE, "public", {"RouteTable"}),
        ({**PRIVATE, "plugin": "vpc-routes"}, "private", {"PrivateRouteTable"}),
    ],
)
def test_a_route_is_in_the_tables_that_it_asks_for(
    templates: Any, network: dict[str, Any], tables: str, expected: set[str]
) -> None:
    route = {"destination": "192.168.0.0/16", "transitGateway": TRANSIT_GATEWAY, "tables": tables}
    found = _routes(templates({"network": {**network, "routes": [route]}}), TRANSIT_GATEWAY)
    assert set(found) == {("192.168.0.0/16", table) for table in expected}
    assert found["192.168.0.0/16", min(expected)] == f"RouteTo192x168x0x0x16In{min(expected)}"


@pytest.mark.parametrize(
    ("key", "target", "property_name"),
    [
        ("transitGateway", TRANSIT_GATEWAY, "TransitGatewayId"),
        ("peeringConnection", "pcx-0123456789abcdef0", "VpcPeeringConnectionId"),
        ("vpnGateway", "vgw-0123456789abcdef0", "GatewayId"),
        ("networkInterface", "eni-0123456789abcdef0", "NetworkInterfaceId"),
    ],
)
@pytest.mark.parametrize("destination", ["192.168.0.0/16", "pl-0123456789abcdef0"])
def test_a_route_leads_to_its_target(
    templates: Any, key: str, target: str, property_name: str, destination: str
) -> None:
    route = {"destination": destination, key: target, "tables": "private"}
    [logical_id, _] = _routes(templates({"network": {**PRIVATE, "routes": [route]}}), target).values()
    properties = templates({"network": {**PRIVATE, "routes": [route]}}).properties(logical_id)
    destination_key = "DestinationPrefixListId" if destination.startswith("pl-") else "DestinationCidrBlock"
    assert properties == {
        "RouteTableId": {"Ref": "PrivateRouteTableA"}, destination_key: destination, property_name: target,
    }  # fmt: skip


def test_ids_do_not_depend_on_the_order_of_the_lists(templates: Any) -> None:
    routes = [
        {"destination": destination, "transitGateway": TRANSIT_GATEWAY}
        for destination in ("192.168.0.0/16", "172.31.0.0/16", "pl-0123456789abcdef0")
    ]
    ranges = ["100.64.0.0/16", "172.28.0.0/20"]

    def resources(routes: list[Any], ranges: list[str]) -> dict[str, Any]:
        network = {"subnets": ZONES, "routes": routes, "vpc": {"additionalCidrs": ranges}}
        generated = templates({"network": network})
        return {**generated.of_type("AWS::EC2::Route"), **generated.of_type("AWS::EC2::VPCCidrBlock")}

    assert resources(routes, ranges) == resources(routes[::-1], ranges[::-1])
    assert resources(routes[1:], ranges[1:]).items() < resources(routes, ranges).items()


def test_instances_wait_for_their_default_route(templates: Any) -> None:
    routes = [{"destination": "0.0.0.0/0", "transitGateway": TRANSIT_GATEWAY, "tables": "private"}]
    generated = templates({"network": {**PRIVATE, "nat": "none", "routes": routes}, "api": {"public": False}})
    resources = generated["standalone"]["Resources"]
    assert "RouteTo0x0x0x0x0InPrivateRouteTableA" in resources["MasterAAutoScalingGroup"]["DependsOn"]


def test_a_created_vpc_gets_its_ranges_before_their_subnets(templates: Any) -> None:
    network = {
        "vpc": {"cidr": "172.20.0.0/16", "additionalCidrs": ["100.64.0.0/16"]},
        "subnets": [{"zone": "us-west-2a", "cidr": "100.64.0.0/20"}, {"zone": "us-west-2b"}],
    }
    generated = templates({"network": network})
    assert generated.properties("VpcCidrBlock100x64x0x0x16") == {"VpcId": {"Ref": "Vpc"}, "CidrBlock": "100.64.0.0/16"}
    resources = generated["standalone"]["Resources"]
    assert resources["SubnetA"]["DependsOn"] == ["VpcCidrBlock100x64x0x0x16"]
    assert "DependsOn" not in resources["SubnetB"]


def test_an_existing_vpc_keeps_its_ranges(templates: Any) -> None:
    network = {
        "vpc": {"id": "vpc-0123456789abcdef0", "cidr": "10.1.0.0/16", "additionalCidrs": ["100.64.0.0/16"]},
        "serviceCidr": "10.2.0.0/16",
        "subnets": [{"zone": "us-west-2a", "cidr": "100.64.0.0/20"}],
    }
    generated = templates({"network": network})
    assert not generated.of_type("AWS::EC2::VPCCidrBlock")
    assert "DependsOn" not in generated["standalone"]["Resources"]["SubnetA"]
