"""Checks existing parts of a network: public subnets, NAT gateways, route tables, targets of routes, sources of rules.

EC2 creates a NAT gateway also in a subnet without a route to an internet gateway, and a route also to a NAT gateway of
another zone. Instances would then reach nothing, and the first master would fail after minutes. It refuses a rule for a
prefix list or security group that does not exist in the middle of a creation or update. So this is checked before
anything is created. Objects are described by filters, since a call with ids fails if one of them does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cfngen.cluster.checks.sections import ingress_rules, source_prefix_lists
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.network_ids import SubnetId, ZonalId, ZoneId, zone_id
from cfngen.cluster.network.routes import destination_range, target_ids
from cfngen.cluster.network.topology import is_private
from cfngen.cluster.paths import dotted
from cfngen.cluster.sections.network import Subnet
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.network import (
    SubnetView,
    find_interface_vpc,
    find_nat_gateway,
    find_peering_connection,
    find_route_tables,
    find_security_groups,
    find_subnets,
    find_vpn_gateway_vpcs,
    has_prefix_list,
    has_transit_gateway,
    list_route_tables,
    list_transit_gateway_attachments,
    route_table_of,
)
from cfngen.deploy.preflight.findings import Finding, refusal

ROUTES = "routes"
"""The check of findings about routes in existing route tables, which `cfngen check network` judges in more detail."""
_ANY_IPV4 = "0.0.0.0/0"


class _ExistingPart(NamedTuple):
    """An existing part of the network in one zone.

    Attributes:
        key: its key in the cluster file.
        zone: the zone of the cluster's subnet that it is for.
        subnet: the cluster's subnet in this zone.
    """

    key: str
    id: str
    zone: str
    subnet: Subnet


def find_private_network_problems(
    account: Account, cluster: Cluster, values: Mapping[str, str], vpc_id: str
) -> Iterator[Finding]:
    """Yield a problem for each existing part of a private network that instances could not use.

    Args:
        cluster: the cluster, in an existing VPC.

    Raises:
        cfngen.deploy.aws.errors.AwsError: AWS does not answer; the caller translates boto3's errors.
    """
    public_subnets = list(_parts(cluster, values, "public.id"))
    nat_gateways = list(_parts(cluster, values, "natGateway"))
    route_tables = list(_parts(cluster, values, "routeTable"))
    if not (public_subnets or nat_gateways or route_tables):
        return
    network = _Network(account, vpc_id)
    for part in public_subnets:
        yield from network.public_subnet_problems(part)
    for part in nat_gateways:
        yield from network.nat_gateway_problems(part)
    for part in route_tables:
        yield from network.route_table_problems(part, is_private=is_private(cluster))


def _parts(cluster: Cluster, values: Mapping[str, str], key: str) -> Iterator[_ExistingPart]:
    """Yield the existing parts that a key of `subnets[]` names; the parameters' values take precedence.

    Args:
        key: `public.id`, `natGateway` or `routeTable`.
    """
    for index, subnet in enumerate(cluster.network.subnets):
        short_zone = zone_id(subnet.zone)
        parameter = {
            "public.id": str(SubnetId(short_zone, "Id", is_public=True)),
            "natGateway": str(ZonalId("NatGateway", short_zone, is_parameter=True)),
            "routeTable": str(ZonalId("RouteTable", short_zone, is_parameter=True)),
        }[key]
        if part_id := values.get(parameter, ""):
            zone = values.get(str(ZoneId(short_zone)), subnet.zone)
            yield _ExistingPart(f"network.subnets[{index}].{key}", part_id, zone, subnet)


class _Network:
    """The subnets, route tables and NAT gateways of a VPC, and what is wrong with those that the cluster file names."""

    def __init__(self, account: Account, vpc_id: str) -> None:
        self._account = account
        self._vpc_id = vpc_id
        self._tables = {table["RouteTableId"]: table for table in list_route_tables(account, vpc_id)}

    def public_subnet_problems(self, part: _ExistingPart) -> Iterator[Finding]:
        """Yield what is wrong with an existing public subnet."""
        subnet = self._subnet(part.id)
        if subnet is None:
            yield refusal(part.key, f"there is no subnet {part.id} in {self._account.region}; enter an existing one")
        elif subnet.vpc_id != self._vpc_id:
            yield self._other_vpc_problem(part, subnet.vpc_id)
        elif subnet.zone != part.zone:
            yield refusal(
                part.key, f"{part.id} is in {subnet.zone} and not in {part.zone}; use a public subnet in {part.zone}"
            )
        else:
            public = part.subnet.public
            if public and public.id == part.id and public.cidr and subnet.cidr != str(public.cidr):
                key = part.key.removesuffix("id") + "cidr"
                yield refusal(
                    key, f"{part.id} has the range {subnet.cidr} and not {public.cidr}; correct it, or remove the key"
                )
            if not self._is_public(part.id):
                yield refusal(
                    part.key,
                    f"{part.id} has no route to an internet gateway, so that nothing in it reaches the "
                    f"internet; add the route {_ANY_IPV4} to its route table, or use another subnet",
                    check=ROUTES,
                )

    def nat_gateway_problems(self, part: _ExistingPart) -> Iterator[Finding]:
        """Yield what is wrong with an existing NAT gateway."""
        gateway = find_nat_gateway(self._account, part.id)
        if gateway is None:
            yield refusal(
                part.key, f"there is no NAT gateway {part.id} in {self._account.region}; enter an existing one"
            )
        elif gateway.vpc_id != self._vpc_id:
            yield self._other_vpc_problem(part, gateway.vpc_id)
        elif gateway.state != "available":
            yield refusal(
                part.key,
                f"{part.id} is {gateway.state} and not available; wait until it is, or use another NAT gateway",
            )
        elif gateway.is_private:
            yield refusal(
                part.key,
                f"{part.id} is a private NAT gateway, which does not lead to the internet itself; use a "
                "public one, or enter a route table of your own (routeTable)",
            )
        elif gateway.subnet_id is not None:
            yield from self._nat_subnet_problems(part, gateway.subnet_id)

    def _nat_subnet_problems(self, part: _ExistingPart, subnet_id: str) -> Iterator[Finding]:
        """Yield what is wrong with the subnet of an existing NAT gateway."""
        subnet = self._subnet(subnet_id)
        if subnet is not None and subnet.zone != part.zone:
            yield refusal(
                part.key, f"{part.id} is in {subnet.zone} and not in {part.zone}; use a NAT gateway in {part.zone}"
            )
        if not self._is_public(subnet_id):
            yield refusal(
                part.key,
                f"the subnet {subnet_id} of {part.id} has no route to an internet gateway; add the route "
                f"{_ANY_IPV4} to the subnet's route table",
                check=ROUTES,
            )

    def route_table_problems(self, part: _ExistingPart, *, is_private: bool) -> Iterator[Finding]:
        """Yield what is wrong with the existing route table of a subnet, whose instances may have public addresses."""
        if part.id not in self._tables:
            elsewhere = find_route_tables(self._account, [part.id])
            if elsewhere:
                yield self._other_vpc_problem(part, elsewhere[0]["VpcId"])
            else:
                yield refusal(
                    part.key, f"there is no route table {part.id} in {self._account.region}; enter an existing one"
                )
        elif is_private and self._leads_to_internet_gateway(part.id):
            yield refusal(
                part.key,
                f"{part.id} routes {_ANY_IPV4} to an internet gateway, through which instances without "
                "public addresses reach nothing; use a table with a route to a NAT gateway",
                check=ROUTES,
            )

    def _other_vpc_problem(self, part: _ExistingPart, vpc_id: str) -> Finding:
        text = f"{part.id} belongs to {vpc_id}, and the cluster is in {self._vpc_id}; use one of {self._vpc_id}"
        return refusal(part.key, text)

    def _is_public(self, subnet_id: str) -> bool:
        """Return whether the route table of a subnet, or else the VPC's main one, leads to an internet gateway."""
        return self._leads_to_internet_gateway(route_table_of([*self._tables.values()], subnet_id))

    def _leads_to_internet_gateway(self, table_id: str) -> bool:
        """Return whether a route table of the VPC has a route to an internet gateway for all addresses."""
        return table_id in self._tables and any(
            route.get("DestinationCidrBlock") == _ANY_IPV4
            and route.get("GatewayId", "").startswith("igw-")
            and route.get("State", "active") == "active"
            for route in self._tables[table_id]["Routes"]
        )

    def _subnet(self, subnet_id: str) -> SubnetView | None:
        return find_subnets(self._account, [subnet_id]).get(subnet_id)


# Routes lead through an attachment in these states (TransitGatewayVpcAttachment, EC2 API Reference).
_USABLE_ATTACHMENTS = ("available", "modifying")


def find_unconnected_targets(cluster: Cluster) -> Iterator[Finding]:
    """Yield a problem for each route out of a VPC that the stack has yet to create: no target is connected with it."""
    for index, route in enumerate(cluster.network.routes):
        for key, target_id in target_ids(route).items():
            yield refusal(
                f"network.routes[{index}].{key}",
                f"{target_id} is not connected with the VPC that the stack will create, "
                "so EC2 would refuse the route; deploy without it, connect the new VPC, and deploy again with it, or "
                "set network.vpc.id to an existing VPC",
            )


def find_route_problems(account: Account, cluster: Cluster, vpc_id: str) -> Iterator[Finding]:
    """Yield a problem for each prefix list or target of a route that does not exist, or does not lead out of the VPC.

    EC2 refuses such a route in the middle of an operation; to a peering connection that is not accepted it makes one
    that leads nowhere ("Update your route tables for a VPC peering connection", Amazon VPC Peering Guide).

    Raises:
        cfngen.deploy.aws.errors.AwsError: AWS does not answer; the caller translates boto3's errors.
    """
    targets = _Targets(account, vpc_id)
    for index, route in enumerate(cluster.network.routes):
        path = f"network.routes[{index}]"
        if destination_range(route) is None and not has_prefix_list(account, route.destination):
            yield refusal(
                f"{path}.destination", f"there is no prefix list {route.destination} in {account.region}; correct it"
            )
        for key, target_id in target_ids(route).items():
            if problem := targets.problem(key, target_id):
                yield refusal(f"{path}.{key}", problem)


class _Targets:
    """What routes of the cluster file may lead to, and what is wrong with it for a VPC."""

    def __init__(self, account: Account, vpc_id: str) -> None:
        self._account = account
        self._vpc_id = vpc_id

    def problem(self, key: str, target_id: str) -> str:
        """Return what is wrong with the target that a key of the cluster file names; empty if nothing is."""
        problems_by_key: Mapping[str, Callable[[str], str]] = {
            "transitGateway": self._transit_gateway_problem,
            "peeringConnection": self._peering_problem,
            "vpnGateway": self._vpn_gateway_problem,
            "networkInterface": self._interface_problem,
        }
        return problems_by_key[key](target_id)

    def _transit_gateway_problem(self, gateway_id: str) -> str:
        if not has_transit_gateway(self._account, gateway_id):
            return self._missing("transit gateway", gateway_id)
        attachments = list_transit_gateway_attachments(self._account, gateway_id, self._vpc_id)
        if any(attachment.state in _USABLE_ATTACHMENTS for attachment in attachments):
            return ""
        if pending := next((attachment for attachment in attachments if attachment.state.startswith("pending")), None):
            return (
                f"the attachment {pending.id} of {self._vpc_id} to {gateway_id} is {pending.state} and not available; "
                "have it accepted, or wait until it is available"
            )
        return (
            f"{self._vpc_id} is not attached to {gateway_id}; attach the VPC, with a subnet in each zone of the cluster"
        )

    def _peering_problem(self, connection_id: str) -> str:
        connection = find_peering_connection(self._account, connection_id)
        if connection is None:
            return self._missing("peering connection", connection_id)
        if self._vpc_id not in connection.vpc_ids:
            sides = " and ".join(map(str, connection.vpc_ids))
            return (
                f"{connection_id} connects {sides}, and the cluster is in {self._vpc_id}; use a connection of "
                f"{self._vpc_id}"
            )
        if connection.state != "active":
            remedy = "have it accepted" if connection.state == "pending-acceptance" else "use another one"
            return f"{connection_id} is {connection.state} and not active; {remedy}"
        return ""

    def _vpn_gateway_problem(self, gateway_id: str) -> str:
        attached = find_vpn_gateway_vpcs(self._account, gateway_id)
        if attached is None:
            return self._missing("virtual private gateway", gateway_id)
        if self._vpc_id in attached:
            return ""
        return (
            f"{gateway_id} is attached to {attached[0] if attached else 'no VPC'}, and the cluster is in "
            f"{self._vpc_id}; attach it to {self._vpc_id}, or use the one that is"
        )

    def _interface_problem(self, interface_id: str) -> str:
        vpc_id = find_interface_vpc(self._account, interface_id)
        if vpc_id is None:
            return self._missing("network interface", interface_id)
        if vpc_id != self._vpc_id:
            return (
                f"{interface_id} belongs to {vpc_id}, and the cluster is in {self._vpc_id}; use one of {self._vpc_id}"
            )
        return ""

    def _missing(self, kind: str, object_id: str) -> str:
        return f"there is no {kind} {object_id} in {self._account.region}; enter an existing one"


def find_source_problems(account: Account, cluster: Cluster, vpc_id: str) -> Iterator[Finding]:
    """Yield a problem for each prefix list and security group that does not exist, or belongs to an older VPC.

    A security group may be of another VPC than the cluster's, if these are peered.

    Args:
        vpc_id: the cluster's VPC; empty if the stack has yet to create it: nothing is peered with it then.

    Raises:
        cfngen.deploy.aws.errors.AwsError: AWS does not answer; the caller translates boto3's errors.
    """
    for path, prefix_list in source_prefix_lists(cluster):
        if not has_prefix_list(account, prefix_list.id):
            key = dotted((*path, "id"))
            yield refusal(key, f"there is no prefix list {prefix_list.id} in {account.region}; correct it")
    keys_by_group = {
        group_id: dotted((*path, "securityGroups", index))
        for path, rule in ingress_rules(cluster)
        for index, group_id in enumerate(rule.security_groups)
    }
    groups = find_security_groups(account, keys_by_group) if keys_by_group else {}
    for group_id, key in keys_by_group.items():
        if group_id not in groups:
            yield refusal(key, f"there is no security group {group_id} in {account.region}; correct it")
        elif not vpc_id:
            yield refusal(
                key,
                f"{group_id} belongs to another VPC than the one that the stack will create, so EC2 would refuse the "
                "rule; deploy without it and add it then, or set network.vpc.id to an existing VPC",
            )
