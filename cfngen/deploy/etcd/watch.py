"""Watching masters come back: old instances go, new ones boot, the API answers, and each is a Ready Node."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar

from cfngen.deploy.access import cluster_access
from cfngen.deploy.access.api_connection import ApiUnreachableError
from cfngen.deploy.access.authorities import Authority
from cfngen.deploy.access.cluster_access import Override
from cfngen.deploy.account import Account
from cfngen.deploy.inspection.machines import Group
from cfngen.deploy.messages import Message, Notice, Report
from cfngen.deploy.stacks import StackView
from cfngen.deploy.watching import console_output
from cfngen.errors import CfngenError

PAUSE = 10.0  # seconds between two looks
LISTEN = 60.0  # seconds between two readings of the consoles
GOING, AWAITED, BOOTING, READY = "terminating", "waiting for an instance", "booting", "ready"


class RestoreFailedError(CfngenError):
    """The masters do not work in time."""


@dataclass(frozen=True)
class RestoringMaster:
    """A master's slot on its way back.

    Attributes:
        slot: its letter.
        instance: id of the instance that is in it now; empty if there is none.
        state: `terminating`, `waiting for an instance`, `booting` or `ready`.
    """

    slot: str
    instance: str
    state: str


@dataclass(frozen=True)
class RestoreProgress(Message):
    """Something has changed since the last look.

    Attributes:
        masters: every master.
        api: what the Kubernetes API says: `ready`, `not ready: …`, `does not answer`, or why it cannot be asked.
    """

    kind: ClassVar[str] = "etcdRestoreProgress"
    masters: tuple[RestoringMaster, ...]
    api: str


class Masters:
    """The masters of a cluster while they are replaced.

    Args:
        account: where they are.
        stack: the root.
        look: returns the groups of the masters as they are now.
        old: ids of the instances that must go.
        override: where the API really listens.
        report: told of every change.
    """

    def __init__(
        self,
        account: Account,
        stack: StackView,
        look: Callable[[], tuple[Group, ...]],
        old: Collection[str],
        override: Override,
        report: Report,
    ) -> None:
        self._account = account
        self._stack = stack
        self._look = look
        self._old = old
        self._override = override
        self._report = report
        self._heard: set[str] = set()
        self._found: tuple[Mapping[str, str], Authority] | None = None

    def wait(self, patience: timedelta) -> None:
        """Return when all of them work.

        Raises:
            RestoreFailedError: they do not in time.
            AwsError: a call failed.
        """
        clock = self._account.clock
        began, listened, last = clock.now(), 0.0, None
        while True:
            found = self._look()
            now = self._progress(found)
            if now != last:
                self._report(now)
                last = now
            if now.api == READY and all(master.state == READY for master in now.masters):
                return
            passed = (clock.now() - began).total_seconds()
            if passed - listened >= LISTEN:
                listened = passed
                self._listen(now)
            if passed >= patience.total_seconds():
                raise self._failed(found, now, passed)
            clock.sleep(PAUSE)

    def _progress(self, found: tuple[Group, ...]) -> RestoreProgress:
        # An old master may still answer: its word counts only when it has gone.
        going = any(instance.id in self._old for group in found for instance in group.instances)
        ready, api = (frozenset[str](), "is about to go down") if going else self._kubernetes()
        return RestoreProgress(tuple(self._master(each, ready) for each in found), api)

    def _master(self, group: Group, ready: Collection[str]) -> RestoringMaster:
        new = [instance for instance in group.instances if instance.id not in self._old and not instance.leaving]
        if not new:
            gone = next((instance.id for instance in group.instances), "")
            return RestoringMaster(group.name, gone, GOING if gone else AWAITED)
        # To Auto Scaling an instance is in service as soon as it runs: only its Node says that it works.
        works = new[0].in_service and new[0].id in ready
        return RestoringMaster(group.name, new[0].id, READY if works else BOOTING)

    def _kubernetes(self) -> tuple[frozenset[str], str]:
        """Return which instances are Ready Nodes, and what the API says of itself."""
        try:
            values, found = self._found = self._found or self._find()
            where = cluster_access.endpoint(self._stack, values, self._override)
            with cluster_access.connection(where, found, self._account.caller, self._account.clock.now()) as api:
                readiness = api.readiness()
                nodes = frozenset(node.instance_id or node.name for node in api.nodes() if node.ready)
        except ApiUnreachableError:
            return frozenset(), "does not answer"
        except CfngenError as error:
            return frozenset(), str(error)
        return nodes, READY if readiness.ready else f"not ready: {', '.join(readiness.failing)}"

    def _find(self) -> tuple[Mapping[str, str], Authority]:
        """Return the stack's outputs and the authority that the API trusts; a restore changes neither."""
        values = cluster_access.outputs(self._account, self._stack)
        return values, cluster_access.authority(self._account, self._stack, values)

    def _listen(self, now: RestoreProgress) -> None:
        """Pass on what a master says that fails to boot; it tries again by itself, each minute."""
        for master in now.masters:
            if master.state != BOOTING:
                continue
            words = console_output.of_instance(self._account, master.instance)
            said = [text for text in words.words if " FAILED after " in text]
            if words.failed and said and said[-1] not in self._heard:
                self._heard.add(said[-1])
                self._report(
                    Notice(f"master {master.slot} ({master.instance}): {said[-1]}", "it tries again each minute.")
                )

    def _failed(self, found: tuple[Group, ...], now: RestoreProgress, passed: float) -> RestoreFailedError:
        missing = [f"master {master.slot} is {master.state}" for master in now.masters if master.state != READY]
        missing += [] if now.api == READY else [f"the API: {now.api}"]
        waiting = {master.slot for master in now.masters if master.state == AWAITED}
        for group in found:
            if group.name in waiting:
                missing += console_output.launch_failures(self._account, group.id)[:1]
        return RestoreFailedError(
            f"not every master works after {passed / 60:.0f} minutes: {'; '.join(missing)}",
            hint="`cfngen etcd restore` goes on waiting; the console of a master says what it does: "
            f"aws ec2 get-console-output --latest --region {self._account.region} --output text --instance-id ID.",
        )
