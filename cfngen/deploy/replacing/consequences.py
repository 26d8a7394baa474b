"""What replacing an instance means for the cluster, in sentences."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.replacing.master_type import SlotTemplate
from cfngen.deploy.replacing.members import Member
from cfngen.deploy.stacks import StackView
from cfngen.text import pluralize


def consequences_of(
    cluster: Cluster,
    stack: StackView,
    member: Member,
    *,
    master_count: int,
    template: SlotTemplate | None,
    new_type: str,
    pending: bool,
) -> tuple[str, ...]:
    """Return what replacing an instance means, one sentence each.

    Args:
        cluster: the cluster file.
        stack: the root stack.
        member: the instance and its group.
        master_count: how many masters the cluster has.
        template: the launch template of a master's slot; None for other groups.
        new_type: the type that a master's group is given; empty if it keeps its own.
        pending: whether the instance is being replaced already.
    """
    sentences = list(_type_consequences(template, new_type))
    if not pending:
        sentences += _instance_consequences(cluster, member, master_count)
    if stack.status.health is not StackHealth.HEALTHY:
        sentences.append(f"the stack {stack.name} stays {stack.status}; only the instance is replaced")
    return tuple(sentences)


def _type_consequences(template: SlotTemplate | None, new_type: str) -> Iterator[str]:
    """Yield what another type of a master means, and how long it lasts."""
    if template is None:
        return
    current_type = new_type or template.type
    if new_type:
        yield (
            f"a new version of the launch template {template.id} has {new_type} in place of {template.latest_type}, "
            "and the slot's group launches from it"
        )
    if current_type != template.stack_type:
        yield (
            f"the next deployment that changes this master goes back to the type of the cluster file; to keep "
            f"{current_type}, set controlPlane.instanceType, which replaces the other masters, too"
        )
        if template.targets_reservation:
            yield (
                f"the capacity reservation of this master is for {template.stack_type}: until then it stays, is "
                "charged and is not used"
            )


def _instance_consequences(cluster: Cluster, member: Member, master_count: int) -> Iterator[str]:
    """Yield what it means that the instance goes."""
    instance = member.instance
    if member.is_master:
        if instance is not None:
            yield (
                f"{instance.id} is terminated; the new instance has its address, its data volume and its etcd member"
            )
        if master_count == 1:
            yield (
                "it is the only master: the Kubernetes API is away until the new one has booted, some minutes; pods on "
                "the nodes keep running"
            )
        else:
            yield (
                "etcd keeps its quorum, and the API stays up; if this member is the leader, the others elect another "
                "one within seconds"
            )
    elif member.group.role == "bastion":
        yield "SSH sessions through the bastion break; the new instance has the same address and other host keys"
    elif instance is not None:
        node_group = next((group for group in cluster.node_groups if group.name == member.group.name), None)
        drain_minutes = node_group.drain_timeout if node_group else 0
        drained = (
            f"its pods are evicted first, within {pluralize(drain_minutes, 'minute')}"
            if drain_minutes
            else "its pods are not evicted first (drainTimeout is 0)"
        )
        yield f"{instance.id} is terminated; {drained}; the group launches a new instance, perhaps in another zone"
