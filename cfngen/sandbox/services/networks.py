"""VPCs, their subnets and DHCP options."""

from __future__ import annotations

import ipaddress

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule

SUBNET_PREFIX_LENGTHS = range(16, 29)  # VPC user guide, "Subnet CIDR blocks": from /16 to /28
RESERVED_ADDRESSES = 5  # addresses that AWS reserves in each subnet (the same page)


@rule("ec2", "CreateVpc")
def check_quota_of_vpcs(call: PendingCall) -> None:
    """Refuse to create more VPCs than the quota allows; the default VPC counts, too."""
    if len(call.backend.vpcs) >= quotas.applied_value(quotas.VPCS):
        raise Refused("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


@rule("ec2", "AssociateVpcCidrBlock")
def check_further_range_of_a_vpc(call: PendingCall) -> None:
    """Refuse a range of a wrong size, or one that overlaps a range of the VPC or contains the destination of a route.

    VPC User Guide, "VPC CIDR blocks", section "Secondary IPv4 CIDR blocks".
    """
    block = str(call.get("CidrBlock", ""))
    try:
        added = ipaddress.IPv4Network(block)
    except ValueError:
        raise invalid_value(f"Value ({block}) for parameter cidrBlock is invalid.") from None
    if added.prefixlen not in SUBNET_PREFIX_LENGTHS:
        raise Refused("InvalidVpc.Range", f"The CIDR '{block}' is invalid.")
    vpc = call.backend.get_vpc(call.get("VpcId"))
    for association in vpc.get_cidr_block_association_set():
        is_there = association["cidr_block_state"]["state"] != "disassociated"
        if is_there and added.overlaps(ipaddress.IPv4Network(association["cidr_block"], strict=False)):
            raise Refused("InvalidVpc.Range", f"The CIDR '{block}' conflicts with another CIDR of the VPC.")
    for table in call.backend.route_tables.values():
        for route in table.routes if table.vpc_id == vpc.id else ():
            destination = route.destination_cidr_block
            if destination and not route.local and ipaddress.IPv4Network(destination).subnet_of(added):
                raise Refused("InvalidVpc.Range", f"The CIDR '{block}' contains the destination of a route.")


@rule("ec2", "ModifyVpcAttribute")
def check_host_names_need_dns_support(call: PendingCall) -> None:
    """Refuse DNS host names where DNS is not supported (API: ModifyVpcAttribute)."""
    vpc = call.backend.get_vpc(call.get("VpcId"))
    if (call.get("EnableDnsHostnames") or {}).get("Value") and not is_true(vpc.enable_dns_support):
        raise invalid_value(f"DNS hostnames of {vpc.id} can only be enabled if DNS support is enabled")


@rule("ec2", "CreateSubnet")
def check_range_and_zone_of_a_subnet(call: PendingCall) -> None:
    """Refuse a subnet that is too large or too small, in an unknown zone, or beyond the quota."""
    block = str(call.get("CidrBlock", ""))
    zone, region_zones = call.get("AvailabilityZone"), zones(call.region)
    if zone and zone not in region_zones:
        raise invalid_value(
            f"Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the "
            f"following availability zones: {', '.join(region_zones)}."
        )
    try:
        prefix_length = ipaddress.ip_network(block, strict=False).prefixlen
    except ValueError:
        return  # moto refuses it
    if prefix_length not in SUBNET_PREFIX_LENGTHS:
        raise Refused("InvalidSubnet.Range", f"The CIDR '{block}' is invalid.")
    vpc_id = call.get("VpcId")
    if sum(subnet.vpc_id == vpc_id for subnet in _subnets(call.backend)) >= quotas.applied_value(quotas.SUBNETS):
        raise Refused("SubnetLimitExceeded", f"The maximum number of subnets of VPC {vpc_id} has been reached.")


@rule("ec2", "CreateDhcpOptions")
def check_valid_dhcp_options(call: PendingCall) -> None:
    """Refuse DHCP options without a value, servers that are not IP addresses, and invalid domain names."""
    for option in call.get("DhcpConfigurations", []):
        key, values = option.get("Key"), option.get("Values", [])
        if not values:
            raise invalid_value(f"Invalid value '' for {key}. It must not be empty")
        for server in values if key == "domain-name-servers" else ():
            if server != "AmazonProvidedDNS" and not _is_address(server):
                raise invalid_value(f"Invalid value '{server}' for {key}. One or more servers contain bad IPs")
        if key == "domain-name" and not all(_is_domain(value) for value in values):
            raise invalid_value(f"Invalid value '{values[0]}' for domain-name. Invalid domain name")


def zones(region: str) -> list[str]:
    """Return the names of a region's availability zones."""
    return [zone.name for zone in RegionsAndZonesBackend.zones.get(region, [])]


def free_addresses(backend: MotoBackend, subnet: MotoModel) -> int:
    """Return the number of free addresses in a subnet."""
    block = ipaddress.ip_network(subnet.cidr_block, strict=False)
    used_addresses: int = sum(interface.subnet.id == subnet.id for interface in live_interfaces(backend))
    return block.num_addresses - RESERVED_ADDRESSES - used_addresses


def live_interfaces(backend: MotoBackend) -> list[MotoModel]:
    """Return the interfaces without those of terminated instances, which moto keeps."""
    return [
        interface
        for interface in backend.enis.values()
        if not (interface.instance and interface.instance.state == "terminated")
    ]


def _subnets(backend: MotoBackend) -> list[MotoModel]:
    return [subnet for subnets in backend.subnets.values() for subnet in subnets.values()]


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _is_domain(text: str) -> bool:
    labels = text.rstrip(".").split(".")
    return all(label and len(label) <= 63 and label.replace("-", "").replace("_", "").isalnum() for label in labels)


def is_true(value: object) -> bool:
    """Return whether a setting is true, as a boolean or as text."""
    return str(value).lower() == "true"  # moto keeps the text of the request
