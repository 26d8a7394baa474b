"""What the check of an existing network says of it as EC2 describes it: ranges, routes, gateways and network ACLs."""

from __future__ import annotations

from typing import Any

import pytest
from existing_network import EVERYWHERE, REGION

from cfngen.cluster.load import parse
from cfngen.deploy.aws.network import NetworkFacts
from cfngen.deploy.preflight.findings import Finding
from cfngen.deploy.preflight.network import routes
from cfngen.deploy.preflight.network.access_lists import find_blocked_traffic
from cfngen.deploy.preflight.network.situation import Situation, named_subnets, parameter_values
from cfngen.deploy.preflight.network.vpc import find_range_problems

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


def both_ways(other: str, *, udp: bool = True) -> list[str]:
    """What is needed between a subnet and another one, with Cilium."""
    return to_and_from(RANGES[other], ["TCP 443", "TCP 1024-65535", *(["UDP 8472"] if udp else [])])


def to_and_from(peer: str, ports: list[str]) -> list[str]:
    return [*(f"outbound {port} to {peer}" for port in ports), *(f"inbound {port} from {peer}" for port in ports)]


def out_and_back(peer: str) -> list[str]:
    """What instances need to call services."""
    return [f"outbound TCP 443 to {peer}", f"inbound TCP 1024-65535 from {peer}"]


OF_CLIENTS = [f"inbound TCP 443 from {CLIENTS}", f"outbound TCP 1024-65535 to {CLIENTS}"]
OPEN = {"allowedCidrs": [CLIENTS]}
FURTHER = (("10.21.0.0/16", "associated"),)


@pytest.mark.parametrize(
    ("situation", "needed"),
    [
        # The master is in the first subnet, and has a public address.
        (given({"subnets": [IN_A, IN_B]}, A, api=OPEN), [*out_and_back(EVERYWHERE), *both_ways(B), *OF_CLIENTS]),
        (given({"subnets": [IN_A, IN_B]}, B, api=OPEN), [*out_and_back(EVERYWHERE), *both_ways(A)]),
        (given({"subnets": [IN_A, IN_B]}, A, api={"public": False, **OPEN}),
         [*out_and_back(EVERYWHERE), *both_ways(B)]),
        # A load balancer is in the public subnets, and no tunnel ends there.
        (given(PRIVATE, PUBLIC_A, api=OPEN, route=TO_NAT),
         [*out_and_back(EVERYWHERE), *both_ways(A, udp=False), *both_ways(B, udp=False),
          *both_ways(PUBLIC_B, udp=False), *OF_CLIENTS]),
        (given(PRIVATE, A, api=OPEN, route=TO_NAT),
         [*out_and_back(EVERYWHERE), *both_ways(B), *both_ways(PUBLIC_A, udp=False), *both_ways(PUBLIC_B, udp=False)]),
        # The range of a public subnet need not be known.
        (given({"topology": "private", "subnets": [{**IN_A, "public": {"id": PUBLIC_A}}]}, A, route=TO_NAT),
         out_and_back(EVERYWHERE)),
        # Without a way out, endpoints in the VPC are all that is called.
        (given({"topology": "private", "subnets": [IN_A, IN_B]}, A, associations=FURTHER),
         [*out_and_back("10.20.0.0/16"), *out_and_back("10.21.0.0/16"), *both_ways(B)]),
    ],
    ids=["master", "no master", "no clients", "public", "private", "public of any range", "no way out"],
)  # fmt: skip
def test_what_a_network_acl_has_to_let_through(situation: Situation, needed: list[str]) -> None:
    found = list(find_blocked_traffic(situation))
    assert blocked_in(situation) == needed
    assert {finding.text.rpartition(": ")[2] for finding in found} == {"the last rule (*)"}
    directions = {"outbound": "--egress", "inbound": "--ingress"}
    assert [command_of(finding).split()[0] for finding in found] == [directions[each.split()[0]] for each in needed]


def blocked_in(situation: Situation) -> list[str]:
    return [finding.text.partition(" blocks ")[2].partition(" (")[0] for finding in find_blocked_traffic(situation)]


BETWEEN_INSTANCES = ["TCP 443", "TCP 1024-65535"]
DNS = ["TCP 53", "UDP 53", "UDP 1024-65535"]
PODS = "10.244.0.0/16"
ROUTED = {"podCidr": PODS, "routeTable": TABLE, "plugin": "vpc-routes"}


@pytest.mark.parametrize(
    ("network", "needed"),
    [
        ({"plugin": "calico"}, to_and_from(RANGES[B], [*BETWEEN_INSTANCES, "UDP 4789"])),
        ({"plugin": "flannel"}, to_and_from(RANGES[B], [*BETWEEN_INSTANCES, "UDP 8472"])),
        ({"plugin": "none"}, to_and_from(RANGES[B], BETWEEN_INSTANCES)),
        # Without a tunnel, questions to the cluster's DNS and their answers are seen as they are,
        ({"plugin": "amazon-vpc"}, to_and_from(RANGES[B], [*BETWEEN_INSTANCES, *DNS])),
        # and on VPC routes the addresses of pods.
        (ROUTED, [*to_and_from(RANGES[B], [*BETWEEN_INSTANCES, *DNS]),
                  *to_and_from(PODS, ["TCP 1024-65535", *DNS])]),
        ({**ROUTED, "subnets": [IN_A]}, []),
    ],
    ids=["calico", "flannel", "none", "amazon-vpc", "vpc-routes", "vpc-routes in one subnet"],
)  # fmt: skip
def test_what_pods_of_each_plug_in_send_to_another_subnet(network: dict[str, Any], needed: list[str]) -> None:
    assert blocked_in(given({"subnets": [IN_A, IN_B], **network}, A)) == [*out_and_back(EVERYWHERE), *needed]


def test_public_subnets_have_no_pods() -> None:
    private = {**PRIVATE, **ROUTED, "subnets": PRIVATE["subnets"][:1]}
    of_public, of_private = (blocked_in(given(private, subnet, route=TO_NAT)) for subnet in (PUBLIC_A, A))
    assert of_public == [*out_and_back(EVERYWHERE), *to_and_from(RANGES[A], BETWEEN_INSTANCES)]
    assert of_private == [*out_and_back(EVERYWHERE), *to_and_from(RANGES[PUBLIC_A], BETWEEN_INSTANCES)]


def test_each_subnet_is_judged_by_its_own_network_acl() -> None:
    """Lists of other subnets do not count, and a subnet of which no list could be read keeps no other back."""
    closed, opened = (
        {"NetworkAclId": id_, "Associations": [{"SubnetId": name} for name in subnets], "Entries": entries}
        for id_, subnets, entries in (
            ("acl-00000002", (PUBLIC_A, B), []),
            ("acl-00000003", (PUBLIC_B,), [rule(100, "allow", Egress=egress) for egress in (True, False)]),
        )
    )
    found = list(find_blocked_traffic(given({"subnets": [IN_A, IN_B]}, A, B, network_acls=(opened, closed))))
    assert {finding.text.partition(" blocks ")[0] for finding in found} == {f"the network ACL acl-00000002 of {B}"}
    assert {finding.key for finding in found} == {"network.subnets[1].id"}


def rule(number: int, action: str, ports: tuple[int, int] | None = None, **more: Any) -> dict[str, Any]:
    entry = {"RuleNumber": number, "RuleAction": action, "Protocol": "6" if ports else "-1", "CidrBlock": EVERYWHERE}
    return {**entry, **({"PortRange": {"From": ports[0], "To": ports[1]}} if ports else {}), **more}


ALLOWED = rule(100, "allow")
LAST, NINETY = "the last rule (*)", "rule 90"


@pytest.mark.parametrize(
    ("rules", "blocking"),
    [
        ((ALLOWED,), ""),
        ((rule(100, "allow", (1024, 65535)),), ""),
        ((rule(100, "allow", (0, 65535), Protocol="17"),), LAST),
        ((rule(100, "allow", (1025, 65535)),), LAST),
        ((rule(100, "allow", (1024, 65534)),), LAST),
        ((rule(90, "allow", (1024, 40000)), rule(100, "allow", (40001, 65535))), ""),
        ((rule(90, "allow", (1024, 40000)), rule(100, "allow", (40002, 65535))), LAST),
        ((rule(90, "allow", (30000, 40000)), rule(95, "allow", (1, 29999)), rule(100, "allow", (40001, 65535))), ""),
        ((rule(90, "allow", (30000, 40000)), rule(95, "allow", (1, 29998)), rule(100, "allow", (40001, 65535))), LAST),
        ((rule(90, "deny", (22, 1023)), ALLOWED), ""),
        ((rule(90, "deny", (22, 1024)), ALLOWED), NINETY),
        ((rule(90, "deny", (65535, 65535)), ALLOWED), NINETY),
        # The numbers decide, not the order in which EC2 tells the rules; what is allowed is not denied any more.
        ((ALLOWED, rule(90, "deny")), NINETY),
        ((rule(110, "deny"), ALLOWED), ""),
        ((rule(80, "allow", (1024, 40000)), rule(90, "deny", (30000, 40000)), ALLOWED), ""),
        ((rule(80, "allow", (1024, 40000)), rule(90, "deny", (30000, 40001)), ALLOWED), NINETY),
        ((rule(80, "allow", (40000, 65535)), rule(90, "deny", (40000, 50000)), ALLOWED), ""),
        # Those of the other direction, of other protocols and of IPv6 are about other packets.
        ((rule(90, "deny", Egress=True), ALLOWED), ""),
        ((rule(90, "deny", (0, 65535), Protocol="17"), ALLOWED), ""),
        (({"RuleNumber": 90, "RuleAction": "deny", "Protocol": "-1", "Ipv6CidrBlock": "::/0"}, ALLOWED), ""),
        # A rule for some addresses allows the others nothing, and denies them nothing.
        ((rule(90, "allow", CidrBlock="10.0.0.0/8"),), LAST),
        ((rule(90, "deny", CidrBlock="10.20.0.0/16"), ALLOWED), ""),
    ],
)
def test_the_first_rule_that_matches_decides(rules: tuple[dict[str, Any], ...], blocking: str) -> None:
    out = rule(50, "allow", Egress=True)
    found = list(find_blocked_traffic(given({"subnets": [IN_A]}, A, entries=(*rules, out))))
    said = f"the network ACL acl-00000001 of {A} blocks inbound TCP 1024-65535 from 0.0.0.0/0 (answers to instances)"
    assert [finding.text for finding in found] == ([f"{said}: {blocking}"] if blocking else [])
    assert [command_of(finding) for finding in found] == (
        ["--ingress --rule-number NUMBER --protocol 6 --port-range From=1024,To=65535 --cidr-block 0.0.0.0/0"]
        if blocking
        else []
    )


def command_of(finding: Finding) -> str:
    [command] = finding.commands
    return command.partition("--network-acl-id acl-00000001 ")[2].removesuffix(" --rule-action allow")


@pytest.mark.parametrize(
    ("rules", "blocking"),
    [
        ((rule(90, "allow", CidrBlock="10.0.0.0/8"),), ""),
        ((rule(90, "allow", CidrBlock="10.20.0.0/17"),), LAST),
        ((rule(90, "deny", CidrBlock="10.20.3.0/24"), ALLOWED), NINETY),
        ((rule(90, "deny", CidrBlock="198.51.100.0/24"), ALLOWED), ""),
    ],
)
def test_of_a_range_each_part_has_to_pass(rules: tuple[dict[str, Any], ...], blocking: str) -> None:
    situation = given({"topology": "private", "subnets": [IN_A]}, A, entries=(*rules, rule(50, "allow", Egress=True)))
    found = [finding.text.rpartition(": ")[2] for finding in find_blocked_traffic(situation)]
    assert found == ([blocking] if blocking else [])
