"""An existing network as EC2 describes it, for what the check says of it."""

from __future__ import annotations

from typing import Any

from existing_network import EVERYWHERE, REGION

from cfngen.cluster.load import parse
from cfngen.deploy.aws.network import NetworkFacts
from cfngen.deploy.preflight.network.situation import Situation, named_subnets, parameter_values

VPC, A, B, PUBLIC_A, PUBLIC_B = (
    "vpc-00000001",
    "subnet-0000000a",
    "subnet-0000000b",
    "subnet-000000a0",
    "subnet-000000b0",
)
TABLE, NAT = "rtb-00000001", "nat-00000001"
RANGES = {A: "10.20.0.0/24", B: "10.20.16.0/24", PUBLIC_A: "10.20.200.0/26", PUBLIC_B: "10.20.200.64/26"}
IN_A, IN_B = (
    {"zone": f"{REGION}{letter}", "id": subnet, "cidr": RANGES[subnet]} for letter, subnet in (("a", A), ("b", B))
)
PRIVATE = {
    "topology": "private",
    "subnets": [
        {**subnet, "public": {"id": public, "cidr": RANGES[public]}}
        for subnet, public in ((IN_A, PUBLIC_A), (IN_B, PUBLIC_B))
    ],
}
CLIENTS = "203.0.113.0/24"
TO_NAT = {"DestinationCidrBlock": EVERYWHERE, "NatGatewayId": NAT}


def given(
    network: dict[str, Any],
    *existing: str,
    associations: tuple[tuple[str, str], ...] = (),
    route: dict[str, Any] | None = None,
    entries: tuple[dict[str, Any], ...] = (),
    api: dict[str, Any] | None = None,
    **facts: Any,
) -> Situation:
    """A network with some of these subnets, whose main route table has one route, and whose network ACL has entries."""
    ranges = {"vpc": {"id": VPC, "cidr": "10.20.0.0/16"}, "serviceCidr": "10.250.0.0/16", "plugin": "cilium"}
    cluster = parse({"network": {**ranges, **network}, "api": api or {"public": False}})
    blocks = (("10.20.0.0/16", "associated"), *associations)
    table = {"RouteTableId": TABLE, "Routes": [route] if route else [], "Associations": [{"Main": True}]}
    acl = {
        "NetworkAclId": "acl-00000001",
        "Associations": [{"SubnetId": subnet} for subnet in existing],
        "Entries": [{"Egress": False, **entry} for entry in entries],
    }
    described: dict[str, Any] = {
        "vpc": {
            "VpcId": VPC,
            "CidrBlock": "10.20.0.0/16",
            "CidrBlockAssociationSet": [
                {"CidrBlock": block, "CidrBlockState": {"State": state}} for block, state in blocks
            ],
        },
        "subnets": tuple({"SubnetId": subnet} for subnet in existing),
        "route_tables": (table,),
        "network_acls": (acl,),
        **facts,
    }
    values = parameter_values(cluster)
    return Situation(cluster, REGION, VPC, values, named_subnets(cluster, values), NetworkFacts(**described))
