"""Finds the problems on the way out of a private cluster, and of the issuer of tokens, each with what mends it.

CloudFormation does not notice that a part of a network was changed or deleted outside of it (`cfngen status --drift`
shows it), so the commands are the AWS CLI's.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.iam.service_accounts import AUDIENCE, KEYS_KEY, document_keys, masters_publish_documents
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.issuer import IssuerView, read_issuer
from cfngen.deploy.aws.private_network import EndpointView, NatGatewayView, PrivateNetwork, RouteTableView
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.status.cluster_problems import Problem
from cfngen.hints import CommandText, suggest
from cfngen.templates.issuer import BUCKET_OUTPUT, ISSUER_OUTPUT

# Codes: `FailureCode` of a NAT gateway in the Amazon EC2 API Reference; remedies: "Troubleshoot NAT gateways", Amazon
# VPC User Guide. A failed NAT gateway is deleted by EC2, usually within an hour.
_REMEDY_BY_FAILURE_CODE = {
    "InsufficientFreeAddressesInSubnet": "free an address in its subnet first; ",
    "Gateway.NotAttached": "attach the internet gateway to the VPC first; ",
    "InvalidAllocationID.NotFound": "its Elastic IP does not exist any more; ",
    "Resource.AlreadyAssociated": "disassociate its Elastic IP from what else has it first; ",
}
_WAITING_STATES = frozenset({"pending", "modifying"})


def find_network_problems(network: PrivateNetwork) -> list[Problem]:
    """Return the problems of NAT gateways, route tables and VPC endpoints; none for a public cluster."""
    unusable = frozenset(gateway.id for gateway in network.nat_gateways if gateway.state != "available")
    return [
        *(_nat_gateway_problem(gateway, network) for gateway in network.nat_gateways if gateway.id in unusable),
        *(
            problem
            for table in network.tables
            # A route to a NAT gateway that does not work is mended together with the gateway.
            if table.target not in unusable or not table.target
            for problem in _route_problems(table, network)
        ),
        *_association_problems(network),
        *(problem for endpoint in network.endpoints for problem in _endpoint_problems(endpoint, network)),
    ]


def _nat_gateway_problem(gateway: NatGatewayView, network: PrivateNetwork) -> Problem:
    if gateway.state in _WAITING_STATES:
        hint = "it is available within a few minutes."
        return Problem("natGateway", gateway.id, f"is {gateway.state}", hint=hint)
    text = f"is {gateway.state}" if gateway.state else "does not exist any more"
    tables = [table.id for table in network.tables if gateway.id in (table.target, table.expected_target)]
    replace_routes = " and ".join(
        _route_command(network, "replace-route", table, "--nat-gateway-id nat-…") for table in tables
    )
    then = f"; then with its id: {replace_routes}" if replace_routes else ""
    with_address = f" with the Elastic IP {gateway.elastic_ip}" if gateway.elastic_ip else ""
    subnet = gateway.subnet or "subnet-…"
    return Problem(
        "natGateway",
        gateway.id,
        f"{text}: instances that use it reach nothing outside of the VPC",
        detail=gateway.failure,
        hint=f"{_REMEDY_BY_FAILURE_CODE.get(gateway.failure_code, '')}create another one{with_address}: aws ec2 "
        f"create-nat-gateway --region {network.region} --subnet-id {subnet} --allocation-id eipalloc-…{then}",
    )


def _route_problems(table: RouteTableView, network: PrivateNetwork) -> Iterator[Problem]:
    if not table.exists:
        yield Problem(
            "route",
            table.id,
            "does not exist any more: its subnets use the main route table of the VPC",
            hint="create it again in the console, with its routes, and associate the subnets with it.",
        )
        return
    if not table.target_kind:
        return
    is_nat = table.target_kind == "NAT gateway"
    is_right = table.target in network.nat_gateway_ids if is_nat else table.target.startswith("igw-")
    if is_right and not table.is_blackhole:
        return
    if not table.target:
        text = f"has no route for 0.0.0.0/0 to the {table.target_kind}"
    elif table.is_blackhole:
        text = f"has a route for 0.0.0.0/0 to {table.target}, which does not exist any more"
    else:
        text = f"has a route for 0.0.0.0/0 to {table.target}, not to the {table.target_kind}"
    target_id = table.expected_target or ("nat-…" if is_nat else "igw-…")
    option = "--nat-gateway-id" if is_nat else "--gateway-id"
    operation = "replace-route" if table.target else "create-route"
    yield Problem("route", table.id, text, hint=_route_command(network, operation, table.id, f"{option} {target_id}"))


def _route_command(network: PrivateNetwork, operation: str, table: str, target: str) -> str:
    return (
        f"aws ec2 {operation} --region {network.region} --route-table-id {table} "
        f"--destination-cidr-block 0.0.0.0/0 {target}"
    )


def _association_problems(network: PrivateNetwork) -> Iterator[Problem]:
    tables = {table.id: table for table in network.tables if table.exists}
    for subnet, expected in sorted(network.table_by_subnet.items()):
        # Tables that existed before the cluster are not read.
        if expected not in tables or subnet in tables[expected].associations:
            continue
        other = next((table for table in tables.values() if subnet in table.associations), None)
        if other:
            command = f"replace-route-table-association --association-id {other.associations[subnet]}"
        else:
            command = f"associate-route-table --subnet-id {subnet}"
        yield Problem(
            "subnet",
            subnet,
            f"uses {other.id if other else 'another route table'} instead of the route table {expected}",
            hint=f"aws ec2 {command} --region {network.region} --route-table-id {expected}",
        )


def _endpoint_problems(endpoint: EndpointView, network: PrivateNetwork) -> Iterator[Problem]:
    service = f"for {endpoint.service} " if endpoint.service else ""
    if endpoint.state != "available":
        state = f"is {endpoint.state}" if endpoint.state else "does not exist any more"
        yield Problem(
            "endpoint",
            endpoint.id,
            f"{service}{state}",
            detail=endpoint.failure,
            hint=_endpoint_hint(endpoint, network),
        )
        return
    if not endpoint.has_private_dns:
        yield Problem(
            "endpoint",
            endpoint.id,
            f"{service}does not have the service's usual name (private DNS), so instances do not use it",
            hint=f"aws ec2 modify-vpc-endpoint --region {network.region} --vpc-endpoint-id {endpoint.id} "
            "--private-dns-enabled",
        )
    missing = [table.id for table in network.tables if table.is_private and table.id not in endpoint.tables]
    if endpoint.is_gateway and missing:
        yield Problem(
            "endpoint",
            endpoint.id,
            f"{service}is not in the route table {', '.join(missing)}",
            hint=f"aws ec2 modify-vpc-endpoint --region {network.region} --vpc-endpoint-id {endpoint.id} "
            f"--add-route-table-ids {' '.join(missing)}",
        )


def _endpoint_hint(endpoint: EndpointView, network: PrivateNetwork) -> str:
    if endpoint.state in _WAITING_STATES:
        return "it is available within a few minutes."
    if endpoint.state in ("pendingacceptance", "rejected", "expired"):
        return "ask the owner of the service to accept it; or remove the service from network.endpoints.additional."
    kind = "Gateway" if endpoint.is_gateway else "Interface"
    parts = (
        "--route-table-ids rtb-…"
        if endpoint.is_gateway
        else "--subnet-ids … --security-group-ids … --private-dns-enabled"
    )
    return (
        f"instances do not reach the service; create another one: aws ec2 create-vpc-endpoint "
        f"--region {network.region} --vpc-id vpc-… --service-name {endpoint.service_name or '…'} "
        f"--vpc-endpoint-type {kind} {parts}"
    )


_AREA = "issuer"
_HINT = (
    "masters write the documents when they boot, and every hour; `journalctl -u cfngen-issuer` on a master says why "
    "they could not"
)


def read_cluster_issuer(account: Account, cluster: Cluster, stack: StackView) -> IssuerView | None:
    """Return the issuer of a cluster's tokens, which the root stack's outputs name; None if there is none yet."""
    name = stack.outputs.get(ISSUER_OUTPUT, "")
    if cluster.service_account_issuer is None or not name:
        return None
    bucket = stack.outputs.get(BUCKET_OUTPUT, "") if masters_publish_documents(cluster) else ""
    return read_issuer(account, name, bucket, document_keys(cluster.service_account_issuer) if bucket else ())


def find_issuer_problems(issuer: IssuerView) -> Iterator[Problem]:
    """Yield what keeps AWS from accepting tokens of pods: of the OIDC provider, then of the documents."""
    name = issuer.name
    hint = CommandText(suggest("status", "--drift"), " shows what else of the stacks is missing.")
    if not issuer.has_provider:
        yield Problem(_AREA, name, "has no OIDC provider in IAM, so AWS STS refuses the tokens of pods", hint=hint)
    elif issuer.audiences is not None and AUDIENCE not in issuer.audiences:
        text = f"has an OIDC provider that does not accept the audience {AUDIENCE} of pods' tokens"
        yield Problem(_AREA, name, text, hint=hint)
    expected_urls = {"issuer": f"https://{name}", "jwks_uri": f"https://{name}/{KEYS_KEY}"}
    for key, document in issuer.documents.items():
        if document is None:
            text = f"has no document {key} in the bucket {issuer.bucket}, so AWS STS cannot check the tokens of pods"
            yield Problem(_AREA, name, text, hint=_HINT)
            continue
        is_right = (
            bool(document.get("keys"))
            if key.endswith(KEYS_KEY)
            else all(document.get(claim) == url for claim, url in expected_urls.items())
        )
        if not is_right:
            text = f"has a document {key} in the bucket {issuer.bucket} that is not that of this issuer"
            yield Problem(_AREA, name, text, hint=_HINT)
