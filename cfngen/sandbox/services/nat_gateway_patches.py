"""Patches moto's NAT gateways: they fail as EC2 says, have an address of their subnet, and leave nothing behind.

moto 5.2.5 (moto/ec2/models/nat_gateways.py) gives the interface of a NAT gateway a random address, keeps the interface
and the Elastic IP's association when the NAT gateway is deleted, and shows deleted ones for ever. There is no time in
which a NAT gateway is `pending` or `deleting`: CloudFormation waits for the end of both.
"""

from __future__ import annotations

import functools

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services.managed_interfaces import manage
from cfngen.sandbox.services.nat_gateways import INTERFACE_TYPE, failure_of_creation
from cfngen.sandbox.services.rules import time_in

# VPC user guide, "NAT gateways": a deleted or failed NAT gateway is shown for about an hour.
SECONDS_SHOWN_AFTER_END = 3600


@functools.cache
def apply() -> None:
    """Patch moto's NAT gateways, for the rest of the process."""
    from moto.ec2.models.nat_gateways import NatGatewayBackend

    _patch_creation(NatGatewayBackend)
    _patch_deletion(NatGatewayBackend)
    _patch_description(NatGatewayBackend)


def _patch_creation(backend_class: MotoBackend) -> None:
    original = backend_class.create_nat_gateway

    def create_nat_gateway(
        self: MotoBackend,
        subnet_id: str,
        allocation_id: str,
        tags: dict[str, str] | None = None,
        connectivity_type: str = "public",
    ) -> MotoModel:
        connectivity_type = connectivity_type or "public"
        subnet = self.get_subnet(subnet_id)
        failure = failure_of_creation(self, subnet, allocation_id) if connectivity_type == "public" else None
        gateway: MotoModel = original(self, subnet_id, "" if failure else allocation_id, tags, connectivity_type)
        interface = gateway._eni  # noqa: SLF001 - moto has no other way
        manage(interface, INTERFACE_TYPE, f"Interface for NAT Gateway {gateway.id}")
        gateway.private_ip = interface.private_ip_address
        gateway.address_set[0].update(privateIp=interface.private_ip_address, isPrimary=True, status="succeeded")
        gateway.ended_at = None
        if failure:
            gateway.state, gateway.ended_at = "failed", time_in(self.region_name)
            gateway.failure_code, gateway.failure_message = failure
            gateway.address_set = [{"allocationId": allocation_id}]
            self.delete_network_interface(interface.id)
        return gateway

    setattr(backend_class, "create_nat_gateway", create_nat_gateway)  # noqa: B010


def _patch_deletion(backend_class: MotoBackend) -> None:
    original = backend_class.delete_nat_gateway

    def delete_nat_gateway(self: MotoBackend, nat_gateway_id: str) -> MotoModel:
        gateway: MotoModel = original(self, nat_gateway_id)
        gateway.ended_at = time_in(self.region_name)
        interface = gateway._eni  # noqa: SLF001 - moto has no other way
        for address in self.addresses:
            if address.eni is interface:
                address.instance = address.eni = address.association_id = None
        self.enis.pop(interface.id, None)
        return gateway

    setattr(backend_class, "delete_nat_gateway", delete_nat_gateway)  # noqa: B010


def _patch_description(backend_class: MotoBackend) -> None:
    from moto.ec2.exceptions import EC2ClientError

    original = backend_class.describe_nat_gateways

    def describe_nat_gateways(self: MotoBackend, filters: object, nat_gateway_ids: list[str] | None) -> list[MotoModel]:
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

    setattr(backend_class, "describe_nat_gateways", describe_nat_gateways)  # noqa: B010
