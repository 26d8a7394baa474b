"""VPCs, their subnets, DHCP options and internet gateways, and routes that lead there or elsewhere."""

from __future__ import annotations

import ipaddress

from moto.ec2.models.availability_zones_and_regions import RegionsAndZonesBackend

from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.rules import PendingCall, Refused, invalid_value, rule
from cfngen.sandbox.untyped import MotoBackend, MotoModel

SUBNET_PREFIX_LENGTHS = range(16, 29)  # VPC user guide, "Subnet CIDR blocks": from /16 to /28
RESERVED_ADDRESSES = 5  # addresses that AWS reserves in each subnet (the same page)
PRIVATE_NETWORKS = tuple(map(ipaddress.IPv4Network, ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16")))  # RFC 1918
ROUTE_TARGETS = (
    "GatewayId", "InstanceId", "NatGatewayId", "NetworkInterfaceId", "TransitGatewayId", "VpcPeeringConnectionId",
)  # fmt: skip
NEVER_ADDED = ipaddress.IPv4Network("198.19.0.0/16")


@rule("ec2", "CreateVpc")
def check_quota_of_vpcs(call: PendingCall) -> None:
    """Refuse to create more VPCs than the quota allows; the default VPC counts, too."""
    if len(call.backend.vpcs) >= quotas.applied_value(quotas.VPCS):
        raise Refused("VpcLimitExceeded", "The maximum number of VPCs has been reached.")


@rule("ec2", "AssociateVpcCidrBlock")
def check_further_range_of_a_vpc(call: PendingCall) -> None:
    """Refuse a range of a wrong size or another private network, and one that meets a range or a route of the VPC.

    VPC User Guide, "VPC CIDR blocks", sections "Secondary IPv4 CIDR blocks" and "IPv4 CIDR block association
    restrictions".
    """
    block = str(call.get("CidrBlock", ""))
    try:
        added = ipaddress.IPv4Network(block)
    except ValueError:
        raise invalid_value(f"Value ({block}) for parameter cidrBlock is invalid.") from None
    if added.prefixlen not in SUBNET_PREFIX_LENGTHS:
        raise Refused("InvalidVpc.Range", f"The CIDR '{block}' is invalid.")
    vpc = call.backend.get_vpc(call.get("VpcId"))
    primary = ipaddress.IPv4Network(vpc.cidr_block, strict=False)
    if NEVER_ADDED.supernet_of(added) or any(
        network.supernet_of(added) and not network.supernet_of(primary) for network in PRIVATE_NETWORKS
    ):
        raise Refused(
            "InvalidVpc.Range",
            f"The CIDR '{block}' is restricted. Use a CIDR from the same private address range as the current VPC "
            "CIDR, or use a publicly-routable CIDR.",
        )
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
    """Refuse DNS host names without DNS support (API: ModifyVpcAttribute), whichever of both is changed."""
    vpc = call.backend.get_vpc(call.get("VpcId"))
    has_support = (call.get("EnableDnsSupport") or {}).get("Value", is_true(vpc.enable_dns_support))
    if (call.get("EnableDnsHostnames") or {}).get("Value", is_true(vpc.enable_dns_hostnames)) and not has_support:
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
def check_dhcp_options(call: PendingCall) -> None:
    """Refuse an option without values (assumed)."""
    for option in call.get("DhcpConfigurations") or []:
        if not option.get("Values"):
            raise Refused("MissingParameter", f"The request must contain the parameter Values of {option.get('Key')}")


@rule("ec2", "DeleteDhcpOptions")
def check_options_are_unused(call: PendingCall) -> None:
    """Refuse to delete DHCP options that a VPC has."""
    options_id = call.get("DhcpOptionsId")
    if any(getattr(vpc.dhcp_options, "id", "") == options_id for vpc in call.backend.vpcs.values()):
        raise Refused("DependencyViolation", f"The dhcpOptions '{options_id}' has dependencies and cannot be deleted.")


def zones(region: str) -> list[str]:
    """Return the names of a region's availability zones."""
    return [zone.name for zone in RegionsAndZonesBackend.zones.get(region, [])]


def free_addresses(backend: MotoBackend, subnet: MotoModel) -> int:
    """Return the number of free addresses in a subnet."""
    block = ipaddress.ip_network(subnet.cidr_block, strict=False)
    return block.num_addresses - RESERVED_ADDRESSES - len(used_addresses(backend, subnet))


def used_addresses(backend: MotoBackend, subnet: MotoModel) -> set[str | None]:
    """Return the addresses that interfaces in a subnet have."""
    return {
        address
        for interface in live_interfaces(backend)
        if interface.subnet.id == subnet.id
        for address in (
            interface.private_ip_address,
            *(item.get("PrivateIpAddress") for item in interface.private_ip_addresses),
        )
    }


def live_interfaces(backend: MotoBackend) -> list[MotoModel]:
    """Return the interfaces, but not the ones of terminated instances, which moto keeps."""
    return [
        interface
        for interface in backend.enis.values()
        if not (interface.instance and interface.instance.state == "terminated")
    ]


def _subnets(backend: MotoBackend) -> list[MotoModel]:
    return [subnet for subnets in backend.subnets.values() for subnet in subnets.values()]


def is_true(value: object) -> bool:
    """Return whether a setting is true, as a boolean or as text."""
    return str(value).lower() == "true"  # moto keeps the text of the request


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
    """Refuse a route without exactly one target, and to one outside of the route table's VPC."""
    if sum(bool(call.get(name)) for name in ROUTE_TARGETS) != 1:
        raise Refused("MissingParameter", f"The request must contain exactly one of {', '.join(ROUTE_TARGETS)}")
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
    """Refuse an unknown destination, a gateway for the VPC's addresses, a second local route, and too many routes."""
    table = call.backend.get_route_table(call.get("RouteTableId"))
    block = str(call.get("DestinationCidrBlock", ""))
    prefix_list_id = call.get("DestinationPrefixListId")
    if not block and not prefix_list_id:
        raise Refused("MissingParameter", "The request must contain the parameter destinationCidrBlock")
    if block and "/" not in block:
        raise invalid_value(
            f"Value ({block}) for parameter destinationCidrBlock is invalid. This is not a valid CIDR block."
        )
    if prefix_list_id and prefix_list_id not in call.backend.managed_prefix_lists:
        raise Refused("InvalidPrefixListID.NotFound", f"The prefix list ID '{prefix_list_id}' does not exist")
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
    if any(str(destination) == vpc_range["cidr_block"] for vpc_range in vpc_ranges):  # the local route
        raise Refused("RouteAlreadyExists", f"The route identified by {block} already exists.")
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
