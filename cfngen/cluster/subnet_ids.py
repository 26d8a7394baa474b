"""The logical ids of subnets and Availability Zones: how they are made and parsed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal, get_args

from cfngen.cluster.defaults import zone_region

# What belongs to one subnet; the end of the logical id, empty for the subnet itself.
SubnetPart = Literal["", "Id", "Cidr", "RouteTableAssociation"]
_SUBNET_PARTS: Mapping[str, SubnetPart] = {part: part for part in get_args(SubnetPart)}
# A zone without its region, as `zone_id` returns it: a letter, for a Local Zone after its city and number.
_ZONE_PATTERN = r"(?:[A-Z][a-z]{2}[0-9])?[A-Z]"


@dataclass(frozen=True)
class SubnetId:
    """The subnet in a zone, one of its parameters or its association with a route table, e.g. `SubnetLax1ACidr`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
        part: which of these it is; the end of the id, empty for the subnet itself.
    """

    zone: str
    part: SubnetPart = ""

    _PATTERN: ClassVar = re.compile(rf"Subnet({_ZONE_PATTERN})({'|'.join(_SUBNET_PARTS)})")

    def __str__(self) -> str:
        return f"Subnet{self.zone}{self.part}"

    @classmethod
    def parse(cls, logical_id: str) -> SubnetId | None:
        """Return the parts of an id of this form, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(zone=match[1], part=_SUBNET_PARTS[match[2]]) if match else None

    def zone_in(self, region: str) -> str:
        """Return the name of the zone in a region, e.g. `us-west-2a` or `us-west-2-lax-1a`."""
        letter = self.zone[-1]
        # Empty for an Availability Zone; in `Lax1A`, `Lax` is the Local Zone's city and `1` its number there.
        city_and_number = self.zone[:-1]
        infix = f"-{city_and_number[:3]}-{city_and_number[3:]}" if city_and_number else ""
        return f"{region}{infix}{letter}".lower()


@dataclass(frozen=True)
class ZoneId:
    """The parameter for an Availability Zone, e.g. `ZoneA`.

    Attributes:
        zone: the zone without its region, see `zone_id`.
    """

    zone: str

    _PATTERN: ClassVar = re.compile(rf"Zone({_ZONE_PATTERN})")

    def __str__(self) -> str:
        return f"Zone{self.zone}"

    @classmethod
    def parse(cls, logical_id: str) -> ZoneId | None:
        """Return the parts of an id of this form, or None for any other text."""
        match = cls._PATTERN.fullmatch(logical_id)
        return cls(match[1]) if match else None


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
