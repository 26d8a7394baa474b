"""Reads what instances of a private cluster reach other networks through: route tables, NAT gateways, VPC endpoints.

Only the parts that the cluster's stacks created are read; existing ones are their owner's business. A public cluster
has none of them, and nothing is read then.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import EndpointId
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId
from cfngen.cluster.network import endpoints
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import ResourceView, StackView
from cfngen.deploy.aws.types import AwsObject

PUBLIC_TABLE = "RouteTable"
_SHARED_TABLE = "PrivateRouteTable"
_ANYWHERE = "0.0.0.0/0"
_NAT_GATEWAY = "AWS::EC2::NatGateway"
_VPC_ENDPOINT = "AWS::EC2::VPCEndpoint"
_ROUTE_TABLE = "AWS::EC2::RouteTable"


@dataclass(frozen=True)
class NatGatewayView:
    """A NAT gateway of the stacks.

    Attributes:
        state: its state in EC2, e.g. `available`; empty if EC2 does not list it any more.
        failure_code: why it failed, as one word; empty if it did not fail.
        failure: why it failed, in EC2's words; empty if it did not fail.
        subnet: id of its public subnet.
    """

    id: str
    state: str
    failure_code: str = ""
    failure: str = ""
    subnet: str = ""
    elastic_ip: str = ""


@dataclass(frozen=True)
class EndpointView:
    """A VPC endpoint of the stacks.

    Attributes:
        service: the service's name in the endpoint's service name, e.g. `ecr.dkr`, or the whole service name.
        service_name: the whole service name; empty if neither EC2 nor the cluster file has it.
        state: its state in EC2 in lower case, e.g. `available`; empty if EC2 does not list it any more.
        failure: the last error, in EC2's words; empty if there is none.
        is_gateway: whether it is the gateway endpoint for S3.
        has_private_dns: whether the service's usual name leads to it; always true for a gateway endpoint, and where the
            cluster file says that there is no such name.
        tables: ids of the route tables that lead to a gateway endpoint.
    """

    id: str
    service: str
    service_name: str
    state: str
    failure: str = ""
    is_gateway: bool = False
    has_private_dns: bool = True
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class RouteTableView:
    """A route table of the stacks.

    Attributes:
        is_private: whether it is a table of private subnets.
        target_kind: what its default route should lead to: `NAT gateway`, `internet gateway`, or empty for nothing.
        expected_target: id of the gateway that its default route should lead to; empty if it is not known.
        target: id of what its default route leads to; empty if it has none.
        is_blackhole: whether that target does not exist any more.
        associations: ids of its associations by subnet.
    """

    id: str
    exists: bool = True
    is_private: bool = True
    target_kind: str = ""
    expected_target: str = ""
    target: str = ""
    is_blackhole: bool = False
    associations: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PrivateNetwork:
    """The way out of a private cluster; empty for a public one.

    Attributes:
        table_by_subnet: id of the route table that each subnet should use.
        nat_gateway_ids: the NAT gateways of the stacks, and the existing ones that the cluster uses.
    """

    nat_gateways: tuple[NatGatewayView, ...] = ()
    endpoints: tuple[EndpointView, ...] = ()
    tables: tuple[RouteTableView, ...] = ()
    table_by_subnet: Mapping[str, str] = field(default_factory=dict)
    nat_gateway_ids: frozenset[str] = frozenset()
    region: str = ""


def read_private_network(
    account: Account, cluster: Cluster, stack: StackView, resources: Iterable[ResourceView]
) -> PrivateNetwork:
    """Return the way out of a private cluster as EC2 describes it; parameters of the root stack name existing parts."""
    ids = {
        resource.logical_id: resource.physical_id
        for resource in resources
        if resource.physical_id and resource.status != "DELETE_COMPLETE"
    }
    types = {resource.logical_id: resource.type for resource in resources}
    if not any(map(_is_private_table, ids)) and not any(types[name] in (_NAT_GATEWAY, _VPC_ENDPOINT) for name in ids):
        return PrivateNetwork()
    table_ids = {name: table for name, table in ids.items() if types[name] == _ROUTE_TABLE}
    gateway_ids = {name: gateway for name, gateway in ids.items() if types[name] == _NAT_GATEWAY}
    endpoint_ids = {name: endpoint for name, endpoint in ids.items() if types[name] == _VPC_ENDPOINT}
    gateway_by_name = {**_existing_gateways(stack), **gateway_ids}
    internet_gateway = ids.get("InternetGateway") or stack.values.get("InternetGatewayId", "")
    services = _service_by_logical_id(cluster)
    with translate_aws_errors():
        gateways = _describe(account, "ec2.describe_nat_gateways", "NatGateway", "nat-gateway-id", gateway_ids)
        described = _describe(account, "ec2.describe_vpc_endpoints", "VpcEndpoint", "vpc-endpoint-id", endpoint_ids)
        tables = _describe(account, "ec2.describe_route_tables", "RouteTable", "route-table-id", table_ids)
    return PrivateNetwork(
        nat_gateways=tuple(
            _nat_gateway(gateway, gateways.get(gateway, {}), name, ids) for name, gateway in sorted(gateway_ids.items())
        ),
        endpoints=tuple(
            _endpoint(endpoint, described.get(endpoint, {}), services.get(name, ""), cluster)
            for name, endpoint in sorted(endpoint_ids.items())
        ),
        tables=tuple(
            _table(table, tables.get(table, {}), name, _default_target(name, ids, gateway_by_name, internet_gateway))
            for name, table in sorted(table_ids.items())
        ),
        table_by_subnet=_table_by_subnet(ids, stack.values),
        nat_gateway_ids=frozenset(gateway_by_name.values()),
        region=account.region,
    )


def _is_private_table(logical_id: str) -> bool:
    return logical_id == _SHARED_TABLE or _is_zonal(logical_id, "PrivateRouteTable")


def _existing_gateways(stack: StackView) -> dict[str, str]:
    return {
        name.removesuffix("Id"): value
        for name, value in stack.values.items()
        if value and _is_zonal(name, "NatGateway", is_parameter=True)
    }


def _service_by_logical_id(cluster: Cluster) -> dict[str, str]:
    interface_endpoints = endpoints.interface_endpoints(cluster)
    services = (endpoints.S3, *(endpoint.service for endpoint in interface_endpoints))
    return {str(EndpointId.of(service)): service for service in services}


def _is_zonal(logical_id: str, kind: str, *, is_parameter: bool = False) -> bool:
    """Return whether a logical id is that of a part of this kind in a zone."""
    parsed = ZonalId.parse(logical_id)
    return parsed is not None and parsed.kind == kind and parsed.is_parameter == is_parameter


def _describe(account: Account, call: str, kind: str, id_filter: str, ids: Mapping[str, str]) -> dict[str, AwsObject]:
    """Return EC2's descriptions of the resources with these ids (by logical id), by id; missing ones are left out."""
    items = account.items(call, f"{kind}s", filters={id_filter: sorted(ids.values())})
    return {item[f"{kind}Id"]: item for item in items}


def _nat_gateway(gateway_id: str, item: AwsObject, logical_id: str, ids: Mapping[str, str]) -> NatGatewayView:
    zone = logical_id.removeprefix("NatGateway")
    return NatGatewayView(
        id=gateway_id,
        state=item.get("State", ""),
        failure_code=item.get("FailureCode", ""),
        failure=item.get("FailureMessage", ""),
        subnet=item.get("SubnetId") or ids.get(str(SubnetId(zone, is_public=True)), ""),
        elastic_ip=ids.get(f"NatElasticIp{zone}", "").partition("|")[0],
    )


def _endpoint(endpoint_id: str, item: AwsObject, service: str, cluster: Cluster) -> EndpointView:
    """Return a VPC endpoint as EC2 describes it; `service` is its name in the cluster file, empty if not in it."""
    service_name = item.get("ServiceName") or (endpoints.service_name(service, cluster.region) if service else "")
    is_gateway = item.get("VpcEndpointType", "Gateway" if service == endpoints.S3 else "Interface") == "Gateway"
    error = item.get("LastError") or {}
    is_private_dns_wanted = not service or endpoints.settings_of(cluster, service).private_dns
    has_private_dns = is_gateway or not is_private_dns_wanted or bool(item.get("PrivateDnsEnabled"))
    return EndpointView(
        id=endpoint_id,
        service=service or service_name,
        service_name=service_name,
        state=str(item.get("State", "")).lower(),
        failure=item.get("FailureReason") or error.get("Message", ""),
        is_gateway=is_gateway,
        has_private_dns=has_private_dns,
        tables=tuple(item.get("RouteTableIds", ())),
    )


def _default_target(
    table: str, ids: Mapping[str, str], gateway_by_name: Mapping[str, str], internet_gateway: str
) -> tuple[str, str]:
    """Return the kind and the id of what a table's default route leads to in the stacks, as in `RouteTableView`."""
    zone = table.removeprefix(_SHARED_TABLE)
    if table == PUBLIC_TABLE:
        return ("internet gateway", internet_gateway) if "InternetRoute" in ids else ("", "")
    if f"NatRoute{zone}" not in ids:
        return "", ""
    # With a single NAT gateway, tables of other zones lead to it too.
    return "NAT gateway", gateway_by_name.get(f"NatGateway{zone}") or next(iter(gateway_by_name.values()), "")


def _table(table_id: str, item: AwsObject, logical_id: str, expected: tuple[str, str]) -> RouteTableView:
    kind, expected_target = expected
    routes = (route for route in item.get("Routes", ()) if route.get("DestinationCidrBlock") == _ANYWHERE)
    default_route: AwsObject = next(routes, {})
    targets = (
        str(value)
        for key, value in sorted(default_route.items())
        if value and key.endswith("Id") and key != "InstanceOwnerId"
    )
    return RouteTableView(
        id=table_id,
        exists=bool(item),
        is_private=logical_id != PUBLIC_TABLE,
        target_kind=kind,
        expected_target=expected_target,
        target=next(targets, ""),
        is_blackhole=default_route.get("State") == "blackhole",
        associations={
            association["SubnetId"]: association["RouteTableAssociationId"]
            for association in item.get("Associations", ())
            if association.get("SubnetId")
        },
    )


def _table_by_subnet(ids: Mapping[str, str], parameters: Mapping[str, str]) -> dict[str, str]:
    expected: dict[str, str] = {}
    for name, subnet in ids.items():
        parsed = SubnetId.parse(name)
        if parsed is None or parsed.part:
            continue
        if parsed.is_public:
            table = ids.get(PUBLIC_TABLE, "")
        else:
            existing = parameters.get(str(ZonalId("RouteTable", parsed.zone, is_parameter=True)), "")
            table = existing or ids.get(str(ZonalId("PrivateRouteTable", parsed.zone))) or ids.get(_SHARED_TABLE, "")
        if table:
            expected[subnet] = table
    return expected
