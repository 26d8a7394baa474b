"""What the check of an existing network says of its network ACLs."""

from __future__ import annotations

from typing import Any

import pytest
from existing_network import EVERYWHERE
from judged_network import (
    CLIENTS,
    IN_A,
    IN_B,
    PRIVATE,
    PUBLIC_A,
    PUBLIC_B,
    RANGES,
    TABLE,
    TO_NAT,
    A,
    B,
    given,
)

from cfngen.deploy.preflight.findings import Finding
from cfngen.deploy.preflight.network.access_lists import find_blocked_traffic
from cfngen.deploy.preflight.network.situation import Situation


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
