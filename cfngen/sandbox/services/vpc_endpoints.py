"""VPC endpoints: gateway endpoints in route tables, interface endpoints in subnets, and the patches of moto's.

Conditions: AWS PrivateLink guide ("Gateway endpoints", "Access an AWS service using an interface VPC endpoint"), EC2
API (CreateVpcEndpoint, ModifyVpcEndpoint). Words: tests/aws/refusals.md.

moto 5.2.5 (moto/ec2/models/vpcs.py) gives the interfaces of an endpoint random addresses and the default security
group, changes neither interfaces nor routes nor private DNS in ModifyVpcEndpoint, and shows deleted endpoints for ever.
To list services, it asks many of its own, and needs packages for that which the emulator does without. There is no time
in which an endpoint is `pending` or `deleting`: CloudFormation waits for the end of both.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable
from typing import Literal

from moto.ec2.exceptions import EC2ClientError
from moto.ec2.models.vpcs import VPCBackend, VPCEndPoint
from moto.ec2.responses.vpcs import VPCs

from cfngen.sandbox.moto_patches.registry import patches, replaces, sets
from cfngen.sandbox.services import quotas
from cfngen.sandbox.services.network_interfaces import check_security_groups, manage
from cfngen.sandbox.services.networks import free_addresses, is_true, zones
from cfngen.sandbox.services.rules import PendingCall, Refused, rule
from cfngen.sandbox.untyped import JsonObject, MotoBackend, MotoModel, MotoResponse, Original

INTERFACE_TYPE = "vpc_endpoint"  # EC2 API, NetworkInterface
GATEWAY = "Gateway"
EndpointType = Literal["Gateway", "Interface"]
# AWS PrivateLink guide, "Gateway endpoints": "Amazon S3 and DynamoDB"; both have interface endpoints as well.
_GATEWAY_SERVICES = ("s3", "dynamodb")
# DescribeVpcEndpointServices in China, as listed in aws/aws-cdk#16139.
_CN_PREFIXED_SERVICES = ("autoscaling", "cloudformation", "ec2", "ecr.api", "ecr.dkr", "sts")


@rule("ec2", "CreateVpcEndpoint")
def check_new_endpoint(call: PendingCall) -> None:
    """Refuse an endpoint of an unknown service, one beyond the quota, and one that does not fit its VPC."""
    backend, service_name = call.backend, str(call.get("ServiceName", ""))
    vpc = backend.get_vpc(call.get("VpcId"))
    endpoint_type = call.get("VpcEndpointType") or GATEWAY  # EC2 API, CreateVpcEndpoint: the default
    if not any({"ServiceType": endpoint_type} in detail["ServiceType"] for detail in _details(call, service_name)):
        raise Refused("InvalidServiceName", f"The Vpc Endpoint Service '{service_name}' does not exist")
    if endpoint_type == GATEWAY:
        if call.get("SubnetIds"):
            raise Refused(
                "InvalidParameter",
                "Subnet IDs are only supported for Interface and GatewayLoadBalancer type VPC Endpoints.",
            )
        for key, what in (
            ("SecurityGroupIds", "Security group IDs are"),
            ("PrivateDnsEnabled", "Private DNS names are"),
        ):
            if call.get(key):
                raise Refused("InvalidParameter", f"{what} only supported for Interface type VPC Endpoint.")
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
    _check_zones(call, service_name, call.get("SubnetIds", []))
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
    _check_zones(call, endpoint.service_name, call.get("AddSubnetIds", []))
    _check_groups(backend, endpoint.vpc_id, call.get("AddSecurityGroupIds", []))
    if call.get("PrivateDnsEnabled"):
        _check_private_dns(call, backend.get_vpc(endpoint.vpc_id), endpoint.service_name, endpoint.id)


def endpoints(backend: MotoBackend) -> list[MotoModel]:
    """Return the VPC endpoints of a region."""
    return list(backend.vpc_end_points.values())


def is_gateway(endpoint: MotoModel) -> bool:
    """Return whether an endpoint is a gateway endpoint."""
    return (endpoint.vpc_endpoint_type or GATEWAY) == GATEWAY


def _details(call: PendingCall, name: str) -> list[JsonObject]:
    """Return what DescribeVpcEndpointServices says about a service."""
    of_account = (configuration.to_dict() for configuration in call.backend.configurations.values())
    return [detail for detail in (*services_of_aws(call.region), *of_account) if detail["ServiceName"] == name]


def _check_zones(call: PendingCall, service_name: str, subnet_ids: Iterable[str]) -> None:
    """Refuse subnets of zones in which the service is not."""
    served_zones = {zone for detail in _details(call, service_name) for zone in detail["AvailabilityZones"]}
    for subnet_id in subnet_ids:
        if call.backend.get_subnet(subnet_id).availability_zone not in served_zones:
            raise Refused(
                "InvalidParameter",
                f"The VPC endpoint service {service_name} does not support the availability zone of the subnet: "
                f"{subnet_id}.",
            )


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
    """Refuse private DNS where service or VPC lack what it takes, or another endpoint has the names of the service.

    Args:
        endpoint_id: empty if the endpoint is to be created.
    """
    if not any(detail.get("PrivateDnsName") for detail in _details(call, service_name)):
        raise Refused(
            "InvalidParameter",
            f"Private DNS can't be enabled because the service {service_name} does not provide a private DNS name.",
        )
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


@functools.cache
def services_of_aws(region: str) -> tuple[JsonObject, ...]:
    """Return the services of AWS in a region as ServiceDetail of EC2; a service with both types is there twice."""
    from moto.core.base_backend import BaseBackend
    from moto.ec2.models.vpcs import AWS_ENDPOINT_SERVICES

    region_zones = zones(region)
    details: list[JsonObject] = []
    for service in sorted({*AWS_ENDPOINT_SERVICES, *_GATEWAY_SERVICES}):
        types: tuple[EndpointType, ...] = ("Gateway", "Interface") if service in _GATEWAY_SERVICES else ("Interface",)
        for endpoint_type in types:
            [detail] = BaseBackend.default_vpc_endpoint_service_factory(region, region_zones, service, endpoint_type)
            if region.startswith("cn-") and service in _CN_PREFIXED_SERVICES:
                detail = {**detail, "ServiceName": f"cn.{detail['ServiceName']}"}
            details.append(detail)
    return tuple(details)


def private_dns_name(region: str, service_name: str) -> str:
    """Return the private DNS name of a service of AWS, such as `ec2.us-west-2.amazonaws.com`; else its own name."""
    names = (
        detail.get("PrivateDnsName") for detail in services_of_aws(region) if detail["ServiceName"] == service_name
    )
    return str(next(names, None) or service_name)


def _collect_services(account_id: str, region: str) -> list[JsonObject]:
    """Answer DescribeVpcEndpointServices without moto's other services."""
    return list(services_of_aws(region))


sets(VPCBackend, "_collect_default_endpoint_services", staticmethod(_collect_services))


@patches(VPCEndPoint, "get_filter_value")
def _know_filter_by_id(original: Original, self: MotoModel, filter_name: str, method_name: str | None = None) -> object:
    return self.id if filter_name == "vpc-endpoint-id" else original(self, filter_name, method_name)


@patches(VPCBackend, "create_vpc_endpoint")
def _create_with_interfaces(original: Original, self: MotoBackend, **options: MotoModel) -> MotoModel:
    """Give a new endpoint its interfaces, and its DNS names."""
    subnet_ids = options.pop("subnet_ids", None) or []
    endpoint: MotoModel = original(self, **options, subnet_ids=[])
    endpoint.vpc_endpoint_type = endpoint.vpc_endpoint_type or GATEWAY
    if is_gateway(endpoint):
        endpoint.private_dns_enabled = False
        return endpoint
    if not endpoint.security_group_ids:
        endpoint.security_group_ids = [self.get_default_security_group(endpoint.vpc_id).id]
    service = endpoint.service_name.partition(f".{self.region_name}.")[2]
    own_name = endpoint.dns_entries[0]["dns_name"].removesuffix(f".{endpoint.service_name}")
    endpoint.dns_entries[0]["dns_name"] = f"{own_name}.{service}.{self.region_name}.vpce.amazonaws.com"
    if endpoint.private_dns_enabled:
        domain = private_dns_name(self.region_name, endpoint.service_name)
        endpoint.dns_entries = [*endpoint.dns_entries, {"dns_name": domain, "hosted_zone_id": "ZONEIDPRIVATE"}]
    _add_interfaces(self, endpoint, subnet_ids)
    return endpoint


@replaces(VPCBackend, "modify_vpc_endpoint")
def _modify_vpc_endpoint(self: MotoBackend, vpc_id: str, policy_doc: str | None, **changes: list[str]) -> None:
    """Let interfaces and routes follow ModifyVpcEndpoint."""
    endpoint = self.get_vpc_end_point(vpc_id)  # the parameter has the id of the endpoint
    endpoint.modify(policy_doc, **{**changes, "add_subnets": [], "remove_subnets": []})
    for table_id in changes["remove_route_tables"]:
        _remove_route(self, endpoint, table_id)
    for table_id in changes["add_route_tables"]:
        prefix_list_id = endpoint.destination_prefix_list_id
        self.create_route(table_id, None, gateway_id=endpoint.id, destination_prefix_list_id=prefix_list_id)
    _remove_interfaces(self, endpoint, changes["remove_subnets"])
    _add_interfaces(self, endpoint, changes["add_subnets"])
    for interface in _interfaces(self, endpoint):
        interface._group_set = _groups(self, endpoint)  # noqa: SLF001 - moto has no other way


@patches(VPCs, "modify_vpc_endpoint")
def _modify_private_dns(original: Original, self: MotoResponse) -> MotoResponse:
    response = original(self)
    if self._get_param("PrivateDnsEnabled") is not None:
        endpoint = self.ec2_backend.get_vpc_end_point(self._get_param("VpcEndpointId"))
        endpoint.private_dns_enabled = self._get_bool_param("PrivateDnsEnabled")
    return response


@replaces(VPCBackend, "delete_vpc_endpoints")
def _delete_vpc_endpoints(self: MotoBackend, vpce_ids: list[str] | None = None) -> None:
    """Delete interfaces and routes with their endpoint, and show it no more."""
    for endpoint_id in vpce_ids or ():
        endpoint = self.vpc_end_points.pop(endpoint_id, None)
        if endpoint:
            _remove_interfaces(self, endpoint, list(endpoint.subnet_ids))
            for table_id in endpoint.route_table_ids:
                _remove_route(self, endpoint, table_id)


def _add_interfaces(backend: MotoBackend, endpoint: MotoModel, subnet_ids: Iterable[str]) -> None:
    for subnet_id in subnet_ids:
        interface = backend.create_network_interface(backend.get_subnet(subnet_id), "")
        manage(interface, INTERFACE_TYPE, f"VPC Endpoint Interface {endpoint.id}", _groups(backend, endpoint))
        endpoint.subnet_ids = [*(endpoint.subnet_ids or ()), subnet_id]
        endpoint.network_interface_ids = [*endpoint.network_interface_ids, interface.id]


def _remove_interfaces(backend: MotoBackend, endpoint: MotoModel, subnet_ids: Iterable[str]) -> None:
    removed = set(subnet_ids)
    for interface in _interfaces(backend, endpoint):
        if interface.subnet.id in removed:
            del backend.enis[interface.id]
            endpoint.network_interface_ids = [
                interface_id for interface_id in endpoint.network_interface_ids if interface_id != interface.id
            ]
    endpoint.subnet_ids = [subnet_id for subnet_id in endpoint.subnet_ids or () if subnet_id not in removed]


def _remove_route(backend: MotoBackend, endpoint: MotoModel, table_id: str) -> None:
    with contextlib.suppress(EC2ClientError):
        backend.delete_route(table_id, None, destination_prefix_list_id=endpoint.destination_prefix_list_id)


def _interfaces(backend: MotoBackend, endpoint: MotoModel) -> list[MotoModel]:
    return [
        backend.enis[interface_id] for interface_id in endpoint.network_interface_ids if interface_id in backend.enis
    ]


def _groups(backend: MotoBackend, endpoint: MotoModel) -> list[MotoModel]:
    return [backend.get_security_group_from_id(group_id) for group_id in endpoint.security_group_ids]
