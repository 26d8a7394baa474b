"""Who may reach a port of masters, nodes, the bastion or the API from outside of the cluster: a rule for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from ipaddress import IPv4Network
from typing import NamedTuple, TypeAlias

from cfngen.cluster.naming.network_ids import ingress_purpose, traffic_of_purpose
from cfngen.cluster.sections.ingress import IngressRule
from cfngen.cluster.sections.network import PrefixList

ALL_PROTOCOLS = "-1"
_ALL_ICMP_TYPES_AND_CODES = (-1, -1)


class OtherGroup(NamedTuple):
    """An existing security group that is not one of the cluster's."""

    id: str


Origin: TypeAlias = IPv4Network | PrefixList | OtherGroup


class Source(NamedTuple):
    """A CIDR, a prefix list or a security group that may reach ports.

    Attributes:
        purpose: the part of the rule's logical id that names the ports: `Api`, `Ssh`, or as `ingress_purpose` spells
            the ports of a rule of `ingress`.
        protocol: `tcp`, `udp` or `icmp`; `-1` for all protocols.
        ports: first and last port, or type and code for `icmp` (-1 for all); None for all traffic.
    """

    purpose: str
    origin: Origin
    protocol: str
    ports: tuple[int, int] | None
    description: str

    @property
    def rule_count(self) -> int:
        """Number of rules that EC2 counts for the source: for a prefix list, its maximum number of entries."""
        return self.origin.max_entries if isinstance(self.origin, PrefixList) else 1

    @property
    def identity(self) -> tuple[str, str]:
        """What EC2 compares rules by: a security group cannot have two rules with the same ports and origin."""
        return f"{self.protocol} {self.ports}", origin_text(self.origin)

    def includes(self, other: Source) -> bool:
        """Return whether the other source may reach its ports by this rule already; the ranges of lists are unknown."""
        (first, last), (other_first, other_last) = self.ports or (0, 0), other.ports or (0, 0)
        has_ports = self.protocol == ALL_PROTOCOLS or (
            self.protocol == other.protocol and first <= other_first and other_last <= last
        )
        if isinstance(self.origin, IPv4Network) and isinstance(other.origin, IPv4Network):
            return has_ports and other.origin.subnet_of(self.origin)
        return has_ports and origin_text(self.origin) == origin_text(other.origin)


def origin_text(origin: Origin) -> str:
    """Return a CIDR, or the id of a prefix list or security group."""
    return str(origin) if isinstance(origin, IPv4Network) else origin.id


def ingress_sources(rules: Iterable[IngressRule]) -> Iterator[Source]:
    """Yield the sources of the rules of a section's `ingress`, in the order of the cluster file."""
    for rule in rules:
        purpose = ingress_purpose(rule.protocol, rule.port_range)
        origins: list[Origin] = [*rule.cidrs, *rule.prefix_lists, *map(OtherGroup, rule.security_groups)]
        for origin in origins:
            yield Source(
                purpose=purpose,
                origin=origin,
                protocol=ALL_PROTOCOLS if rule.protocol == "all" else rule.protocol,
                ports=_ALL_ICMP_TYPES_AND_CODES if rule.protocol == "icmp" else rule.port_range,
                description=rule.description or f"{traffic_of_purpose(purpose)} from {origin_text(origin)}",
            )
