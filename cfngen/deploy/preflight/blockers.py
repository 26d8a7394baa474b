"""Finds foreign resources in a cluster's network, which would make its deletion fail half-way.

By the time CloudFormation fails to delete a subnet, it has already deleted the cluster's instances, addresses and
internet gateway, so the foreign resources in the network have lost their internet access. Therefore cfngen searches for
foreign resources before it deletes anything.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from cfngen.deploy.aws import kubernetes_made, load_balancers, vpc_contents
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.kubernetes_made import INSTANCE_ID_TAG
from cfngen.deploy.aws.load_balancers import LoadBalancerView
from cfngen.deploy.aws.network import describe_live_instances, find_route_tables
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.stacks import CLUSTER_TAG
from cfngen.deploy.aws.tags import is_owned_by, tag_map
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.aws.vpc_contents import VpcContent
from cfngen.errors import CfngenError

STACK_ID_TAG = "aws:cloudformation:stack-id"


class OccupiedError(CfngenError):
    """Foreign resources use the cluster's network or its security groups."""

    code = "network-in-use"

    def __init__(self, cluster: str, blockers: tuple[Blocker, ...]) -> None:
        lines = "".join(f"\n  - {blocker.id}: {blocker.text}" for blocker in blockers)
        super().__init__(
            f"resources that do not belong to the cluster {cluster} block its deletion:{lines}",
            hint="move or delete them first; or continue with --even-if-occupied: then the network is retained, "
            "and may lose its internet access.",
        )
        self.blockers = blockers


@dataclass(frozen=True)
class Blocker:
    """A foreign resource that prevents the deletion of a part of the cluster.

    Attributes:
        id: its id.
        what: its type and owner in words, e.g. `instance web of the cluster two`.
        command: command that deletes it; empty if that is not done with one command.
    """

    id: str
    what: str
    command: str = ""

    @property
    def text(self) -> str:
        """What it is, and the command that deletes it."""
        return f"{self.what}; to delete it: {self.command}" if self.command else self.what


def find_blockers(account: Account, inventory: Inventory, orphans: tuple[OrphanedResource, ...]) -> tuple[Blocker, ...]:
    """Return foreign resources in the cluster's own VPC, subnets and security groups, or attached to them.

    Args:
        orphans: resources that Kubernetes created; they belong to the cluster.
    """
    group_ids = [*inventory.security_groups, *(orphan.id for orphan in orphans if orphan.kind == "security group")]
    blockers = [
        Blocker(
            id=instance_id,
            what="instance with the cluster's tag that was launched by Karpenter or by hand, not by one of its Auto "
            "Scaling groups",
        )
        for instance_id in sorted(inventory.unmanaged_instances)
    ]
    contents = tuple(_find_foreign_contents(account, inventory, orphans))
    balancers = tuple(_find_foreign_load_balancers(account, inventory, orphans)) if inventory.own_vpc else ()
    blockers += _find_foreign_interfaces(
        account, inventory, orphans, contents, frozenset(balancer.name for balancer in balancers)
    )
    blockers += (Blocker(id=balancer.id, what=f"load balancer {balancer.name}") for balancer in balancers)
    blockers += (
        Blocker(
            id=reference.group_id,
            what=f"security group {reference.group_name} has rules that refer to the cluster's security groups",
        )
        for reference in kubernetes_made.find_references(account, inventory, group_ids)
        if not reference.owned
    )
    blockers += (
        Blocker(id=content.id, what=_describe(content), command=content.command(account.region)) for content in contents
    )
    blockers += _find_subnets_using_route_tables(account, inventory)
    return _without_duplicates(blockers)


def _without_duplicates(blockers: Iterable[Blocker]) -> tuple[Blocker, ...]:
    """Return one blocker for each resource, with the first description if the resource was found more than once."""
    blockers_by_id: dict[str, Blocker] = {}
    for blocker in blockers:
        blockers_by_id.setdefault(blocker.id, blocker)
    return tuple(blockers_by_id.values())


def _find_foreign_contents(
    account: Account, inventory: Inventory, orphans: tuple[OrphanedResource, ...]
) -> Iterator[VpcContent]:
    """Yield foreign resources in the cluster's own VPC, or attached to it.

    In an existing VPC, only NAT gateways and VPC endpoints that use the cluster's subnets or security groups.
    """
    cluster_ids = inventory.ids() | {orphan.id for orphan in orphans}
    used_ids = {*inventory.existing_ids("AWS::EC2::Subnet"), *inventory.security_groups}
    if not inventory.vpc_id or not (inventory.own_vpc or used_ids):
        return
    kinds = () if inventory.own_vpc else (vpc_contents.NAT_GATEWAY, vpc_contents.VPC_ENDPOINT)
    for content in vpc_contents.find_vpc_contents(account, inventory.vpc_id, kinds):
        if content.id not in cluster_ids and (inventory.own_vpc or _uses(content, used_ids)):
            yield content


def _uses(content: VpcContent, ids: Collection[str]) -> bool:
    """Return whether a NAT gateway or VPC endpoint is in one of the subnets, or has one of the security groups."""
    item = content.item
    group_ids = (group["GroupId"] for group in item.get("Groups", ()))
    return not set(ids).isdisjoint((item.get("SubnetId", ""), *item.get("SubnetIds", ()), *group_ids))


def _describe(content: VpcContent) -> str:
    """Return a resource in words, e.g. `VPC endpoint web for com.amazonaws.eu-central-1.s3`."""
    name = tag_map(content.item.get("Tags")).get("Name", "") or content.item.get("GroupName", "")
    service = content.item.get("ServiceName", "")
    managed = "(managed by that service: disable it there)" if content.is_requester_managed else ""
    return " ".join(filter(None, (content.kind, name, f"for {service}" if service else "", managed)))


def _find_foreign_load_balancers(
    account: Account, inventory: Inventory, orphans: tuple[OrphanedResource, ...]
) -> Iterator[LoadBalancerView]:
    cluster_ids = inventory.ids() | {orphan.id for orphan in orphans}
    return (
        balancer for balancer in load_balancers.find_in_vpc(account, inventory.vpc_id) if balancer.id not in cluster_ids
    )


def _find_subnets_using_route_tables(account: Account, inventory: Inventory) -> Iterator[Blocker]:
    """Yield foreign subnets that use a route table of the cluster.

    Only in an existing VPC; in the cluster's own VPC, `_find_foreign_contents` finds every foreign subnet.
    """
    if inventory.own_vpc:
        return
    for route_table in find_route_tables(account, sorted(inventory.existing_ids("AWS::EC2::RouteTable"))):
        for association in route_table.get("Associations", ()):
            if association.get("SubnetId", "") not in inventory.ids() | {""}:
                yield Blocker(
                    id=association["SubnetId"],
                    what=f"subnet that uses the cluster's route table {route_table['RouteTableId']}",
                )


def _find_foreign_interfaces(
    account: Account,
    inventory: Inventory,
    orphans: tuple[OrphanedResource, ...],
    contents: Collection[VpcContent],
    load_balancer_names: Collection[str],
) -> Iterator[Blocker]:
    """Yield foreign instances and network interfaces, but not the interfaces of other resources that are listed."""
    if not inventory.vpc_id:
        return
    interfaces = [
        interface
        for interface in kubernetes_made.find_in_vpc(account, inventory.vpc_id)
        if _occupies_cluster(interface, inventory)
    ]
    attached_instance_ids = {_attached_instance_id(interface) for interface in interfaces} - {""}
    instance_descriptions = describe_live_instances(account, sorted(attached_instance_ids - inventory.instances.keys()))
    balancer_names = {orphan.name for orphan in orphans if orphan.kind == "load balancer"} | set(load_balancer_names)
    # An interface of a VPC endpoint or similar is not reported: the endpoint itself is in `contents`.
    listed_ids = {content.id for content in contents}
    listed_ids |= {interface_id for content in contents for interface_id in content.interface_ids}
    known_ids = inventory.ids() | {orphan.id for orphan in orphans} | listed_ids
    for interface in interfaces:
        tags = tag_map(interface.get("TagSet"))
        if interface["NetworkInterfaceId"] in known_ids or is_owned_by(tags, inventory.cluster):
            continue
        if instance_id := _attached_instance_id(interface):
            # The instance is reported instead of its interface, unless the instance is terminated.
            if instance_id in instance_descriptions:
                yield Blocker(id=instance_id, what=instance_descriptions[instance_id])
            continue
        description = interface.get("Description", "")
        if not (
            tags.get(INSTANCE_ID_TAG, "") in inventory.instances
            or _belongs_to_stack_resource(interface, tags, inventory)
            or kubernetes_made.load_balancer_name(description) in balancer_names
            or listed_ids.intersection(_split_words(description))
        ):
            what = f"network interface, {description or 'without a description'}"
            yield Blocker(id=interface["NetworkInterfaceId"], what=what)


def _occupies_cluster(interface: AwsObject, inventory: Inventory) -> bool:
    """Return whether an interface is in the cluster's own VPC or subnets, or uses one of its security groups."""
    group_ids = {group["GroupId"] for group in interface.get("Groups", ())}
    is_in_subnet = interface.get("SubnetId", "") in inventory.existing_ids("AWS::EC2::Subnet")
    return inventory.own_vpc or is_in_subnet or bool(group_ids & set(inventory.security_groups))


def _attached_instance_id(interface: AwsObject) -> str:
    """Return the id of the instance that an interface is attached to; empty if it is attached to none."""
    return str(interface.get("Attachment", {}).get("InstanceId") or "")


def _belongs_to_stack_resource(interface: AwsObject, tags: Mapping[str, str], inventory: Inventory) -> bool:
    """Return whether AWS created an interface for a NAT gateway, load balancer or VPC endpoint of the stacks."""
    description = interface.get("Description", "")
    if kubernetes_made.load_balancer_name(description) in inventory.load_balancers:
        return True
    is_named = any(word in inventory.ids() for word in _split_words(description))
    # The description of a VPC endpoint's interface names only the AWS service. An endpoint that uses the cluster's
    # security groups is the cluster's.
    group_ids = {group["GroupId"] for group in interface.get("Groups", ())}
    is_endpoint = interface.get("InterfaceType") == "vpc_endpoint" and bool(group_ids & set(inventory.security_groups))
    return is_named or is_endpoint or _is_created_by_cluster_stack(tags, inventory)


def _is_created_by_cluster_stack(tags: Mapping[str, str], inventory: Inventory) -> bool:
    """Return whether the tags of a resource say that a stack of the cluster created it."""
    stack_id = tags.get(STACK_ID_TAG, "")
    return tags.get(CLUSTER_TAG, "") == inventory.cluster or stack_id in {
        resource.stack_id for resource in inventory.resources
    }


def _split_words(description: str) -> list[str]:
    """Return the words of an interface's description, e.g. the parts of `ELB net/<name>/<id>`."""
    return description.replace("/", " ").split()
