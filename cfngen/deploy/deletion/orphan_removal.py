"""Removes what Kubernetes created outside of the stacks and what keeps the network from being deleted; found by tags.

Load balancers use network interfaces, interfaces use security groups, and rules refer to other security groups; each
can only be deleted some time after whatever uses it. So there is no plan of steps: each round lists what exists now,
deletes what AWS is ready to delete, and the next round lists again. That makes it safe to interrupt and to repeat.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.deletion import load_balancers, network_interfaces, pod_routes, security_groups
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, Removed
from cfngen.deploy.deletion.scope import Scope
from cfngen.deploy.messages import Report, Step
from cfngen.errors import CfngenError

TIMEOUT_SECONDS = 600.0
"""Interfaces of load balancers have been observed to exist for several minutes after their load balancer."""
MIN_POLL_INTERVAL_SECONDS = 3.0
MAX_POLL_INTERVAL_SECONDS = 20.0


class SameNameClusterError(CfngenError):
    """Another cluster of the same name exists, and tags do not tell whose resource is whose."""

    code = "ambiguous-cluster-name"

    def __init__(self, cluster: str, conflict: str) -> None:
        super().__init__(
            f"{conflict}; resources tagged with the name {cluster} may belong to that cluster, so none of them is "
            "deleted",
            hint="to delete that stack, name it with --stack-name; otherwise delete that cluster first, or delete "
            "your resources by hand.",
        )


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep.

    Attributes:
        removed: resources that were removed.
        remaining: resources that could not be removed.
    """

    removed: tuple[OrphanedResource, ...] = ()
    remaining: tuple[OrphanedResource, ...] = ()


def find(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return the cluster's resources that can keep its network from being deleted, in the order of their deletion."""
    balancers = load_balancers.find(account, scope)
    groups = security_groups.find(account, scope)
    interfaces = network_interfaces.find(account, scope, groups=[group.id for group in groups])
    return (*balancers, *interfaces, *groups)


def sweep(account: Account, scope: Scope, report: Report, *, timeout: float = TIMEOUT_SECONDS) -> SweepResult:
    """Remove the cluster's resources that can keep its network from being deleted.

    Args:
        account: the AWS account.
        scope: the cluster.
        report: receives a message for each removal.
        timeout: seconds to wait until AWS releases resources; 0 is one round without waiting.

    Raises:
        SameNameClusterError: the resources may be those of another cluster of this name.
    """
    clock = account.clock
    deadline, pause = clock.now().timestamp() + timeout, MIN_POLL_INTERVAL_SECONDS
    removed: dict[tuple[str, str], OrphanedResource] = {}
    previously_waiting: frozenset[tuple[str, str]] | None = None
    while True:
        orphans = find(account, scope)
        if not orphans:
            return SweepResult(tuple(removed.values()))
        if previously_waiting is None:
            check_name_conflict(account, scope, orphans)
            report(
                Step(
                    "deleting the load balancers that Kubernetes created, and their security groups and network "
                    "interfaces"
                )
            )
        for orphan in _remove_once(account, scope, orphans):
            if (orphan.kind, orphan.id) not in removed:
                removed[orphan.kind, orphan.id] = orphan
                report(Removed(orphan))
        if clock.now().timestamp() >= deadline:
            break
        waiting = frozenset((orphan.kind, orphan.id) for orphan in orphans) - removed.keys()
        if waiting and waiting != previously_waiting:
            report(Step(f"waiting for AWS to release {_describe_waiting(orphans, waiting)}"))
        previously_waiting = waiting
        clock.sleep(pause)
        pause = min(pause * 1.5, MAX_POLL_INTERVAL_SECONDS)
    remaining = find(account, scope)
    remaining_keys = {(orphan.kind, orphan.id) for orphan in remaining}
    return SweepResult(tuple(orphan for key, orphan in removed.items() if key not in remaining_keys), remaining)


def sweep_routes(account: Account, scope: Scope, report: Report) -> SweepResult:
    """Remove the pods' routes from an existing route table that the cluster uses.

    Call it only after the cluster's instances are terminated.
    """
    removed = pod_routes.remove(account, pod_routes.find(account, scope))
    for route in removed:
        report(Removed(route))
    return SweepResult(removed, pod_routes.find(account, scope))


def check_name_conflict(account: Account, scope: Scope, orphans: Sequence[OrphanedResource]) -> None:
    """Refuse to remove resources that may belong to another, existing cluster of the same name.

    If the cluster's VPC is known, it is enough that the resources lie in it. Otherwise there are only tags, which are
    the same for both clusters. A stack that has neither network nor instances owns nothing in a VPC either.

    Raises:
        SameNameClusterError: there is such a cluster.
    """
    if not orphans:
        return
    other_instances = find_instances_of_same_name(account, scope)
    is_separate = not scope.has_infrastructure and (
        bool(scope.same_name_stacks) or scope.vpc_id in other_instances.values()
    )
    is_ambiguous = is_separate or not scope.vpc_id or any(not orphan.vpc_id for orphan in orphans)
    if is_ambiguous and (conflict := _describe_conflict(scope, other_instances)):
        raise SameNameClusterError(scope.cluster, conflict)


def describe_name_conflict(account: Account, scope: Scope) -> str:
    """Return a sentence about another cluster of this name in the region; empty if there is none."""
    return _describe_conflict(scope, {} if scope.same_name_stacks else find_instances_of_same_name(account, scope))


def _describe_conflict(scope: Scope, other_instances: Mapping[str, str]) -> str:
    """Return a sentence about the other cluster of this name; empty if there is none."""
    if scope.same_name_stacks:
        return f"the cluster {scope.cluster} already exists in the stack {', '.join(scope.same_name_stacks)}"
    if other_instances:
        return f"instances of a cluster named {scope.cluster} run outside of this stack: {', '.join(other_instances)}"
    return ""


def find_instances_of_same_name(account: Account, scope: Scope) -> dict[str, str]:
    """Return the instances of other clusters of this name in the region: their ids, and the VPC of each."""
    filters = [
        {"Name": f"tag:kubernetes.io/cluster/{scope.cluster}", "Values": ["owned"]},
        {"Name": "instance-state-name", "Values": ["pending", "running", "stopping", "stopped"]},
    ]
    pages = account.client("ec2").get_paginator("describe_instances").paginate(Filters=filters)
    return {
        instance["InstanceId"]: instance.get("VpcId", "")
        for page in pages
        for reservation in page["Reservations"]
        for instance in reservation["Instances"]
        if instance["InstanceId"] not in scope.instances
    }


def _remove_once(account: Account, scope: Scope, orphans: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Remove what AWS is ready to delete now; return it."""
    return (
        *load_balancers.remove(
            account, [orphan for orphan in orphans if orphan.kind in ("load balancer", "target group")]
        ),
        *network_interfaces.remove(account, [orphan for orphan in orphans if orphan.kind == "network interface"]),
        *security_groups.remove(account, scope, [orphan for orphan in orphans if orphan.kind == "security group"]),
    )


def _describe_waiting(orphans: Sequence[OrphanedResource], waiting_keys: frozenset[tuple[str, str]]) -> str:
    """Return the first three of the resources that are waited for, and how many more there are, in words."""
    names = [f"{orphan.kind} {orphan.name}" for orphan in orphans if (orphan.kind, orphan.id) in waiting_keys]
    suffix = f" and {len(names) - 3} more" if len(names) > 3 else ""
    return ", ".join(names[:3]) + suffix
