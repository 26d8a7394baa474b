"""The logical ids of the parts of a network, by zone or by address range: how they are made and parsed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from cfngen.cluster.id_form import IdForm
from cfngen.cluster.security_group_ids import source_id
from cfngen.cluster.zones import zone_region

# What belongs to one subnet; the end of the logical id, empty for the subnet itself.
SubnetPart = Literal["", "Id", "Cidr", "RouteTableAssociation"]
# What else a zone has; the beginning of the logical id.
ZonalKind = Literal["NatElasticIp", "NatGateway", "NatRoute", "PrivateRouteTable", "RouteTable"]
# A zone without its region, as `zone_id` returns it: a letter, for a Local Zone after its city and number.
_ZONE_PATTERN = r"(?:[A-Z][a-z]{2}[0-9])?[A-Z]"
# A CIDR as `source_id` spells it.
_CIDR_PATTERN = r"[0-9]+(?:x[0-9]+){4}"


def _destination(spelled: str) -> str:
    """Return the CIDR, or the prefix list's id, that `source_id` spells as letters and digits."""
    if spelled.startswith("Pl"):
        return f"pl-{spelled.removeprefix('Pl')}"
    address, _, prefix = spelled.rpartition("x")
    return f"{address.replace('x', '.')}/{prefix}"


@dataclass(frozen=True)
class SubnetId(IdForm):
    """A subnet in a zone, one of its parameters or its association with a route table, e.g. `SubnetLax1ACidr`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
        part: which of these it is; the end of the id, empty for the subnet itself.
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
    """Another part of the network in a zone, e.g. `NatGatewayA`, or the parameter for an existing one, `NatGatewayAId`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
        is_parameter: whether it is the parameter with the id of an existing resource.
    """

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
    """The parameter for an Availability Zone, e.g. `ZoneA`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
    """

    zone: str

    _PATTERN: ClassVar = re.compile(rf"Zone(?P<zone>{_ZONE_PATTERN})")

    def __str__(self) -> str:
        return f"Zone{self.zone}"


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
        table: the logical id of the route table.
    """

    destination: str
    table: str

    _PATTERN: ClassVar = re.compile(
        rf"RouteTo(?P<destination>{_CIDR_PATTERN}|Pl[0-9a-f]+)In"
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
