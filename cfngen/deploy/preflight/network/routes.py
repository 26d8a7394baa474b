"""Judges routes: whether each subnet has a way to AWS services and registries, and where pods' routes go."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import is_private, masters_have_elastic_ips
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.network import list_route_tables, route_table_of
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Report
from cfngen.deploy.preflight.findings import Finding, problem, unread, warning
from cfngen.deploy.preflight.network.situation import DEFAULT_ROUTE, NamedSubnet, Situation, default_route
from cfngen.errors import CfngenError

# Where a route may lead (API reference of Amazon EC2, Route).
_TARGETS = (
    "GatewayId",
    "NatGatewayId",
    "TransitGatewayId",
    "NetworkInterfaceId",
    "InstanceId",
    "VpcPeeringConnectionId",
    "LocalGatewayId",
    "CarrierGatewayId",
    "CoreNetworkArn",
)


def target_of(route: AwsObject) -> str:
    """Return the id of what a route leads to; empty if EC2 shows none."""
    return next((str(route[name]) for name in _TARGETS if route.get(name)), "")


def find_unrouted_subnets(situation: Situation) -> Iterator[Finding]:
    """Yield a finding for each subnet whose default route is missing, or of the wrong kind."""
    for subnet in situation.subnets:
        table = situation.route_table(subnet)
        if table is None:
            continue
        route = default_route(table)
        if route is not None and route.get("State") == "blackhole":
            yield problem(
                subnet.route_key,
                f"the default route of {subnet.name} in {table['RouteTableId']} leads to {target_of(route)}, "
                "which no longer exists or is not attached",
                "replace the route",
                _replace_command(situation, table),
            )
        elif subnet.is_public or not is_private(situation.cluster):
            yield from _judge_public(situation, subnet, table, route)
        else:
            yield from _judge_private(situation, subnet, table, route)


def _judge_public(
    situation: Situation, subnet: NamedSubnet, table: AwsObject, route: AwsObject | None
) -> Iterator[Finding]:
    """Judge the default route of a subnet that is public, or whose instances have public addresses."""
    if route is None:
        yield _no_route_to_internet(situation, subnet, table)
        return
    target = target_of(route)
    if target.startswith("igw-"):
        if target not in _attached_gateways(situation) and not situation.is_unread("internet_gateways"):
            yield problem(
                subnet.route_key,
                f"the default route of {subnet.name} leads to {target}, which is not attached to {situation.vpc_id}",
                "attach the internet gateway",
                f"aws ec2 attach-internet-gateway --internet-gateway-id {target} --vpc-id {situation.vpc_id} "
                f"--region {situation.region}",
            )
        yield from _find_instances_without_public_address(situation, subnet, target)
    elif user := _user_of_internet_gateway(situation, subnet):
        yield problem(
            subnet.route_key,
            f"the default route of {subnet.name} leads to {target} and not to an internet gateway, so {user} not "
            "reached",
            "use a subnet with a route to an internet gateway"
            + ("" if subnet.is_public else ", or set network.topology to private or api.public to false"),
        )
    else:
        yield from _judge_nat_gateway(situation, subnet, target)
        for position, group in subnet.groups:
            if group.public_ip:
                yield warning(
                    f"nodeGroups[{position}].publicIp",
                    f"nodes of {group.name} get public addresses that nobody reaches, since the default route of "
                    f"{subnet.name} leads to {target}",
                    "set it to false",
                )


def _no_route_to_internet(situation: Situation, subnet: NamedSubnet, table: AwsObject) -> Finding:
    gateway = next(iter(_attached_gateways(situation)), "INTERNET_GATEWAY")
    return problem(
        subnet.route_key,
        f"{subnet.name} has no default route: {table['RouteTableId']} does not lead to an internet gateway",
        "add the route",
        f"aws ec2 create-route --region {situation.region} --route-table-id {table['RouteTableId']} "
        f"--destination-cidr-block {DEFAULT_ROUTE} --gateway-id {gateway}",
    )


def _user_of_internet_gateway(situation: Situation, subnet: NamedSubnet) -> str:
    """Return what needs a route to an internet gateway in a subnet, with its verb; empty if nothing does."""
    bastion = situation.cluster.bastion
    if subnet.is_public:
        return "load balancers and NAT gateways in it are"
    if subnet.slots and masters_have_elastic_ips(situation.cluster):
        return "the master's Elastic IP in it is" if len(subnet.slots) == 1 else "the masters' Elastic IPs in it are"
    return "the bastion's Elastic IP in it is" if bastion and bastion.zone == subnet.zone else ""


def _find_instances_without_public_address(
    situation: Situation, subnet: NamedSubnet, gateway: str
) -> Iterator[Finding]:
    """Yield a problem for masters and groups that cannot use an internet gateway, as they have no public addresses."""
    route = f"the default route of {subnet.name} leads to {gateway}"
    text = f"have no public addresses, and {route}: they have no way out"
    remedy = "use a subnet with a NAT gateway"
    if subnet.slots and not masters_have_elastic_ips(situation.cluster):
        is_one = len(subnet.slots) == 1
        master_text = f"the master in it has no public address, and {route}: it has no way out"
        yield problem("api.public", master_text if is_one else f"masters {text}", f"{remedy}, or set it to true")
    for position, group in subnet.groups:
        if not group.public_ip:
            yield problem(
                f"nodeGroups[{position}].publicIp", f"nodes of {group.name} {text}", f"{remedy}, or set it to true"
            )


def _judge_private(
    situation: Situation, subnet: NamedSubnet, table: AwsObject, route: AwsObject | None
) -> Iterator[Finding]:
    """Judge the default route of a subnet whose instances have no public addresses."""
    if route is None:
        # Without a default route instances need endpoints: see `endpoints`.
        return
    target = target_of(route)
    if target.startswith("igw-"):
        yield problem(
            subnet.route_key,
            f"the default route of {subnet.name} leads to the internet gateway {target}, which instances without "
            "public addresses cannot use",
            f"use a subnet with a NAT gateway, or lead the route of {table['RouteTableId']} to one",
            _replace_command(situation, table),
        )
    yield from _judge_nat_gateway(situation, subnet, target)


def _judge_nat_gateway(situation: Situation, subnet: NamedSubnet, target: str) -> Iterator[Finding]:
    """Judge the NAT gateway that a subnet's default route leads to, if it is one."""
    if target.startswith("nat-"):
        yield from _judge_gateway_state(situation, subnet.route_key, target)


def find_unusable_nat_gateways(situation: Situation) -> Iterator[Finding]:
    """Yield a problem for each NAT gateway of the cluster file that does not work."""
    foreign_keys = {finding.key for finding in situation.foreign}
    for subnet in situation.subnets:
        key = f"{subnet.path}.natGateway"
        if subnet.nat_gateway and key not in foreign_keys:
            yield from _judge_gateway_state(situation, key, subnet.nat_gateway)


def _judge_gateway_state(situation: Situation, key: str, gateway_id: str) -> Iterator[Finding]:
    """Yield a problem if a NAT gateway is not available, or has no way to the internet itself."""
    gateway = next((each for each in situation.facts.nat_gateways if each["NatGatewayId"] == gateway_id), None)
    look = f"aws ec2 describe-nat-gateways --region {situation.region} --nat-gateway-ids {gateway_id}"
    if gateway is None:
        if not situation.is_unread("nat_gateways"):
            text = f"there is no NAT gateway {gateway_id} in {situation.vpc_id}"
            yield problem(key, text, "use a NAT gateway of the VPC", look)
    elif gateway["State"] != "available":
        text = f"the NAT gateway {gateway_id} is {gateway['State']} and not available"
        yield problem(key, text, "wait until it is available, or use another one", look)
    # A private NAT gateway leads to other networks, such as a transit gateway.
    # A regional one is in no subnet.
    elif gateway.get("ConnectivityType", "public") == "public" and "SubnetId" in gateway:
        table = situation.table_by_id(route_table_of(situation.facts.route_tables, gateway["SubnetId"]))
        route = default_route(table) if table else None
        if table and not (route and target_of(route).startswith("igw-")):
            yield problem(
                key,
                f"the NAT gateway {gateway_id} is in {gateway['SubnetId']}, which has no route to an internet gateway",
                f"add a default route to an internet gateway to {table['RouteTableId']}",
                f"aws ec2 create-route --region {situation.region} --route-table-id {table['RouteTableId']} "
                f"--destination-cidr-block {DEFAULT_ROUTE} --gateway-id INTERNET_GATEWAY",
            )


def find_divided_route_tables(situation: Situation) -> Iterator[Finding]:
    """Yield a finding if pods' routes would not be in the one route table that all existing subnets use.

    The cloud controller manager writes routes to one table only (cloud-provider-aws#432). Pods in a subnet with another
    one could not be reached, and no error would say so.
    """
    key = "network.routeTable"
    tables = situation.facts.route_tables
    subnets = [subnet.id for subnet, _ in situation.existing_subnets if not subnet.is_public]
    if not (subnets and tables):
        return
    named_table = situation.values.get("RouteTableId", "")
    if error := _judge_tables(tables, subnets, named_table):
        yield problem(key, str(error), str(error.hint).removesuffix("."))
    elif not named_table:
        users = "the subnet uses" if len(subnets) == 1 else "the subnets use"
        table = route_table_of(tables, subnets[0])
        yield warning(
            key, f"is not in the cluster file, so it is a stack parameter; {users} {table}", f"set it to {table}"
        )


def _attached_gateways(situation: Situation) -> tuple[str, ...]:
    """Return the ids of the internet gateways that are attached to the VPC."""
    return tuple(gateway["InternetGatewayId"] for gateway in situation.facts.internet_gateways)


def _replace_command(situation: Situation, table: AwsObject) -> str:
    """Return the command that leads a table's default route to a NAT gateway."""
    return (
        f"aws ec2 replace-route --region {situation.region} --route-table-id {table['RouteTableId']} "
        f"--destination-cidr-block {DEFAULT_ROUTE} --nat-gateway-id NAT_GATEWAY"
    )


class RouteTablesError(CfngenError):
    """Subnets use route tables that would not contain the pods' routes.

    Attributes:
        other_tables: for each subnet that does not use the cluster's route table, the route table that the subnet
            uses; an empty text if it uses none.
    """

    code = "route-tables-conflict"

    def __init__(self, route_table: str, other_tables: Mapping[str, str]) -> None:
        usage = ", ".join(f"{subnet} uses {table or 'none'}" for subnet, table in sorted(other_tables.items()))
        super().__init__(
            f"pods' routes would be written to {route_table}, but {usage}: pods there could not be reached",
            hint="associate all subnets of the cluster with one route table, or set network.plugin to cilium, calico, "
            "flannel or amazon-vpc, which need no routes.",
        )
        self.other_tables = dict(other_tables)


def check(account: Account, cluster: Cluster, values: Mapping[str, str], report: Report) -> None:
    """Check that the existing subnets of a cluster with VPC routes use the cluster's route table.

    Args:
        report: receives a notice if the route tables cannot be read.

    Raises:
        RouteTablesError: some subnets use another route table.
    """
    route_table = values.get("RouteTableId", "")
    subnets = [value for name, value in values.items() if value and _is_subnet_of_instances(name)]
    # Only some network plug-ins need routes of the VPC, and only subnets that exist already have a route table.
    if not (network_plugin(cluster).uses_vpc_routes and route_table and subnets):
        return
    try:
        with translate_aws_errors():
            tables = list_route_tables(account, values.get("VpcId", ""))
    except AwsError as error:
        report(unread("which route tables the subnets use", error).notice)
        return
    if error_of_tables := _judge_tables(tables, subnets, route_table):
        raise error_of_tables


def _judge_tables(tables: Sequence[AwsObject], subnets: Iterable[str], route_table: str) -> RouteTablesError | None:
    """Return an error if a subnet uses another route table than pods' routes are in; None if all use it.

    Args:
        tables: all route tables of the VPC; empty if they are not known.
        subnets: ids of the existing subnets of instances.
        route_table: the table of pods' routes; empty for the one of the first subnet.
    """
    table_by_subnet = {subnet: route_table_of(tables, subnet) for subnet in subnets}
    table_of_routes = route_table or next(iter(table_by_subnet.values()), "")
    others = {subnet: table for subnet, table in table_by_subnet.items() if table != table_of_routes}
    return RouteTablesError(table_of_routes, others) if tables and others else None


def _is_subnet_of_instances(parameter: str) -> bool:
    """Return whether a parameter holds the id of a subnet of instances; those beside private subnets have none."""
    parsed = SubnetId.parse(parameter)
    return parsed is not None and parsed.part == "Id" and not parsed.is_public
