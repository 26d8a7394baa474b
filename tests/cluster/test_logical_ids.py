"""Logical ids of zones and address ranges: whatever is made of them is read again."""

from __future__ import annotations

import string

import pytest

from cfngen.cluster.load import parse
from cfngen.cluster.logical_ids import (
    is_subnet_parameter,
    source_id,
    source_in,
    subnet,
    subnet_parameter,
    zone_of_subnet,
)
from cfngen.templates import generate

ZONES = [
    *(f"us-west-2{letter}" for letter in string.ascii_lowercase),
    "us-west-2-lax-1a",
    "us-west-2-lax-1b",
    "us-west-2-phx-2a",
]


@pytest.mark.parametrize("zone", ZONES)
def test_a_subnet_tells_its_zone(zone: str) -> None:
    assert zone_of_subnet(subnet(zone), "us-west-2") == zone
    assert zone_of_subnet(subnet_parameter(zone), "us-west-2") == zone
    assert is_subnet_parameter(subnet_parameter(zone))
    assert not is_subnet_parameter(subnet(zone))


def test_each_zone_has_a_subnet_of_its_own() -> None:
    assert len({subnet(zone) for zone in ZONES}) == len(ZONES)


@pytest.mark.parametrize("name", ["SubnetACidr", "SubnetARouteTableAssociation", "VpcId", "SubnetId", "MySubnetAId"])
def test_other_ids_are_no_subnets(name: str) -> None:
    assert zone_of_subnet(name, "us-west-2") is None
    assert not is_subnet_parameter(name)


@pytest.mark.parametrize("text", ["10.0.0.0/8", "203.0.113.7/32", "0.0.0.0/0", "pl-0123456789abcdef0"])
def test_a_rule_tells_its_range(text: str) -> None:
    assert source_in(f"MasterApiFrom{source_id(text)}") == text


def test_what_the_templates_ask_for_is_read_again() -> None:
    vpc = {"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"}
    zones = ["us-west-2a", "us-west-2-lax-1a"]
    subnets = [
        {"zone": zone, "id": f"subnet-0123456789abcdef{index}", "cidr": f"10.20.{index}.0/24"}
        for index, zone in enumerate(zones)
    ]
    network = {"vpc": vpc, "subnets": subnets, "routeTable": "rtb-0123456789abcdef0", "serviceCidr": "10.250.0.0/16"}
    groups = [{"name": "all", "zones": zones, "rootVolume": {"type": "gp2"}}]
    documents = generate(parse({"network": network, "nodeGroups": groups}))
    [root] = [document.body for document in documents if document.name == "cluster"]
    assert [name for name in root["Parameters"] if is_subnet_parameter(name)] == ["SubnetAId", "SubnetLax1AId"]


def test_the_load_balancer_of_several_masters_is_in_no_local_zone() -> None:
    subnets = [{"zone": zone} for zone in ("us-west-2a", "us-west-2b", "us-west-2c", "us-west-2-lax-1a")]
    groups = [{"name": "edge", "zones": ["us-west-2-lax-1a"]}]
    cluster = parse({"network": {"subnets": subnets}, "controlPlane": {"count": 3}, "nodeGroups": groups})
    [master] = [each.body for each in generate(cluster) if each.name == "master"]
    balancer = master["Resources"]["ApiLoadBalancer"]["Properties"]
    assert balancer["Subnets"] == [{"Ref": f"Subnet{letter}Id"} for letter in "ABC"]
