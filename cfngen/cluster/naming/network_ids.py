"""The logical ids of the parts of a network, by zone or by address range, and of security groups and their rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from cfngen.cluster.naming.id_form import IdForm
from cfngen.cluster.naming.zones import zone_region

# `ApiLoadBalancer` is the public load balancer, or an internal one without a public one; `InternalApiLoadBalancer` is
# the internal one beside a public one.
SecurityGroupRole = Literal["Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer"]
SECURITY_GROUP_ROLES: tuple[SecurityGroupRole, ...] = ("Master", "Node", "ApiLoadBalancer", "InternalApiLoadBalancer")
# What belongs to one subnet; the end of the logical id, empty for the subnet itself.
SubnetPart = Literal["", "Id", "Cidr", "RouteTableAssociation"]
# What else a zone has; the beginning of the logical id.
ZonalKind = Literal["NatElasticIp", "NatGateway", "NatRoute", "PrivateRouteTable", "RouteTable"]
# A zone without its region, as `zone_id` returns it: a letter, for a Local Zone after its city and number.
_ZONE_PATTERN = r"(?:[A-Z][a-z]{2}[0-9])?[A-Z]"
# A CIDR as `source_id` spells it, and the same, a prefix list or a security group.
_CIDR_PATTERN = r"[0-9]+(?:x[0-9]+){4}"
_ADDRESSES_PATTERN = rf"{_CIDR_PATTERN}|Pl[0-9a-f]+"
_SOURCES_PATTERN = rf"{_ADDRESSES_PATTERN}|Sg[0-9a-f]+"
# Ports that a rule of `ingress` opens, as `ingress_purpose` spells them.
_INGRESS_PATTERN = r"(Tcp|Udp|Icmp|All)(?:([0-9]+)(?:To([0-9]+))?)?"
# Whose security group a rule belongs to. The bastion has one group, which has no number.
RuleRole = SecurityGroupRole | Literal["Bastion"]

_ANY_ROLE_PATTERN = "|".join(SECURITY_GROUP_ROLES)


def _destination(spelled: str) -> str:
    """Return the CIDR, or the prefix list's or security group's id, that `source_id` spells as letters and digits."""
    if spelled.startswith(("Pl", "Sg")):
        return f"{spelled[:2].lower()}-{spelled[2:]}"
    address, _, prefix = spelled.rpartition("x")
    return f"{address.replace('x', '.')}/{prefix}"


@dataclass(frozen=True)
class SubnetId(IdForm):
    """A subnet in a zone, one of its parameters or its association with a route table, e.g. `SubnetLax1ACidr`.

    Attributes:
        is_public: whether it is the public subnet of a private cluster, which has no instances.
    """

    zone: str
    part: SubnetPart = ""
    is_public: bool = False

    _PATTERN: ClassVar = re.compile(
        rf"(?P<is_public>Public)?Subnet(?P<zone>{_ZONE_PATTERN})(?P<part>{'|'.join(get_args(SubnetPart))})"
    )
    _PARSERS: ClassVar = {"is_public": bool}

    def __str__(self) -> str:
        return f"{'Public' if self.is_public else ''}Subnet{self.zone}{self.part}"

    def zone_in(self, region: str) -> str:
        """Return the name of the zone in a region, e.g. `us-west-2a` or `us-west-2-lax-1a`."""
        letter = self.zone[-1]
        # Empty for an Availability Zone; in `Lax1A`, `Lax` is the Local Zone's city and `1` its number there.
        city_and_number = self.zone[:-1]
        infix = f"-{city_and_number[:3]}-{city_and_number[3:]}" if city_and_number else ""
        return f"{region}{infix}{letter}".lower()


@dataclass(frozen=True)
class ZonalId(IdForm):
    """Another part of a network in a zone, e.g. `NatGatewayA`; of an existing one its parameter, `NatGatewayAId`."""

    kind: ZonalKind
    zone: str
    is_parameter: bool = False

    _PATTERN: ClassVar = re.compile(
        rf"(?P<kind>{'|'.join(get_args(ZonalKind))})(?P<zone>{_ZONE_PATTERN})(?P<is_parameter>Id)?"
    )
    _PARSERS: ClassVar = {"is_parameter": bool}

    def __str__(self) -> str:
        return f"{self.kind}{self.zone}{'Id' if self.is_parameter else ''}"


@dataclass(frozen=True)
class ZoneId(IdForm):
    """The parameter for an Availability Zone, e.g. `ZoneA`."""

    zone: str

    _TEXT: ClassVar = "Zone{zone}"
    _PATTERN: ClassVar = re.compile(rf"Zone(?P<zone>{_ZONE_PATTERN})")


@dataclass(frozen=True)
class VpcRangeId(IdForm):
    """A further address range of the VPC, e.g. `VpcCidrBlock100x64x0x0x16`."""

    cidr: str

    _PATTERN: ClassVar = re.compile(rf"VpcCidrBlock(?P<cidr>{_CIDR_PATTERN})")
    _PARSERS: ClassVar = {"cidr": _destination}

    def __str__(self) -> str:
        return f"VpcCidrBlock{source_id(self.cidr)}"


@dataclass(frozen=True)
class RouteId(IdForm):
    """A route to a network beyond the VPC, e.g. `RouteTo10x64x0x0x16InPrivateRouteTableA`.

    Attributes:
        destination: the address range, or the id of the prefix list, to which it leads.
    """

    destination: str
    table: str

    _PATTERN: ClassVar = re.compile(
        rf"RouteTo(?P<destination>{_ADDRESSES_PATTERN})In"
        rf"(?P<table>RouteTable|PrivateRouteTable(?:{_ZONE_PATTERN})?)"
    )
    _PARSERS: ClassVar = {"destination": _destination}

    def __str__(self) -> str:
        return f"RouteTo{source_id(self.destination)}In{self.table}"


def zone_id(zone: str) -> str:
    """Return the part of a zone's name after the region, for logical ids: `A`, or `Lax1A` for a Local Zone."""
    region = zone_region(zone)
    if region is None:
        raise ValueError(f"{zone!r} is not an Availability Zone")
    return "".join(part.title() for part in zone.removeprefix(region).split("-"))


def is_subnet_parameter(name: str) -> bool:
    """Return whether a parameter or output holds the id of the subnet in a zone, e.g. `SubnetAId`."""
    parsed = SubnetId.parse(name)
    return parsed is not None and parsed.part == "Id"


@dataclass(frozen=True)
class RuleId(IdForm):
    """A rule of a security group, e.g. `MasterSshFrom10x0x0x0x8`.

    Attributes:
        purpose: what the open port is for, e.g. `Api`; empty for a rule that opens every port, and for the rules of the
            API's load balancer.
        source: who may connect: other instances or a load balancer of the cluster, the range of the parameter
            `ApiAllowedCidr`, or a CIDR, prefix list or security group as `source_id` spells it.
    """

    role: RuleRole
    purpose: str
    source: str

    _TEXT: ClassVar = "{role}{purpose}From{source}"
    _PATTERN: ClassVar = re.compile(
        rf"(?!NodeGroup)(?P<role>{_ANY_ROLE_PATTERN}|Bastion)(?P<purpose>[A-Z][A-Za-z0-9]*?)?From"
        rf"(?P<source>Masters|Nodes|Bastion|LoadBalancer|InternalLoadBalancer|AllowedCidr|{_SOURCES_PATTERN})"
    )

    @property
    def from_outside(self) -> bool:
        """Whether the rule's source is neither an instance nor a load balancer of the cluster."""
        return self.source not in ("Masters", "Nodes", "Bastion", "LoadBalancer", "InternalLoadBalancer")

    @property
    def origin(self) -> str:
        """The CIDR, or the id of the prefix list or security group, that `source` spells; empty for another source."""
        return _destination(self.source) if re.fullmatch(_SOURCES_PATTERN, self.source) else ""


@dataclass(frozen=True)
class NodeGroupRuleId(IdForm):
    """A rule of the security group of one node group, e.g. `NodeGroupGpuTcp30080From10x0x0x0x8`.

    Attributes:
        group: the node group's name in PascalCase.
        purpose: the ports that the rule opens, as `ingress_purpose` spells them.
        source: who may connect: a CIDR, prefix list or security group as `source_id` spells it.
    """

    group: str
    purpose: str
    source: str

    role: ClassVar[RuleRole] = "Node"
    _TEXT: ClassVar = "NodeGroup{group}{purpose}From{source}"
    _PATTERN: ClassVar = re.compile(
        rf"NodeGroup(?P<group>[A-Z0-9][A-Za-z0-9]*?)(?P<purpose>{_INGRESS_PATTERN})From(?P<source>{_SOURCES_PATTERN})"
    )

    @property
    def origin(self) -> str:
        """The CIDR, or the id of the prefix list or security group, that `source` spells."""
        return _destination(self.source)


def ingress_purpose(protocol: str, ports: tuple[int, int] | None) -> str:
    """Return the ports of a rule as the part of its logical id, e.g. `Tcp30080`, `Udp30000To32767` or `All`.

    Args:
        protocol: as the cluster file has it: `tcp`, `udp`, `icmp` or `all`.
        ports: first and last port; None for all.
    """
    return protocol.title() + "To".join(map(str, dict.fromkeys(ports or ())))


def traffic_of_purpose(purpose: str) -> str:
    """Return what a rule of `ingress` opens in words, e.g. `TCP 30000-32767`; empty for the purpose of another rule."""
    match = re.fullmatch(_INGRESS_PATTERN, purpose)
    if match is None:
        return ""
    protocol, first, last = match.groups()
    if first is None:
        return "all traffic" if protocol == "All" else protocol.upper()
    return f"{protocol.upper()} {first}" + (f"-{last}" if last else "")


@dataclass(frozen=True)
class SecurityGroupId(IdForm):
    """A security group, e.g. `MasterSecurityGroup`, or `MasterAccessSecurityGroup2` for an additional one.

    Attributes:
        number: its number among the security groups of the role. The first one always exists; additional ones hold
            rules for allowed sources only.
        part: `Id` for the parameter and output with its id; empty for the security group itself.
    """

    role: SecurityGroupRole
    number: int = 1
    part: Literal["", "Id"] = ""

    _PATTERN: ClassVar = re.compile(
        rf"(?P<role>{_ANY_ROLE_PATTERN})(?:SecurityGroup|AccessSecurityGroup(?P<number>[2-9]|[1-9][0-9]+))(?P<part>Id)?"
    )
    # The id of the first security group has no number.
    _PARSERS: ClassVar = {"number": lambda text: int(text or 1)}

    def __str__(self) -> str:
        name = "SecurityGroup" if self.number == 1 else f"AccessSecurityGroup{self.number}"
        return f"{self.role}{name}{self.part}"


def source_id(source: str) -> str:
    """Return a source as letters and digits: `10x0x0x0x8` for 10.0.0.0/8, `Pl0123` for pl-0123, `Sg01` for sg-01."""
    return f"{source[:2].title()}{source[3:]}" if source[2:3] == "-" else re.sub(r"[./]", "x", source)
