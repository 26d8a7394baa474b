"""Pauses a cluster: keeps the sizes of its Auto Scaling groups in tags, and terminates all instances.

    check -> plan -> consent -> snapshot of etcd -> keep all sizes -> nodes -> masters and bastion

Every step finds out what is left to do, so the same command continues a pause that was interrupted at any point.
Masters go last: while they work, Kubernetes removes the Nodes, and drains end (boot/node/drain.py) because no other
node can run the pods. Volumes, network interfaces and addresses of masters stay.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from cfngen.cluster.model import Cluster
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.groups import NO_INSTANCES, GroupView, find_groups
from cfngen.deploy.aws.pause import PauseState, find_pause
from cfngen.deploy.aws.snapshots import REQUEST_KEY, BackupsOffError, SnapshotStore, find_store
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Notice, Question, Step
from cfngen.deploy.messages.next_steps import as_hint, next_steps
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations.etcd.backup import NoAnswerError, take_snapshot
from cfngen.deploy.operations.etcd.restore import RestoreInProgressError
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.pausing import group_changes
from cfngen.deploy.operations.pausing.group_changes import find_scheduled_actions
from cfngen.deploy.operations.pausing.reports import GroupPlan, Paused, PausePlan, PauseProgress, RemainingInstances
from cfngen.deploy.operations.runner import Operation, rounds
from cfngen.deploy.plan.costs.costs import read_remaining_costs
from cfngen.deploy.preflight.pausing import CannotPauseError, check_groups_exist, check_pausable
from cfngen.deploy.preflight.stack_checks import require_idle_stack
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import minutes_text, pluralize

POLL_INTERVAL_SECONDS = 10.0
DRAIN_PATIENCE = timedelta(minutes=2)
"""Drains end by themselves within seconds, if the API server answers; after this time they are ended."""
TERMINATION_TIMEOUT = timedelta(minutes=30)
"""An instance takes some minutes to be terminated."""


class PauseTimeoutError(CfngenError):
    """Instances are still there after the timeout."""

    code = "pause-timeout"


class PauseInterruptedError(CfngenError):
    """The user interrupted the command."""

    code = "pause-interrupted"


def pause(
    account: Account,
    stack_name: str,
    cluster: Cluster,
    interaction: Interaction,
    *,
    snapshot: bool = True,
    timeout: timedelta = TERMINATION_TIMEOUT,
) -> Paused:
    """Pause a cluster, after confirmation; continue a pause that was interrupted.

    Args:
        snapshot: whether to take a snapshot of etcd first, if the cluster has a bucket for snapshots.
        timeout: how long to wait until the nodes are terminated, and then until the masters are.

    Raises:
        NoStackError: there is no stack of this name.
        ForeignStackError: the stack belongs to another cluster.
        BusyError: a CloudFormation operation is in progress.
        CannotPauseError: the stack is not healthy, or instances would go on running.
        RestoreInProgressError: a snapshot of etcd is being restored.
        NoAnswerError: no master took the snapshot of etcd; nothing was changed.
        DeclinedError: the user declined.
        PauseTimeoutError: instances are still there after the timeout; the same command continues.
        PauseInterruptedError: the user interrupted the command; the same command continues.
        AwsError: a call failed; the same command continues.
    """
    with translate_aws_errors():
        stack = _require_pausable_stack(account, stack_name, cluster)
        return _Pausing(account, stack, cluster, interaction.report, interaction.consent, snapshot, timeout).run()


def _require_pausable_stack(account: Account, stack_name: str, cluster: Cluster) -> StackView:
    stack = require_idle_stack(account, stack_name, cluster.name, updates=True)
    if stack.status.health is not StackHealth.HEALTHY:
        raise CannotPauseError(
            f"nothing was changed: the stack {stack.name} is in {stack.status}",
            hint=as_hint(next_steps(stack.status, stack.name)),
        )
    return stack


@dataclass
class _Pausing(Operation):
    snapshot: bool
    timeout: timedelta

    def run(self) -> Paused:
        groups = self._check_groups()
        current_pause = find_pause(groups)
        if current_pause and current_pause.complete and len(current_pause.groups) == len(groups):
            return self._result(current_pause, changed=False)
        store = self._find_snapshot_store()
        has_master = any(group.in_service for group in groups if group.role == "master")
        takes_snapshot = store is not None and self.snapshot and current_pause is None and has_master
        question = "Continue to pause" if current_pause else "Pause"
        self.carry_out(
            self._plan(groups, current_pause, takes_snapshot=takes_snapshot),
            Question(f"{question} {self.cluster.name}?"),
            lambda: self._take_steps(store if takes_snapshot else None),
            PauseInterruptedError(
                f"the pause of {self.cluster.name} was interrupted; instances that are being terminated still are",
                hint=CommandText(suggest("pause"), " continues it; ", suggest("resume"), " ends it."),
            ),
            notices=find_scheduled_actions(self.account, groups),
        )
        final_pause = find_pause(self._groups())
        # The tags were written before the sizes were changed, and only `resume` removes them.
        return self._result(final_pause or PauseState(None, complete=True, groups=()), changed=True)

    def _take_steps(self, store: SnapshotStore | None) -> None:
        if store:
            self._take_snapshot(store)
        self._keep_sizes()
        self._stop("node")
        self._stop("master", "bastion")

    def _groups(self) -> tuple[GroupView, ...]:
        return find_groups(self.account, self.cluster, self.resources)

    def _check_groups(self) -> tuple[GroupView, ...]:
        groups = self._groups()
        check_groups_exist(groups, self.stack.name)
        check_pausable(self.account, groups)
        return groups

    def _plan(
        self, groups: Sequence[GroupView], current_pause: PauseState | None, *, takes_snapshot: bool
    ) -> PausePlan:
        instance_count = sum(len(group.instances) for group in groups)
        terminated = f"{pluralize(instance_count, 'instance', 'are')} terminated, the masters last"
        consequences = [
            f"{terminated}; what pods have written to the disks of instances is lost",
            "pods are not moved to other nodes, and PodDisruptionBudgets do not count, since everything goes",
            "etcd's data, the masters' volumes and addresses, volumes of claims and load balancers stay",
        ]
        if not takes_snapshot and current_pause is None:
            consequences.append("no snapshot of etcd is taken first")
        return PausePlan(
            cluster=self.cluster.name,
            region=self.account.region,
            account=self.account.id,
            pause=current_pause,
            groups=tuple(_group_plan(group) for group in groups),
            snapshot=takes_snapshot,
            consequences=tuple(consequences),
        )

    def _find_snapshot_store(self) -> SnapshotStore | None:
        """Return the store of etcd's snapshots; None if the cluster has none.

        Raises:
            RestoreInProgressError: a snapshot is being restored, which needs the masters.
        """
        try:
            store = find_store(self.account, self.stack.name, self.cluster)
        except BackupsOffError:
            return None
        if restoring := store.read(REQUEST_KEY):
            raise RestoreInProgressError(
                f"nothing was changed: {self.cluster.name} is being restored from {restoring.get('snapshot', '')}",
                hint=CommandText(suggest("etcd restore"), " continues the restore."),
            )
        return store

    def _take_snapshot(self, store: SnapshotStore) -> None:
        try:
            self.report(take_snapshot(store, self.report))
        except NoAnswerError as error:
            hint = CommandText(suggest("pause", "--no-snapshot"), " pauses without one; or ", error.hint)
            raise NoAnswerError(f"nothing was changed: {error}", hint=hint) from error

    def _keep_sizes(self) -> None:
        """Write the sizes of all groups into their tags, before the first size is changed."""
        # While the user was answering, an operation may have begun, or an instance may have been protected.
        _require_pausable_stack(self.account, self.stack.name, self.cluster)
        groups = self._check_groups()
        if any(group.kept is None for group in groups):
            self.report(Step(f"keeping the sizes of {pluralize(len(groups), 'Auto Scaling group')} in their tags"))
        for group in groups:
            group_changes.keep_sizes(self.account, group, self.account.clock.now())

    def _stop(self, *roles: str) -> None:
        """Set the sizes of the groups of these roles to nothing, and wait until their instances are terminated."""

        def current_groups() -> tuple[GroupView, ...]:
            return tuple(group for group in self._groups() if group.role in roles)

        groups = current_groups()
        if instances := group_changes.describe_instances((group, len(group.instances)) for group in groups):
            self.report(Step(f"terminating {instances}"))
        for group in groups:
            group_changes.set_sizes(self.account, group, NO_INSTANCES)
        self._wait_until_empty(current_groups)

    def _wait_until_empty(self, current_groups: Callable[[], tuple[GroupView, ...]]) -> None:
        previous: tuple[RemainingInstances, ...] = ()
        has_ended_drains = False
        for elapsed in rounds(self.account.clock, self.timeout, POLL_INTERVAL_SECONDS):
            groups = [group for group in current_groups() if group.instances]
            remaining = tuple(_remaining_instances(group) for group in groups)
            if remaining and remaining != previous:
                self.report(PauseProgress(remaining=remaining, seconds=self.seconds))
            previous = remaining
            if not groups:
                return
            check_pausable(self.account, groups, has_begun=True)  # an instance may have been protected meanwhile
            # No master waits for the others: they all go.
            group_changes.end_delays(self.account, [group for group in groups if group.role == "master"])
            if elapsed >= DRAIN_PATIENCE and any(instances.draining for instances in remaining):
                count = group_changes.end_delays(self.account, [group for group in groups if group.role == "node"])
                if count and not has_ended_drains:
                    has_ended_drains = True
                    patience = minutes_text(DRAIN_PATIENCE.total_seconds())
                    text = f"{pluralize(count, 'node')} could not be drained within {patience}"
                    self.report(Notice(text, "they are terminated all the same, since the whole cluster is paused."))
        raise self._timeout_error(groups)

    def _timeout_error(self, groups: Sequence[GroupView]) -> PauseTimeoutError:
        states = [
            f"{instance.id} of {group.title} is {instance.lifecycle_and_health}"
            for group in groups
            for instance in group.instances
        ]
        return PauseTimeoutError(
            f"not all instances are terminated after {minutes_text(self.timeout.total_seconds())}: {'; '.join(states)}",
            hint=CommandText(suggest("pause"), " continues; ", suggest("resume"), " ends the pause."),
        )

    def _result(self, pause_state: PauseState, *, changed: bool) -> Paused:
        seconds = self.seconds
        return Paused(
            cluster=self.cluster.name,
            pause=pause_state,
            changed=changed,
            seconds=seconds,
            costs=read_remaining_costs(self.account, self.stack, self.cluster, self.report),
        )


def _group_plan(group: GroupView) -> GroupPlan:
    kept_sizes = group.kept.sizes if group.kept else None
    sizes = kept_sizes or group.sizes
    note = ""
    # The desired capacity may have been changed by cluster-autoscaler, the limits only by a person.
    limits_now, kept_limits = (group.minimum, group.maximum), (sizes.minimum, sizes.maximum)
    if kept_sizes and limits_now not in (kept_limits, (0, 0)):
        note = f"now {group.sizes}, set since the pause began; not kept"
    return GroupPlan.of(group, sizes, note)


def _remaining_instances(group: GroupView) -> RemainingInstances:
    return RemainingInstances(
        role=group.role,
        name=group.name,
        count=len(group.instances),
        draining=sum(group.role == "node" and instance.held for instance in group.instances),
    )
