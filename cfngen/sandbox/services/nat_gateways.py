"""NAT gateways: why one fails or is refused, and which routes may lead to it.

EC2 accepts the creation of a NAT gateway and then lets it fail (EC2 API, NatGateway: `failureCode` and
`failureMessage`); only an unknown subnet and an exceeded quota refuse the call.
"""

from __future__ import annotations

from typing import NamedTuple

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.gateways import gateway_of
from cfngen.sandbox.services.networks import free_addresses, live_interfaces
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule

INTERFACE_TYPE = "nat_gateway"  # EC2 API, NetworkInterface
# VPC user guide, "Amazon VPC quotas": NAT gateways in these states count, `available` is called active there.
STATES_THAT_COUNT = frozenset({"pending", "available", "deleting"})


class Failure(NamedTuple):
    """Why a NAT gateway could not be created: failure code and failure message of EC2's NatGateway."""

    code: str
    message: str


def failure_of_creation(backend: MotoBackend, subnet: MotoModel, allocation_id: str | None) -> Failure | None:
    """Return why a public NAT gateway with an Elastic IP address fails in a subnet; None if it becomes available."""
    address = next((item for item in backend.addresses if item.allocation_id == allocation_id), None)
    if address is None:
        return Failure(
            "InvalidAllocationID.NotFound",
            f"Elastic IP address {allocation_id} could not be associated with this NAT gateway",
        )
    if address.association_id and address.eni in live_interfaces(backend):
        return Failure("Resource.AlreadyAssociated", f"Elastic IP address {allocation_id} is already associated")
    # moto's default VPC lacks the internet gateway that AWS gives it.
    if not backend.get_vpc(subnet.vpc_id).is_default and not gateway_of(backend, subnet.vpc_id):
        return Failure("Gateway.NotAttached", f"Network {subnet.vpc_id} has no Internet gateway attached")
    if free_addresses(backend, subnet) < 1:
        return Failure(
            "InsufficientFreeAddressesInSubnet", "Subnet has insufficient free addresses to create this NAT gateway"
        )
    return None


@rule("ec2", "CreateNatGateway")
def check_quota_of_a_zone(call: PendingCall) -> None:
    """Refuse to create more NAT gateways in an Availability Zone than the quota allows."""
    zone = call.backend.get_subnet(call.get("SubnetId")).availability_zone
    limit = quotas.applied_value(quotas.NAT_GATEWAYS)
    gateways = [item for item in call.backend.nat_gateways.values() if item.state in STATES_THAT_COUNT]
    if sum(call.backend.get_subnet(item.subnet_id).availability_zone == zone for item in gateways) >= limit:
        raise Refused(
            "NatGatewayLimitExceeded", f"Performing this operation would exceed the limit of {limit:g} NAT gateways"
        )


@rule("ec2", "DeleteNatGateway")
def check_gateway_exists(call: PendingCall) -> None:
    """Refuse to delete a NAT gateway that does not exist, or is deleted already."""
    gateway_id = call.get("NatGatewayId")
    gateway = call.backend.nat_gateways.get(gateway_id)
    if gateway is None or gateway.state == "deleted":
        raise Refused("NatGatewayNotFound", f"The Nat Gateway {gateway_id} was not found")


@rule("ec2", "CreateRoute", "ReplaceRoute")
def check_nat_gateway_of_a_route(call: PendingCall) -> None:
    """Refuse a route to a NAT gateway that does not exist, or to one of another VPC than the route table's."""
    gateway_id = call.get("NatGatewayId")
    if not gateway_id:
        return
    gateway = call.backend.nat_gateways.get(gateway_id)
    if gateway is None or gateway.state == "deleted":
        raise Refused("InvalidNatGatewayID.NotFound", f"The natGateway ID '{gateway_id}' does not exist")
    table = call.backend.get_route_table(call.get("RouteTableId"))
    if gateway.vpc_id != table.vpc_id:
        raise invalid_value(f"route table {table.id} and NAT gateway {gateway_id} belong to different networks")
