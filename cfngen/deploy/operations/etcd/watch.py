"""Watches the replacement of the masters until the API is ready and each new instance is a Ready node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import ClassVar, NamedTuple

from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import ApiUnreachableError
from cfngen.deploy.access.authorities import Authority
from cfngen.deploy.access.cluster_access import FindApiUrlOverride
from cfngen.deploy.aws import consoles, stacks
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.groups import GroupView
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Message, Report
from cfngen.deploy.operations.runner import BootFailures, rounds
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.text import minutes_text

POLL_INTERVAL_SECONDS = 10.0
CONSOLE_INTERVAL = timedelta(minutes=1)
TERMINATING, WAITING_FOR_INSTANCE, BOOTING, READY = "terminating", "waiting for an instance", "booting", "ready"


class RestoreFailedError(CfngenError):
    """The masters are not ready before the timeout."""

    code = "restore-timeout"


@dataclass(frozen=True)
class RestoringMaster:
    """A master's slot during a restore.

    Attributes:
        slot: its letter.
        instance: id of its current instance; empty if there is none.
        state: `terminating`, `waiting for an instance`, `booting` or `ready`.
    """

    slot: str
    instance: str
    state: str


@dataclass(frozen=True)
class RestoreProgress(Message):
    """The state of a restore; sent whenever it changes.

    Attributes:
        masters: every master.
        api: state of the Kubernetes API: `ready`, `not ready: …`, `does not answer`, or why it cannot be called.
    """

    kind: ClassVar[str] = "etcdRestoreProgress"
    masters: tuple[RestoringMaster, ...]
    api: str


class _ApiReading(NamedTuple):
    """The result of one attempt to read the Kubernetes API.

    Attributes:
        state: state of the API, as in `RestoreProgress.api`.
        ready_instances: ids of the instances that are Ready nodes; empty if the API could not be read.
        known_instances: ids of the instances that are nodes, Ready or not.
    """

    state: str
    ready_instances: frozenset[str] = frozenset()
    known_instances: frozenset[str] = frozenset()


class _ApiAccess(NamedTuple):
    """What is needed to connect to the Kubernetes API."""

    outputs: Mapping[str, str]
    authority: Authority


@dataclass
class MasterReplacement:
    """The masters of a cluster while they are replaced.

    Attributes:
        find_groups: returns the masters' Auto Scaling groups as they are now.
    """

    account: Account
    stack: StackView
    find_groups: Callable[[], tuple[GroupView, ...]]
    old_instances: Collection[str]
    find_url_override: FindApiUrlOverride
    report: Report

    def wait(self, timeout: timedelta) -> frozenset[str]:
        """Return as soon as every master and the API are ready: the ids of the instances that have Nodes."""
        boot_failures = BootFailures(self.account, self.report)
        last_console_read = timedelta(0)
        previous: RestoreProgress | None = None
        for elapsed in rounds(self.account.clock, timeout, POLL_INTERVAL_SECONDS):
            groups = self.find_groups()
            api = self._read_api_of(groups)
            progress = self._progress(groups, api)
            if progress != previous:
                self.report(progress)
                previous = progress
            if progress.api == READY and all(master.state == READY for master in progress.masters):
                return api.known_instances
            if elapsed - last_console_read >= CONSOLE_INTERVAL:
                last_console_read = elapsed
                for master in progress.masters:
                    if master.state == BOOTING:
                        boot_failures.report_new(f"master {master.slot}", master.instance)
        raise self._timeout_error(groups, progress, elapsed)

    def _read_api_of(self, groups: tuple[GroupView, ...]) -> _ApiReading:
        # An old master may still serve the API, so the API is only called once all old masters are terminated.
        is_terminating = any(instance.id in self.old_instances for group in groups for instance in group.instances)
        return _ApiReading("is shutting down") if is_terminating else self._read_api()

    def _progress(self, groups: tuple[GroupView, ...], api: _ApiReading) -> RestoreProgress:
        return RestoreProgress(
            masters=tuple(self._master_state(group, api.ready_instances) for group in groups), api=api.state
        )

    def _master_state(self, group: GroupView, ready_instances: Collection[str]) -> RestoringMaster:
        new_instances = [
            instance for instance in group.instances if instance.id not in self.old_instances and not instance.leaving
        ]
        if not new_instances:
            old_instance = next((instance.id for instance in group.instances), "")
            return RestoringMaster(
                slot=group.name, instance=old_instance, state=TERMINATING if old_instance else WAITING_FOR_INSTANCE
            )
        # Auto Scaling reports InService as soon as the instance runs; the master is ready when its Node is Ready.
        is_ready = new_instances[0].in_service and new_instances[0].id in ready_instances
        return RestoringMaster(slot=group.name, instance=new_instances[0].id, state=READY if is_ready else BOOTING)

    def _read_api(self) -> _ApiReading:
        try:
            outputs, authority = self._api_access
            endpoint = cluster_access.find_api_endpoint(self.stack, outputs, self.find_url_override)
            with cluster_access.connect_as_administrator(
                endpoint, authority, self.account.caller, self.account.clock.now()
            ) as api:
                readiness = api.readiness()
                is_ready = {node.instance_id or node.name: node.ready for node in api.nodes()}
        except ApiUnreachableError:
            return _ApiReading("does not answer")
        except CfngenError as error:
            return _ApiReading(str(error))
        state = READY if readiness.ready else f"not ready: {', '.join(readiness.failing)}"
        ready_instances = frozenset(instance_id for instance_id, ready in is_ready.items() if ready)
        return _ApiReading(state, ready_instances, frozenset(is_ready))

    @cached_property
    def _api_access(self) -> _ApiAccess:
        """The stack's outputs and the API's certificate authority; a restore changes neither."""
        outputs = stacks.read_outputs(self.account, self.stack)
        return _ApiAccess(outputs, cluster_access.find_authority(self.account, self.stack, outputs))

    def _timeout_error(
        self, groups: tuple[GroupView, ...], progress: RestoreProgress, elapsed: timedelta
    ) -> RestoreFailedError:
        problems = [f"master {master.slot} is {master.state}" for master in progress.masters if master.state != READY]
        if progress.api != READY:
            problems.append(f"the API: {progress.api}")
        slots_without_instance = {master.slot for master in progress.masters if master.state == WAITING_FOR_INSTANCE}
        for group in groups:
            if group.name in slots_without_instance:
                problems += consoles.read_launch_failures(self.account, group.id)[:1]
        return RestoreFailedError(
            f"not every master is ready after {minutes_text(elapsed.total_seconds())}: {'; '.join(problems)}",
            hint=CommandText(
                suggest("etcd restore"),
                (
                    " continues waiting; the console output of a master shows its progress: aws ec2 get-console-output "
                    f"--latest --region {self.account.region} --output text --instance-id ID."
                ),
            ),
        )
