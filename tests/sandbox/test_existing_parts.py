"""What a cluster file names as existing is made in a sandbox, as a network in which a cluster can be created."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path += [str(Path(__file__).parents[1] / beside) for beside in ("aws", "deploy")]

from cloud import Cloud, default_cloud

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import connect
from cfngen.deploy.preflight.network.checks import check_network
from cfngen.sandbox.existing_parts import make_existing_parts
from cfngen.sandbox.services.quotas import ADDRESSES, INTERNET_GATEWAYS, VPCS

REGION = "us-west-2"
ROLE = "arn:aws:iam::123456789012:role/teams/web"
NETWORK = {"plugin": "cilium", "podCidr": "10.128.0.0/16", "serviceCidr": "10.129.0.0/16"}
FIRST = {"zone": f"{REGION}a", "cidr": "10.20.0.0/20"}
SECOND = {"zone": f"{REGION}b", "cidr": "10.20.16.0/20"}
EXISTING = [{**FIRST, "id": "subnet-0000000a"}, {**SECOND, "id": "subnet-0000000b"}]
BESIDE = {"public": {"id": "subnet-0000000c"}, "natGateway": "nat-0000000a"}
NETWORKS: dict[str, dict[str, Any]] = {
    "public": {"subnets": EXISTING},
    "one route table": {"subnets": EXISTING, "plugin": "vpc-routes", "routeTable": "rtb-0000000a"},
    "internet gateway": {"subnets": [FIRST], "internetGateway": "igw-0000000a"},
    "private": {"topology": "private", "subnets": EXISTING},
    "NAT gateways": {"topology": "private", "subnets": [{**FIRST, **BESIDE}], "endpoints": {"create": False}},
    "route table": {
        "topology": "private",
        "subnets": [{**FIRST, "routeTable": "rtb-0000000b", "public": {"cidr": "10.20.255.0/24"}}],
    },
}


@pytest.fixture(scope="module")
def cloud() -> Iterator[Cloud]:
    with default_cloud() as made:
        for quota in (VPCS, ADDRESSES, INTERNET_GATEWAYS):
            made.moto_extensions.set_quota(*quota, 100)
        yield made


def cluster_in(network: dict[str, Any], number: int) -> Cluster:
    """Return a cluster in an existing VPC whose ids are those of no other network of these tests."""
    network = {**NETWORK, "vpc": {"id": "vpc-0000000a", "cidr": "10.20.0.0/16"}, **network}
    named = json.loads(json.dumps(network).replace("-0000000", f"-000000{number}"))
    return parse({"network": named, "api": {"public": network.get("topology") != "private"}})


@pytest.mark.parametrize("name", NETWORKS)
def test_a_cluster_can_be_created_in_what_is_made(cloud: Cloud, name: str) -> None:
    cluster = cluster_in(NETWORKS[name], number := list(NETWORKS).index(name))
    network = cluster.network.model_dump(mode="json", by_alias=True)
    made = make_existing_parts(REGION, network, [])
    assert set(made) == set(re.findall(rf"[a-z]+-000000{number}[a-d]", json.dumps(network)))
    result = check_network(connect(cloud.session, REGION, clock=cloud.clock), cluster, lambda message: None)
    assert [(finding.key, finding.text) for finding in (*result.problems, *result.warnings)] == []
    assert make_existing_parts(REGION, network, []) == []


def test_what_ec2_refuses_stays_missing(cloud: Cloud) -> None:
    network = cluster_in({"subnets": [EXISTING[0]]}, 8).network.model_dump(mode="json", by_alias=True)
    make_existing_parts(REGION, network, [])
    network["subnets"][0]["id"] = "subnet-0000008e"
    assert make_existing_parts(REGION, network, []) == []


def test_roles_of_the_account_are_made_once(cloud: Cloud) -> None:
    network = parse({}).network.model_dump(mode="json", by_alias=True)
    foreign = ROLE.replace("123456789012", "999999999999")
    assert make_existing_parts(REGION, network, [ROLE, foreign]) == [ROLE]
    assert make_existing_parts(REGION, network, [ROLE, foreign]) == []
    role = cloud.client("iam").get_role(RoleName="web")["Role"]
    assert (role["Arn"], role["Path"]) == (ROLE, "/teams/")
