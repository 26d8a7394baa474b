"""Restores an etcd snapshot: writes a request into the bucket, replaces all masters, and waits for them to be ready.

The masters restore the snapshot themselves when they boot: if the bucket contains a request that a master's volume does
not record as done, the master replaces etcd's data with the snapshot. So each master may be replaced at any time. The
command can be interrupted and repeated, because the request stays in the bucket until every master is ready.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar, TypeAlias

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import MasterId
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, suppress_codes, translate_aws_errors
from cfngen.deploy.aws.groups import GroupView, InstanceView, find_groups
from cfngen.deploy.aws.snapshots import LATEST_SNAPSHOT, REQUEST_KEY, Snapshot, SnapshotStore, find_snapshot, find_store
from cfngen.deploy.messages.message import Consent, Message, Notice, Question, Report, Step
from cfngen.deploy.messages.next_steps import as_hint, next_steps
from cfngen.deploy.operations.etcd.watch import MasterReplacement
from cfngen.deploy.operations.runner import Operation
from cfngen.deploy.preflight.pausing import ensure_not_paused
from cfngen.deploy.preflight.stack_checks import require_idle_stack
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import join_and, pluralize, verb_form

# Logical ids of the masters' Auto Scaling groups, for every possible slot.
_MASTER_GROUP_IDS = frozenset(str(MasterId(letter, "AutoScalingGroup")) for letter in "abcde")


RestoreRequest: TypeAlias = Mapping[str, Any]
"""A request to restore, as JSON in the bucket; empty if there is none.

Keys: `id`, `snapshot` (its key in the bucket), `created` (time), `sha256` (digest of the snapshot, optional), and
`instances` (ids of the instances to replace; added last).
"""

REPLACEMENT_TIMEOUT = timedelta(minutes=15)
"""Added to the timeout of an instance's boot: the old instances have to be terminated first."""


class NoMastersError(CfngenError):
    """The stack has no masters that could be restored."""

    code = "no-masters"


class RestoreInProgressError(CfngenError):
    """Another snapshot is being restored already."""

    code = "restore-in-progress"


class RestoreDetachedError(CfngenError):
    """The user interrupted the command; the masters continue the restore."""

    code = "restore-detached"


@dataclass(frozen=True)
class ReplacedMaster:
    """A master's slot, and the instances in it that are replaced.

    Attributes:
        slot: its letter.
        instances: ids of the instances.
    """

    slot: str
    instances: tuple[str, ...]


@dataclass(frozen=True)
class RestorePlan(Message):
    """What a restore will do.

    Attributes:
        cluster: name of the cluster.
        region: its region.
        account: AWS account id.
        bucket: the bucket of the snapshots.
        snapshot: the snapshot to restore.
        masters: the masters that are replaced.
        pending: whether this continues a restore that was started before.
        consequences: what the restore means for the cluster, in one sentence each.
    """

    kind: ClassVar[str] = "etcdRestorePlan"
    cluster: str
    region: str
    account: str
    bucket: str
    snapshot: Snapshot
    masters: tuple[ReplacedMaster, ...]
    pending: bool
    consequences: tuple[str, ...]


@dataclass(frozen=True)
class Restored(Message):
    """Every master is ready, with the restored data.

    Attributes:
        cluster: name of the cluster.
        snapshot: the snapshot.
        seconds: how long it took.
        unknown_nodes: ids of the instances of node groups that have no Node in the restored cluster.
    """

    kind: ClassVar[str] = "etcdRestored"
    cluster: str
    snapshot: Snapshot
    seconds: float
    unknown_nodes: tuple[str, ...] = ()


def restore(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    snapshot_name: str | timedelta = LATEST_SNAPSHOT,
    *,
    consent: Consent,
    report: Report,
    find_url_override: FindApiUrlOverride = cluster_access.no_api_url_override,
    timeout: timedelta | None = None,
) -> Restored:
    """Restore an etcd snapshot, after confirmation; continue a restore that was started before.

    Args:
        snapshot_name: the snapshot, as in `find_snapshot`; `latest` and an age also mean one that is being restored.
        timeout: how long to wait for the masters; None derives it from the cluster file.

    Raises:
        NoStackError: there is no stack of this name.
        ForeignStackError: the stack belongs to another cluster.
        BusyError: a CloudFormation operation is in progress.
        PausedError: the cluster is paused.
        NoSnapshotError: no snapshot has this name.
        RestoreInProgressError: another snapshot is being restored.
        DeclinedError: the user declined.
        RestoreFailedError: the masters are not ready before the timeout; the same command continues.
        RestoreDetachedError: the user interrupted the command; the restore continues, and the same command attaches.
        AwsError: a call failed; the same command continues.
    """
    with translate_aws_errors():
        stack = require_idle_stack(account, stack_name, cluster.name)
        ensure_not_paused(account, stack, cluster)
        snapshot_store = find_store(account, stack_name, cluster)
        restoration = _Restoration(account, stack, cluster, report, consent, snapshot_store, find_url_override)
        return restoration.run(snapshot_name, timeout)


@dataclass
class _Restoration(Operation):
    store: SnapshotStore
    find_url_override: FindApiUrlOverride

    def run(self, snapshot_name: str | timedelta, timeout: timedelta | None) -> Restored:
        request: RestoreRequest = self.store.read(REQUEST_KEY)
        snapshot = self._choose_snapshot(request, snapshot_name)
        master_groups = self._find_master_groups()
        question = f"{'Continue restoring' if request else 'Restore'} {self.cluster.name} from {snapshot.key}?"
        known_instances = self.carry_out(
            self._make_plan(snapshot, master_groups, request),
            Question(question, dangerous=True, name=self.cluster.name),
            lambda: self._take_steps(self._write_request(request, snapshot), timeout),
            RestoreDetachedError(
                f"the masters that were replaced continue the restore of {self.cluster.name} without cfngen",
                hint=CommandText(suggest("etcd restore"), " continues it."),
            ),
        )
        return Restored(
            cluster=self.cluster.name,
            snapshot=snapshot,
            seconds=self.seconds,
            unknown_nodes=tuple(node.id for node in self._find_node_instances() if node.id not in known_instances),
        )

    def _choose_snapshot(self, request: RestoreRequest, snapshot_name: str | timedelta) -> Snapshot:
        if not request:
            return find_snapshot(self.store, snapshot_name)
        restoring = find_snapshot(self.store, str(request["snapshot"]))
        is_key = isinstance(snapshot_name, str) and snapshot_name != LATEST_SNAPSHOT
        if is_key and find_snapshot(self.store, snapshot_name).key != restoring.key:
            raise RestoreInProgressError(
                f"{self.cluster.name} is already being restored from {restoring.key}",
                hint=CommandText(
                    suggest("etcd restore"), " continues that restore; another snapshot can be restored afterwards."
                ),
            )
        return restoring

    def _find_master_groups(self) -> tuple[GroupView, ...]:
        group_resources = tuple(resource for resource in self.resources if resource.logical_id in _MASTER_GROUP_IDS)
        master_groups = find_groups(self.account, self.cluster, group_resources)
        if not master_groups or any(group.missing for group in master_groups):
            raise NoMastersError(
                f"the stack {self.stack.name} ({self.stack.status}) has no masters that could be replaced",
                hint=as_hint(next_steps(self.stack.status, made_elsewhere=self.stack.made_elsewhere))
                or CommandText(
                    suggest("status"), " shows which resources exist; ", suggest("deploy"), " creates the missing ones."
                ),
            )
        return master_groups

    def _find_node_instances(self) -> list[InstanceView]:
        other_resources = tuple(resource for resource in self.resources if resource.logical_id not in _MASTER_GROUP_IDS)
        groups = find_groups(self.account, self.cluster, other_resources)
        nodes = [instance for group in groups if group.role == "node" for instance in group.instances]
        return [instance for instance in nodes if not instance.leaving]

    def _make_plan(
        self, snapshot: Snapshot, master_groups: tuple[GroupView, ...], request: RestoreRequest
    ) -> RestorePlan:
        replaced = _masters_to_replace(master_groups, request)
        slots_and_instances = [f"{master.slot} ({', '.join(master.instances)})" for master in replaced]
        age = _format_age(snapshot.age)
        if replaced:
            replacement = (
                f"the instances of {pluralize(len(replaced), 'master')} are terminated and replaced: "
                f"{join_and(slots_and_instances)}"
            )
        else:
            replacement = "every master's instance has been replaced already"
        consequences = (
            f"everything written to Kubernetes since {snapshot.time:%Y-%m-%d %H:%M:%S} UTC, {age} ago, is lost",
            replacement,
            "the Kubernetes API is down for some minutes; pods on the nodes keep running",
            "volumes and load balancers are unchanged; Kubernetes no longer knows those created since the snapshot",
            *self._node_consequences(snapshot),
        )
        return RestorePlan(
            cluster=self.cluster.name,
            region=self.account.region,
            account=self.account.id,
            bucket=self.store.bucket,
            snapshot=snapshot,
            masters=replaced,
            pending=bool(request),
            consequences=consequences,
        )

    def _node_consequences(self, snapshot: Snapshot) -> Iterator[str]:
        nodes = self._find_node_instances()
        if newer := [node.id for node in nodes if node.launched and node.launched > snapshot.time]:
            yield (
                f"{pluralize(len(newer), 'node')} launched since the snapshot {verb_form(len(newer), 'are')} unknown "
                f"afterwards, and to be replaced: {join_and(newer)}"
            )

    def _write_request(self, request: RestoreRequest, snapshot: Snapshot) -> RestoreRequest:
        if not request:
            created = self.account.clock.now().isoformat()
            request = {"id": str(uuid.uuid4()), "snapshot": snapshot.key, "created": created}
            # With the digest, the masters can check the snapshot that they download.
            if sha256 := self.store.metadata(snapshot.key).get("sha256"):
                request["sha256"] = sha256
            self.report(Step(f"requesting the masters to restore {snapshot.key} when they boot"))
            if not self.store.write(REQUEST_KEY, request, only_if_new=True):
                raise RestoreInProgressError(
                    f"someone else has just started to restore {self.cluster.name}",
                    hint=CommandText(
                        suggest("etcd restore"), " shows from which snapshot, and continues that restore."
                    ),
                )
        if "instances" not in request:
            # Instances are listed after the request was written, so every instance launched later finds the request.
            old_instances = [instance.id for group in self._find_master_groups() for instance in group.instances]
            request = {**request, "instances": old_instances}
            self.store.write(REQUEST_KEY, request)
        return request

    def _terminate_old_masters(self, request: RestoreRequest) -> None:
        autoscaling = self.account.client("autoscaling")
        for group in self._find_master_groups():
            for instance in group.instances:
                if instance.id in request["instances"] and not instance.leaving:
                    self.report(Step(f"terminating the instance of master {group.name}, {instance.id}"))
                    # Auto Scaling has no error code of its own for an instance that was terminated meanwhile.
                    with suppress_codes(("ValidationError",)):
                        autoscaling.terminate_instance_in_auto_scaling_group(
                            InstanceId=instance.id, ShouldDecrementDesiredCapacity=False
                        )

    def _take_steps(self, request: RestoreRequest, timeout: timedelta | None) -> frozenset[str]:
        """Replace the masters, and return the ids of the instances of which the restored cluster has Nodes."""
        self._terminate_old_masters(request)
        max_duration = timeout or timedelta(minutes=self.cluster.control_plane.creation_timeout) + REPLACEMENT_TIMEOUT
        old_instances = frozenset(request["instances"])
        known_instances = MasterReplacement(
            self.account, self.stack, self._find_master_groups, old_instances, self.find_url_override, self.report
        ).wait(max_duration)
        self._delete_request()
        return known_instances

    def _delete_request(self) -> None:
        """Delete the request, so that volumes created later are not restored from it."""
        try:
            self.store.remove(REQUEST_KEY)
        except AwsError as error:
            uri = f"s3://{self.store.bucket}/{self.store.prefix}{REQUEST_KEY}"
            hint = f"delete it: aws s3 rm {uri}"
            self.report(Notice(f"the request {uri} could not be deleted: {error}", hint))


def _masters_to_replace(master_groups: tuple[GroupView, ...], request: RestoreRequest) -> tuple[ReplacedMaster, ...]:
    # Before the request lists the instances to replace, every current instance is one of them.
    old_instances = request.get("instances")
    masters = (
        ReplacedMaster(
            slot=group.name,
            instances=tuple(
                instance.id
                for instance in group.instances
                if not instance.leaving and (old_instances is None or instance.id in old_instances)
            ),
        )
        for group in master_groups
    )
    return tuple(master for master in masters if master.instances)


def _format_age(seconds: float) -> str:
    """Return a duration in its largest unit, e.g. `3 hours`."""
    for unit, unit_seconds in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= unit_seconds:
            return pluralize(int(seconds // unit_seconds), unit)
    return pluralize(max(int(seconds), 0), "second")
