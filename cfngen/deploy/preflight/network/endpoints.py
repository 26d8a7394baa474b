"""Judges the VPC endpoints that instances without a way to the internet need."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Network

from cfngen.cluster.network.endpoints import S3, interface_endpoints, required_services, service_name, settings_of
from cfngen.cluster.network.topology import is_private
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.preflight.findings import Finding, problem
from cfngen.deploy.preflight.network.security_groups import groups_of_role, permits
from cfngen.deploy.preflight.network.situation import DEFAULT_ROUTE, NamedSubnet, Situation, default_route
from cfngen.text import verb_form

_KEY = "network.endpoints.create"
_HTTPS = 443


def subnets_without_way_out(situation: Situation) -> tuple[NamedSubnet, ...]:
    """Return the private subnets of instances that have no default route, now or as cfngen creates them."""
    if not is_private(situation.cluster):
        return ()
    without = []
    for subnet in situation.instance_subnets:
        table = situation.route_table(subnet)
        is_created_without = not (subnet.id or subnet.route_table) and situation.cluster.network.nat == "none"
        if is_created_without or (table is not None and default_route(table) is None):
            without.append(subnet)
    return tuple(without)


def find_endpoint_problems(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each service that instances without a way out would not reach."""
    subnets = subnets_without_way_out(situation)
    if not subnets or situation.is_unread("endpoints"):
        return
    created = {endpoint.service for endpoint in interface_endpoints(situation.cluster)}
    for service in created:
        if settings_of(situation.cluster, service).private_dns:
            yield from _find_conflict(situation, service)
    required = [endpoint for endpoint in required_services(situation.cluster) if endpoint.service not in created]
    if required and not any(_of_service(situation, endpoint.service, "Interface") for endpoint in required):
        yield _way_out_missing(situation, subnets, [endpoint.service for endpoint in required])
        return
    for endpoint in required:
        yield from _judge_service(situation, subnets, endpoint.service, endpoint.reason)
    yield from _find_subnets_without_s3(situation, subnets)


def _of_service(situation: Situation, service: str, kind: str) -> list[AwsObject]:
    """Return the VPC's endpoints of a service and of a kind, `Interface` or `Gateway`, but for deleted ones."""
    name = service_name(service, situation.region)
    return [
        endpoint
        for endpoint in situation.facts.endpoints
        # Those of resources and of service networks have none (API reference, VpcEndpoint).
        if endpoint.get("ServiceName") == name
        and (endpoint.get("VpcEndpointType") or "Gateway") == kind
        and str(endpoint.get("State", "")).lower() not in ("deleting", "deleted")
    ]


def _find_conflict(situation: Situation, service: str) -> Iterator[Finding]:
    """Yield a problem if cfngen would create an endpoint whose private DNS name another endpoint has already.

    EC2 refuses the second one: "private-dns-enabled cannot be set because there is already a conflicting DNS domain".
    """
    for endpoint in _of_service(situation, service, "Interface"):
        if endpoint.get("PrivateDnsEnabled") and not situation.is_own(endpoint):
            yield problem(
                _KEY,
                f"{situation.vpc_id} has an endpoint for {service} with a private DNS name already "
                f"({endpoint['VpcEndpointId']}), and EC2 refuses a second one",
                "set it to false and use the VPC's endpoints, or take the private DNS name from that endpoint",
                f"aws ec2 modify-vpc-endpoint --vpc-endpoint-id {endpoint['VpcEndpointId']} "
                f"--region {situation.region} --no-private-dns-enabled",
            )


def _way_out_missing(situation: Situation, subnets: tuple[NamedSubnet, ...], services: list[str]) -> Finding:
    """Return the problem of subnets that have neither a default route nor any endpoint.

    Where cfngen creates their route table, it can create the endpoints, too (`_KEY`).
    """
    names = ", ".join(subnet.name for subnet in subnets)
    text = f"{names} {verb_form(len(subnets), 'have')} no way out: there is neither a default route nor an endpoint"
    table = situation.route_table(subnets[0])
    if table is None:
        return problem(_KEY, text, "set it to true, or create the endpoints of " + ", ".join([*services, S3]))
    return problem(
        subnets[0].route_key,
        text,
        f"add a default route, for example to a NAT gateway, or create the endpoints of {', '.join([*services, S3])}",
        f"aws ec2 create-route --region {situation.region} --route-table-id {table['RouteTableId']} "
        f"--destination-cidr-block {DEFAULT_ROUTE} --nat-gateway-id NAT_GATEWAY",
    )


def _judge_service(
    situation: Situation, subnets: tuple[NamedSubnet, ...], service: str, reason: str
) -> Iterator[Finding]:
    """Yield a problem if the VPC has no usable interface endpoint for a service."""
    key = subnets[0].route_key
    endpoints = _of_service(situation, service, "Interface")
    available = [endpoint for endpoint in endpoints if str(endpoint.get("State", "available")).lower() == "available"]
    with_names = [endpoint for endpoint in available if endpoint.get("PrivateDnsEnabled")]
    if not endpoints:
        names = ", ".join(subnet.name for subnet in subnets)
        yield problem(
            key,
            f"{names} cannot reach {service} ({reason}): there is neither a default route nor an interface endpoint",
            "create the endpoint, or a default route to a NAT gateway",
            f"aws ec2 create-vpc-endpoint --vpc-id {situation.vpc_id} --vpc-endpoint-type Interface "
            f"--region {situation.region} --service-name {service_name(service, situation.region)} "
            f"--subnet-ids {subnets[0].id or 'SUBNET'} --security-group-ids SECURITY_GROUP --private-dns-enabled",
        )
    elif not available:
        yield problem(
            key,
            f"the endpoint {endpoints[0]['VpcEndpointId']} for {service} is {endpoints[0]['State']}, not available",
            "wait until it is available, or create it again",
            f"aws ec2 describe-vpc-endpoints --region {situation.region} "
            f"--vpc-endpoint-ids {endpoints[0]['VpcEndpointId']}",
        )
    elif not with_names:
        yield problem(
            key,
            f"the endpoint {available[0]['VpcEndpointId']} for {service} has no private DNS name, so instances do not "
            "find it",
            "switch private DNS names on",
            f"aws ec2 modify-vpc-endpoint --vpc-endpoint-id {available[0]['VpcEndpointId']} "
            f"--region {situation.region} --private-dns-enabled",
        )
    else:
        for subnet in subnets:
            if subnet.cidr is not None and not _admits(situation, with_names[0], subnet, subnet.cidr):
                yield _range_not_admitted(situation, with_names[0], service, subnet.cidr, key)


def _range_not_admitted(
    situation: Situation, endpoint: AwsObject, service: str, cidr: IPv4Network, key: str
) -> Finding:
    group_ids = [group["GroupId"] for group in endpoint.get("Groups", ())]
    subject = "the security group" if len(group_ids) == 1 else "the security groups"
    return problem(
        key,
        f"{subject} of {endpoint['VpcEndpointId']} ({service}) {verb_form(len(group_ids), 'do')} not admit {cidr} on "
        f"TCP port {_HTTPS}",
        "add a rule",
        f"aws ec2 authorize-security-group-ingress --region {situation.region} --group-id {group_ids[0]} "
        f"--protocol tcp --port {_HTTPS} --cidr {cidr}",
    )


def _admits(situation: Situation, endpoint: AwsObject, subnet: NamedSubnet, cidr: IPv4Network) -> bool:
    """Return whether an endpoint's security groups admit HTTPS from the instances of a subnet.

    They may name a security group of the instances instead of their range. Groups that could not be read are taken to
    admit it.
    """
    group_ids = {group["GroupId"] for group in endpoint.get("Groups", ())}
    groups = [group for group in situation.facts.security_groups if group["GroupId"] in group_ids]
    permissions = [permission for group in groups for permission in group.get("IpPermissions", ())]
    of_masters = [groups_of_role(situation, "Master")] if subnet.slots else []
    of_nodes = [groups_of_role(situation, "Node", group.name) for _, group in subnet.groups]
    return not groups or all(
        permits(permissions, "tcp", (_HTTPS, _HTTPS), group_ids=of_instances, cidrs=(cidr,))
        for of_instances in (*of_masters, *of_nodes)
    )


def _find_subnets_without_s3(situation: Situation, subnets: tuple[NamedSubnet, ...]) -> Iterator[Finding]:
    """Yield a problem for each existing route table that does not lead to S3."""
    if any(endpoint.get("PrivateDnsEnabled") for endpoint in _of_service(situation, S3, "Interface")):
        return
    gateways = _of_service(situation, S3, "Gateway")
    routed_tables = {table for gateway in gateways for table in gateway.get("RouteTableIds", ())}
    for subnet in subnets:
        table = situation.route_table(subnet)
        if table is None and situation.cluster.network.endpoints.create:
            continue
        table_id = table["RouteTableId"] if table else ""
        if table_id in routed_tables:
            continue
        if table is None:
            text = f"{subnet.name} gets no endpoint for S3, which holds images and files, since this is false"
            yield problem(_KEY, text, "set it to true, or name a route table that has one (routeTable)")
        elif gateways:
            yield problem(
                subnet.route_key,
                f"{subnet.name} cannot reach S3: {table_id} has no route to {gateways[0]['VpcEndpointId']}",
                "add the route table to the endpoint",
                f"aws ec2 modify-vpc-endpoint --vpc-endpoint-id {gateways[0]['VpcEndpointId']} "
                f"--region {situation.region} --add-route-table-ids {table_id}",
            )
        else:
            yield problem(
                subnet.route_key,
                f"{subnet.name} cannot reach S3: there is neither a default route nor an endpoint",
                "create a gateway endpoint, which is free",
                f"aws ec2 create-vpc-endpoint --vpc-id {situation.vpc_id} --vpc-endpoint-type Gateway "
                f"--region {situation.region} --service-name {service_name(S3, situation.region)} "
                f"--route-table-ids {table_id}",
            )
