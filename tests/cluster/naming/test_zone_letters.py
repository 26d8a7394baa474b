"""The zones that regions are known to have: what cfn-lint and moto list is no surprise, and a typing error is one."""

from __future__ import annotations

from cfnlint.helpers import AVAILABILITY_ZONES
from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from cfngen.cluster.naming.zones import ALL_ZONE_LETTERS, zone_letters


def test_zones_that_others_list_are_known() -> None:
    listed = {zone for zones in AVAILABILITY_ZONES.values() for zone in zones}
    listed |= {zone.name for zones in RegionsAndZonesBackend.zones.values() for zone in zones}
    assert len(listed) > 100
    assert {zone for zone in listed if zone[-1] not in zone_letters(zone[:-1])} == set()
    assert {zone[-1] for zone in listed} == set(ALL_ZONE_LETTERS)
    assert "z" not in zone_letters("us-west-2")
