"""What the check of an existing network says of its VPC endpoints, and of what could not be read."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from existing_network import EVERYWHERE, REGION
from judged_network import (
    IN_A,
    IN_B,
    NAT,
    PUBLIC_A,
    RANGES,
    TABLE,
    TO_NAT,
    VPC,
    A,
    B,
    given,
)

from cfngen.cluster.load import parse
from cfngen.cluster.network.endpoints import required_services
from cfngen.deploy.preflight.network import routes
from cfngen.deploy.preflight.network.endpoints import find_endpoint_problems, subnets_without_way_out
from cfngen.deploy.preflight.network.situation import Situation

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
