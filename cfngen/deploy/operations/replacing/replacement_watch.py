"""Watches a group until its new instance works: as a Ready Node, and for a master with a ready etcd member and API."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from datetime import timedelta

from cfngen.deploy.aws import consoles
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.groups import GroupView, InstanceView
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.operations.replacing.messages import (
    BOOTING,
    DRAINING,
    READY,
    TERMINATING,
    WAITING_FOR_INSTANCE,
    ReplacementFailedError,
    ReplacementProgress,
)
from cfngen.deploy.operations.runner import BootFailures, rounds
from cfngen.deploy.status.cluster_problems import KubernetesReading, Problem, why_not_working
from cfngen.deploy.watching.evidence import sold_out_hint
from cfngen.deploy.watching.reasons import explain_reason, is_lack_of_capacity
from cfngen.hints import CommandText, Hint, SuggestedCommand
from cfngen.text import minutes_text

POLL_INTERVAL_SECONDS = 10.0
CONSOLE_INTERVAL = timedelta(minutes=1)
# A launch fails as long as the old instance has the slot's interface, or its place in the capacity reservation.
_WHILE_OLD_INSTANCE_LEAVES = re.compile(r"Interface: \[\S+\] in use|requested reservation")


@dataclass
class ReplacementWatch:
    """A group while one of its instances is replaced.

    Attributes:
        title: what is replaced, e.g. `master a`.
        zone: the zone in which it launches; empty if there are several.
        old_ids: ids of the instances that the group had at the beginning and that are to go.
        read_kubernetes: returns what the Kubernetes API says now; None if the instance is not a Node.
        needed_count: how many instances of the group must work at the end.
        command: the command that continues to wait.
    """

    account: Account
    title: str
    instance_type: str
    zone: str
    old_ids: Collection[str]
    find_group: Callable[[], GroupView]
    read_kubernetes: Callable[[], KubernetesReading | Problem] | None
    needed_count: int
    report: Report
    command: SuggestedCommand
    _reported_failures: set[str] = field(default_factory=set, init=False)

    def wait(self, timeout: timedelta) -> InstanceView:
        """Return the new instance as soon as it works."""
        boot_failures = BootFailures(self.account, self.report)
        last_console_read = timedelta(0)
        previous: ReplacementProgress | None = None
        for elapsed in rounds(self.account.clock, timeout, POLL_INTERVAL_SECONDS):
            group = self.find_group()
            new_instance, progress = self._read_progress(group)
            if progress != previous:
                self.report(progress)
                previous = progress
            if new_instance and progress.state == READY:
                return new_instance
            if progress.state == WAITING_FOR_INSTANCE:
                self._report_launch_failure(group)
            elif progress.state == BOOTING and elapsed - last_console_read >= CONSOLE_INTERVAL:
                last_console_read = elapsed
                boot_failures.report_new(self.title, progress.instance)
        raise self._timeout_error(group, progress, elapsed, has_failed=bool(boot_failures.reported))

    def _read_progress(self, group: GroupView) -> tuple[InstanceView | None, ReplacementProgress]:
        old = next((instance for instance in group.instances if instance.id in self.old_ids), None)
        staying = [instance for instance in group.instances if instance.id not in self.old_ids and not instance.leaving]
        if old:
            state = DRAINING if old.held and group.role == "node" else TERMINATING
            return None, ReplacementProgress(self.title, state, old.id)
        if len(staying) < self.needed_count:
            return None, ReplacementProgress(self.title, WAITING_FOR_INSTANCE)
        newest = max(staying, key=lambda instance: (instance.launched is not None, instance.launched, instance.id))
        reason = self._why_not_ready(group.role, staying, newest)
        return newest, ReplacementProgress(self.title, BOOTING if reason else READY, newest.id, reason)

    def _why_not_ready(self, role: str, staying: Collection[InstanceView], newest: InstanceView) -> str:
        """Return what is still missing; empty if enough instances of the group work."""
        if self.read_kubernetes is None:
            return "" if newest.in_service else f"it is {newest.lifecycle_and_health}"
        if not newest.in_service:
            return f"it is {newest.lifecycle_and_health}"
        reading = self.read_kubernetes()
        if isinstance(reading, Problem):
            return reading.sentence
        nodes = reading.nodes_by_instance_id
        if former_ids := [instance_id for instance_id in self.old_ids if instance_id in nodes]:
            return f"the Node of {former_ids[0]}, which is gone, is still there"
        if role == "master":
            if not reading.readiness.ready:
                return f"the API is not ready: {', '.join(reading.readiness.failing)}"
            return why_not_working(newest, reading)
        ready_count = sum(
            1 for instance in staying if instance.in_service and instance.id in nodes and nodes[instance.id].ready
        )
        if ready_count >= self.needed_count:
            return ""
        node = nodes.get(newest.id)
        return f"its Node is not Ready ({node.reason})" if node else "it has not registered its Node yet"

    def _report_launch_failure(self, group: GroupView) -> None:
        for failure in consoles.read_launch_failures(self.account, group.id)[:1]:
            if failure in self._reported_failures or _WHILE_OLD_INSTANCE_LEAVES.search(failure):
                continue
            self._reported_failures.add(failure)
            self.report(Notice(f"{self.title}: {failure}", self._launch_hint(group, failure)))

    def _launch_hint(self, group: GroupView, failure: str) -> Hint:
        if group.role == "master" and is_lack_of_capacity(failure):
            return sold_out_hint(self.account, group.name, self.instance_type, self.zone)
        return explain_reason(failure, self.account.region).hint

    def _timeout_error(
        self, group: GroupView, progress: ReplacementProgress, elapsed: timedelta, *, has_failed: bool
    ) -> ReplacementFailedError:
        detail = progress.detail
        hint: Hint = CommandText(self.command, " continues to wait.")
        if progress.state == WAITING_FOR_INSTANCE:
            for failure in consoles.read_launch_failures(self.account, group.id)[:1]:
                detail = failure
                hint = self._launch_hint(group, failure) or hint
        elif progress.instance:
            does = "offers to replace it again" if has_failed else "continues to wait"
            hint = CommandText(
                self.command,
                (
                    f" {does}; the console output shows its boot: "
                    f"aws ec2 get-console-output --latest --region {self.account.region} --output text --instance-id "
                    f"{progress.instance}."
                ),
            )
        suffix = f": {detail}" if detail else ""
        return ReplacementFailedError(
            f"{self.title} is {progress.state} after {minutes_text(elapsed.total_seconds())}{suffix}", hint=hint
        )
