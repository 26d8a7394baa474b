"""What the check of an existing network says of it as EC2 describes it: ranges, routes, gateways and network ACLs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from existing_network import EVERYWHERE, REGION

from cfngen.cluster.load import parse
from cfngen.cluster.network.endpoints import required_services
from cfngen.deploy.aws.network import NetworkFacts
from cfngen.deploy.preflight.findings import Finding
from cfngen.deploy.preflight.network import routes
from cfngen.deploy.preflight.network.access_lists import find_blocked_traffic
from cfngen.deploy.preflight.network.endpoints import find_endpoint_problems, subnets_without_way_out
from cfngen.deploy.preflight.network.situation import Situation, named_subnets, parameter_values
from cfngen.deploy.preflight.network.vpc import find_overlaps, find_range_problems

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
    with_another = blocked_in(given({**PRIVATE, **ROUTED}, A, route=TO_NAT))
    assert with_another[-8:] == to_and_from(PODS, ["TCP 1024-65535", *DNS])


def test_each_subnet_is_judged_by_its_own_network_acl() -> None:
    """Lists of other subnets do not count, and a subnet of which no list could be read keeps no other back."""
    closed, opened = (
        {"NetworkAclId": id_, "Associations": [{"SubnetId": name} for name in subnets], "Entries": entries}
        for id_, subnets, entries in (
            ("acl-00000002", (PUBLIC_A, B), []),
            ("acl-00000003", (PUBLIC_B,), [rule(100, "allow", Egress=egress) for egress in (True, False)]),
        )
    )
    findings = list(find_blocked_traffic(given({"subnets": [IN_A, IN_B]}, A, B, network_acls=(opened, closed))))
    assert {finding.text.partition(" blocks ")[0] for finding in findings} == {f"the network ACL acl-00000002 of {B}"}
    assert {finding.key for finding in findings} == {"network.subnets[1].id"}


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


GROUP = "sg-000000ed"
OF_INSTANCES = {"masters": "sg-0000000a", "nodes": "sg-0000000b"}
GATEWAY = {
    "VpcEndpointId": "vpce-s3",
    "VpcEndpointType": "Gateway",
    "ServiceName": f"com.amazonaws.{REGION}.s3",
    "State": "available",
    "RouteTableIds": ["rtb-00000002", TABLE],
}
ISOLATED = {"topology": "private", "subnets": [IN_A, IN_B]}
PARTLY_NEW = {"topology": "private", "nat": "none", "subnets": [{"zone": f"{REGION}a", "cidr": RANGES[A]}, IN_B]}
NEW = {"topology": "private", "nat": "none", "subnets": [{"zone": f"{REGION}a", "cidr": RANGES[A]}]}


def endpoint(service: str, **more: Any) -> dict[str, Any]:
    described = {
        "VpcEndpointId": f"vpce-{service}",
        "VpcEndpointType": "Interface",
        "ServiceName": f"com.amazonaws.{REGION}.{service}",
        "State": "available",
        "PrivateDnsEnabled": True,
        "Groups": [{"GroupId": GROUP}],
        **more,
    }
    return {name: value for name, value in described.items() if value is not None}


def permission(protocol: str = "tcp", ports: tuple[int, int] = (443, 443), **peer: str) -> dict[str, Any]:
    """A rule of a security group, for the VPC if no peer is named."""
    of_ranges = [{"CidrIp": peer.get("cidr", "10.20.0.0/16")}] if set(peer) <= {"cidr"} else []
    return {
        "IpProtocol": protocol,
        **({"FromPort": ports[0], "ToPort": ports[1]} if protocol != "-1" else {}),
        "IpRanges": of_ranges,
        "PrefixListIds": [{"PrefixListId": peer["prefix_list"]}] if "prefix_list" in peer else [],
        "UserIdGroupPairs": [{"GroupId": peer["group"]}] if "group" in peer else [],
    }


SERVICES = [needed.service for needed in required_services(parse({}))]


def isolated(
    *of_ec2: dict[str, Any],
    permissions: tuple[dict[str, Any], ...] = (permission(),),
    s3: tuple[dict[str, Any], ...] = (GATEWAY,),
    network: dict[str, Any] = ISOLATED,
    **facts: Any,
) -> Situation:
    """A network without a way out, with endpoints for all services but EC2, and with these for EC2 and S3."""
    others = tuple(endpoint(service) for service in SERVICES if service != "ec2")
    groups = ({"GroupId": GROUP, "GroupName": "endpoints", "IpPermissions": list(permissions)},)
    described = {"endpoints": (*others, *of_ec2, *s3), "security_groups": groups, **facts}
    return given(network, A, B, **described)


ASKS = f"aws ec2 describe-vpc-endpoints --region {REGION} --vpc-endpoint-ids vpce-ec2"
CREATES = (
    f"aws ec2 create-vpc-endpoint --vpc-id {VPC} --vpc-endpoint-type Interface --region {REGION} "
    f"--service-name com.amazonaws.{REGION}.ec2 --subnet-ids {A} --security-group-ids SECURITY_GROUP "
    "--private-dns-enabled"
)
UNREACHED = f"{A}, {B} cannot reach ec2 (volumes, addresses, routes, and the cloud controller manager)"
MISSING = (f"{UNREACHED}: there is neither a default route nor an interface endpoint", CREATES)
WITHOUT_NAME = (
    "the endpoint vpce-ec2 for ec2 has no private DNS name, so instances do not find it",
    f"aws ec2 modify-vpc-endpoint --vpc-endpoint-id vpce-ec2 --region {REGION} --private-dns-enabled",
)
PENDING = ("the endpoint vpce-ec2 for ec2 is pending, not available", ASKS)


@pytest.mark.parametrize(
    ("of_ec2", "says"),
    [
        ([{}], None),
        ([{"State": "Available"}], None),
        ([{"State": None}], None),
        ([{"ServiceNameRegion": REGION}, {"State": "pending"}], None),
        ([{"PrivateDnsEnabled": False}, {}], None),
        ([], MISSING),
        ([{"State": "deleting"}], MISSING),
        ([{"State": "Deleted"}], MISSING),
        ([{"VpcEndpointType": "GatewayLoadBalancer"}], MISSING),
        # A gateway is what AWS describes without saying so.
        ([{"VpcEndpointType": None}], MISSING),
        ([{"ServiceName": "com.amazonaws.us-east-1.ec2"}], MISSING),
        ([{"ServiceName": None}], MISSING),
        ([{"State": "pending"}], PENDING),
        ([{"State": "pending", "PrivateDnsEnabled": False}], PENDING),
        ([{"PrivateDnsEnabled": False}], WITHOUT_NAME),
        ([{"State": "pending"}, {"PrivateDnsEnabled": False}], WITHOUT_NAME),
    ],
)
def test_an_endpoint_has_to_be_there_and_available_and_found_by_its_name(
    of_ec2: list[dict[str, Any]], says: tuple[str, str] | None
) -> None:
    findings = list(find_endpoint_problems(isolated(*(endpoint("ec2", **more) for more in of_ec2))))
    assert [(finding.text, *finding.commands) for finding in findings] == ([says] if says else [])
    assert {finding.key for finding in findings} <= {"network.subnets[0].id"}


OF_MASTERS, OF_NODES = (permission(group=OF_INSTANCES[role]) for role in ("masters", "nodes"))


@pytest.mark.parametrize(
    ("permissions", "refused"),
    [
        ((permission(),), ()),
        ((permission("-1"),), ()),
        ((permission("6"),), ()),
        ((permission(ports=(0, 65535)),), ()),
        ((permission(ports=(80, 443)),), ()),
        ((permission(ports=(443, 8443)),), ()),
        ((permission(ports=(80, 442)),), (A, B)),
        ((permission(ports=(444, 8443)),), (A, B)),
        ((permission("udp"),), (A, B)),
        ((), (A, B)),
        ((permission(cidr=RANGES[A]),), (B,)),
        ((permission(cidr=RANGES[B]),), (A,)),
        ((permission(cidr=RANGES[A]), permission(cidr=RANGES[B])), ()),
        ((permission(cidr="10.20.0.0/25"), permission(cidr="10.20.0.128/25"), permission(cidr=RANGES[B])), ()),
        ((permission(ports=(80, 80)), permission(cidr=RANGES[A])), (B,)),
        # What it contains cannot be known.
        ((permission(prefix_list="pl-00000001"),), ()),
        ((permission(ports=(80, 80), prefix_list="pl-00000001"),), (A, B)),
        # The master is in the first subnet, nodes are in both.
        ((OF_MASTERS, OF_NODES), ()),
        ((OF_NODES,), (A,)),
        ((OF_MASTERS,), (A, B)),
        ((OF_MASTERS, permission(cidr=RANGES[B])), (A,)),
        ((permission(group="sg-0000000c"),), (A, B)),
    ],
)
def test_the_security_groups_of_an_endpoint_have_to_admit_instances(
    permissions: tuple[dict[str, Any], ...], refused: tuple[str, ...]
) -> None:
    network = {**ISOLATED, "securityGroups": OF_INSTANCES}
    situation = isolated(endpoint("ec2", Groups=[{"GroupId": "sg-000000ec"}]), network=network)
    of_ec2 = {"GroupId": "sg-000000ec", "GroupName": "ec2", "IpPermissions": list(permissions)}
    facts = replace(situation.facts, security_groups=(*situation.facts.security_groups, of_ec2))
    findings = list(find_endpoint_problems(replace(situation, facts=facts)))
    assert [finding.text for finding in findings] == [
        f"the security group of vpce-ec2 (ec2) does not admit {RANGES[subnet]} on TCP port 443" for subnet in refused
    ]
    assert [finding.commands for finding in findings] == [
        (
            (
                f"aws ec2 authorize-security-group-ingress --region {REGION} --group-id sg-000000ec "
                f"--protocol tcp --port 443 --cidr {RANGES[subnet]}"
            ),
        )
        for subnet in refused
    ]


def test_security_groups_of_an_endpoint_add_up_and_are_trusted_unread() -> None:
    two = endpoint("ec2", Groups=[{"GroupId": "sg-000000e1"}, {"GroupId": "sg-000000e2"}])
    closed, opened = (
        {"GroupId": id_, "GroupName": id_, "IpPermissions": permissions}
        for id_, permissions in (("sg-000000e1", []), ("sg-000000e2", [permission()]))
    )
    whole = isolated(two)
    for groups, count in (((), 0), ((closed,), 2), ((closed, opened), 0)):
        facts = replace(whole.facts, security_groups=(*whole.facts.security_groups, *groups))
        findings = list(find_endpoint_problems(replace(whole, facts=facts)))
        texts = [finding.text.partition(" on TCP")[0] for finding in findings]
        said = "the security groups of vpce-ec2 (ec2) do not admit"
        assert texts == [f"{said} {RANGES[A]}", f"{said} {RANGES[B]}"][:count]
        assert {finding.commands[0].partition(" --group-id ")[2].split()[0] for finding in findings} == (
            {"sg-000000e1"} if count else set()
        )


ALL = ", ".join([*SERVICES, "s3"])
CREATE_ROUTE = f"aws ec2 create-route --region {REGION} --route-table-id {TABLE}"
BY_TABLE = f"{A}, {B} have no way out: there is neither a default route nor an endpoint"


@pytest.mark.parametrize(
    ("network", "key", "text", "remedy", "command"),
    [
        (ISOLATED, "network.subnets[0].id", BY_TABLE,
         f"add a default route, for example to a NAT gateway, or create the endpoints of {ALL}",
         f"{CREATE_ROUTE} --destination-cidr-block 0.0.0.0/0 --nat-gateway-id NAT_GATEWAY"),
        ({**NEW, "endpoints": {"create": False}}, "network.endpoints.create",
         f"the subnet {RANGES[A]} has no way out: there is neither a default route nor an endpoint",
         f"set it to true, or create the endpoints of {ALL}", ""),
    ],
    ids=["existing", "created"],
)  # fmt: skip
def test_without_route_and_endpoints_there_is_one_problem(
    network: dict[str, Any], key: str, text: str, remedy: str, command: str
) -> None:
    [finding] = find_endpoint_problems(given(network, A, B))
    assert (finding.key, finding.text, finding.remedy, "".join(finding.commands)) == (key, text, remedy, command)


def test_each_service_without_an_endpoint_is_a_problem_if_one_has_any() -> None:
    situation = given(ISOLATED, A, B, endpoints=(endpoint("ssm"), GATEWAY))
    texts = [finding.text for finding in find_endpoint_problems(situation)]
    assert [text.partition(" (")[0] for text in texts] == [
        f"{A}, {B} cannot reach {service}" for service in SERVICES if service != "ssm"
    ]


WITH_ROUTE = {"RouteTableId": "rtb-00000002", "Routes": [TO_NAT], "Associations": [{"SubnetId": A}]}
MAIN = {"RouteTableId": TABLE, "Routes": [], "Associations": [{"Main": True}]}


@pytest.mark.parametrize(
    ("situation", "without"),
    [
        (given(ISOLATED, A, B), (A, B)),
        (given(ISOLATED, A, B, route=TO_NAT), ()),
        (given(ISOLATED, A, B, route_tables=(MAIN, WITH_ROUTE)), (B,)),
        # In a public cluster each subnet has to have a route, which another check asks for.
        (given({"subnets": [IN_A]}, A), ()),
        # The tables could not be read.
        (given(ISOLATED, A, B, route_tables=()), ()),
        (given(NEW), (f"the subnet {RANGES[A]}",)),
        (given(PARTLY_NEW, B), (f"the subnet {RANGES[A]}", B)),
        (given(PARTLY_NEW, B, route=TO_NAT), (f"the subnet {RANGES[A]}",)),
        (given({**NEW, "nat": "single", "subnets": [{**NEW["subnets"][0], "public": {"cidr": RANGES[PUBLIC_A]}}]}),
         ()),
        (given({**NEW, "endpoints": {"create": False}, "subnets": [{**NEW["subnets"][0], "routeTable": TABLE}]}),
         (f"the subnet {RANGES[A]}",)),
        (given({**NEW, "endpoints": {"create": False}, "subnets": [{**NEW["subnets"][0], "routeTable": TABLE}]},
               route=TO_NAT), ()),
    ],
    ids=["none", "route", "one of two", "public cluster", "unread", "created", "one created", "with a route",
         "NAT", "named table", "its route"],
)  # fmt: skip
def test_subnets_whose_instances_have_no_default_route(situation: Situation, without: tuple[str, ...]) -> None:
    assert tuple(subnet.name for subnet in subnets_without_way_out(situation)) == without


@pytest.mark.parametrize(
    ("more", "create", "is_refused"),
    [
        ({}, {}, True),
        ({"PrivateDnsEnabled": False}, {}, False),
        ({"State": "deleting"}, {}, False),
        ({"VpcEndpointType": "Gateway"}, {}, False),
        # One of the cluster's own stacks.
        ({"Tags": [{"Key": "KubernetesCluster", "Value": "kubernetes"}]}, {}, False),
        ({"Tags": [{"Key": "KubernetesCluster", "Value": "other"}]}, {}, True),
        # The second one is to have no such name.
        ({}, {"services": [{"service": "kms", "privateDns": False}]}, False),
        ({}, {"additional": ["kms", "rds"], "services": [{"service": "rds", "privateDns": False}]}, True),
    ],
)
def test_a_name_that_an_endpoint_has_already_is_not_given_to_a_second(
    more: dict[str, Any], create: dict[str, Any], is_refused: bool
) -> None:
    network = {**NEW, "endpoints": {"additional": ["kms"], **create}}
    situation = given(network, endpoints=(endpoint("kms", **more),))
    findings = list(find_endpoint_problems(situation))
    assert [(finding.key, finding.text, finding.remedy, *finding.commands) for finding in findings] == [
        (
            "network.endpoints.create",
            f"{VPC} has an endpoint for kms with a private DNS name already (vpce-kms), and EC2 refuses a second one",
            "set it to false and use the VPC's endpoints, or take the private DNS name from that endpoint",
            f"aws ec2 modify-vpc-endpoint --vpc-endpoint-id vpce-kms --region {REGION} --no-private-dns-enabled",
        )
    ] * is_refused


IN_OTHER_TABLE = {**GATEWAY, "RouteTableIds": ["rtb-00000009"]}
ADD_TABLE = f"aws ec2 modify-vpc-endpoint --vpc-endpoint-id vpce-s3 --region {REGION} --add-route-table-ids"
CREATE_GATEWAY = (
    f"aws ec2 create-vpc-endpoint --vpc-id {VPC} --vpc-endpoint-type Gateway --region {REGION} "
    f"--service-name com.amazonaws.{REGION}.s3 --route-table-ids"
)


@pytest.mark.parametrize(
    ("s3", "commands"),
    [
        ((GATEWAY,), ()),
        (({**GATEWAY, "VpcEndpointType": ""},), ()),
        ((endpoint("s3"),), ()),
        ((IN_OTHER_TABLE, endpoint("s3")), ()),
        ((IN_OTHER_TABLE, GATEWAY), ()),
        ((IN_OTHER_TABLE,), (f"{ADD_TABLE} rtb-00000002", f"{ADD_TABLE} {TABLE}")),
        (({**GATEWAY, "RouteTableIds": [TABLE]},), (f"{ADD_TABLE} rtb-00000002",)),
        (({**GATEWAY, "RouteTableIds": ["rtb-00000002"]},), (f"{ADD_TABLE} {TABLE}",)),
        ((endpoint("s3", PrivateDnsEnabled=False), IN_OTHER_TABLE),
         (f"{ADD_TABLE} rtb-00000002", f"{ADD_TABLE} {TABLE}")),
        (({**GATEWAY, "State": "deleted"},), (f"{CREATE_GATEWAY} rtb-00000002", f"{CREATE_GATEWAY} {TABLE}")),
        ((), (f"{CREATE_GATEWAY} rtb-00000002", f"{CREATE_GATEWAY} {TABLE}")),
    ],
)  # fmt: skip
def test_each_route_table_has_to_lead_to_s3(s3: tuple[dict[str, Any], ...], commands: tuple[str, ...]) -> None:
    of_a = {**WITH_ROUTE, "Routes": []}
    findings = list(find_endpoint_problems(isolated(endpoint("ec2"), s3=s3, route_tables=(MAIN, of_a))))
    assert tuple(command for finding in findings for command in finding.commands) == commands
    subnets = {TABLE: (B, "network.subnets[1].id"), "rtb-00000002": (A, "network.subnets[0].id")}
    for finding, command in zip(findings, commands, strict=True):
        subnet, key = subnets[command.split()[-1]]
        assert (finding.key, finding.text.partition(" S3: ")[0]) == (key, f"{subnet} cannot reach")


OF_CREATED = f"the subnet {RANGES[A]} gets no endpoint for S3, which holds images and files, since this is false"
OF_EXISTING = f"{B} cannot reach S3: there is neither a default route nor an endpoint"


@pytest.mark.parametrize(
    ("network", "create", "says"),
    [
        (NEW, True, []),
        (NEW, False, [("network.endpoints.create", OF_CREATED)]),
        (PARTLY_NEW, True, [("network.subnets[1].id", OF_EXISTING)]),
        (PARTLY_NEW, False, [("network.endpoints.create", OF_CREATED), ("network.subnets[1].id", OF_EXISTING)]),
    ],
)
def test_a_route_table_that_is_created_leads_to_s3_unless_the_file_says_no(
    network: dict[str, Any], create: bool, says: list[tuple[str, str]]
) -> None:
    endpoints = tuple(endpoint(service, PrivateDnsEnabled=not create) for service in SERVICES)
    findings = find_endpoint_problems(given({**network, "endpoints": {"create": create}}, B, endpoints=endpoints))
    assert [(finding.key, finding.text) for finding in findings] == says


WITH_GATEWAYS: dict[str, Any] = {
    "internet_gateways": ({"InternetGatewayId": "igw-1"},),
    "nat_gateways": ({"NatGatewayId": NAT, "State": "available"},),
}
TO_INTERNET = {"DestinationCidrBlock": EVERYWHERE, "GatewayId": "igw-1"}


@pytest.mark.parametrize(
    "situation",
    [
        given({"subnets": [IN_A]}, A, route=TO_INTERNET, api={"public": True}, **WITH_GATEWAYS),
        given(ISOLATED, A, B, route=TO_NAT, **WITH_GATEWAYS),
        isolated(endpoint("ec2")),
    ],
    ids=["public", "behind a NAT gateway", "without a way out"],
)
@pytest.mark.parametrize("name", ["endpoints", "internet_gateways", "nat_gateways", "route_tables", "security_groups"])
def test_what_could_not_be_read_is_not_taken_for_missing(situation: Situation, name: str) -> None:
    def problems(judged: Situation) -> list[str]:
        finders = (find_endpoint_problems, routes.find_unrouted_subnets, routes.find_unusable_nat_gateways)
        return [finding.text for find in finders for finding in find(judged)]

    emptied = replace(situation, facts=replace(situation.facts, **{name: ()}))
    assert (problems(situation), problems(replace(emptied, unread=((name, "no"),)))) == ([], [])


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
