"""Parts of logical ids: stable, never made from a position that may shift. See also `cfngen.cluster.names`."""

from __future__ import annotations

import re
from ipaddress import IPv4Network

from cfngen.cluster.defaults import zone_region
from cfngen.cluster.sections.network import PrefixList


def pascal(text: str) -> str:
    """Return `text` as one PascalCase word, e.g. `gpu-a` as `GpuA`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)


def zone_id(zone: str) -> str:
    """Return what tells a zone from the others of its region, e.g. `A`, or `Lax1A` for a Local Zone."""
    region = zone_region(zone)
    if region is None:
        raise ValueError(f"{zone!r} is not an Availability Zone")
    return "".join(part.title() for part in zone.removeprefix(region).split("-"))


def source_id(origin: IPv4Network | PrefixList) -> str:
    """Return who comes in as letters and digits, e.g. `10x0x0x0x8` for 10.0.0.0/8, `Pl0123` for pl-0123."""
    return f"Pl{origin.id.removeprefix('pl-')}" if isinstance(origin, PrefixList) else re.sub(r"[./]", "x", str(origin))
