"""The reasons why EC2 refuses a launch although the request is valid: capacity, quotas, prices, interfaces in use.

For an Auto Scaling group, such a refusal is a failed scaling activity.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import capacity, capacity_reservations, keys, quotas
from cfngen.sandbox.services.launch import Launch
from cfngen.sandbox.services.network_interfaces import attached_instance
from cfngen.sandbox.services.networks import free_addresses, zones
from cfngen.sandbox.services.rules import Refused

STANDARD_FAMILIES = re.compile(r"(?:[acdhimrtz]|im|is)\d")  # families that the quotas of standard instances count


def check_launch(launch: Launch) -> None:
    """Refuse a launch for lack of capacity, a maximum price that is too low, an interface in use, and the like."""
    for check in (
        _check_free_interfaces,
        _check_type_offered_in_zones,
        _check_vcpu_quota,
        _check_capacity,
        _check_disk_keys,
    ):
        check(launch)


def _check_free_interfaces(launch: Launch) -> None:
    """Refuse interfaces that are in use, and subnets without enough free addresses."""
    for interface in launch.existing_interfaces:
        if attached_instance(interface) or launch.count > 1:
            raise Refused("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")
    if not launch.existing_interfaces and launch.subnets:
        free = sum(free_addresses(launch.backend, launch.backend.get_subnet(subnet)) for subnet in launch.subnets)
        if free < launch.count:
            raise Refused(
                "InsufficientFreeAddressesInSubnet",
                "There are not enough free addresses in subnet to satisfy the requested number of instances.",
            )


def _check_type_offered_in_zones(launch: Launch) -> None:
    check_offered(launch.region, launch.type, launch.candidate_zones)


def check_offered(region: str, instance_type: str, zone_names: Sequence[str]) -> None:
    """Refuse an instance type that none of these zones offers; without names, none of the region's."""
    offerings = _zone_offerings(region)
    region_zones = zones(region)
    candidate_zones = [zone for zone in zone_names if zone in region_zones] or region_zones
    if not any((instance_type, zone) in offerings for zone in candidate_zones):
        other_zones = [zone for zone in region_zones if (instance_type, zone) in offerings]
        raise Refused(
            "Unsupported",
            f"Your requested instance type ({instance_type}) is not supported in your requested Availability Zone "
            f"({candidate_zones[0]}). Please retry your request by not specifying an Availability Zone or choosing "
            f"{', '.join(other_zones) or 'another region'}.",
        )


def is_offered(region: str, instance_type: str) -> bool:
    """Return whether any zone of a region offers an instance type."""
    return any((instance_type, zone) in _zone_offerings(region) for zone in zones(region))


@functools.cache
def _zone_offerings(region: str) -> frozenset[tuple[str, str]]:
    offerings = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return frozenset((offering["InstanceType"], offering["Location"]) for offering in offerings)


def _check_vcpu_quota(launch: Launch) -> None:
    """Refuse a launch beyond the quota of vCPUs; a place in a capacity reservation is counted already."""
    if not capacity_reservations.usable(launch):
        check_vcpu_quota(launch.backend, launch.type, launch.count, is_spot=launch.is_spot)


def check_vcpu_quota(backend: MotoBackend, instance_type: str, count: int, *, is_spot: bool) -> None:
    """Refuse instances, or reserved capacity, beyond the quota of vCPUs for standard instances, On-Demand or Spot."""
    if not STANDARD_FAMILIES.match(instance_type):
        return
    used_vcpus = sum(
        _vcpus(instance.instance_type)
        for instance in backend.all_instances()
        if instance.state in ("pending", "running")
        and STANDARD_FAMILIES.match(instance.instance_type)
        and is_spot_instance(instance) is is_spot
        and not capacity_reservations.runs_in_active_reservation(instance)
    )
    if not is_spot:
        used_vcpus += sum(
            reservation.count * _vcpus(reservation.instance_type)
            for reservation in capacity_reservations.active_reservations(backend)
            if STANDARD_FAMILIES.match(reservation.instance_type)
        )
    limit = quotas.applied_value(quotas.SPOT if is_spot else quotas.ON_DEMAND)
    if used_vcpus + count * _vcpus(instance_type) > limit:
        if is_spot:
            raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        raise Refused(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit:g} allows for the instance "
            "bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )


def _vcpus(instance_type: str) -> int:
    instance_type_info = INSTANCE_TYPES.get(instance_type)
    return int(instance_type_info["VCpuInfo"]["DefaultVCpus"]) if instance_type_info else 0


def is_spot_instance(instance: MotoModel) -> bool:
    """Return whether an instance is a Spot Instance; moto does not record that for those launched by groups."""
    if instance.lifecycle == "spot":
        return True
    tags = {tag["key"]: tag["value"] for tag in instance.get_tags()}
    template = instance.ec2_backend.launch_templates.get(tags.get("aws:ec2launchtemplate:id", ""))
    if template is None:
        return False
    data = template.get_version(tags["aws:ec2launchtemplate:version"]).data
    return bool((data.get("InstanceMarketOptions") or {}).get("MarketType") == "spot")


def _check_capacity(launch: Launch) -> None:
    """Refuse a maximum price below the Spot price, and a launch where no zone, or its reservation, has capacity."""
    if launch.max_price is not None:
        capacity.check_max_price(launch.region, launch.type, launch.max_price)
    if capacity_reservations.usable(launch):
        return
    candidate_zones = launch.candidate_zones or zones(launch.region)
    free = sum(
        capacity.free_count(launch.backend, launch.type, zone, spot=launch.is_spot) for zone in set(candidate_zones)
    )
    if free < launch.count:
        raise capacity.insufficient_capacity(launch.region, launch.type, candidate_zones[0], spot=launch.is_spot)


def _check_disk_keys(launch: Launch) -> None:
    for mapping in launch.data.get("BlockDeviceMappings") or []:
        fault = keys.launch_error(launch.region, str((mapping.get("Ebs") or {}).get("KmsKeyId") or ""))
        if fault:
            code, _, message = fault.partition(": ")
            raise Refused(code, message)
