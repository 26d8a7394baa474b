"""The zones of an Auto Scaling group: in which one the next instance is launched.

Auto Scaling user guide, "Auto Scaling group Availability Zone distribution", balanced best effort: a group launches in
the zone with the fewest instances; if a launch fails there, it tries another zone. moto 5.2 launches all instances in
the first subnet. Subnets may change while a group lives, and capacity may come back: that a group then moves instances
until its zones are even again (AZRebalance) is not modelled.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from moto.ec2.exceptions import EC2ClientError

from cfngen.sandbox.services import group_lifetime_and_reservation, resource_tags
from cfngen.sandbox.services.launch import Launch
from cfngen.sandbox.services.launch_checks import check_launch, check_request, interface_in_use
from cfngen.sandbox.services.networks import free_addresses
from cfngen.sandbox.services.rules import Refused
from cfngen.sandbox.untyped import JsonObject, MotoModel


def launch_evenly(group: MotoModel, count: int, launch: Callable[[], None]) -> str:
    """Launch instances of a group without mixed instances policy; return EC2's error for the first that it refuses.

    Args:
        launch: launches one instance in the zones and subnets that the group has during the call.
    """
    for launched in range(count):
        errors = []
        for zone in zones_by_use(group):
            error = _launch_error(group, zone, launched)
            if not error:
                with _only_in(group, zone):
                    launch()
                group_lifetime_and_reservation.note_reservation(group, group.instance_states[-1].instance)
                break
            errors.append(error)
        else:
            return errors[0]
    return ""


def zones_by_use(group: MotoModel) -> list[str]:
    """Return the zones of a group, that with the fewest instances first."""
    zones = list(dict.fromkeys(group.availability_zones))
    counts = dict.fromkeys(zones, 0)
    for state in group.active_instances():
        counts[state.availability_zone] = counts.get(state.availability_zone, 0) + 1
    return sorted(zones, key=lambda zone: counts[zone])


def subnet_in(group: MotoModel, zone: str) -> str | None:
    """Return the subnet of a group in a zone, the one with the most free addresses; None if it names zones only."""
    backend, subnet_ids = group.ec2_backend, filter(None, (group.vpc_zone_identifier or "").split(","))
    matches = [subnet for subnet in map(backend.get_subnet, subnet_ids) if subnet.availability_zone == zone]
    return str(max(matches, key=lambda subnet: free_addresses(backend, subnet)).id) if matches else None


def check_launch_of_group(group: MotoModel, zone: str, data: JsonObject) -> Launch:
    """Refuse the launch of an instance of a group in a zone if EC2 would; `data` as in RequestLaunchTemplateData."""
    subnet_id = subnet_in(group, zone)
    launch = Launch(group.ec2_backend, data, [subnet_id] if subnet_id else [], [zone])
    check_request(launch)
    check_launch(launch)
    resource_tags.check_tags_in_metadata(group.region, data, group.get_propagated_tags())
    return launch


def _launch_error(group: MotoModel, zone: str, launched: int) -> str:
    """Return the error with which EC2 refuses a launch in a zone; empty if it does not.

    Args:
        launched: how many instances have been launched at the same time; they take their interfaces afterwards.
    """
    template = group.ec2_launch_template
    if template is None:
        return ""  # groups with a launch configuration are not checked
    data = group_lifetime_and_reservation.with_reservation(
        group, template.get_version(group.launch_template_version).data
    )
    try:
        launch = check_launch_of_group(group, zone, data)
        if launched and launch.existing_interfaces:
            raise interface_in_use(launch.existing_interfaces[0])
    except (Refused, EC2ClientError) as error:
        return str(error.message)
    return ""


@contextlib.contextmanager
def _only_in(group: MotoModel, zone: str) -> Iterator[None]:
    """Let a group have one zone and its subnet there, in which moto then launches."""
    zones, subnets = group.availability_zones, group.vpc_zone_identifier
    group.availability_zones, group.vpc_zone_identifier = [zone], subnet_in(group, zone)
    try:
        yield
    finally:
        group.availability_zones, group.vpc_zone_identifier = zones, subnets
