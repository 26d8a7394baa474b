"""What `cfngen replace` reports: what it will do, how far it is, and what it did."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Message
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations.replacing.master_type import SlotTemplate
from cfngen.deploy.operations.replacing.members import Member
from cfngen.errors import CfngenError
from cfngen.text import pluralize

DRAINING, TERMINATING, WAITING_FOR_INSTANCE, BOOTING, READY = (
    "draining",
    "terminating",
    "waiting for an instance",
    "booting",
    "ready",
)


class ReplacementFailedError(CfngenError):
    """The new instance does not work before the timeout."""

    code = "replacement-timeout"


class ReplacementDetachedError(CfngenError):
    """The user interrupted the command; Auto Scaling continues."""

    code = "replacement-detached"


class ReplacementInProgressError(CfngenError):
    """The instance is being replaced already, by one of another type."""

    code = "replacement-in-progress"


@dataclass(frozen=True)
class ReplacementPlan(Message):
    """What replacing an instance will do.

    Attributes:
        cluster: name of the cluster.
        region: its region.
        account: AWS account id.
        role: `master`, `node` or `bastion`.
        group: letter of the master's slot, or name of the node group; empty for the bastion.
        instance: id of the instance that is replaced; empty if the slot has none.
        zone: the zone of the new instance, if it is known; a node's may be another one of its group.
        instance_type: instance type of the new instance.
        pending: whether the instance is being replaced already, so that nothing is left to do but to wait.
        consequences: what it means for the cluster, in one sentence each.
    """

    kind: ClassVar[str] = "replacementPlan"
    cluster: str
    region: str
    account: str
    role: str
    group: str
    instance: str
    zone: str
    instance_type: str
    pending: bool
    consequences: tuple[str, ...]


@dataclass(frozen=True)
class ReplacementProgress(Message):
    """How far the replacement is; sent whenever that changes.

    Attributes:
        title: what is replaced, e.g. `master a`.
        state: `draining`, `terminating`, `waiting for an instance`, `booting` or `ready`.
        instance: id of the instance in this state; empty if there is none.
        detail: more about the state, e.g. what the new master still lacks; may be empty.
    """

    kind: ClassVar[str] = "replacementProgress"
    title: str
    state: str
    instance: str = ""
    detail: str = ""


@dataclass(frozen=True)
class Replaced(Message):
    """The new instance works.

    Attributes:
        cluster: name of the cluster.
        role: `master`, `node` or `bastion`.
        group: letter of the master's slot, or name of the node group; empty for the bastion.
        old_instance: id of the instance that was replaced; empty if the slot had none.
        instance: id of the new instance.
        instance_type: its instance type.
        zone: its zone.
        stack_type: the instance type that the slot's stack says, if the new instance has another one; else empty.
        seconds: how long it took.
    """

    kind: ClassVar[str] = "replaced"
    cluster: str
    role: str
    group: str
    old_instance: str
    instance: str
    instance_type: str
    zone: str
    stack_type: str
    seconds: float

    @property
    def title(self) -> str:
        """What was replaced, e.g. `master a`."""
        if self.role == "master":
            return f"master {self.group}"
        return "the bastion" if self.role == "bastion" else f"a node of {self.group}"


def consequences_of(
    cluster: Cluster,
    stack: StackView,
    member: Member,
    *,
    master_count: int,
    template: SlotTemplate | None,
    new_type: str,
    pending: bool,
    boot_failure: str = "",
) -> tuple[str, ...]:
    """Return what replacing an instance means, one sentence each.

    Args:
        template: the launch template of a master's slot; None for other groups.
        new_type: the type that a master's group is given; empty if it keeps its own.
        boot_failure: what has failed in the boot of the instance that is replaced; empty if nothing has.
    """
    sentences = [f"its boot has failed: {boot_failure}"] if boot_failure else []
    sentences += list(_type_consequences(template, new_type))
    if not pending:
        sentences += _instance_consequences(cluster, member, master_count)
    if stack.status.health is not StackHealth.HEALTHY:
        sentences.append(f"the stack {stack.name} stays {stack.status}; only the instance is replaced")
    return tuple(sentences)


def _type_consequences(template: SlotTemplate | None, new_type: str) -> Iterator[str]:
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
