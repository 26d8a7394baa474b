"""The checks of EC2 on a request for instances: image, type, network, disks, price and user data.

When an Auto Scaling group starts to use a launch template, Auto Scaling makes the same checks.
"""

from __future__ import annotations

import base64
import binascii
import math
import re

from moto.ec2.models.instance_types import INSTANCE_TYPES

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.services import capacity
from cfngen.sandbox.services.iam_propagation import check_profile
from cfngen.sandbox.services.launch import Launch
from cfngen.sandbox.services.network_interfaces import ANOTHER_ZONE_MESSAGE, check_security_groups
from cfngen.sandbox.services.networks import is_true
from cfngen.sandbox.services.rules import Refused, invalid_value
from cfngen.sandbox.services.volumes import check_root_volume, check_volume_settings

MAX_USER_DATA_BYTES = 16384  # before base64; EC2 user guide, "Run commands when you launch an instance"
DEVICE_NAME_PATTERN = re.compile(r"/dev/(sd[a-z]\d{0,2}|xvd[a-z]{1,2}\d{0,2})|xvd[a-z]{1,2}")


def check_request(launch: Launch) -> None:
    """Refuse a request for instances that is invalid."""
    for check in (
        _check_image,
        _check_type,
        _check_network,
        _check_key_pair,
        _check_instance_profile,
        _check_disks,
        _check_spot_options,
        _check_user_data,
    ):
        check(launch)


def _check_image(launch: Launch) -> None:
    image = str(launch.data.get("ImageId", ""))
    if not image:
        raise Refused("MissingParameter", "The request must contain the parameter ImageId")
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
    subnets = [launch.backend.get_subnet(subnet_id) for subnet_id in launch.subnets]
    device_indices = [int(interface.get("DeviceIndex", 0)) for interface in launch.interfaces]
    if len(set(device_indices)) < len(device_indices):
        raise invalid_value("Each network interface requires a unique device index.")
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
    if is_true(specification.get("AssociatePublicIpAddress")):
        raise Refused(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter can only be specified for a new network interface",
        )


def _check_key_pair(launch: Launch) -> None:
    name = launch.data.get("KeyName")
    if name and name not in launch.backend.key_pairs:
        raise Refused("InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist")


def _check_instance_profile(launch: Launch) -> None:
    check_profile(launch.region, launch.data.get("IamInstanceProfile") or {})


def _check_disks(launch: Launch) -> None:
    image = launch.backend.amis[launch.data["ImageId"]]
    mappings = launch.data.get("BlockDeviceMappings") or []
    device_names = [str(mapping.get("DeviceName", "")) for mapping in mappings]
    for name in device_names:
        if not DEVICE_NAME_PATTERN.fullmatch(name):
            raise Refused("InvalidBlockDeviceMapping", f"Invalid device name {name}")
    if repeated := sorted({name for name in device_names if device_names.count(name) > 1}):
        raise Refused("InvalidBlockDeviceMapping", f"The device '{repeated[0]}' is used in more than one mapping")
    for mapping in mappings:
        ebs = mapping.get("Ebs") or {}
        size = int(ebs["VolumeSize"]) if ebs.get("VolumeSize") else None
        if mapping["DeviceName"] == image.root_device_name:
            check_root_volume(image, size)
        elif ebs and size is None:
            raise Refused("MissingParameter", "The request must contain the parameter size or snapshotId")
        iops = int(ebs["Iops"]) if ebs.get("Iops") else None
        throughput = int(ebs["Throughput"]) if ebs.get("Throughput") else None
        if ebs:
            check_volume_settings(ebs.get("VolumeType", "gp2"), size=size, iops=iops, throughput=throughput)
        if ebs.get("KmsKeyId") and str(ebs.get("Encrypted", "")).lower() == "false":
            raise Refused("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted.")


def _check_spot_options(launch: Launch) -> None:
    options = launch.data.get("InstanceMarketOptions") or {}
    if options and not options.get("MarketType"):
        raise Refused("MissingParameter", "The request must contain the parameter MarketType.")
    text = (options.get("SpotOptions") or {}).get("MaxPrice")
    invalid_price = invalid_value(f"Invalid value '{text}' for spotPrice")
    try:
        max_price = launch.max_price
    except ValueError:
        raise invalid_price from None
    if max_price is None:
        return  # On-Demand Instances
    if math.isnan(max_price) or max_price <= 0:
        raise invalid_price
    if max_price < capacity.MIN_SPOT_PRICE:
        raise invalid_value(
            f"Invalid bid price: {max_price:g}. Bid price must be greater than or equal to {capacity.MIN_SPOT_PRICE:g}"
        )


def _check_user_data(launch: Launch) -> None:
    check_user_data(launch.data.get("UserData"))


def check_user_data(text: object) -> None:
    """Refuse user data that is not base64, or too long; None counts as empty."""
    try:
        decoded = base64.b64decode(str(text or ""), validate=True)
    except binascii.Error:
        raise Refused("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if len(decoded) > MAX_USER_DATA_BYTES:
        raise invalid_value(f"User data is limited to {MAX_USER_DATA_BYTES} bytes")
