"""Network interfaces: their addresses, also Elastic IP addresses, security groups, and what they are attached to.

EC2 makes and manages interfaces in a subnet for NAT gateways and VPC endpoints. moto gives those random addresses
outside of their subnet, the VPC's default security group, and nothing that shows what they belong to.
"Requester-managed network interfaces" (EC2 user guide): they cannot be deleted by hand.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from moto.ec2.models.elastic_network_interfaces import NetworkInterface
from moto.ec2.models.subnets import Subnet

from cfngen.sandbox.moto_patches.registry import patches, replaces
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.networks import free_addresses, gateway_of, live_interfaces, used_addresses
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule
from cfngen.sandbox.untyped import JsonDict, MotoBackend, MotoModel, Original

NAT_GATEWAY_INTERFACE = "nat_gateway"  # EC2 API, NetworkInterface
ANOTHER_ZONE_MESSAGE = (
    "You may not attach a network interface to an instance if they are not in the same availability zone"
)  # fmt: skip
RESERVED_AT_START = 4  # VPC user guide, "Subnet CIDR blocks": the first four addresses and the last one


@rule("ec2", "AssignPrivateIpAddresses")
def check_further_addresses(call: PendingCall) -> None:
    """Refuse further addresses of an interface that do not fit its subnet."""
    interface = call.backend.get_network_interface(call.get("NetworkInterfaceId"))
    for address in call.get("PrivateIpAddresses", []):
        check_address(call.backend, interface.subnet, address)


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
    check_security_groups(call.backend, call.get("Groups") or [], interface.subnet)


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
    if address in used_addresses(backend, subnet):
        raise Refused("InvalidIPAddress.InUse", f"Address {address} is in use.")


def check_security_groups(backend: MotoBackend, groups: Iterable[str], subnet: MotoModel | None) -> None:
    """Refuse security groups that an interface in a subnet cannot have.

    Args:
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


def free_address(backend: MotoBackend, subnet: MotoModel, *, from_end: bool = False) -> str:
    """Return an address that no interface in a subnet has; empty if none is free.

    EC2 takes any free address; here it is the first one, or the last one.
    """
    used = used_addresses(backend, subnet)
    block = ipaddress.ip_network(subnet.cidr_block, strict=False)
    positions = range(RESERVED_AT_START, block.num_addresses - 1)
    candidates = (str(block[position]) for position in (reversed(positions) if from_end else positions))
    return next((address for address in candidates if address not in used), "")


@replaces(Subnet, "get_available_subnet_ip")
def _free_address_for_instance(self: MotoModel, instance: MotoModel) -> str:
    """Give an instance an address that no interface has.

    moto 5.2.5 counts the addresses of a subnet's instances only, and would give a fixed address of an interface to one
    (moto/ec2/models/subnets.py, `get_available_subnet_ip`).
    """
    return free_address(self.ec2_backend, self)


@patches(NetworkInterface, "__init__")
def _free_address_for_interface(
    original: Original,
    self: MotoModel,
    ec2_backend: MotoBackend,
    subnet: MotoModel | str,
    private_ip_address: str | None,
    private_ip_addresses: list[JsonDict] | None = None,
    **options: object,
) -> None:
    """Give an interface an address that no other one has.

    moto 5.2.5 takes any address of the subnet's range, also one that is in use or reserved
    (moto/ec2/models/elastic_network_interfaces.py, `NetworkInterface`).
    """
    if not private_ip_address and not private_ip_addresses:
        found_subnet = ec2_backend.get_subnet(subnet) if isinstance(subnet, str) else subnet
        private_ip_address = free_address(ec2_backend, found_subnet)
    original(self, ec2_backend, subnet, private_ip_address, private_ip_addresses, **options)


def manage(interface: MotoModel, interface_type: str, description: str, groups: Iterable[MotoModel] = ()) -> None:
    """Make a new interface of moto, which has a random address, one that EC2 manages.

    Args:
        interface_type: as DescribeNetworkInterfaces shows it, e.g. `nat_gateway`.
        description: names what the interface belongs to.
        groups: the security groups; a NAT gateway has none.
    """
    from moto.ec2.utils import generate_dns_from_ip

    interface.private_ip_address = None  # its own address is not in use
    interface.private_ip_addresses = []
    # The last one stays clear of addresses that templates fix.
    address = free_address(interface.ec2_backend, interface.subnet, from_end=True)
    interface.private_ip_address = address
    interface.private_ip_addresses = [{"Primary": True, "PrivateIpAddress": address}]
    # moto made a name of the random address, unless the VPC has no DNS host names.
    if address and getattr(interface, "private_dns_name", ""):
        interface.private_dns_name = generate_dns_from_ip(address)
        interface.private_ip_addresses[0]["PrivateDnsName"] = interface.private_dns_name
    interface.interface_type, interface.description = interface_type, description
    interface.requester_managed, interface.status = True, "in-use"
    interface._group_set = list(groups)  # noqa: SLF001 - moto has no other way


@rule("ec2", "AllocateAddress")
def check_quota_of_addresses(call: PendingCall) -> None:
    """Refuse to allocate more Elastic IP addresses than the quota allows."""
    if len(call.backend.addresses) >= quotas.applied_value(quotas.ADDRESSES):
        raise Refused("AddressLimitExceeded", "The maximum number of addresses has been reached.")


@rule("ec2", "AssociateAddress")
def check_gateway_of_the_network(call: PendingCall) -> None:
    """Refuse a public address in a VPC that has no internet gateway yet."""
    vpc_id = call.backend.get_network_interface(call.get("NetworkInterfaceId")).subnet.vpc_id
    # moto's default VPC lacks the internet gateway that AWS gives it.
    if not call.backend.get_vpc(vpc_id).is_default and not gateway_of(call.backend, vpc_id):
        raise Refused("Gateway.NotAttached", f"Network {vpc_id} is not attached to any internet gateway")


@rule("ec2", "AssociateAddress", "DisassociateAddress", "ReleaseAddress")
def check_address_of_a_gateway(call: PendingCall) -> None:
    """Refuse to release, move or disassociate the Elastic IP address of a NAT gateway."""
    for address in call.backend.addresses:
        is_named = address.allocation_id == call.get("AllocationId", "") or (
            address.association_id and address.association_id == call.get("AssociationId", "")
        )
        if is_named and address.eni and address.eni.interface_type == NAT_GATEWAY_INTERFACE:
            raise Refused("AuthFailure", "You do not have permission to access the specified resource.")


@rule("ec2", "ReleaseAddress")
def check_address_in_use(call: PendingCall) -> None:
    """Refuse to release an address that is associated with an interface."""
    interfaces = live_interfaces(call.backend)
    for address in call.backend.addresses:
        if address.allocation_id == call.get("AllocationId") and address.association_id and address.eni in interfaces:
            raise Refused("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")
