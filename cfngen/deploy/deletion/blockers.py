"""What others have put into a cluster's network, and what would make its deletion fail half-way.

By the time CloudFormation fails at a subnet, the cluster's instances, addresses and the way to the internet are gone,
for the others in that network too. So this is looked for before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.deletion import load_balancers, network_interfaces, security_groups, vpc_contents
from cfngen.deploy.deletion.kubernetes_tags import CLUSTER_PREFIX, owned, tag_map
from cfngen.deploy.deletion.load_balancers import Balancer
from cfngen.deploy.deletion.network_interfaces import INSTANCE
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.deletion.vpc_contents import Content
from cfngen.deploy.stacks import CLUSTER_TAG
from cfngen.errors import CfngenError

STACK_ID = "aws:cloudformation:stack-id"


class OccupiedError(CfngenError):
    """Others use the cluster's network or its security groups.

    Attributes:
        obstacles: what and where.
    """

    def __init__(self, cluster: str, obstacles: tuple[Blocker, ...]) -> None:
        lines = "".join(f"\n  - {obstacle.id}: {obstacle.what}" for obstacle in obstacles)
        super().__init__(
            f"not everything in the way of deleting {cluster} is the cluster's own:{lines}",
            hint="move or delete these first; or go on with --even-if-occupied: then the network stays, and may "
            "lose its way to the internet.",
        )
        self.obstacles = obstacles


@dataclass(frozen=True)
class Blocker:
    """Something of others that keeps a part of the cluster from being deleted.

    Attributes:
        id: its id.
        what: what it is, and whose.
    """

    id: str
    what: str


def find(account: Account, scope: Scope, leftovers: tuple[OrphanedResource, ...]) -> tuple[Blocker, ...]:
    """Return what others have in the cluster's own VPC, subnets and security groups, or attached to them.

    Args:
        account: where it is.
        scope: the cluster.
        leftovers: what Kubernetes made, which is the cluster's.
    """
    groups = [*scope.security_groups, *(leftover.id for leftover in leftovers if leftover.kind == "security group")]
    found = [
        Blocker(
            outsider, "instance with the cluster's tag that none of its groups has launched (Karpenter, or by hand)"
        )
        for outsider in sorted(scope.outsiders)
    ]
    contents = tuple(_contents(account, scope, leftovers)) if scope.own_vpc else ()
    balancers = tuple(_balancers(account, scope, leftovers)) if scope.own_vpc else ()
    found += _users(account, scope, leftovers, contents, frozenset(balancer.name for balancer in balancers))
    found += (Blocker(balancer.id, f"load balancer {balancer.name}") for balancer in balancers)
    found += (
        Blocker(reference.group_id, f"security group {reference.group_name} has rules that name the cluster's groups")
        for reference in security_groups.references(account, scope, groups)
        if not reference.owned
    )
    found += (Blocker(each.id, _described(each)) for each in contents)
    found += _borrowers(account, scope)
    # What is in the way for two reasons is named with the first.
    return tuple({each.id: each for each in reversed(found)}.values())[::-1]


def _contents(account: Account, scope: Scope, leftovers: tuple[OrphanedResource, ...]) -> Iterator[Content]:
    """What others have put into the VPC, or attached to it."""
    known = scope.ids() | {leftover.id for leftover in leftovers}
    return (each for each in vpc_contents.find(account, scope.vpc_id) if each.id not in known)


def _described(content: Content) -> str:
    name = tag_map(content.item.get("Tags")).get("Name", "") or content.item.get("GroupName", "")
    service = content.item.get("ServiceName", "")
    return " ".join(filter(None, (content.kind, name, f"for {service}" if service else "")))


def _balancers(account: Account, scope: Scope, leftovers: tuple[OrphanedResource, ...]) -> Iterator[Balancer]:
    known = scope.ids() | {leftover.id for leftover in leftovers}
    return (each for each in load_balancers.of_vpc(account, scope.vpc_id) if each.id not in known)


def _borrowers(account: Account, scope: Scope) -> Iterator[Blocker]:
    """Subnets of others that use a route table of the cluster's: in an existing VPC, since its own is looked into."""
    tables = sorted(scope.alive("AWS::EC2::RouteTable"))
    if scope.own_vpc or not tables:
        return
    described = account.client("ec2").describe_route_tables(Filters=[{"Name": "route-table-id", "Values": tables}])
    for table in described["RouteTables"]:
        for association in table.get("Associations", ()):
            if association.get("SubnetId", "") not in scope.ids() | {""}:
                yield Blocker(
                    association["SubnetId"], f"subnet that uses the cluster's route table {table['RouteTableId']}"
                )


def _users(
    account: Account,
    scope: Scope,
    leftovers: tuple[OrphanedResource, ...],
    contents: Collection[Content],
    balancers: Collection[str],
) -> Iterator[Blocker]:
    """Instances and network interfaces of others, but those of what is named itself."""
    if not scope.vpc_id:
        return
    interfaces = [each for each in network_interfaces.there(account, scope.vpc_id) if _holds(each, scope)]
    attached = sorted({interface for interface in map(_instance, interfaces) if interface} - scope.instances.keys())
    strangers = _instances(account, attached)
    known = {leftover.id for leftover in leftovers}
    ours = {leftover.name for leftover in leftovers if leftover.kind == "load balancer"}
    named = {each.id for each in contents}
    named |= {
        network_interface_id
        for content in contents
        for network_interface_id in content.item.get("NetworkInterfaceIds", ())
    }
    for interface in interfaces:
        instance, tags = _instance(interface), tag_map(interface.get("TagSet"))
        if interface["NetworkInterfaceId"] in scope.ids() | known | named or owned(tags, scope.cluster):
            continue
        if instance:
            if instance in strangers:
                yield Blocker(instance, strangers[instance])
            continue
        if tags.get(INSTANCE, "") in scope.instances or _of_a_stack_resource(interface, tags, scope):
            continue
        description = interface.get("Description", "")
        if network_interfaces.balancer(description) in {*ours, *balancers}:
            continue
        if named & set(_words(description)):
            continue
        yield Blocker(
            interface["NetworkInterfaceId"], f"network interface, {description or 'which does not say for what'}"
        )


def _holds(interface: Mapping[str, Any], scope: Scope) -> bool:
    """Whether an interface keeps something of the cluster's: its own VPC, a subnet of its, a security group."""
    groups = {group["GroupId"] for group in interface.get("Groups", ())}
    in_subnet = interface.get("SubnetId", "") in scope.alive("AWS::EC2::Subnet")
    return scope.own_vpc or in_subnet or bool(groups & set(scope.security_groups))


def _instance(interface: Mapping[str, Any]) -> str:
    return str(interface.get("Attachment", {}).get("InstanceId") or "")


def _instances(account: Account, ids: list[str]) -> dict[str, str]:
    """Instances that live, and whose each is. Terminated ones keep their interface for a moment."""
    if not ids:
        return {}
    found = {}
    alive = [{"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]}]
    alive.append({"Name": "instance-id", "Values": ids})
    for page in account.client("ec2").get_paginator("describe_instances").paginate(Filters=alive):
        for each in (instance for reservation in page["Reservations"] for instance in reservation["Instances"]):
            tags = tag_map(each.get("Tags"))
            clusters = [key.removeprefix(CLUSTER_PREFIX) for key in tags if key.startswith(CLUSTER_PREFIX)]
            name = f" {tags['Name']}" if tags.get("Name") else ""
            whose = f" of the cluster {', '.join(clusters)}" if clusters else ""
            found[each["InstanceId"]] = f"instance{name}{whose}"
    return found


def _of_a_stack_resource(each: Mapping[str, Any], tags: Mapping[str, str], scope: Scope) -> bool:
    """Whether an interface belongs to something of the cluster's stacks for which AWS manages it.

    That is a NAT gateway, a load balancer or an endpoint.
    """
    description = each.get("Description", "")
    if network_interfaces.balancer(description) in scope.load_balancers:
        return True
    named = any(word in scope.ids() for word in _words(description))
    # An interface of a VPC endpoint names the service only; those in the cluster's groups are the cluster's.
    groups = {group["GroupId"] for group in each.get("Groups", ())}
    endpoint = each.get("InterfaceType") == "vpc_endpoint" and bool(groups & set(scope.security_groups))
    return named or endpoint or _of_this_cluster(tags, scope)


def _of_this_cluster(tags: Mapping[str, str], scope: Scope) -> bool:
    """Whether a stack of the cluster made something; one of somebody else's is in the way as any other thing is."""
    stack = tags.get(STACK_ID, "")
    return tags.get(CLUSTER_TAG, "") == scope.cluster or stack in {resource.stack_id for resource in scope.resources}


def _words(description: str) -> list[str]:
    return description.replace("/", " ").split()
