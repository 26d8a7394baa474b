"""Launches of instances: the checks of EC2 on a request, and on the launch template of an Auto Scaling group.

When a group starts to use a launch template, Auto Scaling makes EC2's checks of the request itself (`check_request`).
Errors that appear only in a real launch (`check_launch`) become a failed scaling activity of the group.
"""

from __future__ import annotations

import base64
import binascii
import functools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.ec2.models.instance_types import INSTANCE_TYPE_OFFERINGS, INSTANCE_TYPES
from moto.iam.models import iam_backends

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import capacity, keys, quotas
from cfngen.sandbox.services.network_interfaces import ANOTHER_ZONE, check_address, check_groups, user
from cfngen.sandbox.services.networks import free_addresses, zones
from cfngen.sandbox.services.rules import Attempt, Refused, rule
from cfngen.sandbox.services.volumes import check_settings, check_snapshot

MAX_USER_DATA_BYTES = 16384  # bytes before base64, EC2 user guide, "Run commands when you launch an instance"
STANDARD_FAMILIES = re.compile(r"(?:[acdhimrtz]|im|is)\d")  # families that the quotas of standard instances count
DEVICE_NAME = re.compile(r"/dev/(sd[a-z]\d{0,2}|xvd[a-z]{1,2}\d{0,2})|xvd[a-z]{1,2}")
DEFAULT_TYPE = "m1.small"  # EC2 API, RunInstances


@dataclass(frozen=True)
class Launch:
    """A request for instances.

    Attributes:
        backend: moto's EC2 of the region.
        data: as in RequestLaunchTemplateData: the launch template's data, overridden by the request's parameters.
        subnets: ids of the subnets to choose from; empty for those of the default VPC.
        zones: names of the zones to choose from; empty if the subnets determine them, or EC2 may choose.
        count: number of instances.
    """

    backend: MotoBackend
    data: JsonObject
    subnets: Sequence[str] = ()
    zones: Sequence[str] = ()
    count: int = 1
    interfaces: Sequence[JsonObject] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "interfaces", self.data.get("NetworkInterfaces") or [])

    @property
    def region(self) -> str:
        """The region's name."""
        return str(self.backend.region_name)

    @property
    def type(self) -> str:
        """The instance type."""
        return str(self.data.get("InstanceType", DEFAULT_TYPE))

    @property
    def existing_interfaces(self) -> list[MotoModel]:
        """The existing network interfaces that the request names."""
        interface_ids = [
            interface["NetworkInterfaceId"] for interface in self.interfaces if interface.get("NetworkInterfaceId")
        ]
        return [self.backend.get_network_interface(interface_id) for interface_id in interface_ids]

    @property
    def candidate_zones(self) -> list[str]:
        """The zones in which the instances may be launched; empty for any."""
        subnet_zones = [self.backend.get_subnet(subnet).availability_zone for subnet in self.subnets]
        return (
            subnet_zones
            or list(self.zones)
            or [interface.subnet.availability_zone for interface in self.existing_interfaces]
        )

    @property
    def bid(self) -> float | None:
        """The maximum price of a Spot Instance; infinite by default, None for On-Demand Instances."""
        market = self.data.get("InstanceMarketOptions") or {}
        if market.get("MarketType") != "spot":
            return None
        text = (market.get("SpotOptions") or {}).get("MaxPrice")
        return math.inf if text is None else float(text)


def from_template(backend: MotoBackend, reference: JsonObject, **options: Any) -> Launch:
    """Return the launch that a launch template describes.

    Args:
        backend: moto's EC2 of the region.
        reference: with `LaunchTemplateId` or `LaunchTemplateName`, and `Version`.
        **options: `subnets`, `zones` and `count` of the launch.

    Raises:
        Refused: there is no such template, or no such version of it
    """
    identifier, name = reference.get("LaunchTemplateId"), reference.get("LaunchTemplateName")
    identifier = identifier or backend.launch_template_name_to_ids.get(name)
    if identifier not in backend.launch_templates:
        raise Refused(
            "InvalidLaunchTemplateId.NotFound",
            f"The specified launch template, with template ID {identifier or name}, does not exist.",
        )
    template, version = backend.launch_templates[identifier], str(reference.get("Version") or "$Default")
    numbers = {str(template_version.number) for template_version in template.versions}
    if version not in {"$Default", "$Latest", *numbers}:
        raise Refused(
            "InvalidLaunchTemplateId.VersionNotFound",
            f"Could not find launch template version {version} for launch template id {identifier}",
        )
    return Launch(backend, template.get_version(version).data, **options)


@rule("ec2", "RunInstances")
def valid_request(attempt: Attempt) -> None:
    """Refuse instances that cannot be launched."""
    request = {key: value for key, value in attempt.parameters.items() if value not in (None, [], "")}
    reference = request.pop("LaunchTemplate", None)
    template_data = from_template(attempt.backend, reference).data if reference else {}
    data = {**template_data, **request}
    interfaces = data.get("NetworkInterfaces") or []
    if interfaces and (request.get("SecurityGroupIds") or request.get("SecurityGroups")):
        raise Refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level security groups may not be specified on the same request",
        )
    if interfaces and request.get("SubnetId"):
        raise Refused(
            "InvalidParameterCombination",
            "Network interfaces and an instance-level subnet ID may not be specified on the same request",
        )
    subnets = [
        subnet_id
        for subnet_id in [request.get("SubnetId"), *(item.get("SubnetId") for item in interfaces)]
        if subnet_id
    ]
    zone = (request.get("Placement") or {}).get("AvailabilityZone")
    launch = Launch(attempt.backend, data, subnets[:1], [zone] if zone else [], int(request.get("MinCount", 1)))
    check_request(launch)
    check_launch(launch)


def check_request(launch: Launch) -> None:
    """Refuse an invalid request.

    Raises:
        Refused: as RunInstances does
    """
    for check in (
        _check_image,
        _check_type,
        _check_network,
        _check_key_pair,
        _check_profile,
        _check_devices,
        _check_market,
        _check_user_data,
    ):
        check(launch)


def check_launch(launch: Launch) -> None:
    """Refuse a launch for lack of capacity, a maximum price that is too low, an interface in use, and the like.

    Raises:
        Refused: as RunInstances does
    """
    for check in (_check_free_interfaces, _check_offered, _check_quota, _check_capacity, _check_key):
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
        raise Refused("InvalidParameterValue", f"Invalid value '{launch.type}' for InstanceType.")
    offered = INSTANCE_TYPES[launch.type]["ProcessorInfo"]["SupportedArchitectures"]
    architecture = launch.backend.amis[launch.data["ImageId"]].architecture
    if architecture and architecture not in offered:
        raise Refused(
            "InvalidParameterValue",
            f"The architecture '{','.join(offered)}' of the specified instance type does not match the architecture "
            f"'{architecture}' of the specified AMI. Specify an instance type and an AMI that have matching "
            "architectures, and try again.",
        )


def _check_network(launch: Launch) -> None:
    subnets = [launch.backend.get_subnet(subnet_id) for subnet_id in launch.subnets]
    groups = launch.data.get("SecurityGroupIds") or []
    if launch.interfaces and groups:
        raise Refused(
            "InvalidParameterCombination",
            "When a network interface is provided, the security groups must be a part of it.",
        )
    indices = [int(interface.get("DeviceIndex", 0)) for interface in launch.interfaces]
    if len(set(indices)) < len(indices):
        raise Refused("InvalidParameterValue", "Each network interface requires a unique device index.")
    for specification in launch.interfaces:
        if specification.get("NetworkInterfaceId"):
            _check_existing(specification, in_subnets=bool(subnets) and not specification.get("SubnetId"))
            continue
        subnet = (
            launch.backend.get_subnet(specification["SubnetId"])
            if specification.get("SubnetId")
            else next(iter(subnets), None)
        )
        check_groups(launch.backend, specification.get("Groups") or [], subnet)
        if subnet and specification.get("PrivateIpAddress"):
            check_address(launch.backend, subnet, specification["PrivateIpAddress"])
    check_groups(launch.backend, groups, next(iter(subnets), None))
    for interface in launch.existing_interfaces:
        if launch.candidate_zones and interface.subnet.availability_zone not in launch.candidate_zones:
            raise Refused("InvalidParameterCombination", ANOTHER_ZONE)


def _check_existing(specification: JsonObject, *, in_subnets: bool) -> None:
    wrong_key = next(
        (key for key in ("SubnetId", "Groups", "PrivateIpAddress", "Description") if specification.get(key)), ""
    )
    subnet = "a subnet" if in_subnets or wrong_key == "SubnetId" else ""
    parameter = subnet or {"Groups": "security groups", "PrivateIpAddress": "a private IP address"}.get(wrong_key, "")
    if parameter:
        raise Refused(
            "InvalidParameterCombination",
            f"A network interface may not specify both a network interface ID and {parameter}",
        )
    if str(specification.get("AssociatePublicIpAddress", "false")).lower() == "true":
        raise Refused(
            "InvalidParameterCombination",
            "The associatePublicIPAddress parameter can only be specified for a new network interface",
        )


def _check_key_pair(launch: Launch) -> None:
    name = launch.data.get("KeyName")
    if name and name not in launch.backend.key_pairs:
        raise Refused("InvalidKeyPair.NotFound", f"The key pair '{name}' does not exist")


def _check_profile(launch: Launch) -> None:
    reference = launch.data.get("IamInstanceProfile") or {}
    for kind, value, label in (("name", reference.get("Name"), "name"), ("arn", reference.get("Arn"), "ARN")):
        if not value:
            continue
        profiles = iam_backends[DEFAULT_ACCOUNT_ID]["aws"].instance_profiles.values()
        match = next((profile for profile in profiles if value in (profile.name, profile.arn)), None)
        if match is None or (kind == "arn") != (value == match.arn):
            raise Refused(
                "InvalidParameterValue",
                f"Value ({value}) for parameter iamInstanceProfile.{kind} is invalid. Invalid IAM Instance Profile "
                f"{label}",
            )
        if not match.roles:
            raise Refused("InvalidParameterValue", f'IAM Instance Profile "{match.arn}" has no associated IAM Roles')


def _check_devices(launch: Launch) -> None:
    image = launch.backend.amis[launch.data["ImageId"]]
    names = [
        str(block_device_mapping.get("DeviceName", ""))
        for block_device_mapping in launch.data.get("BlockDeviceMappings") or []
    ]
    for name in names:
        if not DEVICE_NAME.fullmatch(name):
            raise Refused("InvalidBlockDeviceMapping", f"Invalid device name {name}")
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        raise Refused("InvalidBlockDeviceMapping", f"The device '{repeated[0]}' is used in more than one mapping")
    for mapping in launch.data.get("BlockDeviceMappings") or []:
        ebs = mapping.get("Ebs") or {}
        size = int(ebs["VolumeSize"]) if ebs.get("VolumeSize") else None
        snapshot = ebs.get("SnapshotId")
        if mapping["DeviceName"] == image.root_device_name:
            snapshot = snapshot or image.ebs_snapshot.id
        elif not snapshot and ebs and size is None:
            raise Refused("MissingParameter", "The request must contain the parameter size or snapshotId")
        if snapshot:
            check_snapshot(launch.backend, snapshot, size)
        iops, throughput = (int(ebs[key]) if ebs.get(key) else None for key in ("Iops", "Throughput"))
        if ebs:
            check_settings(ebs.get("VolumeType", "gp2"), size, iops, throughput)
        if ebs.get("KmsKeyId") and str(ebs.get("Encrypted", "")).lower() == "false":
            raise Refused("InvalidParameterDependency", "The parameter KmsKeyId requires the parameter Encrypted.")


def _check_market(launch: Launch) -> None:
    options = launch.data.get("InstanceMarketOptions") or {}
    if options and not options.get("MarketType"):
        raise Refused("MissingParameter", "The request must contain the parameter MarketType.")
    try:
        bid = launch.bid
    except ValueError:
        bid = math.nan
    if bid is not None and not bid > 0:
        text = (options.get("SpotOptions") or {}).get("MaxPrice")
        raise Refused("InvalidParameterValue", f"Invalid value '{text}' for spotPrice")
    if bid is not None and bid < capacity.MIN_SPOT_PRICE:
        raise Refused(
            "InvalidParameterValue",
            f"Invalid bid price: {bid:g}. Bid price must be greater than or equal to {capacity.MIN_SPOT_PRICE:g}",
        )


def _check_user_data(launch: Launch) -> None:
    check_user_data(launch.data.get("UserData"))


def check_user_data(text: object) -> None:
    """Refuse user data that is not base64, or too long.

    Raises:
        Refused: as EC2 does
    """
    try:
        decoded = base64.b64decode(str(text or ""), validate=True)
    except binascii.Error:
        raise Refused("InvalidUserData.Malformed", "Invalid BASE64 encoding of user data.") from None
    if len(decoded) > MAX_USER_DATA_BYTES:
        raise Refused("InvalidParameterValue", f"User data is limited to {MAX_USER_DATA_BYTES} bytes")


def _check_free_interfaces(launch: Launch) -> None:
    for interface in launch.existing_interfaces:
        if user(interface) or launch.count > 1:
            raise Refused("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")
    if not launch.existing_interfaces and launch.subnets:
        free = sum(free_addresses(launch.backend, launch.backend.get_subnet(subnet)) for subnet in launch.subnets)
        if free < launch.count:
            raise Refused(
                "InsufficientFreeAddressesInSubnet",
                "There are not enough free addresses in subnet to satisfy the requested number of instances.",
            )


def _check_offered(launch: Launch) -> None:
    offered = _zone_offerings(launch.region)
    region_zones = zones(launch.region)
    candidate_zones = [zone for zone in launch.candidate_zones if zone in region_zones] or region_zones
    if not any((launch.type, zone) in offered for zone in candidate_zones):
        other_zones = [zone for zone in region_zones if (launch.type, zone) in offered]
        raise Refused(
            "Unsupported",
            f"Your requested instance type ({launch.type}) is not supported in your requested Availability Zone "
            f"({candidate_zones[0]}). Please retry your request by not specifying an Availability Zone or choosing "
            f"{', '.join(other_zones) or 'another region'}.",
        )


@functools.cache
def _zone_offerings(region: str) -> frozenset[tuple[str, str]]:
    offerings = INSTANCE_TYPE_OFFERINGS["availability-zone"].get(region, [])
    return frozenset((offering["InstanceType"], offering["Location"]) for offering in offerings)


def _check_quota(launch: Launch) -> None:
    if not STANDARD_FAMILIES.match(launch.type):
        return
    is_spot = launch.bid is not None
    used = sum(
        _vcpus(instance.instance_type)
        for instance in launch.backend.all_instances()
        if instance.state in ("pending", "running")
        and STANDARD_FAMILIES.match(instance.instance_type)
        and _is_spot(instance) is is_spot
    )
    if used + launch.count * _vcpus(launch.type) > quotas.applied(quotas.SPOT if is_spot else quotas.ON_DEMAND):
        if is_spot:
            raise Refused("MaxSpotInstanceCountExceeded", "Max spot instance count exceeded")
        limit = quotas.applied(quotas.ON_DEMAND)
        raise Refused(
            "VcpuLimitExceeded",
            f"You have requested more vCPU capacity than your current vCPU limit of {limit:g} allows for the instance "
            "bucket that the specified instance type belongs to. Please visit "
            "http://aws.amazon.com/contact-us/ec2-request to request an adjustment to this limit.",
        )


def _vcpus(instance_type: str) -> int:
    instance_type_info = INSTANCE_TYPES.get(instance_type)
    return int(instance_type_info["VCpuInfo"]["DefaultVCpus"]) if instance_type_info else 0


def _is_spot(instance: MotoModel) -> bool:
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
    bid = launch.bid
    if bid is not None:
        capacity.check_bid(launch.region, launch.type, bid)
    candidate_zones = launch.candidate_zones or zones(launch.region)
    if not any(capacity.has_room(launch.region, launch.type, zone) for zone in candidate_zones):
        raise capacity.no_room(launch.region, launch.type, candidate_zones[0])


def _check_key(launch: Launch) -> None:
    for mapping in launch.data.get("BlockDeviceMappings") or []:
        fault = keys.fault(launch.region, str((mapping.get("Ebs") or {}).get("KmsKeyId") or ""))
        if fault:
            code, _, message = fault.partition(": ")
            raise Refused(code, message)
