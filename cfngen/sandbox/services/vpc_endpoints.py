"""VPC endpoints: gateway endpoints in route tables, interface endpoints in subnets.

Conditions: AWS PrivateLink guide ("Gateway endpoints", "Access an AWS service using an interface VPC endpoint"), EC2
API (CreateVpcEndpoint, ModifyVpcEndpoint). Words: tests/aws/refusals.md.
"""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.sandbox.moto_types import MotoBackend, MotoModel
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.endpoint_services import private_dns_name, services_of_aws
from cfngen.sandbox.services.network_interfaces import check_security_groups
from cfngen.sandbox.services.networks import free_addresses, is_true
from cfngen.sandbox.services.rules import PendingCall, Refused, rule

INTERFACE_TYPE = "vpc_endpoint"  # EC2 API, NetworkInterface
GATEWAY = "Gateway"


@rule("ec2", "CreateVpcEndpoint")
def check_new_endpoint(call: PendingCall) -> None:
    """Refuse an endpoint of an unknown service, one beyond the quota, and one that does not fit its VPC."""
    backend, service_name = call.backend, str(call.get("ServiceName", ""))
    vpc = backend.get_vpc(call.get("VpcId"))
    endpoint_type = call.get("VpcEndpointType") or GATEWAY  # EC2 API, CreateVpcEndpoint: the default
    _check_service(call, service_name)
    if endpoint_type == GATEWAY:
        if call.get("SubnetIds"):
            raise Refused(
                "InvalidParameter",
                "Subnet IDs are only supported for Interface and GatewayLoadBalancer type VPC Endpoints.",
            )
        if sum(is_gateway(other) for other in endpoints(backend)) >= quotas.applied_value(quotas.GATEWAY_ENDPOINTS):
            raise _limit_exceeded()
        _check_route_tables(backend, vpc.id, service_name, call.get("RouteTableIds", []))
        return
    if call.get("RouteTableIds"):
        raise Refused("InvalidParameter", "Route table IDs are only supported for Gateway type VPC Endpoint.")
    in_vpc = [other for other in endpoints(backend) if other.vpc_id == vpc.id and not is_gateway(other)]
    if len(in_vpc) >= quotas.applied_value(quotas.INTERFACE_ENDPOINTS):
        raise _limit_exceeded()
    _check_subnets(backend, vpc.id, call.get("SubnetIds", []), in_use=())
    _check_groups(backend, vpc.id, call.get("SecurityGroupIds", []))
    if call.get("PrivateDnsEnabled", True):
        _check_private_dns(call, vpc, service_name, endpoint_id="")


@rule("ec2", "ModifyVpcEndpoint")
def check_changed_endpoint(call: PendingCall) -> None:
    """Refuse changes of an endpoint that a new one could not have either."""
    backend, endpoint = call.backend, call.backend.get_vpc_end_point(call.get("VpcEndpointId"))
    _check_route_tables(backend, endpoint.vpc_id, endpoint.service_name, call.get("AddRouteTableIds", []))
    remaining = [item for item in endpoint.subnet_ids or () if item not in call.get("RemoveSubnetIds", [])]
    _check_subnets(backend, endpoint.vpc_id, call.get("AddSubnetIds", []), in_use=remaining)
    _check_groups(backend, endpoint.vpc_id, call.get("AddSecurityGroupIds", []))
    if call.get("PrivateDnsEnabled"):
        _check_private_dns(call, backend.get_vpc(endpoint.vpc_id), endpoint.service_name, endpoint.id)


def endpoints(backend: MotoBackend) -> list[MotoModel]:
    """Return the VPC endpoints of a region."""
    return list(backend.vpc_end_points.values())


def is_gateway(endpoint: MotoModel) -> bool:
    """Return whether an endpoint is a gateway endpoint."""
    return (endpoint.vpc_endpoint_type or GATEWAY) == GATEWAY


def _check_service(call: PendingCall, name: str) -> None:
    """Refuse a service that neither AWS nor the account has in the region."""
    names = {detail["ServiceName"] for detail in services_of_aws(call.region)}
    names |= {configuration.service_name for configuration in call.backend.configurations.values()}
    if name not in names:
        raise Refused("InvalidServiceName", f"The Vpc Endpoint Service '{name}' does not exist")


def _check_route_tables(backend: MotoBackend, vpc_id: str, service_name: str, table_ids: Iterable[str]) -> None:
    """Refuse route tables of another VPC, and those that have a route to the service already."""
    for table_id in table_ids:
        table = backend.get_route_table(table_id)
        if table.vpc_id != vpc_id:
            raise Refused("InvalidParameter", f"route table {table_id} and vpc {vpc_id} belong to different networks")
        prefix_lists = [route.destination_prefix_list for route in table.routes if route.destination_prefix_list]
        for prefix_list in prefix_lists:
            if prefix_list.prefix_list_name == service_name:
                raise Refused(
                    "RouteAlreadyExists",
                    f"route table {table_id} already has a route with destination-prefix-list-id {prefix_list.id}",
                )


def _check_subnets(backend: MotoBackend, vpc_id: str, subnet_ids: Iterable[str], in_use: Iterable[str]) -> None:
    """Refuse subnets of another VPC, a second subnet of a zone, and subnets without a free address.

    Args:
        in_use: the subnets that the endpoint has and keeps.
    """
    used_zones = {backend.get_subnet(subnet_id).availability_zone for subnet_id in in_use}
    for subnet_id in subnet_ids:
        subnet = backend.get_subnet(subnet_id)
        if subnet.vpc_id != vpc_id:
            raise Refused("InvalidParameter", f"subnet {subnet_id} and vpc {vpc_id} belong to different networks")
        if subnet.availability_zone in used_zones:
            raise Refused(
                "DuplicateSubnetsInSameZone",
                f"Found another VPC endpoint subnet in the availability zone of {subnet_id}. VPC endpoint subnets "
                "should be in different availability zones supported by the VPC endpoint service.",
            )
        if free_addresses(backend, subnet) < 1:
            raise Refused(
                "InsufficientFreeAddressesInSubnet",
                "The specified subnet does not have enough free addresses to satisfy the request.",
            )
        used_zones.add(subnet.availability_zone)


def _check_groups(backend: MotoBackend, vpc_id: str, group_ids: Iterable[str]) -> None:
    identifiers = list(group_ids)
    check_security_groups(backend, identifiers, subnet=None)
    for identifier in identifiers:
        if backend.get_security_group_from_id(identifier).vpc_id != vpc_id:
            raise Refused(
                "InvalidParameter", f"security group {identifier} and vpc {vpc_id} belong to different networks"
            )


def _check_private_dns(call: PendingCall, vpc: MotoModel, service_name: str, endpoint_id: str) -> None:
    """Refuse private DNS where the VPC lacks a DNS attribute, or another endpoint has the names of the service.

    Args:
        endpoint_id: empty if the endpoint is to be created.
    """
    if not (is_true(vpc.enable_dns_support) and is_true(vpc.enable_dns_hostnames)):
        raise Refused(
            "InvalidParameter",
            "Enabling private DNS requires both enableDnsSupport and enableDnsHostnames VPC attributes set to true "
            f"for {vpc.id}",
        )
    for other in endpoints(call.backend):
        has_names = other.private_dns_enabled and not is_gateway(other) and other.service_name == service_name
        if has_names and other.vpc_id == vpc.id and other.id != endpoint_id:
            raise Refused(
                "InvalidParameter",
                "private-dns-enabled cannot be set because there is already a conflicting DNS domain for "
                f"{private_dns_name(call.region, service_name)} in the VPC {vpc.id}",
            )


def _limit_exceeded() -> Refused:
    return Refused("VpcEndpointLimitExceeded", "The maximum number of VPC endpoints has been reached.")
