"""Why EC2 refuses to launch instances, or to reserve capacity for them.

A request may be invalid: image, type, network, disks, price and user data. Auto Scaling makes the same checks when a
group starts to use a launch template. Or EC2 cannot launch it now, for want of capacity, quotas, free addresses, or a
price that is high enough; for a group, that is a failed scaling activity.
"""

from __future__ import annotations

import base64
import binascii
import functools
import re
from collections.abc import Sequence

from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES

from cfngen.sandbox.services import capacity, capacity_reservations, keys, quotas
from cfngen.sandbox.services.capacity_reservations import find_target
from cfngen.sandbox.services.iam import check_profile
from cfngen.sandbox.services.launch import Launch, from_template, launch_template_data
from cfngen.sandbox.services.network_interfaces import ANOTHER_ZONE_MESSAGE, attached_instance, check_security_groups
from cfngen.sandbox.services.networks import free_addresses, zones
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule
from cfngen.sandbox.services.volumes import check_root_volume, check_volume_settings
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoModel

MAX_USER_DATA_BYTES = 16384  # before base64; EC2 user guide, "Run commands when you launch an instance"
DEVICE_NAME_PATTERN = re.compile(r"/dev/(sd[a-z]\d{0,2}|xvd[a-z]{1,2}\d{0,2})|xvd[a-z]{1,2}")
STANDARD_FAMILIES = re.compile(r"(?:[acdhimrtz]|im|is)\d")  # families that the quotas of standard instances count


def check_request(launch: Launch) -> None:
    """Refuse a request for instances that is invalid."""
    _check_image(launch)
    _check_type(launch)
    _check_network(launch)
    _check_key_pair(launch)
    check_profile(launch.region, launch.data.get("IamInstanceProfile") or {})
    _check_disks(launch)
    _check_spot_options(launch)
    check_user_data(launch.data.get("UserData"))


def _check_image(launch: Launch) -> None:
    image = str(launch.data.get("ImageId", ""))
    if not image.startswith("ami-"):
        raise Refused("InvalidAMIID.Malformed", f'Invalid id: "{image}" (expecting "ami-...")')
    if image in launch.backend.deleted_amis:
        raise Refused("InvalidAMIID.Unavailable", f"The image id '[{image}]' is no longer available")
    if image not in launch.backend.amis:
        raise Refused("InvalidAMIID.NotFound", f"The image id '[{image}]' does not exist")
    if launch.backend.amis[image].state != "available":
        raise Refused("InvalidAMIID.Unavailable", f"The image id '[{image}]' is no longer available")


def _check_type(launch: Launch) -> None:
    if launch.type not in INSTANCE_TYPES:
        raise invalid_value(f"Invalid value '{launch.type}' for InstanceType.")
    type_architectures = INSTANCE_TYPES[launch.type]["ProcessorInfo"]["SupportedArchitectures"]
    image_architecture = launch.backend.amis[launch.data["ImageId"]].architecture
    if image_architecture and image_architecture not in type_architectures:
        raise invalid_value(
            f"The architecture '{','.join(type_architectures)}' of the specified instance type does not match the "
            f"architecture '{image_architecture}' of the specified AMI. Specify an instance type and an AMI that have "
            "matching architectures, and try again."
        )


def _check_network(launch: Launch) -> None:
    if len(launch.interfaces) > 1:  # all of them at index 0: others are not modelled
        raise invalid_value("Each network interface requires a unique device index.")
    subnets = [launch.backend.get_subnet(subnet_id) for subnet_id in launch.subnets]
    subnet = subnets[0] if subnets else None
    for specification in launch.interfaces:
        if specification.get("NetworkInterfaceId"):
            _check_existing_interface(specification, launch_names_subnet=bool(subnets))
        else:
            check_security_groups(launch.backend, specification.get("Groups") or [], subnet)
    for interface in launch.existing_interfaces:
        if launch.candidate_zones and interface.subnet.availability_zone not in launch.candidate_zones:
            raise Refused("InvalidParameterCombination", ANOTHER_ZONE_MESSAGE)


def _check_existing_interface(specification: JsonObject, *, launch_names_subnet: bool) -> None:
    """Refuse settings for an existing interface that only a new one can have.

    Args:
        launch_names_subnet: whether the launch itself names a subnet, which EC2 would take for the interface's.
    """
    setting = "a subnet" if launch_names_subnet else "security groups" if specification.get("Groups") else ""
    if setting:
        raise Refused(
            "InvalidParameterCombination",
            f"A network interface may not specify both a network interface ID and {setting}",
        )


def _check_key_pair(launch: Launch) -> None:
    name = launch.data.get("KeyName")
    if name and name not in launch.backend.key_pairs:
        raise Refused("InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist")


def _check_disks(launch: Launch) -> None:
    image = launch.backend.amis[launch.data["ImageId"]]
    mappings = launch.data.get("BlockDeviceMappings") or []
    device_names = [mapping["DeviceName"] for mapping in mappings]
    if unknown := [name for name in device_names if not DEVICE_NAME_PATTERN.fullmatch(name)]:
        raise Refused("InvalidBlockDeviceMapping", f"Invalid device name {unknown[0]}")
    if repeated := sorted({name for name in device_names if device_names.count(name) > 1}):
        raise Refused("InvalidBlockDeviceMapping", f"The device '{repeated[0]}' is used in more than one mapping")
    for mapping in mappings:
        ebs = mapping.get("Ebs") or {}
        size = int(ebs["VolumeSize"]) if ebs.get("VolumeSize") else None
        if mapping["DeviceName"] == image.root_device_name:
            check_root_volume(image, size)
        iops = int(ebs["Iops"]) if ebs.get("Iops") else None
        throughput = int(ebs["Throughput"]) if ebs.get("Throughput") else None
        if ebs:
            check_volume_settings(ebs.get("VolumeType", "gp2"), size=size, iops=iops, throughput=throughput)


def _check_spot_options(launch: Launch) -> None:
    options = launch.data.get("InstanceMarketOptions") or {}
    if options and not options.get("MarketType"):
        raise Refused("MissingParameter", "The request must contain the parameter MarketType.")
    try:
        max_price = launch.max_price
    except ValueError:
        raise invalid_value(f"Invalid value '{options['SpotOptions']['MaxPrice']}' for spotPrice") from None
    if max_price is not None and max_price < capacity.MIN_SPOT_PRICE:
        raise invalid_value(
            f"Invalid bid price: {max_price:g}. Bid price must be greater than or equal to {capacity.MIN_SPOT_PRICE:g}"
        )


def check_user_data(text: object) -> None:
    """Refuse user data that is not base64, or too long; None counts as empty."""
    try:
        decoded = base64.b64decode(str(text or ""), validate=True)
    except binascii.Error:
        raise Refused("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if len(decoded) > MAX_USER_DATA_BYTES:
        raise invalid_value(f"User data is limited to {MAX_USER_DATA_BYTES} bytes")


def check_launch(launch: Launch) -> None:
    """Refuse a launch for lack of capacity, a maximum price that is too low, an interface in use, and the like."""
    _check_free_interfaces(launch)
    check_offered(launch.region, launch.type, launch.candidate_zones)
    if not capacity_reservations.usable(launch):  # an instance in a reservation is counted with it
        check_vcpu_quota(launch.backend, launch.type, launch.count, is_spot=launch.is_spot)
    _check_capacity(launch)
    _check_disk_keys(launch)


def _check_free_interfaces(launch: Launch) -> None:
    """Refuse interfaces that are in use, and subnets without enough free addresses."""
    for interface in launch.existing_interfaces:
        if attached_instance(interface) or launch.count > 1:
            raise interface_in_use(interface)
    if not launch.existing_interfaces and launch.subnets:
        free = sum(free_addresses(launch.backend, launch.backend.get_subnet(subnet)) for subnet in launch.subnets)
        if free < launch.count:
            raise Refused(
                "InsufficientFreeAddressesInSubnet",
                "There are not enough free addresses in subnet to satisfy the requested number of instances.",
            )


def interface_in_use(interface: MotoModel) -> Refused:
    """Return the refusal of a launch on an interface that another instance has."""
    return Refused("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")


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
    market = launch_template_data(instance).get("InstanceMarketOptions") or {}
    return bool(market.get("MarketType") == "spot")


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


@rule("ec2", "RunInstances")
def check_valid_request(call: PendingCall) -> None:
    """Refuse a request that is invalid, or whose instances EC2 could not launch now."""
    request = {key: value for key, value in call.parameters.items() if value not in (None, [], "")}
    reference = request.pop("LaunchTemplate", None)
    template_data = from_template(call.backend, reference).data if reference else {}
    data = {**template_data, **request}
    zone = (request.get("Placement") or {}).get("AvailabilityZone")
    launch = Launch(
        call.backend,
        data,
        subnets=[request["SubnetId"]] if request.get("SubnetId") else [],
        zones=[zone] if zone else [],
        count=int(request.get("MinCount", 1)),
    )
    check_request(launch)
    check_launch(launch)


@rule("ec2", "CreateCapacityReservation")
def check_new_reservation(call: PendingCall) -> None:
    """Refuse a reservation of an unknown type, in an unknown zone, or where EC2 has no capacity."""
    instance_type, zone = str(call.get("InstanceType")), str(call.get("AvailabilityZone"))
    if instance_type not in INSTANCE_TYPES:
        raise invalid_value(f"Invalid value '{instance_type}' for InstanceType.")
    if zone not in zones(call.region):
        raise invalid_value(f"Invalid value '{zone}' for AvailabilityZone.")
    check_offered(call.region, instance_type, [zone])
    check_vcpu_quota(call.backend, instance_type, int(call.get("InstanceCount")), is_spot=False)
    if not capacity.has_capacity(call.region, instance_type, zone):
        raise capacity.insufficient_capacity(call.region, instance_type, zone)


@rule("ec2", "CancelCapacityReservation")
def check_existing_reservation(call: PendingCall) -> None:
    """Refuse to cancel a reservation that does not exist, or is cancelled."""
    find_target(call.backend, str(call.get("CapacityReservationId")))
