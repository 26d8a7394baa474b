"""What the name of an Availability Zone or Local Zone says: its region, and which of the two it is."""

from __future__ import annotations

import re

# A zone such as `us-west-2a`, or a Local Zone such as `us-west-2-lax-1a`; the first group is the region.
_ZONE_PATTERN = re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9])(-[a-z]{3}-[0-9])?[a-z]")


def zone_region(zone: object) -> str | None:
    """Return the region of an Availability Zone or a Local Zone, or None if `zone` is neither."""
    match = _ZONE_PATTERN.fullmatch(zone) if isinstance(zone, str) else None
    return match[1] if match else None


def zone_suffix(zone: object) -> str:
    """Return the end of a zone's name after its region: `a` of us-west-2a, `lax-1a` of us-west-2-lax-1a.

    Returns "" if `zone` is neither an Availability Zone nor a Local Zone.
    """
    region = zone_region(zone)
    return str(zone)[len(region) :].removeprefix("-") if region else ""


def is_local_zone(zone: str) -> bool:
    """Return whether a zone is a Local Zone, such as us-west-2-lax-1a."""
    region = zone_region(zone)
    return region is not None and zone[len(region) :].startswith("-")
