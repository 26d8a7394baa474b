"""Network interfaces that outlive what they were made for: of load balancers for a while, of pods for good."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.deletion import load_balancers
from cfngen.deploy.deletion.kubernetes_tags import of_a_stack, owned, tag_map
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, remove_each
from cfngen.deploy.deletion.scope import Scope

INSTANCE = "node.k8s.amazonaws.com/instance_id"  # VPC CNI: the instance that an interface was made for
POD_PREFIX = "aws-K8S-"  # VPC CNI: how its descriptions begin
BALANCER_PREFIX = "ELB "  # `ELB <name>`, `ELB app/<name>/<id>` or `ELB net/<name>/<id>`


def find(account: Account, scope: Scope, *, groups: Iterable[str] = ()) -> tuple[OrphanedResource, ...]:
    """Return the interfaces that nothing will delete, and those of load balancers that will go by themselves.

    Args:
        account: where they are.
        scope: the cluster.
        groups: security groups that Kubernetes made.
    """
    if not scope.vpc_id:
        return ()
    made = frozenset(groups)
    balancers: frozenset[str] | None = None
    found = []
    for each in there(account, scope.vpc_id):
        identity = each["NetworkInterfaceId"]
        uses = {group["GroupId"] for group in each.get("Groups", ())}
        tags = tag_map(each.get("TagSet"))
        if identity in scope.ids() or of_a_stack(tags):
            continue
        description = each.get("Description", "")
        if name := balancer(description):
            # Elastic Load Balancing releases it minutes after the load balancer is gone; nobody else may.
            mine = bool(uses & made)
            if not mine and scope.own_vpc:
                balancers = load_balancers.names(account) if balancers is None else balancers
                mine = name not in balancers
            if mine:
                found.append(_leftover(each, f"load balancer {name}", waits=True))
        elif each.get("Status") == "available" and _of_the_cluster(each, tags, uses, scope):
            found.append(_leftover(each, description))
    return tuple(found)


def there(account: Account, vpc_id: str) -> Iterator[Mapping[str, Any]]:
    """Return every network interface of a VPC, as EC2 describes it."""
    filters = [{"Name": "vpc-id", "Values": [vpc_id]}]
    for page in account.client("ec2").get_paginator("describe_network_interfaces").paginate(Filters=filters):
        yield from page["NetworkInterfaces"]


def balancer(description: str) -> str:
    """Return the load balancer that an interface is described to be of; empty if it is of none."""
    if not description.startswith(BALANCER_PREFIX):
        return ""
    parts = description.removeprefix(BALANCER_PREFIX).split("/")
    return parts[1] if len(parts) == 3 else parts[0]


def remove(account: Account, found: Sequence[OrphanedResource]) -> tuple[OrphanedResource, ...]:
    """Delete interfaces that nothing uses; return those deleted."""
    ec2 = account.client("ec2")
    unused = (each for each in found if not each.waits)
    return remove_each(unused, lambda each: ec2.delete_network_interface(NetworkInterfaceId=each.id))


def _of_the_cluster(each: Mapping[str, Any], tags: Mapping[str, str], uses: set[str], scope: Scope) -> bool:
    if owned(tags, scope.cluster):
        return True
    # Without its cluster's name the VPC CNI says which instance it made an interface for, and gives it the instance's
    # security groups: the node group of this cluster is in no other cluster's instances.
    of_pods = INSTANCE in tags or each.get("Description", "").startswith(POD_PREFIX)
    return of_pods and (tags.get(INSTANCE, "") in scope.instances or bool(uses & set(scope.security_groups)))


def _leftover(each: Mapping[str, Any], purpose: str, *, waits: bool = False) -> OrphanedResource:
    identity = each["NetworkInterfaceId"]
    return OrphanedResource("network interface", identity, identity, purpose, vpc_id=each.get("VpcId", ""), waits=waits)
