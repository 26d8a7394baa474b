"""Logical ids of resources for a zone or an address range: making and parsing them.

They are stable: they contain no list index that may change. Those of slots and node groups are in
`cfngen.cluster.names`.
"""

from __future__ import annotations

import re

from cfngen.cluster.defaults import zone_region

_SUBNET = re.compile(r"Subnet(?:(?P<place>[A-Z][a-z]{2})(?P<number>[0-9]))?(?P<letter>[A-Z])(?P<parameter>Id)?")
_CIDR = re.compile(r"(?<![0-9x])(\d+)x(\d+)x(\d+)x(\d+)x(\d+)$")
_PREFIX_LIST = re.compile(r"FromPl([0-9a-f]+)$")


def pascal(text: str) -> str:
    """Return `text` as one PascalCase word, e.g. `gpu-a` as `GpuA`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)


def zone_id(zone: str) -> str:
    """Return the part of a zone's name after the region, for logical ids: `A`, or `Lax1A` for a Local Zone."""
    region = zone_region(zone)
    if region is None:
        raise ValueError(f"{zone!r} is not an Availability Zone")
    return "".join(part.title() for part in zone.removeprefix(region).split("-"))


def subnet(zone: str) -> str:
    """Return the logical id of the subnet in a zone, e.g. `SubnetA`, or `SubnetLax1A` in a Local Zone."""
    return f"Subnet{zone_id(zone)}"


def subnet_parameter(zone: str) -> str:
    """Return the name of the parameter and output that hold the id of the subnet in a zone, e.g. `SubnetAId`."""
    return f"{subnet(zone)}Id"


def zone_of_subnet(logical_id: str, region: str) -> str | None:
    """Return the zone of a name that `subnet` or `subnet_parameter` made, or None for any other name."""
    match = _SUBNET.fullmatch(logical_id)
    if match is None:
        return None
    local = f"-{match['place']}-{match['number']}" if match["place"] else ""
    return f"{region}{local}{match['letter']}".lower()


def is_subnet_parameter(name: str) -> bool:
    """Return whether a name was made by `subnet_parameter`."""
    match = _SUBNET.fullmatch(name)
    return match is not None and match["parameter"] is not None


def source_id(source: str) -> str:
    """Return a CIDR or prefix list as letters and digits: `10x0x0x0x8` for 10.0.0.0/8, `Pl0123` for pl-0123."""
    return f"Pl{source.removeprefix('pl-')}" if source.startswith("pl-") else re.sub(r"[./]", "x", source)


def source_in(logical_id: str) -> str:
    """Return the CIDR or prefix list that a logical id ends with (see `source_id`), or an empty string."""
    if match := _PREFIX_LIST.search(logical_id):
        return f"pl-{match[1]}"
    match = _CIDR.search(logical_id)
    return "{}.{}.{}.{}/{}".format(*match.groups()) if match else ""
