"""The way back to a snapshot: a request in the bucket, new masters for all slots, and a look until they work.

The masters do it themselves as they boot: one that finds a request which its volume has not seen puts the snapshot in
the place of etcd's data. So each may be replaced at any time, and the command can be interrupted and repeated: what is
left to do follows from the request, which lies in the bucket until every master works.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from cfngen.cluster.model import Cluster
from cfngen.cluster.names import auto_scaling_group, slot_id
from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.cluster_access import Override
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, error_code, translate_aws_errors
from cfngen.deploy.etcd.snapshots import LATEST, Snapshot, Store, chosen, store
from cfngen.deploy.etcd.watch import Masters
from cfngen.deploy.inspection.machines import Group, groups
from cfngen.deploy.messages import Consent, Message, Notice, Question, Report, Step
from cfngen.deploy.ownership import check
from cfngen.deploy.recovery import DeclinedError, busy
from cfngen.deploy.stacks import ResourceView, StackView, existing, tree
from cfngen.errors import CfngenError
from cfngen.text import join_and, pluralize

# The Auto Scaling groups of all slots that there can be.
_GROUPS = frozenset(auto_scaling_group(slot_id(letter)) for letter in "abcde")
REQUEST = "restore.json"
MORE = timedelta(minutes=15)
"""What a restore may take beyond the time that an instance has to boot: the old ones must have gone before."""
INTERRUPTED = 130


class NoMastersError(CfngenError):
    """The stack has no masters that could be set back."""


class RestoreUnderWayError(CfngenError):
    """Another snapshot is being restored already."""


class RestoreLeftError(CfngenError):
    """The user has left a restore that goes on."""

    exit_code = INTERRUPTED


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
        account: number of the account.
        bucket: the bucket of the snapshots.
        snapshot: the snapshot that the cluster is set back to.
        masters: the masters that are replaced.
        pending: whether this goes on with a restore that was begun before.
        consequences: what it means, one sentence each.
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
    """Every master works on the snapshot.

    Attributes:
        cluster: name of the cluster.
        snapshot: the snapshot.
        seconds: how long it took.
    """

    kind: ClassVar[str] = "etcdRestored"
    cluster: str
    snapshot: Snapshot
    seconds: float


def restore(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    wanted: str = LATEST,
    *,
    consent: Consent,
    report: Report,
    override: Override = cluster_access.nowhere,
    patience: timedelta | None = None,
) -> Restored:
    """Set a cluster back to a snapshot, after consent; go on with it if that was begun before.

    Args:
        account: where it is.
        stack_name: name of its root stack.
        cluster: the cluster file.
        wanted: the snapshot, as `chosen` takes it; `latest` also means the one that is being restored already.
        consent: asks the user.
        report: told what is done.
        override: where the cluster's API really listens.
        patience: how long the masters may take; None follows from the cluster file.

    Raises:
        NoStackError: there is no stack.
        ForeignStackError: it is not this cluster's.
        BusyError: an operation of CloudFormation is under way.
        NoSnapshotError: there is no such snapshot.
        RestoreUnderWayError: another snapshot is being restored.
        DeclinedError: the user said no.
        RestoreFailedError: the masters do not work in time; the same command goes on.
        RestoreLeftError: the user interrupts it; it goes on, and the same command attaches again.
        AwsError: a call failed; the same command goes on.
    """
    with translate_aws_errors():
        stack = existing(account, stack_name)
        check(stack, cluster.name)
        if stack.status.in_progress:
            raise busy(account, stack)
        place = store(account, stack_name, cluster)
        return _Restore(account, stack, cluster, place, consent, report, override).run(wanted, patience)


class _Restore:
    def __init__(
        self,
        account: Account,
        stack: StackView,
        cluster: Cluster,
        place: Store,
        consent: Consent,
        report: Report,
        override: Override,
    ) -> None:
        self.account = account
        self.stack = stack
        self.cluster = cluster
        self.place = place
        self.consent = consent
        self.report = report
        self.override = override
        self.began = account.clock.now()
        self._slots: tuple[ResourceView, ...] = ()

    def run(self, wanted: str, patience: timedelta | None) -> Restored:
        """Restore."""
        request: Mapping[str, Any] = self.place.read(REQUEST)
        snapshot = self._snapshot(request, wanted)
        found = self._masters()
        plan = self._plan(snapshot, found, request)
        self.report(plan)
        text = f"{'Go on restoring' if request else 'Restore'} {self.cluster.name} from {snapshot.key}?"
        if not self.consent(Question(text, dangerous=True, name=self.cluster.name)):
            raise DeclinedError
        try:
            request = self._requested(request, snapshot)
            self._replace(request)
            self._watch(request, patience)
        except KeyboardInterrupt:
            raise RestoreLeftError(
                f"the restore of {self.cluster.name} goes on without cfngen, as far as it has come",
                hint="`cfngen etcd restore` attaches again, and sees it to its end.",
            ) from None
        self._finish()
        return Restored(self.cluster.name, snapshot, (self.account.clock.now() - self.began).total_seconds())

    def _snapshot(self, request: Mapping[str, Any], wanted: str) -> Snapshot:
        if not request:
            return chosen(self.place, wanted)
        going_on = chosen(self.place, str(request["snapshot"]))
        if wanted != LATEST and chosen(self.place, wanted).key != going_on.key:
            raise RestoreUnderWayError(
                f"{self.cluster.name} is being set back to {going_on.key} already",
                hint="`cfngen etcd restore` goes on with that; another snapshot can be restored when it has ended.",
            )
        return going_on

    def _masters(self) -> tuple[Group, ...]:
        # No operation is under way: what the stack has made stays what it is.
        self._slots = self._slots or tuple(
            each.view for each in tree(self.account, self.stack.id) if each.view.logical_id in _GROUPS
        )
        found = groups(self.account, self.cluster, self._slots)
        if not found or any(each.missing for each in found):
            raise NoMastersError(
                f"the stack {self.stack.name} ({self.stack.status}) has no masters that could be replaced",
                hint="`cfngen status` shows what there is; `cfngen deploy` makes it whole.",
            )
        return found

    def _plan(self, snapshot: Snapshot, found: tuple[Group, ...], request: Mapping[str, Any]) -> RestorePlan:
        going = _going(found, request)
        names = [f"{each.slot} ({', '.join(each.instances)})" for each in going]
        age = _age(snapshot.age)
        consequences = (
            f"what was written to Kubernetes since {snapshot.time:%Y-%m-%d %H:%M:%S} UTC, {age} ago, is lost",
            f"the instances of {pluralize(len(going), 'master')} are terminated and replaced: {join_and(names)}"
            if going
            else "every master's instance has been replaced already",
            "the Kubernetes API is down for some minutes; pods on nodes go on running",
            "volumes and load balancers stay as they are: of those made since then Kubernetes no longer knows",
        )
        return RestorePlan(
            self.cluster.name,
            self.account.region,
            self.account.id,
            self.place.bucket,
            snapshot,
            going,
            bool(request),
            consequences,
        )

    def _requested(self, request: Mapping[str, Any], snapshot: Snapshot) -> Mapping[str, Any]:
        """Write the request, and then into it which instances are older than it."""
        if not request:
            created = self.account.clock.now().isoformat()
            request = {"id": str(uuid.uuid4()), "snapshot": snapshot.key, "created": created}
            if sha256 := self.place.metadata(snapshot.key).get("sha256"):
                request["sha256"] = sha256
            self.report(Step(f"asking the masters to restore {snapshot.key} as they boot"))
            if not self.place.write(REQUEST, request, new=True):
                raise RestoreUnderWayError(
                    f"somebody else has begun to restore {self.cluster.name} just now",
                    hint="`cfngen etcd restore` shows from which snapshot, and goes on with it.",
                )
        if "instances" not in request:
            # Looked up only now: whatever is launched from here on finds the request.
            old = [instance.id for group in self._masters() for instance in group.instances]
            request = {**request, "instances": old}
            self.place.write(REQUEST, request)
        return request

    def _replace(self, request: Mapping[str, Any]) -> None:
        """Terminate the instances that are older than the request; their groups launch others."""
        from botocore.exceptions import ClientError

        scaling = self.account.client("autoscaling")
        for group in self._masters():
            for instance in group.instances:
                if instance.id not in request["instances"] or instance.leaving:
                    continue
                self.report(Step(f"terminating the instance of master {group.name}, {instance.id}"))
                try:
                    scaling.terminate_instance_in_auto_scaling_group(
                        InstanceId=instance.id, ShouldDecrementDesiredCapacity=False
                    )
                except ClientError as error:
                    # Auto Scaling has no code of its own for an instance that has gone meanwhile.
                    if error_code(error) != "ValidationError":
                        raise

    def _watch(self, request: Mapping[str, Any], patience: timedelta | None) -> None:
        longest = patience or timedelta(minutes=self.cluster.control_plane.creation_timeout) + MORE
        old = frozenset(request["instances"])
        Masters(self.account, self.stack, self._masters, old, self.override, self.report).wait(longest)

    def _finish(self) -> None:
        """Take the request away: no volume that is made later may be set back by it."""
        try:
            self.place.remove(REQUEST)
        except AwsError as error:
            where = f"s3://{self.place.bucket}/{self.place.prefix}{REQUEST}"
            hint = f"delete it: aws s3 rm {where}"
            self.report(Notice(f"the request {where} could not be deleted: {error}", hint))


def _going(found: tuple[Group, ...], request: Mapping[str, Any]) -> tuple[ReplacedMaster, ...]:
    """Return the instances that are still to be replaced."""
    old = request.get("instances")
    slots = (
        ReplacedMaster(
            group.name,
            tuple(
                instance.id
                for instance in group.instances
                if not instance.leaving and (old is None or instance.id in old)
            ),
        )
        for group in found
    )
    return tuple(slot for slot in slots if slot.instances)


def _age(seconds: float) -> str:
    """Return how long ago something was, in its greatest unit."""
    for noun, size in (("day", 86400), ("hour", 3600), ("minute", 60)):
        if seconds >= size:
            return pluralize(int(seconds // size), noun)
    return pluralize(max(int(seconds), 0), "second")
