"""What Kubernetes created in the network outside of the stacks: security groups, interfaces and load balancers.

EC2 does not delete a security group while a rule of another group refers to it (even a rule of the cluster's own node
security group), or while a network interface uses it. Security groups that remain for these reasons are the most
frequent reason why a VPC cannot be deleted.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from cfngen.deploy.aws import load_balancers
from cfngen.deploy.aws.account import Account, Filters
from cfngen.deploy.aws.groups import describe_instances
from cfngen.deploy.aws.inventory import Inventory
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.aws.tags import is_created_by_stack, is_owned_by, service_name, tag_map
from cfngen.deploy.aws.types import AwsObject

REFERENCE_FILTERS = ("ip-permission.group-id", "egress.ip-permission.group-id")


@dataclass(frozen=True)
class ReferringGroup:
    """A security group with rules that refer to other groups.

    Attributes:
        group_id: the group that has the rules.
        owned: whether the group that has the rules is the cluster's, or an existing one that the cluster's nodes use.
    """

    group_id: str
    group_name: str
    owned: bool


def find_orphaned_groups(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the cluster's security groups that belong to no stack."""
    orphans = []
    # Without a filter, EC2 describes the security groups of all VPCs.
    for group in _describe_groups(account, {"vpc-id": [inventory.vpc_id]} if inventory.vpc_id else None):
        tags = tag_map(group.get("Tags"))
        if (
            is_owned_by(tags, inventory.cluster)
            and not is_created_by_stack(tags)
            and group["GroupId"] not in inventory.ids()
            and group["GroupId"] not in inventory.existing_security_groups
        ):
            purpose = service_name(tags) or group.get("Description", "")
            vpc_id = group.get("VpcId", "")
            orphans.append(
                OrphanedResource(
                    kind="security group", id=group["GroupId"], name=group["GroupName"], purpose=purpose, vpc_id=vpc_id
                )
            )
    return tuple(orphans)


def find_references(account: Account, inventory: Inventory, ids: Sequence[str]) -> tuple[ReferringGroup, ...]:
    """Return the security groups with rules that refer to one of the given groups, without the given groups."""
    references_by_group: dict[str, ReferringGroup] = {}
    for filter_name in REFERENCE_FILTERS:
        for group in _describe_groups(account, {filter_name: ids}):
            group_id = group["GroupId"]
            is_owned = group_id in inventory.ids() or is_owned_by(tag_map(group.get("Tags")), inventory.cluster)
            # The cloud controller manager makes rules in the nodes' existing group too.
            is_owned = is_owned or group_id in inventory.existing_security_groups
            if group_id not in ids:
                references_by_group[group_id] = ReferringGroup(
                    group_id=group_id, group_name=group["GroupName"], owned=is_owned
                )
    return tuple(references_by_group.values())


def _describe_groups(account: Account, filters: Filters | None) -> Iterator[AwsObject]:
    return account.items("ec2.describe_security_groups", "SecurityGroups", filters=filters)


INSTANCE_ID_TAG = "node.k8s.amazonaws.com/instance_id"  # VPC CNI: the instance that an interface was created for
POD_DESCRIPTION_PREFIX = "aws-K8S-"  # VPC CNI: how its descriptions begin
LOAD_BALANCER_DESCRIPTION_PREFIX = "ELB "  # `ELB <name>`, `ELB app/<name>/<id>` or `ELB net/<name>/<id>`


def find_orphaned_interfaces(
    account: Account, inventory: Inventory, *, groups: Iterable[str] = ()
) -> tuple[OrphanedResource, ...]:
    """Return the cluster's remaining interfaces: those that only cfngen deletes, and those that ELB will delete."""
    if not inventory.vpc_id:
        return ()
    kubernetes_groups = frozenset(groups)
    existing_load_balancers: frozenset[str] | None = None
    orphans = []
    for interface in find_in_vpc(account, inventory.vpc_id):
        interface_id = interface["NetworkInterfaceId"]
        group_ids = {group["GroupId"] for group in interface.get("Groups", ())}
        tags = tag_map(interface.get("TagSet"))
        if interface_id in inventory.ids() or is_created_by_stack(tags):
            continue
        description = interface.get("Description", "")
        if name := load_balancer_name(description):
            # Only ELB (Elastic Load Balancing) can delete this interface; it does so minutes after the load balancer.
            is_orphaned = bool(group_ids & kubernetes_groups)
            if not is_orphaned and inventory.own_vpc:
                if existing_load_balancers is None:
                    existing_load_balancers = load_balancers.list_load_balancer_names(account)
                is_orphaned = name not in existing_load_balancers
            if is_orphaned:
                orphans.append(_make_orphan(interface, f"load balancer {name}", deleted_by_aws=True))
        elif interface.get("Status") == "available" and _belongs_to_cluster(interface, tags, group_ids, inventory):
            orphans.append(_make_orphan(interface, description))
    return tuple(orphans)


def find_in_vpc(account: Account, vpc_id: str) -> Iterator[AwsObject]:
    """Yield every network interface of a VPC, as EC2 describes it."""
    return account.items("ec2.describe_network_interfaces", "NetworkInterfaces", filters={"vpc-id": [vpc_id]})


def load_balancer_name(description: str) -> str:
    """Return the name of an interface's load balancer from its description; empty if it belongs to none."""
    if not description.startswith(LOAD_BALANCER_DESCRIPTION_PREFIX):
        return ""
    parts = description.removeprefix(LOAD_BALANCER_DESCRIPTION_PREFIX).split("/")
    return parts[1] if len(parts) == 3 else parts[0]


def _belongs_to_cluster(
    interface: AwsObject, tags: Mapping[str, str], group_ids: set[str], inventory: Inventory
) -> bool:
    if is_owned_by(tags, inventory.cluster):
        return True
    # If the VPC CNI does not know the cluster's name, it tags an interface with its instance only, and gives it the
    # instance's security groups. No other cluster's instances are in this cluster's security groups.
    is_for_pods = INSTANCE_ID_TAG in tags or interface.get("Description", "").startswith(POD_DESCRIPTION_PREFIX)
    return is_for_pods and (
        tags.get(INSTANCE_ID_TAG, "") in inventory.instances or bool(group_ids & set(inventory.security_groups))
    )


def _make_orphan(interface: AwsObject, purpose: str, *, deleted_by_aws: bool = False) -> OrphanedResource:
    interface_id = interface["NetworkInterfaceId"]
    return OrphanedResource(
        kind="network interface",
        id=interface_id,
        name=interface_id,
        purpose=purpose,
        vpc_id=interface.get("VpcId", ""),
        deleted_by_aws=deleted_by_aws,
    )


def find_orphans(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the cluster's resources that can keep its network from being deleted, in the order of their deletion."""
    balancers = load_balancers.find_orphaned_load_balancers(account, inventory)
    groups = find_orphaned_groups(account, inventory)
    interfaces = find_orphaned_interfaces(account, inventory, groups=[group.id for group in groups])
    return (*balancers, *interfaces, *groups)


def find_instances_of_same_name(account: Account, inventory: Inventory) -> dict[str, str]:
    """Return the instances of other clusters of this name in the region: their ids, and the VPC of each."""
    filters = {
        f"tag:kubernetes.io/cluster/{inventory.cluster}": ["owned"],
        "instance-state-name": ["pending", "running", "stopping", "stopped"],
    }
    return {
        instance["InstanceId"]: instance.get("VpcId", "")
        for instance in describe_instances(account, filters)
        if instance["InstanceId"] not in inventory.instances
    }
