"""Internet gateways, and the routes that lead to them or elsewhere."""

from __future__ import annotations

import ipaddress

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule

ROUTE_TARGETS = (
    "GatewayId", "InstanceId", "NatGatewayId", "NetworkInterfaceId", "TransitGatewayId", "VpcPeeringConnectionId",
)  # fmt: skip


@rule("ec2", "CreateInternetGateway")
def check_quota_of_gateways(call: PendingCall) -> None:
    """Refuse to create more internet gateways than the quota allows."""
    if len(call.backend.internet_gateways) >= quotas.applied_value(quotas.INTERNET_GATEWAYS):
        raise Refused("InternetGatewayLimitExceeded", "The maximum number of internet gateways has been reached.")


@rule("ec2", "AttachInternetGateway")
def check_one_gateway_of_a_vpc(call: PendingCall) -> None:
    """Refuse to attach a second internet gateway to a VPC."""
    vpc_id, gateway_id = call.get("VpcId"), call.get("InternetGatewayId")
    if any(
        other.vpc and other.vpc.id == vpc_id and other.id != gateway_id
        for other in call.backend.internet_gateways.values()
    ):
        raise invalid_value(f"Network {vpc_id} already has an internet gateway attached")


@rule("ec2", "CreateRoute", "ReplaceRoute")
def check_target_of_a_route(call: PendingCall) -> None:
    """Refuse a route without a target, with several targets, or with a target outside of the route table's VPC."""
    targets = [name for name in ROUTE_TARGETS if call.get(name)]
    if not targets:
        raise Refused(
            "MissingParameter",
            "The request must contain exactly one of gatewayId, natGatewayId, networkInterfaceId, "
            "vpcPeeringConnectionId, egressOnlyInternetGatewayId, transitGatewayId or instanceId",
        )
    if len(targets) > 1:
        raise Refused("InvalidParameterCombination", f"The request names several targets: {', '.join(targets)}")
    table, backend = call.backend.get_route_table(call.get("RouteTableId")), call.backend
    gateway_id = str(call.get("GatewayId", ""))
    if (
        gateway_id.startswith("igw-")
        and gateway_of(backend, table.vpc_id) != backend.get_internet_gateway(gateway_id).id
    ):
        raise invalid_value(f"route table {table.id} and network gateway {gateway_id} belong to different networks")
    _check_connected_with_vpc(call, table)
    if interface_id := call.get("NetworkInterfaceId"):
        vpc_id = backend.get_network_interface(interface_id).subnet.vpc_id
        _check_same_vpc(table, vpc_id, f"interface {interface_id}")
    if instance_id := call.get("InstanceId"):
        instance = backend.get_instance(instance_id)
        _check_same_vpc(table, instance.vpc_id, f"interface of {instance_id}")
        if instance.state in ("terminated", "shutting-down"):
            raise Refused("IncorrectInstanceState", f"Instance '{instance_id}' is not in the correct state")


def _check_connected_with_vpc(call: PendingCall, table: MotoModel) -> None:
    """Refuse a transit gateway, virtual private gateway or peering connection that the table's VPC does not have."""
    backend = call.backend
    if gateway_id := call.get("TransitGatewayId"):
        attachments = backend.transit_gateway_attachments.values()
        if not any(item.transit_gateway_id == gateway_id and item.resource_id == table.vpc_id for item in attachments):
            raise Refused("InvalidTransitGatewayID.NotFound", f"The transitGateway ID '{gateway_id}' does not exist.")
    vpn_gateway_id = str(call.get("GatewayId", ""))
    if vpn_gateway_id.startswith("vgw-") and table.vpc_id not in backend.get_vpn_gateway(vpn_gateway_id).attachments:
        raise invalid_value(f"route table {table.id} and network gateway {vpn_gateway_id} belong to different networks")
    if connection_id := call.get("VpcPeeringConnectionId"):
        connection = backend.get_vpc_peering_connection(connection_id)
        if table.vpc_id not in (connection.vpc.id, connection.peer_vpc.id):
            raise invalid_value(
                f"route table {table.id} and peering connection {connection_id} belong to different networks"
            )


@rule("ec2", "CreateRoute")
def check_destination_of_a_route(call: PendingCall) -> None:
    """Refuse a gateway as target for addresses of the VPC itself, and a route beyond the quota."""
    table = call.backend.get_route_table(call.get("RouteTableId"))
    block = str(call.get("DestinationCidrBlock", ""))
    if not block and not call.get("DestinationPrefixListId"):
        raise Refused("MissingParameter", "The request must contain the parameter destinationCidrBlock")
    try:
        destination = ipaddress.ip_network(block, strict=False)
    except ValueError:
        return  # moto refuses it
    vpc_ranges = call.backend.get_vpc(table.vpc_id).get_cidr_block_association_set()
    is_in_vpc = isinstance(destination, ipaddress.IPv4Network) and any(
        destination.subnet_of(ipaddress.IPv4Network(vpc_range["cidr_block"], strict=False)) for vpc_range in vpc_ranges
    )
    if is_in_vpc and not call.get("NetworkInterfaceId") and not call.get("InstanceId"):
        raise invalid_value(
            f"The destination CIDR block {block} is equal to or more specific than one of this VPC's CIDR blocks. This "
            "route can target only an interface or an instance."
        )
    routes_that_count = sum(not route.local for route in table.routes)  # all but those within the VPC
    if routes_that_count >= quotas.applied_value(quotas.ROUTES):
        raise Refused("RouteLimitExceeded", "The maximum number of routes has been reached.")


@rule("ec2", "AssociateRouteTable")
def check_one_table_of_a_subnet(call: PendingCall) -> None:
    """Refuse to associate a subnet with a second route table (moto returns the first association), or across VPCs."""
    subnet_id = call.get("SubnetId")
    if not subnet_id:
        return
    table = call.backend.get_route_table(call.get("RouteTableId"))
    _check_same_vpc(table, call.backend.get_subnet(subnet_id).vpc_id, f"subnet {subnet_id}")
    for other in call.backend.route_tables.values():
        if subnet_id in other._associations.values() and other.id != table.id:  # noqa: SLF001
            raise Refused(
                "Resource.AlreadyAssociated",
                f"the specified association for route table {table.id} conflicts with an existing association",
            )


@rule("ec2", "DeleteRouteTable")
def check_main_table_is_kept(call: PendingCall) -> None:
    """Refuse to delete a VPC's main route table."""
    table = call.backend.get_route_table(call.get("RouteTableId"))
    if table.main_association_id:
        raise Refused("DependencyViolation", f"The routeTable '{table.id}' has dependencies and cannot be deleted.")


def gateway_of(backend: MotoBackend, vpc_id: str) -> str:
    """Return the id of the internet gateway that is attached to a VPC; empty if there is none."""
    return next(
        (gateway.id for gateway in backend.internet_gateways.values() if gateway.vpc and gateway.vpc.id == vpc_id), ""
    )


def _check_same_vpc(table: MotoModel, vpc_id: str | None, target: str) -> None:
    """Refuse a target, described as in the error message, that is in another VPC than the route table."""
    if vpc_id != table.vpc_id:
        raise invalid_value(f"route table {table.id} and {target} belong to different networks")
