"""NAT gateways: why one fails or is refused, which routes may lead to it, and the patches of moto's.

EC2 accepts the creation of a NAT gateway and then lets it fail (EC2 API, NatGateway: `failureCode` and
`failureMessage`); only an unknown subnet and an exceeded quota refuse the call.

moto 5.2.5 (moto/ec2/models/nat_gateways.py) gives the interface of a NAT gateway a random address, keeps the interface
and the Elastic IP's association when the NAT gateway is deleted, and shows deleted ones for ever. There is no time in
which a NAT gateway is `pending` or `deleting`: CloudFormation waits for the end of both.
"""

from __future__ import annotations

from typing import NamedTuple

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.nat_gateways import NatGatewayBackend

from cfngen.sandbox.moto_patches.registry import patches
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.network_interfaces import NAT_GATEWAY_INTERFACE, manage
from cfngen.sandbox.services.networks import free_addresses, gateway_of, live_interfaces
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule, time_in
from cfngen.sandbox.untyped import MotoBackend, MotoModel, Original

# VPC user guide, "Amazon VPC quotas": NAT gateways in these states count, `available` is called active there.
STATES_THAT_COUNT = frozenset({"pending", "available", "deleting"})
# VPC user guide, "NAT gateways": a deleted or failed NAT gateway is shown for about an hour.
SECONDS_SHOWN_AFTER_END = 3600


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
    return _failure_for_lack_of_addresses(backend, subnet)


def _failure_for_lack_of_addresses(backend: MotoBackend, subnet: MotoModel) -> Failure | None:
    if free_addresses(backend, subnet) >= 1:
        return None
    return Failure(
        "InsufficientFreeAddressesInSubnet", "Subnet has insufficient free addresses to create this NAT gateway"
    )


@rule("ec2", "CreateNatGateway")
def check_address(call: PendingCall) -> None:
    """Refuse a public NAT gateway without an Elastic IP address."""
    if not call.get("AllocationId") and call.get("ConnectivityType", "public") == "public":
        raise Refused("MissingParameter", "The request must contain the parameter AllocationId")


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


@patches(NatGatewayBackend, "create_nat_gateway")
def _create_nat_gateway(
    original: Original,
    self: MotoBackend,
    subnet_id: str,
    allocation_id: str,
    tags: dict[str, str] | None = None,
    connectivity_type: str = "public",
) -> MotoModel:
    connectivity_type = connectivity_type or "public"
    subnet = self.get_subnet(subnet_id)
    failure = (
        failure_of_creation(self, subnet, allocation_id)
        if connectivity_type == "public"
        else _failure_for_lack_of_addresses(self, subnet)
    )
    gateway: MotoModel = original(self, subnet_id, "" if failure else allocation_id, tags, connectivity_type)
    interface = gateway._eni  # noqa: SLF001 - moto has no other way
    manage(interface, NAT_GATEWAY_INTERFACE, f"Interface for NAT Gateway {gateway.id}")
    gateway.private_ip = interface.private_ip_address
    gateway.address_set[0].update(privateIp=interface.private_ip_address, isPrimary=True, status="succeeded")
    gateway.ended_at = None
    if failure:
        gateway.state, gateway.ended_at = "failed", time_in(self.region_name)
        gateway.failure_code, gateway.failure_message = failure
        gateway.address_set = [{"allocationId": allocation_id}]
        self.delete_network_interface(interface.id)
    return gateway


@patches(NatGatewayBackend, "delete_nat_gateway")
def _delete_nat_gateway(original: Original, self: MotoBackend, nat_gateway_id: str) -> MotoModel:
    gateway: MotoModel = original(self, nat_gateway_id)
    gateway.ended_at = time_in(self.region_name)
    interface = gateway._eni  # noqa: SLF001 - moto has no other way
    for address in self.addresses:
        if address.eni is interface:
            address.instance = address.eni = address.association_id = None
    self.enis.pop(interface.id, None)
    return gateway


@patches(NatGatewayBackend, "describe_nat_gateways")
def _describe_nat_gateways(
    original: Original, self: MotoBackend, filters: object, nat_gateway_ids: list[str] | None
) -> list[MotoModel]:
    now = time_in(self.region_name)
    gateways: list[MotoModel] = list(self.nat_gateways.values())
    for gateway in gateways:
        if gateway.ended_at is not None and now > gateway.ended_at + SECONDS_SHOWN_AFTER_END:
            del self.nat_gateways[gateway.id]
    for gateway_id in nat_gateway_ids or ():
        if gateway_id not in self.nat_gateways:
            raise EC2ClientError("NatGatewayNotFound", f"The Nat Gateway {gateway_id} was not found")
    shown: list[MotoModel] = original(self, filters, nat_gateway_ids)
    return shown
