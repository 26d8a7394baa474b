"""What others have put into a cluster's network, and what would make its deletion fail half-way.

By the time CloudFormation fails at a subnet, the cluster's instances, addresses and the way to the internet are gone,
for the others in that network too. So this is looked for before anything is deleted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.removal import network_interfaces, security_groups
from cfngen.deploy.removal.kubernetes_tags import CLUSTER_PREFIX, of_a_stack, owned, tag_map
from cfngen.deploy.removal.leftover import Leftover
from cfngen.deploy.removal.network_interfaces import INSTANCE
from cfngen.deploy.removal.scope import Scope
from cfngen.errors import CfngenError


class OccupiedError(CfngenError):
    """Others use the cluster's network or its security groups.

    Attributes:
        obstacles: what and where.
    """

    def __init__(self, cluster: str, obstacles: tuple[Obstacle, ...]) -> None:
        lines = "".join(f"\n  - {each.id}: {each.what}" for each in obstacles)
        super().__init__(
            f"not everything in the way of deleting {cluster} is the cluster's own:{lines}",
            hint="move or delete these first; or go on with --even-if-occupied: then the network stays, and may "
            "lose its way to the internet.",
        )
        self.obstacles = obstacles


@dataclass(frozen=True)
class Obstacle:
    """Something of others that keeps a part of the cluster from being deleted.

    Attributes:
        id: its id.
        what: what it is, and whose.
    """

    id: str
    what: str


def find(account: Account, scope: Scope, leftovers: tuple[Leftover, ...]) -> tuple[Obstacle, ...]:
    """Return what others have in the cluster's own VPC, and their rules that name the cluster's security groups.

    Args:
        account: where it is.
        scope: the cluster.
        leftovers: what Kubernetes made, which is the cluster's.
    """
    groups = [*scope.security_groups, *(each.id for each in leftovers if each.kind == "security group")]
    rules = (
        Obstacle(each.group_id, f"security group {each.group_name} has rules that name the cluster's groups")
        for each in security_groups.references(account, scope, groups)
        if not each.owned
    )
    users = _users(account, scope, leftovers) if scope.own_vpc else ()
    launched = (
        Obstacle(each, "instance with the cluster's tag that none of its groups has launched (Karpenter, or by hand)")
        for each in sorted(scope.outsiders)
    )
    return (*launched, *dict.fromkeys(users), *dict.fromkeys(rules))


def _users(account: Account, scope: Scope, leftovers: tuple[Leftover, ...]) -> Iterator[Obstacle]:
    interfaces = list(network_interfaces.there(account, scope.vpc_id))
    attached = sorted({each for each in map(_instance, interfaces) if each} - scope.instances.keys())
    strangers = _instances(account, attached)
    known = {each.id for each in leftovers}
    balancers = {each.name for each in leftovers if each.kind == "load balancer"}
    for each in interfaces:
        instance, tags = _instance(each), tag_map(each.get("TagSet"))
        if each["NetworkInterfaceId"] in scope.ids() | known or owned(tags, scope.cluster):
            continue
        if instance:
            if instance in strangers:
                yield Obstacle(instance, strangers[instance])
            continue
        if tags.get(INSTANCE, "") in scope.instances or _of_a_stack_resource(each, tags, scope):
            continue
        description = each.get("Description", "")
        if network_interfaces.balancer(description) in balancers:
            continue
        yield Obstacle(each["NetworkInterfaceId"], f"network interface, {description or 'which does not say for what'}")


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
        for each in (each for reservation in page["Reservations"] for each in reservation["Instances"]):
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
    named = any(word in scope.ids() for word in description.replace("/", " ").split())
    # An interface of a VPC endpoint names the service only; those in the cluster's groups are the cluster's.
    groups = {group["GroupId"] for group in each.get("Groups", ())}
    endpoint = each.get("InterfaceType") == "vpc_endpoint" and bool(groups & set(scope.security_groups))
    return named or endpoint or of_a_stack(tags)
