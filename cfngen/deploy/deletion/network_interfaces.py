"""Network interfaces that remain after their owner is deleted.

ELB deletes the network interfaces of a load balancer some minutes after the load balancer. Nothing deletes the network
interfaces that the VPC CNI created for pods.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from cfngen.deploy.account import Account
from cfngen.deploy.aws_types import AwsObject
from cfngen.deploy.deletion import load_balancers
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.kubernetes_tags import is_created_by_stack, is_owned_by, tag_map
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, remove_each

INSTANCE_ID_TAG = "node.k8s.amazonaws.com/instance_id"  # VPC CNI: the instance that an interface was created for
POD_DESCRIPTION_PREFIX = "aws-K8S-"  # VPC CNI: how its descriptions begin
LOAD_BALANCER_DESCRIPTION_PREFIX = "ELB "  # `ELB <name>`, `ELB app/<name>/<id>` or `ELB net/<name>/<id>`


def find_orphaned_interfaces(
    account: Account, inventory: Inventory, *, groups: Iterable[str] = ()
) -> tuple[OrphanedResource, ...]:
    """Return the cluster's remaining interfaces: those that only cfngen deletes, and those that ELB will delete.

    Args:
        account: the AWS account.
        inventory: the cluster.
        groups: security groups that Kubernetes created.
    """
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
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}]
    for page in account.client("ec2").get_paginator("describe_network_interfaces").paginate(Filters=filters):
        yield from page["NetworkInterfaces"]


def load_balancer_name(description: str) -> str:
    """Return the name of an interface's load balancer from its description; empty if it belongs to none."""
    if not description.startswith(LOAD_BALANCER_DESCRIPTION_PREFIX):
        return ""
    parts = description.removeprefix(LOAD_BALANCER_DESCRIPTION_PREFIX).split("/")
    return parts[1] if len(parts) == 3 else parts[0]


def remove(account: Account, orphans: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete those interfaces that AWS does not delete by itself; return the deleted ones."""
    ec2 = account.client("ec2")
    to_delete = (orphan for orphan in orphans if not orphan.deleted_by_aws)
    return remove_each(to_delete, lambda orphan: ec2.delete_network_interface(NetworkInterfaceId=orphan.id))


def _belongs_to_cluster(
    interface: AwsObject, tags: Mapping[str, str], group_ids: set[str], inventory: Inventory
) -> bool:
    """Return whether an unused interface was created for pods of the cluster."""
    if is_owned_by(tags, inventory.cluster):
        return True
    # If the VPC CNI does not know the cluster's name, it tags an interface with its instance only, and gives it the
    # instance's security groups. No other cluster's instances are in this cluster's security groups.
    is_for_pods = INSTANCE_ID_TAG in tags or interface.get("Description", "").startswith(POD_DESCRIPTION_PREFIX)
    return is_for_pods and (
        tags.get(INSTANCE_ID_TAG, "") in inventory.instances or bool(group_ids & set(inventory.security_groups))
    )


def _make_orphan(interface: AwsObject, purpose: str, *, deleted_by_aws: bool = False) -> OrphanedResource:
    """Return a network interface as an orphan, with the purpose that its description shows."""
    interface_id = interface["NetworkInterfaceId"]
    return OrphanedResource(
        kind="network interface",
        id=interface_id,
        name=interface_id,
        purpose=purpose,
        vpc_id=interface.get("VpcId", ""),
        deleted_by_aws=deleted_by_aws,
    )
