"""What the name of an Availability Zone or Local Zone says: its region, and which of the two it is."""

from __future__ import annotations

import re

# A zone such as `us-west-2a`, or a Local Zone such as `us-west-2-lax-1a`; the first group is the region.
_ZONE_PATTERN = re.compile(r"([a-z]{2}(?:-[a-z]+)+-[0-9])(-[a-z]{3}-[0-9])?[a-z]")

# The letters of Availability Zones in regions that have others than a, b and c in some account, as cfn-lint lists them
# (cfnlint/helpers.py, AVAILABILITY_ZONES, November 2026), which lacks cn-north-1d.
_LETTERS = {
    "us-east-1": "abcdef",
    **dict.fromkeys(("ap-northeast-1", "ap-northeast-2", "ca-central-1", "cn-north-1", "us-west-2"), "abcd"),
}

ALL_ZONE_LETTERS = _LETTERS["us-east-1"]
"""The letters of the Availability Zones of all regions: none has others."""


def zone_letters(region: str) -> str:
    """Return the letters of the Availability Zones that a region is known to have; an account has some of them."""
    return _LETTERS.get(region, "abc")


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
