"""Elastic IP addresses."""

from __future__ import annotations

from cfngen.sandbox.services import nat_gateways, quotas
from cfngen.sandbox.services.gateways import gateway_of
from cfngen.sandbox.services.networks import live_interfaces
from cfngen.sandbox.services.rules import PendingCall, Refused, rule


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
        if is_named and address.eni and address.eni.interface_type == nat_gateways.INTERFACE_TYPE:
            raise Refused("AuthFailure", "You do not have permission to access the specified resource.")


@rule("ec2", "ReleaseAddress")
def check_address_in_use(call: PendingCall) -> None:
    """Refuse to release an address that is associated with an interface."""
    interfaces = live_interfaces(call.backend)
    for address in call.backend.addresses:
        if address.allocation_id == call.get("AllocationId") and address.association_id and address.eni in interfaces:
            raise Refused("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")
