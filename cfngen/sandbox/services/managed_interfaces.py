"""Network interfaces that EC2 makes and manages in a subnet for NAT gateways and VPC endpoints.

moto gives them random addresses outside of their subnet, the VPC's default security group, and nothing that shows what
they belong to. "Requester-managed network interfaces" (EC2 user guide): they cannot be deleted by hand.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services.networks import live_interfaces

RESERVED_AT_START = 4  # VPC user guide, "Subnet CIDR blocks": the first four addresses and the last one


def free_address(backend: MotoBackend, subnet: MotoModel) -> str:
    """Return the address that a managed interface gets in a subnet; empty if none is free.

    EC2 takes any free address; here it is the last one, so that it stays clear of addresses that templates fix.
    """
    used_addresses = {
        address
        for interface in live_interfaces(backend)
        if interface.subnet.id == subnet.id
        for address in (
            interface.private_ip_address,
            *(item.get("PrivateIpAddress") for item in interface.private_ip_addresses),
        )
    }
    block = ipaddress.ip_network(subnet.cidr_block, strict=False)
    candidates = (str(block[index]) for index in range(block.num_addresses - 2, RESERVED_AT_START - 1, -1))
    return next((address for address in candidates if address not in used_addresses), "")


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
    address = free_address(interface.ec2_backend, interface.subnet)
    interface.private_ip_address = address
    interface.private_ip_addresses = [{"Primary": True, "PrivateIpAddress": address}]
    # moto made a name of the random address, unless the VPC has no DNS host names.
    if address and getattr(interface, "private_dns_name", ""):
        interface.private_dns_name = generate_dns_from_ip(address)
        interface.private_ip_addresses[0]["PrivateDnsName"] = interface.private_dns_name
    interface.interface_type, interface.description = interface_type, description
    interface.requester_managed, interface.status = True, "in-use"
    interface._group_set = list(groups)  # noqa: SLF001 - moto has no other way
