"""What one screen says about a cluster: stack, API, masters, node groups, certificates, volumes.

Every part is either known, or `Unknown` with the reason: one missing permission never hides the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar

from cfngen.deploy.inspection.drift import Drift
from cfngen.deploy.messages import Message
from cfngen.deploy.next_steps import next_steps
from cfngen.deploy.public_addresses import LostAddress
from cfngen.deploy.stacks import StackView
from cfngen.deploy.stale_groups import StaleGroup
from cfngen.deploy.status import StackHealth, StackStatus


@dataclass(frozen=True)
class Unknown:
    """Something that could not be read.

    Attributes:
        unknown: why not.
        hint: what to do about it; may be empty.
    """

    unknown: str
    hint: str = ""


@dataclass(frozen=True)
class StackState:
    """The root stack.

    Attributes:
        name: its name.
        id: its ARN; empty if it does not exist.
        status: as CloudFormation spells it; empty if it does not exist.
        standing: what the status means, e.g. `healthy`, `busy`, `paused`.
        reason: why it has that status.
        since: since when.
        operation: the last operation, finished or not: `create`, `update`, `import`, `delete`, or empty.
        succeeded: whether that ended as it was meant to; None while it is under way.
        protected: whether termination protection is on.
        without_policy: names of the stacks, of the root and those that hold state, that have no stack policy.
    """

    name: str
    id: str = ""
    status: str = ""
    standing: str = StackHealth.ABSENT.value
    reason: str = ""
    since: datetime | Unknown | None = None
    operation: str = ""
    succeeded: bool | None = None
    protected: bool = False
    without_policy: tuple[str, ...] | Unknown = ()


@dataclass(frozen=True)
class ApiState:
    """The API server.

    Attributes:
        version: of Kubernetes, e.g. `1.36.3`.
        ready: whether it says so of itself.
        failing: names of its checks that fail.
    """

    version: str
    ready: bool
    failing: tuple[str, ...] = ()


@dataclass(frozen=True)
class MasterState:
    """A master's slot, and the instance in it.

    Attributes:
        slot: its letter.
        instance: id of the instance; empty if there is none.
        lifecycle: as Auto Scaling spells it.
        state: as EC2 spells it.
        zone: its Availability Zone.
        address: its private address.
        type: its instance type.
        image: id of its machine image.
        image_created: when that was made; None if it is not known.
        launched: when the instance was; None if it is not known.
        current: whether it was launched from the present launch template.
        ready: whether it is a Ready Node; None if the Kubernetes API could not be asked.
    """

    slot: str
    instance: str = ""
    lifecycle: str = ""
    state: str = ""
    zone: str = ""
    address: str = ""
    type: str = ""
    image: str = ""
    image_created: datetime | None = None
    launched: datetime | None = None
    current: bool = True
    ready: bool | None = None


@dataclass(frozen=True)
class GroupState:
    """A group of nodes.

    Attributes:
        name: its name.
        desired: number of instances there should be.
        in_service: number of those that work.
        ready: number of those that are Ready Nodes; None if the Kubernetes API could not be asked.
        minimum: least number.
        maximum: greatest number.
        types: instance types that run.
        outdated: number of instances of an older version of the launch template.
    """

    name: str
    desired: int
    in_service: int
    ready: int | None
    minimum: int
    maximum: int
    types: tuple[str, ...]
    outdated: int


@dataclass(frozen=True)
class Expiry:
    """Something that ends.

    Attributes:
        what: `certificate authority`, `API server's certificate`, `join token`, or the certificate of a master that
            ends first, e.g. `master a: apiserver.crt`.
        ends: when.
    """

    what: str
    ends: datetime | Unknown


@dataclass(frozen=True)
class VolumeState:
    """A master's data volume.

    Attributes:
        slot: the master's letter.
        id: its id.
        state: as EC2 spells it, e.g. `in-use`; empty if there is no such volume.
        size: in GiB.
        type: e.g. `gp3`.
        zone: its Availability Zone.
        instance: what it is attached to; empty if nothing.
    """

    slot: str
    id: str
    state: str = ""
    size: int = 0
    type: str = ""
    zone: str = ""
    instance: str = ""


@dataclass(frozen=True)
class BackupState:
    """The snapshots of etcd.

    Attributes:
        bucket: the bucket they lie in.
        newest: when the newest was taken; None if there is none.
        interval: minutes between two snapshots.
        late: whether the newest is older than three intervals, or there is none.
        restoring: key of the snapshot that masters are being set back to; empty if they are not.
    """

    bucket: str
    newest: datetime | None
    interval: int
    late: bool
    restoring: str = ""


@dataclass(frozen=True)
class AddonState:
    """An add-on, as the masters report it.

    Attributes:
        name: of its Helm release.
        version: of its chart; may be empty.
        status: as Helm calls it, e.g. `deployed` or `failed`.
        time: when it was last applied; None if that is not told.
        message: why it failed; often empty.
    """

    name: str
    version: str
    status: str
    time: datetime | None = None
    message: str = ""


@dataclass(frozen=True)
class ClusterStatus(Message):
    """All that is known about a cluster; beside the stack, everything is None where there is no stack.

    Attributes:
        cluster: name of the cluster.
        region: its region.
        account: number of the account.
        time: when this was read.
        stack: the root stack.
        next_command: what to do next; empty if nothing needs to be done.
        wanted_version: Kubernetes' version after the cluster file.
        endpoint: URL of the API.
        api: the API server.
        kubelets: how many nodes run which version.
        masters: the masters.
        node_groups: the groups of nodes.
        certificates: what ends when.
        volumes: the masters' data volumes.
        persistent_volumes: number of volumes that Kubernetes has.
        backups: the snapshots of etcd; None where none are taken, too.
        addons: what is installed into the cluster by the masters.
        drift: where resources differ from the templates; None if that was not asked for.
        left_behind: groups that launch from another version than their stack's, or whose instances cannot boot.
        lost_addresses: Elastic IPs that masters should have and have not.
    """

    kind: ClassVar[str] = "status"
    cluster: str
    region: str
    account: str
    time: datetime
    stack: StackState
    next_command: str
    wanted_version: str
    endpoint: str | Unknown | None = None
    api: ApiState | Unknown | None = None
    kubelets: Mapping[str, int] | Unknown | None = None
    masters: tuple[MasterState, ...] | Unknown | None = None
    node_groups: tuple[GroupState, ...] | Unknown | None = None
    certificates: tuple[Expiry, ...] = ()
    volumes: tuple[VolumeState, ...] | Unknown | None = None
    persistent_volumes: int | Unknown | None = None
    backups: BackupState | Unknown | None = None
    addons: tuple[AddonState, ...] | Unknown | None = None
    drift: Drift | Unknown | None = None
    left_behind: tuple[StaleGroup, ...] | Unknown | None = None
    lost_addresses: tuple[LostAddress, ...] | Unknown | None = None


def stack_state(
    stack: StackView, since: datetime | Unknown | None, without_policy: tuple[str, ...] | Unknown = ()
) -> StackState:
    """Return what there is to say about a root stack.

    Args:
        stack: the stack.
        since: since when it has its status.
        without_policy: names of the stacks that should have a stack policy and have none.
    """
    status = stack.status
    return StackState(
        name=stack.name,
        id=stack.id,
        status=status.name,
        standing=status.standing.value,
        reason=stack.reason,
        since=since,
        operation=_operation(status),
        succeeded=None if status.in_progress or not _operation(status) else status.succeeded,
        protected=stack.protected,
        without_policy=without_policy,
    )


def next_command(
    status: StackStatus,
    *,
    healthy: bool = True,
    left_behind: bool = False,
    lost_addresses: tuple[LostAddress, ...] = (),
) -> str:
    """Return the command that is due, or an empty text.

    Args:
        status: of the root stack.
        healthy: whether everything else that is known is as it should be.
        left_behind: whether groups do not launch from what their stacks have.
        lost_addresses: Elastic IPs that masters should have and have not.
    """
    if status.standing is StackHealth.HEALTHY:
        if lost_addresses:
            return lost_addresses[0].command
        return "cfngen deploy" if left_behind else "" if healthy else "cfngen validate cluster"
    return next_steps(status)[0].command


def _operation(status: StackStatus) -> str:
    """Return what CloudFormation did, or does, in this status; a rollback belongs to what it undoes."""
    first = status.name.partition("_")[0]
    if first == "REVIEW":
        return ""
    return {"ROLLBACK": "create"}.get(first, first.lower())
