"""Judges network ACLs: whether the rules of each subnet allow what the cluster sends and receives.

Rules are evaluated in the order of their numbers, and the first that matches decides ("Network ACL rules", Amazon VPC
User Guide). They have no state: answers need a rule of their own, for the ephemeral ports.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Network

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.preflight.findings import Finding, problem
from cfngen.deploy.preflight.network.endpoints import subnets_without_way_out
from cfngen.deploy.preflight.network.situation import NamedSubnet, Situation

_EVERYWHERE = IPv4Network("0.0.0.0/0")
# Protocols of rules are numbers (protocol-numbers of IANA); -1 stands for all.
_NUMBERS = {"tcp": "6", "udp": "17"}
_HTTPS, _DNS = 443, 53
# "Ephemeral ports" in the Amazon VPC User Guide: Linux uses 32768 to 61000, NAT gateways and load balancers 1024 to
# 65535.
_FIRST_EPHEMERAL, _LAST_PORT = 1024, 65535


@dataclass(frozen=True)
class _Traffic:
    """Packets that must be allowed.

    Attributes:
        is_egress: whether they leave the subnet.
        protocol: `tcp` or `udp`.
        first_port: the first destination port.
        peer: where they go to, or come from.
    """

    purpose: str
    is_egress: bool
    protocol: str
    first_port: int
    last_port: int
    peer: IPv4Network

    def __str__(self) -> str:
        ports = str(self.first_port) if self.first_port == self.last_port else f"{self.first_port}-{self.last_port}"
        direction = "outbound" if self.is_egress else "inbound"
        return f"{direction} {self.protocol.upper()} {ports} {'to' if self.is_egress else 'from'} {self.peer}"


def find_blocked_traffic(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each kind of traffic that the network ACL of an existing subnet does not allow."""
    for subnet, _ in situation.existing_subnets:
        acl = _acl_of(situation, subnet.id)
        if acl is None:
            continue
        for traffic in _needed_traffic(situation, subnet):
            rule = _blocking_rule(acl, traffic)
            if rule is None:
                continue
            number = "the last rule (*)" if rule["RuleNumber"] == 32767 else f"rule {rule['RuleNumber']}"
            direction = "--egress" if traffic.is_egress else "--ingress"
            yield problem(
                subnet.id_key,
                f"the network ACL {acl['NetworkAclId']} of {subnet.id} blocks {traffic} ({traffic.purpose}): {number}",
                "add a rule before it",
                "aws ec2 create-network-acl-entry "
                f"--region {situation.region} --network-acl-id {acl['NetworkAclId']} "
                f"{direction} --rule-number NUMBER --protocol {_NUMBERS[traffic.protocol]} "
                f"--port-range From={traffic.first_port},To={traffic.last_port} --cidr-block {traffic.peer} "
                "--rule-action allow",
            )


def _acl_of(situation: Situation, subnet_id: str) -> AwsObject | None:
    """Return the network ACL of a subnet: every subnet has one."""
    for acl in situation.facts.network_acls:
        if any(association.get("SubnetId") == subnet_id for association in acl.get("Associations", ())):
            return acl
    return None


def _needed_traffic(situation: Situation, subnet: NamedSubnet) -> Iterator[_Traffic]:
    """Yield what must be allowed in a subnet."""
    cluster = situation.cluster
    # Without a default route, instances reach endpoints in the VPC only.
    for peer in situation.vpc_ranges if subnet in subnets_without_way_out(situation) else (_EVERYWHERE,):
        yield _Traffic("AWS services and registries", True, "tcp", _HTTPS, _HTTPS, peer)
        yield _Traffic("answers to instances", False, "tcp", _FIRST_EPHEMERAL, _LAST_PORT, peer)
    port = cluster.api.port
    is_among_pods = False
    for other in situation.subnets:
        if other.cidr is None or other.path == subnet.path:
            continue
        has_pods = not (subnet.is_public or other.is_public)
        is_among_pods = is_among_pods or has_pods
        for is_egress in (True, False):
            yield _Traffic("the Kubernetes API", is_egress, "tcp", port, port, other.cidr)
            yield from _of_pods(cluster, other.cidr, is_egress, has_pods=has_pods)
    if network_plugin(cluster).uses_vpc_routes and is_among_pods:
        # On VPC routes, packets between subnets bear the addresses of pods.
        for is_egress in (True, False):
            yield from _of_pods(cluster, cluster.network.pod_cidr, is_egress, has_pods=True)
    is_entrance = subnet.is_public or (not is_private(cluster) and bool(subnet.slots))
    if cluster.api.public and is_entrance:
        for cidr in cluster.api.allowed_cidrs:
            yield _Traffic("clients of the API", False, "tcp", port, port, cidr)
            yield _Traffic("answers to clients of the API", True, "tcp", _FIRST_EPHEMERAL, _LAST_PORT, cidr)


def _of_pods(cluster: Cluster, peer: IPv4Network, is_egress: bool, *, has_pods: bool) -> Iterator[_Traffic]:
    """Yield what instances and pods of different subnets send each other in one direction.

    Echo requests are not needed: without them, Cilium's report of its health is all that is wrong.
    """
    yield _Traffic("kubelets, etcd, pods and answers", is_egress, "tcp", _FIRST_EPHEMERAL, _LAST_PORT, peer)
    for opened in network_plugin(cluster).master_ports if has_pods else ():
        if opened.protocol == "udp" or (opened.protocol == "tcp" and opened.port < _FIRST_EPHEMERAL):
            yield _Traffic(opened.description, is_egress, opened.protocol, opened.port, opened.port, peer)
        if (opened.protocol, opened.port) == ("udp", _DNS):
            yield _Traffic("answers of cluster DNS", is_egress, "udp", _FIRST_EPHEMERAL, _LAST_PORT, peer)


def _blocking_rule(acl: AwsObject, traffic: _Traffic) -> AwsObject | None:
    """Return the rule of a network ACL that denies the traffic, or a part of it; None if all of it is allowed.

    Of traffic to everywhere, a rule for some addresses denies little, so only rules for all addresses count.
    """
    rules: list[AwsObject] = sorted(
        (rule for rule in acl["Entries"] if rule["Egress"] == traffic.is_egress and "CidrBlock" in rule),
        key=lambda rule: int(rule["RuleNumber"]),
    )
    open_ports = [(traffic.first_port, traffic.last_port)]
    for rule in rules:
        if str(rule["Protocol"]) not in ("-1", _NUMBERS[traffic.protocol]):
            continue
        cidr = IPv4Network(rule["CidrBlock"])
        covers = traffic.peer.subnet_of(cidr)
        counts = covers or (traffic.peer != _EVERYWHERE and traffic.peer.overlaps(cidr))
        first, last = _ports(rule)
        if not counts or not any(start <= last and first <= end for start, end in open_ports):
            continue
        if rule["RuleAction"] == "deny":
            return rule
        if covers:
            open_ports = [part for span in open_ports for part in _without(span, first, last)]
    # Every network ACL ends with a rule that denies everything, which cannot be removed.
    return {"RuleNumber": 32767} if open_ports else None


def _ports(rule: AwsObject) -> tuple[int, int]:
    """Return the first and the last port of a rule; all ports if the rule names none."""
    ports = rule.get("PortRange")
    return (int(ports["From"]), int(ports["To"])) if ports else (0, _LAST_PORT)


def _without(span: tuple[int, int], first: int, last: int) -> Iterator[tuple[int, int]]:
    """Yield what remains of a span of ports without those from `first` to `last`."""
    start, end = span
    if start < first:
        yield start, min(end, first - 1)
    if end > last:
        yield max(start, last + 1), end
