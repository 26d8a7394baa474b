"""What `cfngen replace` reports: what it will do, how far it is, and what it did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.messages.message import Message
from cfngen.errors import CfngenError

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
