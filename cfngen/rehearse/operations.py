"""The record of one operation; the emulator's records and AWS's have the same form and can be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from cfngen.cluster.naming.logical_ids import ProgramId
from cfngen.cluster.naming.network_ids import SubnetId, ZoneId, zone_id
from cfngen.deploy.aws.templates import nested_template_names
from cfngen.deploy.messages.message import Event
from cfngen.rehearse.masking import Masks
from cfngen.templates.document import Document, TemplateBody

STACK_ITSELF = "(stack)"
"""The name that stands for the resource in events about a stack itself."""
ROUTINE_REASONS = ("Resource creation Initiated", "Eventual consistency check initiated", "User Initiated")
"""Routine status reasons, which are not compared."""


@dataclass(frozen=True)
class OperationEvent:
    """An event of an operation, without anything that identifies the account.

    Attributes:
        resource: logical ids from the root to the resource, e.g. `VpcStack/Vpc`; the last part is `(stack)` for events
            about a stack itself.
        type: e.g. `AWS::EC2::VPC`.
        status: the resource status.
        reason: the status reason, masked; often empty.
        seconds: seconds since the operation's first event.
    """

    resource: str
    type: str
    status: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class DescribedChangeSet:
    """How CloudFormation described the change set of one stack, masked; of long texts only the length.

    Attributes:
        stack: logical id of the nested stack, e.g. `MasterStack`; empty for the root.
        with_values: each `ResourceChange` that DescribeChangeSet lists with `IncludePropertyValues`, by logical id.
        without_values: those that it lists without.
    """

    stack: str
    with_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    without_values: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Operation:
    """An operation on the rehearsal's stack, and its result.

    Attributes:
        name: name of the operation, e.g. `create`.
        status: the root stack's final status; `planned` for a change set that was not executed; empty if the operation
            did not end.
        seconds: how long it took.
        events: the events, oldest first.
        changes: the changes in the change set, e.g. `add VpcStack/Vpc (AWS::EC2::VPC)`.
        facts: what was observed afterwards; compared with the emulator.
        remarks: what is worth reading but not compared, such as launches that were retried.
        error: the error that ended the operation early; empty if none did.
        change_sets: its change sets, the root's first, as CloudFormation described them.
    """

    name: str
    status: str = ""
    seconds: float = 0.0
    events: tuple[OperationEvent, ...] = ()
    changes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    error: str = ""
    change_sets: tuple[DescribedChangeSet, ...] = ()


class NameNormalizer:
    """Normalizes logical ids, so that they are the same in all regions and for all versions of the boot program.

    Args:
        zones: the zones of the rehearsal: the subnet in the first zone is called `SubnetA`, whatever the zone's name.
    """

    def __init__(self, zones: Sequence[str]) -> None:
        self._letters = {zone_id(zone): letter for zone, letter in zip(zones, "ABC", strict=False)}

    def __call__(self, logical_id: str) -> str:
        """Return a logical id without the boot program's digest, and with the letter A, B or C instead of the zone."""
        if program := ProgramId.parse(logical_id):
            return str(replace(program, digest=""))
        in_zone = SubnetId.parse(logical_id) or ZoneId.parse(logical_id)
        if in_zone is None:
            return logical_id
        return str(replace(in_zone, zone=self._letters.get(in_zone.zone, in_zone.zone)))

    def path(self, logical_ids: Iterable[str]) -> str:
        """Return the normalized name of a resource."""
        return "/".join(map(self, logical_ids))


def template_bodies(documents: Sequence[Document]) -> dict[tuple[str, ...], TemplateBody]:
    """Return the template of each stack by its path, the logical ids from the root; empty if there is no root."""
    root = next((document for document in documents if document.children), None)
    if root is None:
        return {}
    by_name = {document.name: document.body for document in documents}
    bodies: dict[tuple[str, ...], TemplateBody] = {(): root.body}
    return bodies | {(logical_id,): by_name[name] for logical_id, name in nested_template_names(root.body).items()}


def recorded_events(events: Sequence[Event], names: NameNormalizer, masks: Masks) -> tuple[OperationEvent, ...]:
    """Return the events of an operation, oldest first and masked."""
    ordered = sorted(events, key=lambda event: event.time)
    return tuple(
        OperationEvent(
            resource=names.path((*event.path, STACK_ITSELF if event.of_stack else event.logical_id)),
            type=event.type,
            status=event.status,
            reason=masks(event.reason),
            seconds=(event.time - ordered[0].time).total_seconds(),
        )
        for event in ordered
    )


def status_transitions(events: Sequence[OperationEvent]) -> dict[str, tuple[str, ...]]:
    """Return the statuses that each resource went through, by the resource's name.

    CloudFormation repeats a status in several events with different reasons; only changes of status count.
    """
    statuses_by_resource: dict[str, list[str]] = {}
    for event in events:
        statuses = statuses_by_resource.setdefault(event.resource, [])
        if not statuses or statuses[-1] != event.status:
            statuses.append(event.status)
    return {name: tuple(statuses) for name, statuses in statuses_by_resource.items()}
