"""The rules that existing security groups need, as commands of the AWS CLI that add them, or as Terraform resources."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias

from cfngen.cluster.model import Cluster
from cfngen.cluster.network.existing_parts import GroupRole, existing_groups, group_key
from cfngen.cluster.sections.references import parse_reference
from cfngen.cluster.security_groups.rules import Rule, ranges_of_role, rules_of_existing_groups
from cfngen.cluster.security_groups.sources import origin_text

PeerKind: TypeAlias = Literal["securityGroupId", "prefixListId", "cidr"]
# How `IpPermission` of the EC2 API names what a rule refers to.
_PEER_PROPERTIES: Mapping[PeerKind, tuple[str, str]] = {
    "securityGroupId": ("UserIdGroupPairs", "GroupId"),
    "prefixListId": ("PrefixListIds", "PrefixListId"),
    "cidr": ("IpRanges", "CidrIp"),
}
_EVERYWHERE = "0.0.0.0/0"


# Group, direction, protocol, first and last port, and one peer.
RuleIdentity: TypeAlias = tuple[str, str, str, int | None, int | None, str]


class Peer(NamedTuple):
    """A source of incoming traffic or a destination of outgoing traffic.

    Attributes:
        value: the id or the address range; for a group, perhaps a reference in place of the id.
        name: the key of the group below `network.securityGroups`; else the value.
        placeholder: name of the variable that stands for a reference, e.g. `MASTERS_GROUP`; empty for an id.
    """

    kind: PeerKind
    value: str
    name: str
    placeholder: str


@dataclass(frozen=True)
class NeededRule:
    """A rule that an existing security group needs. A wider rule does as well.

    Attributes:
        key: the key in the cluster file that names the group, e.g. `network.securityGroups.masters`.
        group: the id of the group, or the reference in its place.
        direction: `ingress` for incoming traffic, `egress` for outgoing traffic.
        protocol: `tcp`, `udp` or `icmp`; `-1` for all protocols.
        first_port: the first port, or the type of `icmp`; None for all ports.
        last_port: the last port, or the code of `icmp`, where -1 stands for all codes; None for all ports.
        peers: sources of incoming traffic or destinations of outgoing traffic: ids of security groups, address ranges,
            ids of prefix lists, or references in place of ids of the cluster's groups. In place of a group that cfngen
            has yet to create these are the ranges of the instances or of the load balancer that get the group.
        peer_key: the key in the cluster file that names the group of the other side; empty if that is no such group.
    """

    key: str
    group: str
    direction: Literal["ingress", "egress"]
    protocol: str
    first_port: int | None
    last_port: int | None
    peers: tuple[str, ...]
    description: str
    peer_key: str = ""

    @property
    def is_in_new_groups(self) -> bool:
        """Whether EC2 gives the rule to every group that it creates, so that it is a duplicate there."""
        return (self.direction, self.protocol, self.peers) == ("egress", "-1", (_EVERYWHERE,))

    @property
    def placeholder(self) -> str:
        """The name of the variable that stands for a reference to the group, e.g. `MASTERS_GROUP`; empty for an id."""
        return _placeholder(self.key, self.group)

    @property
    def typed_peers(self) -> tuple[Peer, ...]:
        """The peers, each with its kind."""
        return tuple(
            Peer(
                kind=_kind_of_peer(peer, self.peer_key),
                value=peer,
                name=self.peer_key.rpartition(".")[2] or peer,
                placeholder=_placeholder(self.peer_key, peer),
            )
            for peer in self.peers
        )

    @property
    def traffic(self) -> str:
        """Protocol and ports in words, e.g. `TCP 443`, `ICMP type 3 code 4`, `all traffic`."""
        if self.first_port is None:
            return "all traffic" if self.protocol == "-1" else f"all {self.protocol.upper()}"
        if self.protocol == "icmp" and self.first_port == -1:
            return "all ICMP"
        if self.protocol == "icmp":
            return f"ICMP type {self.first_port}" + ("" if self.last_port == -1 else f" code {self.last_port}")
        last = "" if self.last_port == self.first_port else f"-{self.last_port}"
        return f"{self.protocol.upper()} {self.first_port}{last}"

    @property
    def identities(self) -> tuple[RuleIdentity, ...]:
        """What EC2 compares rules by, for each peer: a group cannot have two rules with the same value."""
        return tuple(self._identity(peer) for peer in self.peers)

    def _identity(self, peer: str) -> RuleIdentity:
        return (self.group, self.direction, self.protocol, self.first_port, self.last_port, peer)

    def without(self, present: Collection[RuleIdentity]) -> NeededRule:
        """Return the rule without the peers for which the group has it already; perhaps none is left."""
        return replace(self, peers=tuple(peer for peer in self.peers if self._identity(peer) not in present))

    @property
    def permission(self) -> dict[str, Any]:
        """The rule as `IpPermission` of the EC2 API, in which ids may be references."""
        return self._permission(lambda peer: peer.value)

    def _permission(self, value_of: Callable[[Peer], str]) -> dict[str, Any]:
        ports = {} if self.first_port is None else {"FromPort": self.first_port, "ToPort": self.last_port}
        lists: dict[str, list[dict[str, str]]] = {}
        for peer in self.typed_peers:
            list_name, item = _PEER_PROPERTIES[peer.kind]
            lists.setdefault(list_name, []).append({item: value_of(peer), "Description": self.description})
        return {"IpProtocol": self.protocol, **ports, **lists}

    def command(self, region: str) -> str:
        """Return the command of the AWS CLI that adds the rule; variables of the shell stand for references."""
        # The argument is in single quotes, between which the shell does not replace a variable.
        permission = self._permission(lambda peer: f"'\"${peer.placeholder}\"'" if peer.placeholder else peer.value)
        group = f'"${self.placeholder}"' if self.placeholder else self.group
        return (
            f"aws ec2 authorize-security-group-{self.direction} --region {region} --group-id {group} "
            f"--ip-permissions '{_shorthand(permission)}'"
        )


def _kind_of_peer(peer: str, peer_key: str) -> PeerKind:
    if peer_key or peer.startswith("sg-"):
        return "securityGroupId"
    return "prefixListId" if peer.startswith("pl-") else "cidr"


def _shorthand(structure: Mapping[str, Any]) -> str:
    """Return a structure in the shorthand syntax of the AWS CLI."""
    texts: list[str] = []
    for key, value in structure.items():
        if isinstance(value, list):
            text = f"[{','.join(f'{{{_shorthand(item)}}}' for item in value)}]"
        else:
            text = f'"{value}"' if key == "Description" else str(value)
        texts.append(f"{key}={text}")
    return ",".join(texts)


def _placeholder(key: str, value: str) -> str:
    if parse_reference(value) is None:
        return ""
    words = re.sub(r"(?=[A-Z])", "_", key.rpartition(".")[2])
    return f"{words}_group".upper()


def needed_rules(cluster: Cluster) -> tuple[NeededRule, ...]:
    """Return the rules that the existing security groups of the cluster file need, by group.

    EC2 refuses a whole command if the group has one of its rules (`InvalidPermission.Duplicate`), so a rule omits peers
    that an earlier one has: roles may share a group, or have the same ranges.
    """
    group_ids = existing_groups(cluster)
    rules: list[NeededRule] = []
    listed: set[RuleIdentity] = set()
    for rule in rules_of_existing_groups(cluster):
        needed = needed_rule(cluster, rule, group_ids).without(listed)
        if needed.peers:
            listed.update(needed.identities)
            rules.append(needed)
    return tuple(rules)


def needed_rule(cluster: Cluster, rule: Rule, group_ids: Mapping[GroupRole, str]) -> NeededRule:
    """Return a rule of an existing security group with its ids."""
    peer_key = ""
    if not isinstance(rule.peer, str):
        peers: tuple[str, ...] = (origin_text(rule.peer),)
    elif rule.peer in group_ids:
        peers, peer_key = (group_ids[rule.peer],), group_key(rule.peer)
    else:
        peers = tuple(str(cidr) for cidr in ranges_of_role(cluster, rule.peer))
    first_port, last_port = rule.ports or (None, None)
    return NeededRule(
        key=group_key(rule.role),
        group=group_ids[rule.role],
        direction="egress" if rule.is_egress else "ingress",
        protocol=rule.protocol,
        first_port=first_port,
        last_port=last_port,
        peers=peers,
        description=rule.description,
        peer_key=peer_key,
    )


def terraform_rules(rules: Iterable[NeededRule]) -> str:
    """Return the configuration with a resource for each rule and peer.

    In place of a group that the cluster file names by a reference stands a variable, such as `var.masters_group`.
    """
    rules = tuple(rules)
    placeholders = {rule.placeholder: None for rule in rules if rule.placeholder}
    placeholders |= {peer.placeholder: None for rule in rules for peer in rule.typed_peers if peer.placeholder}
    variables = [f'variable "{name.lower()}" {{\n  type = string\n}}\n' for name in placeholders]
    resources = ["\n".join(_terraform_resource(rule, peer)) + "\n" for rule in rules for peer in rule.typed_peers]
    return "\n".join([*variables, *resources])


def _terraform_resource(rule: NeededRule, peer: Peer) -> Iterator[str]:
    """Yield the lines of a resource, whose name stays as long as EC2 takes the rule for the same one."""
    group = rule.key.rpartition(".")[2]
    ports = [] if rule.first_port is None else [str(rule.first_port), str(rule.last_port)]
    protocol = "all" if rule.protocol == "-1" else rule.protocol
    name = re.sub(r"[^A-Za-z0-9]+", "_", "_".join([group, protocol, *dict.fromkeys(ports), peer.name]))
    yield f'resource "aws_vpc_security_group_{rule.direction}_rule" "{name}" {{'
    yield f"  security_group_id            = {_terraform_value(rule.group, rule.placeholder)}"
    argument = {
        "securityGroupId": "referenced_security_group_id",
        "prefixListId": "prefix_list_id",
        "cidr": "cidr_ipv4",
    }[peer.kind]
    yield f"  {argument:<28} = {_terraform_value(peer.value, peer.placeholder)}"
    yield f"  ip_protocol                  = {json.dumps(rule.protocol)}"
    if ports:
        yield f"  from_port                    = {rule.first_port}"
        yield f"  to_port                      = {rule.last_port}"
    yield f"  description                  = {json.dumps(rule.description)}"
    yield "}"


def _terraform_value(value: str, placeholder: str) -> str:
    return f"var.{placeholder.lower()}" if placeholder else json.dumps(value)
