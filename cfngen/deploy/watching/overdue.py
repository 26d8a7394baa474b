"""Says what an operation waits for if instances take longer than usual: which one, where it is, and until when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from cfngen.cluster.instances.rolling_updates import QUORUM_WAIT_MINUTES
from cfngen.cluster.naming.logical_ids import MasterId, NodeGroupId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.consoles import BOOT_SECONDS, read_group_consoles, read_launch_failures
from cfngen.deploy.aws.groups import HELD, describe_groups
from cfngen.deploy.aws.stacks import StackView, read_template
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Event, Notice
from cfngen.deploy.watching.evidence import TYPES_WITH_SIGNALS, ErrorsAsNotes, find_group
from cfngen.deploy.watching.expectations import DRAIN_SECONDS
from cfngen.deploy.watching.progress import ResourceProgress, StackProgress, is_overdue
from cfngen.hints import CommandText, Hint, suggest
from cfngen.text import minutes_text, pluralize

REPEAT_AFTER = timedelta(minutes=10)
"""How long after a notice about a resource the next one follows, as long as the resource is in progress."""
HOLD_AFTER = timedelta(seconds=45)
"""After which a master that still terminates is looked at: without need it goes within seconds."""
_DURATION = re.compile(r"PT(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+)S)?")


@dataclass
class OverdueResources:
    """Finds the resources of an operation that are overdue, and explains each now and then."""

    _account: Account
    _explained_at: dict[tuple[tuple[str, ...], str], datetime] = field(default_factory=dict, init=False)
    _held_ids: set[str] = field(default_factory=set, init=False)  # of masters whose wait has been reported

    def explain(
        self, stack: StackView, stacks: Iterable[StackProgress], events: Sequence[Event], now: datetime
    ) -> Iterator[Notice]:
        """Yield a notice for each resource that has become overdue, or has been for another while.

        A master that waits for the others before it is terminated gets a notice, too, and long before.

        Args:
            events: the events of the operation so far, oldest first.
        """
        for resource_stack in stacks:
            for resource in resource_stack.resources:
                if not resource.running or resource.type not in TYPES_WITH_SIGNALS:
                    continue
                key = resource_stack.path, resource.logical_id
                about = [event for event in events if (event.path, event.logical_id) == key]
                wait = _Wait.of(resource, about[-1], now)
                yield from self._find_held_master(resource, wait, now)
                is_new = key not in self._explained_at or now - self._explained_at[key] >= REPEAT_AFTER
                if is_new and is_overdue((now - wait.since).total_seconds(), wait.usual_seconds):
                    self._explained_at[key] = now
                    yield Notice(self._describe(resource, wait, now), _way_to_end(stack, self._account.region))

    def _find_held_master(self, resource: ResourceProgress, wait: _Wait, now: datetime) -> Iterator[Notice]:
        """Yield a notice, once, if a master that is to be terminated waits until etcd has a quorum without it."""
        limit = HOLD_AFTER + timedelta(minutes=QUORUM_WAIT_MINUTES)
        if not MasterId.parse(resource.logical_id) or wait.is_creation or not HOLD_AFTER <= now - wait.since <= limit:
            return
        members: list[AwsObject] = []
        with ErrorsAsNotes():
            for group in describe_groups(self._account, [find_group(self._account, wait.last_event)]):
                members += group["Instances"]
        for member in members:
            if member["LifecycleState"] == HELD and member["InstanceId"] not in self._held_ids:
                self._held_ids.add(member["InstanceId"])
                yield Notice(
                    f"{_title(resource.logical_id)} ({member['InstanceId']}) waits up to {QUORUM_WAIT_MINUTES} minutes "
                    "before it is terminated: etcd has no quorum without it until the other masters work",
                    CommandText(suggest("validate cluster"), " names the master that does not work."),
                )

    def _describe(self, resource: ResourceProgress, wait: _Wait, now: datetime) -> str:
        signals = pluralize(resource.signals, "signal")
        if resource.signals_expected:
            signals = f"{resource.signals} of {pluralize(resource.signals_expected, 'signal')}"
        waited, usual = minutes_text((now - wait.since).total_seconds()), minutes_text(wait.usual_seconds)
        parts = [f"{_title(resource.logical_id)} is overdue: {signals} after {waited}, where {usual} are usual"]
        with ErrorsAsNotes():
            parts += self._find_causes(find_group(self._account, wait.last_event))
        with ErrorsAsNotes():
            if deadline := self._find_deadline(resource, wait):
                parts.append(f"CloudFormation gives up at about {deadline:%H:%M} UTC")
        return "; ".join(parts)

    def _find_causes(self, group: str) -> list[str]:
        """Return where the instances of a group are that have not signalled, or why there are none."""
        if not group:
            return []
        consoles = [console for console in read_group_consoles(self._account, group) if console.step]
        if consoles:
            return [f"{consoles[0].id}, {consoles[0].step}"]
        return list(read_launch_failures(self._account, group)[:1])

    def _find_deadline(self, resource: ResourceProgress, wait: _Wait) -> datetime | None:
        """Return when CloudFormation ends the wait; None if the template does not say it."""
        template = read_template(self._account, wait.last_event.stack_id)
        definition = template.get("Resources", {}).get(resource.logical_id, {})
        policy, timeout_name = definition.get("UpdatePolicy", {}).get("AutoScalingRollingUpdate", {}), "PauseTime"
        if wait.is_creation:
            policy, timeout_name = definition.get("CreationPolicy", {}).get("ResourceSignal", {}), "Timeout"
        if match := _DURATION.fullmatch(str(policy.get(timeout_name))):
            return wait.since + timedelta(**{unit: int(number or 0) for unit, number in match.groupdict().items()})
        return None


class _Wait(NamedTuple):
    """A wait for signals: a creation is one; an update is one for each batch, which begins with an event."""

    last_event: Event
    since: datetime
    usual_seconds: int
    is_creation: bool

    @classmethod
    def of(cls, resource: ResourceProgress, last_event: Event, now: datetime) -> _Wait:
        if resource.status.startswith("CREATE"):
            return cls(last_event, now - timedelta(seconds=resource.seconds), resource.expected, is_creation=True)
        return cls(last_event, last_event.time, BOOT_SECONDS + DRAIN_SECONDS, is_creation=False)


def _title(logical_id: str) -> str:
    if master := MasterId.parse(logical_id):
        return f"master {master.letter}"
    group = NodeGroupId.parse(logical_id)
    return f"node group {group.group}" if group else logical_id


def _way_to_end(stack: StackView, region: str) -> Hint:
    """Return how to end the operation of a stack; empty if CloudFormation cannot cancel it."""
    if not stack.status.can_be_ended:
        return ""
    offer = CommandText(
        "Ctrl-C here, or in ", suggest("watch", stack=stack.name), " on a terminal, offers to cancel it"
    )
    if not stack.status.cancellable:
        return CommandText(offer, ".")
    command = f"aws cloudformation cancel-update-stack --region {region} --stack-name {stack.name}"
    return CommandText(offer, f"; so does `{command}` at once.")
