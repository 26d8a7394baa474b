"""What Kubernetes made outside of the stack and must go before the network can: found by tags, removed in order.

Load balancers hold interfaces, interfaces hold security groups, rules hold the groups that they name; each goes a while
after what it depended on. So nothing here is a plan: a round looks for whatever there is and removes what AWS lets go
of, and the next round looks again. That makes it safe to interrupt, and to repeat.
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

PATIENCE = 600.0
"""Seconds for AWS to let go; interfaces of load balancers were seen to stay for several minutes."""
SHORTEST_PAUSE = 3.0
LONGEST_PAUSE = 20.0


class LivingNamesakeError(CfngenError):
    """Another cluster of the same name lives, and tags do not say whose things are whose."""

    def __init__(self, cluster: str, whose: str) -> None:
        super().__init__(
            f"{whose}; what bears the name {cluster} in its tags may be theirs, so none of it is removed",
            hint="name that stack with --stack-name if you mean it; else delete that cluster first, or remove what is "
            "yours by hand.",
        )


@dataclass(frozen=True)
class Sweep:
    """What a search for leftovers came to.

    Attributes:
        gone: what was removed.
        remaining: what could not be removed.
    """

    gone: tuple[OrphanedResource, ...] = ()
    remaining: tuple[OrphanedResource, ...] = ()


def find(account: Account, scope: Scope) -> tuple[OrphanedResource, ...]:
    """Return everything of the cluster's that can keep its network from being deleted, in the order it has to go."""
    balancers = load_balancers.find(account, scope)
    groups = security_groups.find(account, scope)
    interfaces = network_interfaces.find(account, scope, groups=[group.id for group in groups])
    return (*balancers, *interfaces, *groups)


def sweep(account: Account, scope: Scope, report: Report, *, patience: float = PATIENCE) -> Sweep:
    """Remove everything of the cluster's that can keep its network from being deleted.

    Args:
        account: where it is.
        scope: the cluster.
        report: told what goes.
        patience: seconds to wait for AWS to let go; 0 is one round without waiting.

    Raises:
        LivingNamesakeError: it cannot be told from what another cluster of this name has made.
    """
    clock = account.clock
    until, pause = clock.now().timestamp() + patience, SHORTEST_PAUSE
    gone: dict[tuple[str, str], OrphanedResource] = {}
    waited_for: frozenset[tuple[str, str]] | None = None
    while True:
        found = find(account, scope)
        if not found:
            return Sweep(tuple(gone.values()))
        if waited_for is None:
            check_namesake(account, scope, found)
            report(Step("deleting what Kubernetes made: load balancers, and what belongs to them"))
        for each in _round(account, scope, found):
            if (each.kind, each.id) not in gone:
                gone[each.kind, each.id] = each
                report(Removed(each))
        if clock.now().timestamp() >= until:
            break
        waiting = frozenset((each.kind, each.id) for each in found) - gone.keys()
        if waiting and waiting != waited_for:
            report(Step(f"waiting for AWS to release {_named(found, waiting)}"))
        waited_for = waiting
        clock.sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE)
    left = find(account, scope)
    still = {(each.kind, each.id) for each in left}
    return Sweep(tuple(each for key, each in gone.items() if key not in still), left)


def sweep_routes(account: Account, scope: Scope, report: Report) -> Sweep:
    """Remove the pods' routes from a route table that the cluster was lent; only once its instances are gone."""
    gone = pod_routes.remove(account, pod_routes.find(account, scope))
    for each in gone:
        report(Removed(each))
    return Sweep(gone, pod_routes.find(account, scope))


def check_namesake(account: Account, scope: Scope, found: Sequence[OrphanedResource]) -> None:
    """Refuse to touch what may be a living cluster's.

    While the cluster's VPC is known, only what lies in it counts. Without it tags are all there is, and another
    cluster of the same name bears the same ones. A stack without network and machines owns nothing in a VPC either.

    Raises:
        LivingNamesakeError: there is such a cluster.
    """
    if not found:
        return
    strangers = namesakes(account, scope)
    beside = not scope.standing and (bool(scope.namesakes) or scope.vpc_id in strangers.values())
    uncertain = beside or not scope.vpc_id or any(not each.vpc_id for each in found)
    if uncertain and (whose := _whose(scope, strangers)):
        raise LivingNamesakeError(scope.cluster, whose)


def namesake(account: Account, scope: Scope) -> str:
    """Return in a sentence which other cluster of this name lives in the region; empty if there is none."""
    return _whose(scope, {} if scope.namesakes else namesakes(account, scope))


def _whose(scope: Scope, strangers: Mapping[str, str]) -> str:
    if scope.namesakes:
        return f"the cluster {scope.cluster} lives in the stack {', '.join(scope.namesakes)}"
    if strangers:
        return f"instances of a cluster named {scope.cluster} run outside of this stack: {', '.join(strangers)}"
    return ""


def namesakes(account: Account, scope: Scope) -> dict[str, str]:
    """Return instances of other clusters of this name in the region, and the VPC of each."""
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


def _round(account: Account, scope: Scope, found: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Remove what can go now."""
    return (
        *load_balancers.remove(account, [each for each in found if each.kind in ("load balancer", "target group")]),
        *network_interfaces.remove(account, [each for each in found if each.kind == "network interface"]),
        *security_groups.remove(account, scope, [each for each in found if each.kind == "security group"]),
    )


def _named(found: Sequence[OrphanedResource], waiting: frozenset[tuple[str, str]]) -> str:
    shown = [f"{each.kind} {each.name}" for each in found if (each.kind, each.id) in waiting]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return ", ".join(shown[:3]) + more
