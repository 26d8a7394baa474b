"""Network interfaces: their addresses, their security groups, and what they are attached to."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.networks import free_addresses, live_interfaces
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule


@rule("ec2", "CreateNetworkInterface")
def check_place_of_an_interface(call: PendingCall) -> None:
    """Refuse an interface whose address or security groups do not fit its subnet."""
    subnet = call.backend.get_subnet(call.get("SubnetId"))
    further_addresses = [item.get("PrivateIpAddress") for item in call.get("PrivateIpAddresses", [])]
    for address in (call.get("PrivateIpAddress"), *further_addresses):
        if address:
            check_address(call.backend, subnet, address)
    if free_addresses(call.backend, subnet) < 1:
        raise Refused(
            "InsufficientFreeAddressesInSubnet",
            "The specified subnet does not have enough free addresses to satisfy the request.",
        )
    check_security_groups(call.backend, call.get("Groups", []), subnet)


@rule("ec2", "ModifyNetworkInterfaceAttribute")
def check_groups_of_an_interface(call: PendingCall) -> None:
    """Refuse to replace the security groups of an interface by ones that it cannot have."""
    interface = call.backend.get_network_interface(call.get("NetworkInterfaceId"))
    if "Groups" in call.parameters:
        if not call.get("Groups"):
            raise invalid_value("The list of security groups of an interface must not be empty")
        check_security_groups(call.backend, call.get("Groups"), interface.subnet)


@rule("ec2", "DeleteNetworkInterface")
def check_interface_in_use(call: PendingCall) -> None:
    """Refuse to delete an interface that is attached to an instance, or belongs to a NAT gateway or an endpoint."""
    interface = call.backend.get_network_interface(call.get("NetworkInterfaceId"))
    if attached_instance(interface) or interface.requester_managed:
        raise invalid_value(f"Network interface '{interface.id}' is currently in use.")  # fmt: skip


@rule("ec2", "AttachNetworkInterface")
def check_attachment(call: PendingCall) -> None:
    """Refuse to attach an interface that is in use or in another zone, or at a device index that is taken."""
    interface = call.backend.get_network_interface(call.get("NetworkInterfaceId"))
    instance = call.backend.get_instance(call.get("InstanceId"))
    if attached_instance(interface):
        raise Refused("InvalidNetworkInterface.InUse", f"Interface: [{interface.id}] in use.")
    if interface.subnet.availability_zone != instance.placement.zone:
        raise Refused("InvalidParameterCombination", ANOTHER_ZONE_MESSAGE)
    index = call.get("DeviceIndex")
    if int(index or 0) in instance.nics:
        raise invalid_value(f"Instance '{instance.id}' already has an interface attached at device index '{index}'.")


ANOTHER_ZONE_MESSAGE = (
    "You may not attach a network interface to an instance if they are not in the same availability zone"
)  # fmt: skip


def attached_instance(interface: MotoModel) -> MotoModel:
    """Return the instance that an interface is attached to; None if the interface is free."""
    instance = interface.instance
    return instance if instance and instance.state != "terminated" else None


def check_address(backend: MotoBackend, subnet: MotoModel, address: str) -> None:
    """Refuse an address that is outside of a subnet, reserved there, or in use.

    VPC user guide, "Subnet CIDR blocks": AWS reserves the first four addresses and the last one of each subnet.
    """
    subnet_range = ipaddress.ip_network(subnet.cidr_block, strict=False)
    try:
        parsed = ipaddress.ip_address(address)
    except ValueError:
        raise invalid_value(f"invalid value for parameter address: {address}") from None
    if parsed not in subnet_range:
        raise invalid_value("Address does not fall within the subnet's address range")
    if parsed in {subnet_range[index] for index in (0, 1, 2, 3, -1)}:
        raise invalid_value("Address is in subnet's reserved address range")
    for other in live_interfaces(backend):
        used_addresses = {
            other.private_ip_address,
            *(private_ip_address.get("PrivateIpAddress") for private_ip_address in other.private_ip_addresses),
        }
        if other.subnet.id == subnet.id and address in used_addresses:
            raise Refused("InvalidIPAddress.InUse", f"Address {address} is in use.")


def check_security_groups(backend: MotoBackend, groups: Iterable[str], subnet: MotoModel | None) -> None:
    """Refuse security groups that an interface in a subnet cannot have.

    Args:
        groups: ids of the security groups.
        subnet: None if it is not known yet: the groups' VPC is then not checked.
    """
    identifiers = list(groups)
    for identifier in identifiers:
        group = backend.get_security_group_from_id(identifier)
        if group is None:
            raise Refused("InvalidGroup.NotFound", f"The security group '{identifier}' does not exist")
        if subnet is not None and group.vpc_id != subnet.vpc_id:
            raise Refused(
                "InvalidParameter", f"Security group {identifier} and subnet {subnet.id} belong to different networks."
            )
    if len(set(identifiers)) < len(identifiers):
        raise invalid_value(f"Duplicate security groups: {', '.join(identifiers)}")
    if len(identifiers) > quotas.applied_value(quotas.GROUPS_OF_AN_INTERFACE):
        raise Refused(
            "SecurityGroupsPerInterfaceLimitExceeded",
            "The maximum number of security groups per interface has been reached.",
        )
