"""What pausing and resuming a cluster report: the plan, the progress and the result."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from cfngen.deploy.aws.groups import GroupView, Sizes
from cfngen.deploy.aws.pause import PauseState
from cfngen.deploy.messages.message import Message
from cfngen.deploy.plan.costs.costs import Cost


@dataclass(frozen=True)
class GroupPlan:
    """What is done with one Auto Scaling group.

    Attributes:
        role: `master`, `node` or `bastion`.
        name: letter of the master's slot, or name of the node group; empty for the bastion.
        minimum: minimum size that the group has after `resume`.
        maximum: maximum size that the group has after `resume`.
        desired: desired capacity that the group has after `resume`.
        instances: number of its instances now.
        note: why its sizes now are not those that are kept or restored; often empty.
    """

    role: str
    name: str
    minimum: int
    maximum: int
    desired: int
    instances: int
    note: str = ""

    @classmethod
    def of(cls, group: GroupView, sizes: Sizes, note: str) -> GroupPlan:
        """Return what is done with a group that has these sizes after `resume`."""
        return cls(
            role=group.role,
            name=group.name,
            minimum=sizes.minimum,
            maximum=sizes.maximum,
            desired=sizes.desired,
            instances=len(group.instances),
            note=note,
        )


@dataclass(frozen=True)
class PausePlan(Message):
    """What a pause will do.

    Attributes:
        cluster: name of the cluster.
        region: its region.
        account: AWS account id.
        pause: the pause that is continued; None if the cluster is not paused.
        groups: the Auto Scaling groups, with the sizes that are kept.
        snapshot: whether a snapshot of etcd is taken first.
        consequences: what the pause means for the cluster, in one sentence each.
    """

    kind: ClassVar[str] = "pausePlan"
    cluster: str
    region: str
    account: str
    pause: PauseState | None
    groups: tuple[GroupPlan, ...]
    snapshot: bool
    consequences: tuple[str, ...]


@dataclass(frozen=True)
class RemainingInstances:
    """The instances of a group that is being paused.

    Attributes:
        role: `master`, `node` or `bastion`.
        name: letter of the master's slot, or name of the node group; empty for the bastion.
        count: number of its instances.
        draining: number of its instances that wait until they are drained.
    """

    role: str
    name: str
    count: int
    draining: int


@dataclass(frozen=True)
class PauseProgress(Message):
    """How many instances are left; sent whenever that changes.

    Attributes:
        remaining: the groups that still have instances.
        seconds: how long the pause has taken so far.
    """

    kind: ClassVar[str] = "pauseProgress"
    remaining: tuple[RemainingInstances, ...]
    seconds: float


@dataclass(frozen=True)
class Paused(Message):
    """The cluster is paused.

    Attributes:
        cluster: name of the cluster.
        pause: the pause.
        changed: whether the command changed anything.
        seconds: how long it took.
        costs: what AWS still charges for; None if it could not be read.
    """

    kind: ClassVar[str] = "paused"
    cluster: str
    pause: PauseState
    changed: bool
    seconds: float
    costs: tuple[Cost, ...] | None


@dataclass(frozen=True)
class ResumePlan(Message):
    """What ending a pause will do.

    Attributes:
        cluster: name of the cluster.
        region: its region.
        account: AWS account id.
        pause: the pause that is ended; None if nothing but groups without instances shows it.
        groups: the Auto Scaling groups, with the sizes that they get.
    """

    kind: ClassVar[str] = "resumePlan"
    cluster: str
    region: str
    account: str
    pause: PauseState | None
    groups: tuple[GroupPlan, ...]


@dataclass(frozen=True)
class ResumeProgress(Message):
    """What is awaited; sent whenever it changes.

    Attributes:
        phase: `masters` or `nodes`.
        waiting_for: what is not ready yet, in one sentence each.
        seconds: how long it has taken so far.
    """

    kind: ClassVar[str] = "resumeProgress"
    phase: str
    waiting_for: tuple[str, ...]
    seconds: float


@dataclass(frozen=True)
class Resumed(Message):
    """The cluster is no longer paused.

    Attributes:
        cluster: name of the cluster.
        changed: whether the command changed anything; if not, the cluster was not paused.
        waited: whether the masters and nodes were waited for, and are ready.
        seconds: how long it took.
    """

    kind: ClassVar[str] = "resumed"
    cluster: str
    changed: bool
    waited: bool
    seconds: float
