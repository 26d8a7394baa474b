"""The address plan: nothing overlaps, nothing is left out, and what is added later moves nothing."""

from __future__ import annotations

import ast
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import cfngen
from cfngen.cluster.load import parse
from cfngen.cluster.network.address_plan import AddressDemand, AddressRange, address_demand, address_plan

ZONES = [{"zone": f"us-west-2{letter}"} for letter in "abcdef"]


def _plan(zone_count: int = 3, **network: Any) -> tuple[AddressRange, ...]:
    subnets = ZONES[:zone_count]
    return address_plan(parse({"network": {"plugin": "cilium", "subnets": subnets, **network}}))


@pytest.mark.parametrize("topology", ["public", "private"])
@pytest.mark.parametrize("zone_count", [1, 2, 3, 6])
@pytest.mark.parametrize("vpc", ["172.20.0.0/16", "10.1.0.0/22", "10.1.0.0/24"])
def test_subnets_and_free_parts_fill_the_vpc_without_gaps(topology: str, zone_count: int, vpc: str) -> None:
    if vpc == "10.1.0.0/24" and zone_count == 6:
        zone_count = 4
    plan = _plan(zone_count, topology=topology, vpc={"cidr": vpc}, serviceCidr="10.2.0.0/16")
    whole, *parts = [item for item in plan if item.tier not in ("pods", "services")]
    assert (str(whole), parts[0].first, parts[-1].last) == (vpc, whole.first, whole.last)
    for before, after in pairwise(parts):
        assert before.last + 1 == after.first
    subnets = [item for item in parts if item.tier != "free"]
    assert len(subnets) == zone_count * (2 if topology == "private" else 1)


def test_further_zones_and_groups_move_no_range() -> None:
    def ranges(zone_count: int) -> dict[tuple[str, str], str]:
        plan = _plan(zone_count, topology="private")
        return {(item.tier, item.zone): str(item) for item in plan if item.zone}

    one, six = ranges(1), ranges(6)
    assert one.items() <= six.items()
    assert ranges(3).items() <= six.items()


def test_the_plan_says_who_is_where() -> None:
    purposes = {(item.tier, item.zone): item.purpose for item in _plan(2, topology="private", nat="single")}
    assert purposes[("private subnet", "us-west-2a")] == "master a (172.20.0.9), group nodes"
    assert purposes[("public subnet", "us-west-2a")] == "NAT gateway, load balancers"
    assert purposes[("public subnet", "us-west-2b")] == "load balancers"
    assert purposes[("services", "")] == "the cluster DNS has 10.0.0.10"


def test_free_parts_of_an_existing_vpc_are_not_guessed() -> None:
    plan = _plan(
        vpc={"id": "vpc-0123456789abcdef0", "cidr": "10.20.0.0/16"},
        serviceCidr="10.250.0.0/16",
        subnets=[{"zone": "us-west-2a", "id": "subnet-0123456789abcdef0", "cidr": "10.20.0.0/20"}],
    )
    assert [(item.tier, item.is_existing) for item in plan] == [
        ("VPC", True),
        ("subnet", True),
        ("pods", False),
        ("services", False),
    ]


def test_pods_with_addresses_of_the_subnets_have_no_range() -> None:
    assert [item.tier for item in _plan(plugin="amazon-vpc") if item.tier == "pods"] == []


def test_an_address_range_that_is_no_cidr_shows_its_ends() -> None:
    [free] = [item for item in _plan(3) if item.tier == "free"]
    assert str(free) == "172.20.3.0-172.20.255.255"


def test_each_range_of_the_vpc_is_followed_by_what_lies_in_it() -> None:
    plan = _plan(
        vpc={"cidr": "172.20.0.0/16", "additionalCidrs": ["100.64.0.0/16"]},
        subnetSizes={"instances": 20},
        subnets=[{"zone": "us-west-2a", "cidr": "100.64.16.0/20"}, {"zone": "us-west-2b"}],
    )
    assert [(str(item), item.tier) for item in plan if item.tier not in ("pods", "services")] == [
        ("172.20.0.0/16", "VPC"),
        ("172.20.0.0/20", "free"),
        ("172.20.16.0/20", "subnet"),
        ("172.20.32.0-172.20.255.255", "free"),
        ("100.64.0.0/16", "VPC"),
        ("100.64.0.0/20", "free"),
        ("100.64.16.0/20", "subnet"),
        ("100.64.32.0-100.64.255.255", "free"),
    ]


# Where the primary range alone is meant; everything else asks for all ranges of the VPC (`topology.vpc_ranges`).
OF_THE_PRIMARY_RANGE = {
    "cluster/checks/addresses.py": "its path in the cluster file, and that subnets get their default ranges in it",
    "cluster/network/topology.py": "the ranges of the VPC begin with it",
    "deploy/preflight/network/vpc.py": "whether it is a range of the existing VPC",
    "templates/vpc.py": "the parameter for it",
    "userdata/pod_network.py": "the VPC's DNS server has an address in it",
}


def test_where_the_vpc_is_meant_all_of_its_ranges_are() -> None:
    package = Path(cfngen.__file__).parent
    files = {
        str(file.relative_to(package))
        for file in package.rglob("*.py")
        if "cidr" in (source := file.read_text("utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and node.attr == "cidr" and ast.unparse(node).endswith(".vpc.cidr")
    }
    assert files == OF_THE_PRIMARY_RANGE.keys()


@pytest.mark.parametrize(
    ("file", "instances", "entrance"),
    [
        ({"bastion": {"allowedCidrs": ["192.0.2.0/24"]}}, {"masters": 1, "nodes": 3, "the bastion": 1}, None),
        (
            {
                "bastion": {"allowedCidrs": ["192.0.2.0/24"]},
                "network": {"topology": "private"},
            },
            {"masters": 1, "nodes": 3},
            {"the bastion": 1, "load balancers": 8, "the NAT gateway": 1},
        ),
    ],
    ids=["public", "private"],
)
def test_all_that_takes_addresses_of_a_subnet_is_counted_in_the_tier_where_it_is(
    file: dict[str, Any], instances: dict[str, int], entrance: dict[str, int] | None
) -> None:
    cluster = parse({"nodeGroups": [{"minSize": 3, "maxSize": 5}], "ssh": {"keyName": "k"}, **file})
    [subnet] = cluster.network.subnets
    demand = address_demand(cluster, subnet.zone)
    assert (demand.parts, demand.growth) == (instances, 2)
    if entrance is not None:
        assert address_demand(cluster, subnet.zone, is_public_tier=True) == AddressDemand(entrance, 0)
