"""The parts of a cluster's status as data: stack, API, masters, node groups, certificates, volumes.

A part that could not be read is `Unknown` with the reason, so that one missing permission does not hide the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import ClassVar, Literal

from cfngen.deploy.aws.addresses import LostAddress
from cfngen.deploy.aws.drift import Drift
from cfngen.deploy.aws.launched_versions import RetypedSlot, StaleGroup
from cfngen.deploy.aws.pause import PauseState
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Message
from cfngen.deploy.messages.next_steps import next_steps
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.status.cluster_problems import Problem
from cfngen.deploy.status.differing_values import DifferingValue
from cfngen.hints import Hint, SuggestedCommand, suggest


@dataclass(frozen=True)
class Unknown:
    """Something that could not be read.

    Attributes:
        unknown: why it could not be read.
        hint: what to do about it; may be empty.
        code: `code` of the error that prevented it; empty if none did.
    """

    unknown: str
    hint: Hint = ""
    code: str = ""


@dataclass(frozen=True)
class StackState:
    """The root stack.

    Attributes:
        name: its name.
        id: its ARN; empty if it does not exist.
        status: its status in CloudFormation; empty if it does not exist.
        health: what the status means, e.g. `healthy`, `busy`, `paused`.
        reason: the status reason.
        since: when it got this status.
        operation: the last operation, finished or not: `create`, `update`, `import`, `delete`, or empty.
        succeeded: whether the last operation succeeded; None while it is in progress.
        cancelled: whether the last operation was cancelled by somebody, and rolled back.
        protected: whether termination protection is on.
        without_policy: names of the stacks without the stack policy that they should have: the root stack, and nested
            stacks with data.
    """

    name: str
    id: str = ""
    status: str = ""
    health: str = StackHealth.ABSENT.value
    reason: str = ""
    since: datetime | Unknown | None = None
    operation: str = ""
    succeeded: bool | None = None
    cancelled: bool = False
    protected: bool = False
    without_policy: tuple[str, ...] | Unknown = ()


@dataclass(frozen=True)
class ApiState:
    """The API server.

    Attributes:
        version: its Kubernetes version, e.g. `1.36.3`.
        ready: whether its endpoint /readyz reports success.
        failing: names of its failing health checks.
    """

    version: str
    ready: bool
    failing: tuple[str, ...] = ()


@dataclass(frozen=True)
class MasterState:
    """A master: its slot, and the instance in the slot.

    Attributes:
        slot: letter of the slot, e.g. `a`.
        instance: id of the instance; empty if there is none.
        lifecycle: its lifecycle state in the Auto Scaling group.
        state: its instance state in EC2.
        zone: its Availability Zone.
        address: its private IP address.
        type: its instance type.
        image: id of its machine image.
        image_created: when the machine image was created; None if not known.
        launched: when the instance was launched; None if not known.
        current: whether it was launched from the current version of the launch template.
        ready: whether its Node is Ready; None if the Kubernetes API could not be read.
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
    """A node group.

    Attributes:
        name: its name.
        desired: desired capacity.
        in_service: number of instances that are in service and healthy.
        ready: number of instances whose Node is Ready; None if the Kubernetes API could not be read.
        minimum: minimum size.
        maximum: maximum size.
        types: instance types of the running instances; of a group with a mixed instances policy and without instances,
            those that it may launch.
        outdated: number of instances that were launched from an older version of the launch template.
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
class BastionState:
    """The bastion.

    Attributes:
        instance: id of the instance; empty if there is none.
        in_service: whether the instance is in service and healthy.
        lifecycle: its lifecycle state in the Auto Scaling group.
        state: its instance state in EC2.
        zone: its Availability Zone.
        address: its public IP address; empty if it has none.
        type: its instance type.
        launched: when the instance was launched; None if not known.
        current: whether it was launched from the current version of the launch template.
    """

    instance: str = ""
    in_service: bool = False
    lifecycle: str = ""
    state: str = ""
    zone: str = ""
    address: str = ""
    type: str = ""
    launched: datetime | None = None
    current: bool = True


@dataclass(frozen=True)
class Expiry:
    """The expiry of a certificate or token.

    Attributes:
        what: `certificate authority`, `API server's certificate`, `join token`, or the certificate of a master that
            expires first, e.g. `master a: apiserver.crt`.
        ends: when it expires.
    """

    what: str
    ends: datetime | Unknown


@dataclass(frozen=True)
class VolumeState:
    """A master's data volume.

    Attributes:
        slot: the master's letter.
        id: its id.
        state: its volume state in EC2, e.g. `in-use`; empty if the volume does not exist.
        size: size in GiB.
        type: volume type, e.g. `gp3`.
        zone: its Availability Zone.
        instance: id of the instance it is attached to; empty if none.
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
    """The backups (snapshots) of etcd.

    Attributes:
        bucket: name of the bucket that holds them.
        newest: when the newest snapshot was taken; None if there is none.
        interval: minutes between two snapshots.
        late: whether the newest snapshot is older than three intervals, or no snapshot exists.
        restoring: key of the snapshot that is being restored; empty if none is.
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
        name: name of its Helm release.
        version: version of its chart; may be empty.
        status: status of its Helm release, e.g. `deployed` or `failed`.
        time: when it was last applied; None if not known.
        message: why it failed; often empty.
    """

    name: str
    version: str
    status: str
    time: datetime | None = None
    message: str = ""


def next_command(
    status: StackStatus,
    *,
    made_elsewhere: bool = False,
    healthy: bool = True,
    stale_groups: bool = False,
    lost_addresses: tuple[LostAddress, ...] = (),
) -> str | SuggestedCommand:
    """Return the command to run next; an empty text if nothing needs to be done.

    Args:
        made_elsewhere: whether another tool than `cfngen deploy` made the stack.
        healthy: whether the API server and all nodes are ready, the bastion is in service, and nothing is wrong with a
            private cluster's network.
        stale_groups: whether groups use another version of the launch template than the one in their stack.
        lost_addresses: Elastic IPs that masters or the bastion should have but do not have.
    """
    if status.health is not StackHealth.HEALTHY:
        return next_steps(status, made_elsewhere=made_elsewhere)[0].command
    if lost_addresses:
        return lost_addresses[0].command
    if stale_groups:
        return suggest("plan" if made_elsewhere else "deploy")
    return "" if healthy else suggest("validate cluster")


@dataclass(frozen=True)
class ClusterStatus(Message):
    """The status of a cluster. If the root stack does not exist, the optional attributes are None or empty.

    Attributes:
        cluster: name of the cluster.
        region: its region.
        account: id of the AWS account.
        time: when the status was read.
        stack: the root stack.
        next_command: the command to run next; empty if nothing needs to be done.
        target_version: the Kubernetes version that the cluster should have.
        target_source: what says so: `cluster file`, or `stack` if there is no file.
        endpoint: URL of the Kubernetes API.
        api: the API server.
        kubelets: number of nodes by kubelet version.
        masters: the masters.
        node_groups: the node groups.
        bastion: the bastion; None if the cluster has none.
        certificates: when certificates and the join token expire.
        volumes: the masters' data volumes.
        persistent_volumes: number of persistent volumes in Kubernetes.
        backups: the backups of etcd; None also if backups are off.
        addons: the add-ons that masters installed.
        drift: resources that differ from the templates; None unless drift detection was requested.
        stale_groups: groups that use another version of the launch template than the one in their stack, or whose
            instances cannot boot.
        retyped_slots: master slots that launch another instance type than their stack says.
        lost_addresses: Elastic IPs that masters or the bastion should have but do not have.
        network_problems: what is wrong with NAT gateways, route tables and VPC endpoints of a private cluster.
        differing_values: parameters whose value in the stack is not that of the cluster file.
        pause: the pause of the cluster; None if it is not paused.
        problems: what is wrong, a sentence each, the worst first.
    """

    kind: ClassVar[str] = "status"
    cluster: str
    region: str
    account: str
    time: datetime
    stack: StackState
    next_command: str | SuggestedCommand
    target_version: str
    target_source: Literal["cluster file", "stack"] = "cluster file"
    endpoint: str | Unknown | None = None
    api: ApiState | Unknown | None = None
    kubelets: Mapping[str, int] | Unknown | None = None
    masters: tuple[MasterState, ...] | Unknown | None = None
    node_groups: tuple[GroupState, ...] | Unknown | None = None
    bastion: BastionState | Unknown | None = None
    certificates: tuple[Expiry, ...] = ()
    volumes: tuple[VolumeState, ...] | Unknown | None = None
    persistent_volumes: int | Unknown | None = None
    backups: BackupState | Unknown | None = None
    addons: tuple[AddonState, ...] | Unknown | None = None
    drift: Drift | Unknown | None = None
    stale_groups: tuple[StaleGroup, ...] | Unknown | None = None
    retyped_slots: tuple[RetypedSlot, ...] | Unknown | None = None
    lost_addresses: tuple[LostAddress, ...] | Unknown | None = None
    network_problems: tuple[Problem, ...] | Unknown | None = None
    differing_values: tuple[DifferingValue, ...] | None = None
    pause: PauseState | None = None
    problems: tuple[str, ...] = ()


def stack_state(
    stack: StackView,
    since: datetime | Unknown | None,
    without_policy: tuple[str, ...] | Unknown = (),
    *,
    cancelled: bool | Unknown = False,
) -> StackState:
    """Return the state of a root stack."""
    status = stack.status
    return StackState(
        name=stack.name,
        id=stack.id,
        status=status.name,
        health=status.health.value,
        reason=stack.reason,
        since=since,
        operation=_operation(status),
        succeeded=None if status.in_progress or not _operation(status) else status.succeeded,
        cancelled=cancelled is True,
        protected=stack.protected,
        without_policy=() if stack.made_elsewhere else without_policy,
    )


def _operation(status: StackStatus) -> str:
    """Return the last operation of a stack in this status; for a rollback, the operation that is rolled back."""
    verb = status.name.partition("_")[0]
    if verb == "REVIEW":
        return ""
    return {"ROLLBACK": "create"}.get(verb, verb.lower())
