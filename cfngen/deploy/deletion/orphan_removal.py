"""Removes orphans: resources that Kubernetes created outside of the stacks and that block the network's deletion.

Orphans are found by their tags. Load balancers use network interfaces, network interfaces use security groups, and
rules refer to other security groups; AWS deletes each resource only some time after the last resource that used it. So
the removal runs in rounds: each round lists the resources that exist, and deletes those that are no longer in use. The
removal can therefore be interrupted and repeated at any time.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.deletion import load_balancers, network_interfaces, pod_routes, security_groups
from cfngen.deploy.deletion.inventory import Inventory
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, OrphanRemoved
from cfngen.deploy.messages.message import Report, Step
from cfngen.errors import CfngenError

TIMEOUT_SECONDS = 600.0
"""Interfaces of load balancers have been observed to exist for several minutes after their load balancer."""
MIN_POLL_INTERVAL_SECONDS = 3.0
MAX_POLL_INTERVAL_SECONDS = 20.0


class SameNameClusterError(CfngenError):
    """Another cluster of the same name exists, and tags do not tell which of the two a resource belongs to."""

    code = "ambiguous-cluster-name"

    def __init__(self, cluster: str, conflict: str) -> None:
        super().__init__(
            f"{conflict}; resources tagged with the name {cluster} may belong to that cluster, so none of them is "
            "deleted",
            hint="to delete that stack, name it with --stack-name; otherwise delete that cluster first, or delete "
            "your resources by hand.",
        )


@dataclass(frozen=True)
class RemovalResult:
    """The result of a removal of orphans.

    Attributes:
        removed: orphans that were removed.
        remaining: orphans that could not be removed.
    """

    removed: tuple[OrphanedResource, ...] = ()
    remaining: tuple[OrphanedResource, ...] = ()


def find_orphans(account: Account, inventory: Inventory) -> tuple[OrphanedResource, ...]:
    """Return the cluster's resources that can keep its network from being deleted, in the order of their deletion."""
    balancers = load_balancers.find_orphaned_load_balancers(account, inventory)
    groups = security_groups.find_orphaned_groups(account, inventory)
    interfaces = network_interfaces.find_orphaned_interfaces(account, inventory, groups=[group.id for group in groups])
    return (*balancers, *interfaces, *groups)


def remove_orphans(
    account: Account, inventory: Inventory, report: Report, *, timeout: float = TIMEOUT_SECONDS
) -> RemovalResult:
    """Remove the cluster's resources that can keep its network from being deleted.

    Args:
        account: the AWS account.
        inventory: the cluster.
        report: receives a message for each removal.
        timeout: seconds to wait until AWS releases resources; 0 is one round without waiting.

    Raises:
        SameNameClusterError: the resources may be those of another cluster of this name.
    """
    clock = account.clock
    deadline = clock.now().timestamp() + timeout
    poll_interval = MIN_POLL_INTERVAL_SECONDS
    # A resource is identified by its kind and id.
    removed: dict[tuple[str, str], OrphanedResource] = {}
    previously_waiting: frozenset[tuple[str, str]] | None = None  # None in the first round
    while True:
        orphans = find_orphans(account, inventory)
        if not orphans:
            return RemovalResult(removed=tuple(removed.values()))
        if previously_waiting is None:
            check_name_conflict(account, inventory, orphans)
            report(
                Step(
                    "deleting the load balancers that Kubernetes created, and their security groups and network "
                    "interfaces"
                )
            )
        for orphan in _remove_once(account, inventory, orphans):
            if (orphan.kind, orphan.id) not in removed:
                removed[orphan.kind, orphan.id] = orphan
                report(OrphanRemoved(orphan))
        if clock.now().timestamp() >= deadline:
            break
        waiting = frozenset((orphan.kind, orphan.id) for orphan in orphans) - removed.keys()
        if waiting and waiting != previously_waiting:
            report(Step(f"waiting for AWS to release {_describe_waiting(orphans, waiting)}"))
        previously_waiting = waiting
        clock.sleep(poll_interval)
        poll_interval = min(poll_interval * 1.5, MAX_POLL_INTERVAL_SECONDS)
    remaining = find_orphans(account, inventory)
    remaining_keys = {(orphan.kind, orphan.id) for orphan in remaining}
    # AWS may still list a resource after it has accepted the deletion: such a resource counts as remaining.
    return RemovalResult(
        removed=tuple(orphan for key, orphan in removed.items() if key not in remaining_keys), remaining=remaining
    )


def remove_pod_routes(account: Account, inventory: Inventory, report: Report) -> RemovalResult:
    """Remove the routes to pods from the existing route table that the cluster uses.

    Call it only after the cluster's instances are terminated.
    """
    removed_routes = pod_routes.remove(account, pod_routes.find_orphaned_routes(account, inventory))
    for route in removed_routes:
        report(OrphanRemoved(route))
    return RemovalResult(removed=removed_routes, remaining=pod_routes.find_orphaned_routes(account, inventory))


def check_name_conflict(account: Account, inventory: Inventory, orphans: Sequence[OrphanedResource]) -> None:
    """Refuse to remove resources that may belong to another, existing cluster of the same name.

    Resources in the cluster's VPC belong to the cluster. If the VPC is not known, or the stack has neither a network
    nor instances, only the tags could tell, and the resources of both clusters have the same tags.

    Raises:
        SameNameClusterError: another cluster of this name exists, and the resources may belong to it.
    """
    if not orphans:
        return
    other_instances = find_instances_of_same_name(account, inventory)
    # The VPC was found only by its tag, so it may be the other cluster's.
    is_vpc_ambiguous = not inventory.has_infrastructure and (
        bool(inventory.same_name_stacks) or inventory.vpc_id in other_instances.values()
    )
    is_ambiguous = is_vpc_ambiguous or not inventory.vpc_id or any(not orphan.vpc_id for orphan in orphans)
    if is_ambiguous and (conflict := _describe_conflict(inventory, other_instances)):
        raise SameNameClusterError(inventory.cluster, conflict)


def describe_name_conflict(account: Account, inventory: Inventory) -> str:
    """Return a sentence about another cluster of this name in the region; empty if there is none."""
    # The sentence names either stacks or instances, so instances are read only if there are no stacks.
    other_instances = {} if inventory.same_name_stacks else find_instances_of_same_name(account, inventory)
    return _describe_conflict(inventory, other_instances)


def _describe_conflict(inventory: Inventory, other_instances: Mapping[str, str]) -> str:
    """Return a sentence about the other cluster of this name; empty if there is none."""
    if inventory.same_name_stacks:
        return f"the cluster {inventory.cluster} already exists in the stack {', '.join(inventory.same_name_stacks)}"
    if other_instances:
        return (
            f"instances of a cluster named {inventory.cluster} run outside of this stack: {', '.join(other_instances)}"
        )
    return ""


def find_instances_of_same_name(account: Account, inventory: Inventory) -> dict[str, str]:
    """Return the instances of other clusters of this name in the region: their ids, and the VPC of each."""
    filters = [
        {"Name": f"tag:kubernetes.io/cluster/{inventory.cluster}", "Values": ["owned"]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
    ]
    pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    return {
        instance["InstanceId"]: instance.get("VpcId", "")
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["InstanceId"] not in inventory.instances
    }


def _remove_once(
    account: Account, inventory: Inventory, orphans: Sequence[OrphanedResource]
) -> tuple[OrphanedResource, ...]:
    """Try once to remove each resource; return those whose deletion AWS has accepted, not those still in use."""
    return (
        *load_balancers.remove(
            account, [orphan for orphan in orphans if orphan.kind in ("load balancer", "target group")]
        ),
        *network_interfaces.remove(account, [orphan for orphan in orphans if orphan.kind == "network interface"]),
        *security_groups.remove(account, inventory, [orphan for orphan in orphans if orphan.kind == "security group"]),
    )


def _describe_waiting(orphans: Sequence[OrphanedResource], waiting_keys: frozenset[tuple[str, str]]) -> str:
    """Describe the resources that are waited for: the names of the first three, and the number of the others."""
    names = [f"{orphan.kind} {orphan.name}" for orphan in orphans if (orphan.kind, orphan.id) in waiting_keys]
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + suffix
