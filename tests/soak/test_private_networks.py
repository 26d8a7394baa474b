"""Lives of private clusters: each change is planned exactly, and leaves what a new cluster of the file would have."""

from __future__ import annotations

import copy
from collections import Counter
from typing import Any

import pytest
from drawn_files import File, put
from drawn_lives import Chapter, Life
from living import live

pytestmark = pytest.mark.drill


def _file(*, zones: str, **network: Any) -> File:
    """A cluster file with a master and a node group of one node in each zone."""
    return {
        "name": "private",
        "region": "us-west-2",
        "network": {
            "topology": "private",
            "plugin": "cilium",
            "subnets": [{"zone": f"us-west-2{letter}"} for letter in zones],
            **network,
        },
        "controlPlane": {"count": 3},
        "nodeGroups": [{"name": "nodes", "minSize": 1, "maxSize": 3, "zones": ["us-west-2a"]}],
        "api": {"allowedCidrs": ["203.0.113.0/24"]},
    }


def _with(file: File, key: str, value: Any) -> File:
    changed = copy.deepcopy(file)
    put(changed, key, value)
    return changed


def _life(*files: File) -> Life:
    """A life whose cluster is created from the first file, and changed to each of the others without a failure."""
    first, *later = files
    chapters = tuple(Chapter(what="the file", file=file, fails=None) for file in later)
    return Life(file=first, fails=None, chapters=chapters, sticks=None)


def test_a_single_nat_gateway_then_one_in_each_zone_then_an_internal_api() -> None:
    single = _file(zones="abc", nat="single")
    per_zone = _with(single, "network.nat", "perZone")
    internal = _with(per_zone, "api.public", False)
    counted: Counter[str] = Counter()
    live(_life(single, per_zone, internal), counted)
    assert counted == {"created": 1, "updated": 2, "deleted": 1}


def test_another_zone_gets_a_nat_gateway_of_its_own() -> None:
    two_zones = _file(zones="ab")
    two_zones["controlPlane"] = {"count": 1}  # with another zone, three masters would be in other ones
    three_zones = _with(two_zones, "network.subnets", [{"zone": f"us-west-2{letter}"} for letter in "abc"])
    counted: Counter[str] = Counter()
    live(_life(two_zones, three_zones), counted)
    assert counted == {"created": 1, "updated": 1, "deleted": 1}


def test_vpc_routes_behind_a_single_nat_gateway_get_another_zone() -> None:
    one_zone = _file(zones="a", plugin="vpc-routes")
    one_zone["controlPlane"] = {"count": 1}
    two_zones = _with(one_zone, "network.subnets", [{"zone": f"us-west-2{letter}"} for letter in "ab"])
    counted: Counter[str] = Counter()
    live(_life(one_zone, two_zones), counted)
    assert counted == {"created": 1, "updated": 1, "deleted": 1}


def test_a_cluster_without_a_way_out_gets_further_endpoints_and_then_nat_gateways() -> None:
    isolated = _file(zones="abc", nat="none")
    isolated["api"]["public"] = False
    isolated["assets"] = {"mirror": "https://mirror.example.com/k8s"}
    more_endpoints = _with(isolated, "network.endpoints", {"additional": ["kms", "sts"]})
    way_out = _with(isolated, "network.nat", "perZone")
    counted: Counter[str] = Counter()
    live(_life(isolated, more_endpoints, way_out), counted)
    assert counted == {"created": 1, "updated": 2, "deleted": 1}
