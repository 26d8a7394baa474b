"""Parts of logical ids: stable, never made from a position that may shift. See also `cfngen.cluster.names`."""

from __future__ import annotations

import re
from ipaddress import IPv4Network


def pascal(text: str) -> str:
    """Return `text` as one PascalCase word, e.g. `gpu-a` as `GpuA`."""
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text) if part)


def zone_id(zone: str) -> str:
    """Return what tells a zone from the others of its region, e.g. `A`, or `Lax1A` for a Local Zone."""
    match = re.fullmatch(r"[a-z]{2}(?:-[a-z]+)+-[0-9](?:-([a-z]{3})-([0-9]))?([a-z])", zone)
    if not match:
        raise ValueError(f"{zone!r} is not an Availability Zone")
    return "".join(part.capitalize() for part in match.groups(default=""))


def cidr_id(cidr: IPv4Network) -> str:
    """Return a CIDR as letters and digits, e.g. `10x0x0x0x8` for 10.0.0.0/8."""
    return re.sub(r"[./]", "x", str(cidr))
