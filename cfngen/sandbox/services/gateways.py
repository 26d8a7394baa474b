"""Internet gateways, and the routes that lead to them or elsewhere."""

from __future__ import annotations

import ipaddress
from typing import Any

from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.rules import Attempt, Refused, rule

TARGETS = frozenset(
    {
        "CarrierGatewayId",
        "CoreNetworkArn",
        "EgressOnlyInternetGatewayId",
        "GatewayId",
        "InstanceId",
        "LocalGatewayId",
        "LocalTarget",
        "NatGatewayId",
        "NetworkInterfaceId",
        "TransitGatewayId",
        "VpcEndpointId",
        "VpcPeeringConnectionId",
    }
)


@rule("ec2", "CreateInternetGateway")
def quota_of_gateways(attempt: Attempt) -> None:
    """Refuse an internet gateway beyond the quota."""
    if len(attempt.backend.internet_gateways) >= quotas.applied(quotas.INTERNET_GATEWAYS):
        raise Refused("InternetGatewayLimitExceeded", "The maximum number of internet gateways has been reached.")


@rule("ec2", "AttachInternetGateway")
def one_gateway_of_a_vpc(attempt: Attempt) -> None:
    """Refuse a second internet gateway of a VPC."""
    vpc, gateway = attempt.get("VpcId"), attempt.get("InternetGatewayId")
    if any(each.vpc and each.vpc.id == vpc and each.id != gateway for each in _gateways(attempt.backend)):
        raise Refused("InvalidParameterValue", f"Network {vpc} already has an internet gateway attached")


@rule("ec2", "CreateRoute", "ReplaceRoute")
def target_of_a_route(attempt: Attempt) -> None:
    """Refuse a route without a target, with several, or to something outside of the table's VPC."""
    targets = sorted(TARGETS & {key for key, value in attempt.parameters.items() if value})
    if not targets:
        raise Refused(
            "MissingParameter", "The request must contain exactly one of gatewayId, natGatewayId, networkInterfaceId, "
            "vpcPeeringConnectionId, egressOnlyInternetGatewayId, transitGatewayId or instanceId"
        )  # fmt: skip
    if len(targets) > 1:
        raise Refused("InvalidParameterCombination", f"The request names several targets: {', '.join(targets)}")
    table, backend = attempt.backend.get_route_table(attempt.get("RouteTableId")), attempt.backend
    gateway = str(attempt.get("GatewayId", ""))
    if gateway.startswith("igw-") and gateway_of(backend, table.vpc_id) != backend.get_internet_gateway(gateway).id:
        raise Refused(
            "InvalidParameterValue",
            f"route table {table.id} and network gateway {gateway} belong to different networks",
        )
    if interface := attempt.get("NetworkInterfaceId"):
        vpc = backend.get_network_interface(interface).subnet.vpc_id
        _same_network(table, vpc, f"interface {interface}")
    if instance := attempt.get("InstanceId"):
        found = backend.get_instance(instance)
        _same_network(table, found.vpc_id, f"interface of {instance}")
        if found.state in ("terminated", "shutting-down"):
            raise Refused("IncorrectInstanceState", f"Instance '{instance}' is not in the correct state")


@rule("ec2", "CreateRoute")
def destination_of_a_route(attempt: Attempt) -> None:
    """Refuse a gateway for addresses of the VPC itself, and a route beyond the quota."""
    table = attempt.backend.get_route_table(attempt.get("RouteTableId"))
    block = str(attempt.get("DestinationCidrBlock", ""))
    if not block and not attempt.get("DestinationIpv6CidrBlock") and not attempt.get("DestinationPrefixListId"):
        raise Refused("MissingParameter", "The request must contain the parameter destinationCidrBlock")
    try:
        destination = ipaddress.ip_network(block, strict=False)
    except ValueError:
        return  # moto refuses it
    own = ipaddress.ip_network(attempt.backend.get_vpc(table.vpc_id).cidr_block, strict=False)
    within = isinstance(destination, ipaddress.IPv4Network) and destination.subnet_of(own)  # type: ignore[arg-type]
    if within and not attempt.get("NetworkInterfaceId") and not attempt.get("InstanceId"):
        raise Refused(
            "InvalidParameterValue",
            f"The destination CIDR block {block} is equal to or more specific than one of this VPC's CIDR blocks. This "
            "route can target only an interface or an instance.",
        )
    if sum(not route.local for route in table.routes) >= quotas.applied(quotas.ROUTES):
        raise Refused("RouteLimitExceeded", "The maximum number of routes has been reached.")


@rule("ec2", "AssociateRouteTable")
def one_table_of_a_subnet(attempt: Attempt) -> None:
    """Refuse a second table of a subnet, and one of another VPC; moto answers the first association again."""
    subnet = attempt.get("SubnetId")
    if not subnet:
        return
    table = attempt.backend.get_route_table(attempt.get("RouteTableId"))
    _same_network(table, attempt.backend.get_subnet(subnet).vpc_id, f"subnet {subnet}")
    for other in attempt.backend.route_tables.values():
        if subnet in other._associations.values() and other.id != table.id:  # noqa: SLF001
            raise Refused(
                "Resource.AlreadyAssociated",
                f"the specified association for route table {table.id} conflicts with an existing association",
            )


@rule("ec2", "DeleteRouteTable")
def main_table_stays(attempt: Attempt) -> None:
    """Refuse to delete a VPC's main route table."""
    table = attempt.backend.get_route_table(attempt.get("RouteTableId"))
    if table.main_association_id:
        raise Refused(
            "DependencyViolation", f"The routeTable '{table.id}' has dependencies and cannot be deleted."
        )  # fmt: skip


def gateway_of(backend: Any, vpc: str) -> str:
    """Return the id of the internet gateway that is attached to a VPC; nothing if there is none."""
    return next((gateway.id for gateway in _gateways(backend) if gateway.vpc and gateway.vpc.id == vpc), "")


def _gateways(backend: Any) -> list[Any]:
    return list(backend.internet_gateways.values())


def _same_network(table: Any, vpc: str | None, what: str) -> None:
    if vpc != table.vpc_id:
        raise Refused("InvalidParameterValue", f"route table {table.id} and {what} belong to different networks")
