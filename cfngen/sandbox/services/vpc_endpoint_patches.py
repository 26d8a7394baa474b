"""Patches moto's VPC endpoints: interfaces, routes and private DNS follow the endpoint, and go with it.

moto 5.2.5 (moto/ec2/models/vpcs.py) gives the interfaces of an endpoint random addresses and the default security
group, changes neither interfaces nor routes nor private DNS in ModifyVpcEndpoint, and shows deleted endpoints for ever.
There is no time in which an endpoint is `pending` or `deleting`: CloudFormation waits for the end of both.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Iterable

from cfngen.sandbox.json_types import JsonObject
from cfngen.sandbox.moto_types import MotoBackend, MotoModel, MotoResponse
from cfngen.sandbox.services.endpoint_services import private_dns_name, services_of_aws
from cfngen.sandbox.services.managed_interfaces import manage
from cfngen.sandbox.services.vpc_endpoints import GATEWAY, INTERFACE_TYPE, is_gateway


@functools.cache
def apply() -> None:
    """Patch moto's VPC endpoints, for the rest of the process."""
    from moto.ec2.models.vpcs import VPCBackend, VPCEndPoint
    from moto.ec2.responses.vpcs import VPCs

    _patch_services(VPCBackend)
    _patch_filters(VPCEndPoint)
    _patch_creation(VPCBackend)
    _patch_modification(VPCBackend, VPCs)
    _patch_deletion(VPCBackend)


def _patch_services(backend_class: MotoBackend) -> None:
    """Answer DescribeVpcEndpointServices without moto's other services."""

    def collect(account_id: str, region: str) -> list[JsonObject]:
        return list(services_of_aws(region))

    setattr(backend_class, "_collect_default_endpoint_services", staticmethod(collect))  # noqa: B010


def _patch_filters(endpoint_class: MotoModel) -> None:
    """Know the filter `vpc-endpoint-id` of DescribeVpcEndpoints."""
    original = endpoint_class.get_filter_value

    def get_filter_value(self: MotoModel, filter_name: str, method_name: str | None = None) -> object:
        return self.id if filter_name == "vpc-endpoint-id" else original(self, filter_name, method_name)

    setattr(endpoint_class, "get_filter_value", get_filter_value)  # noqa: B010


def _patch_creation(backend_class: MotoBackend) -> None:
    """Give a new endpoint its interfaces, and its DNS names."""
    original = backend_class.create_vpc_endpoint

    def create_vpc_endpoint(self: MotoBackend, **options: MotoModel) -> MotoModel:
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

    setattr(backend_class, "create_vpc_endpoint", create_vpc_endpoint)  # noqa: B010


def _patch_modification(backend_class: MotoBackend, response_class: MotoResponse) -> None:
    """Let interfaces, routes and private DNS follow ModifyVpcEndpoint."""
    original_response = response_class.modify_vpc_endpoint

    def modify_vpc_endpoint(self: MotoBackend, vpc_id: str, policy_doc: str | None, **changes: list[str]) -> None:
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

    def respond(self: MotoResponse) -> MotoResponse:
        response = original_response(self)
        if self._get_param("PrivateDnsEnabled") is not None:
            endpoint = self.ec2_backend.get_vpc_end_point(self._get_param("VpcEndpointId"))
            endpoint.private_dns_enabled = self._get_bool_param("PrivateDnsEnabled")
        return response

    setattr(backend_class, "modify_vpc_endpoint", modify_vpc_endpoint)  # noqa: B010
    setattr(response_class, "modify_vpc_endpoint", respond)  # noqa: B010


def _patch_deletion(backend_class: MotoBackend) -> None:
    """Delete interfaces and routes with their endpoint, and show it no more."""

    def delete_vpc_endpoints(self: MotoBackend, vpce_ids: list[str] | None = None) -> None:
        for endpoint_id in vpce_ids or ():
            endpoint = self.vpc_end_points.pop(endpoint_id, None)
            if endpoint:
                _remove_interfaces(self, endpoint, list(endpoint.subnet_ids))
                for table_id in endpoint.route_table_ids:
                    _remove_route(self, endpoint, table_id)

    setattr(backend_class, "delete_vpc_endpoints", delete_vpc_endpoints)  # noqa: B010


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
    from moto.ec2.exceptions import EC2ClientError

    with contextlib.suppress(EC2ClientError):
        backend.delete_route(table_id, None, destination_prefix_list_id=endpoint.destination_prefix_list_id)


def _interfaces(backend: MotoBackend, endpoint: MotoModel) -> list[MotoModel]:
    return [
        backend.enis[interface_id] for interface_id in endpoint.network_interface_ids if interface_id in backend.enis
    ]


def _groups(backend: MotoBackend, endpoint: MotoModel) -> list[MotoModel]:
    return [backend.get_security_group_from_id(group_id) for group_id in endpoint.security_group_ids]
