"""What was seen of one operation: the same data for what the emulator does and for what AWS does."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from cfngen.cluster.logical_ids import zone_id
from cfngen.deploy.messages import Event
from cfngen.rehearse.masking import Masks

STACK = "(stack)"
"""Stands in the place of a resource for the stack's own events."""
CHATTER = ("Resource creation Initiated", "Eventual consistency check initiated", "User Initiated")
"""What CloudFormation says of the course of things and not of the thing."""
_PROGRAM = re.compile(r"^(.*Program)[0-9a-f]{12}$")


@dataclass(frozen=True)
class OperationEvent:
    """An event of an operation, without anything that names the account.

    Attributes:
        resource: logical ids from the root to the resource, e.g. `VpcStack/Vpc`; of a stack itself its last part is
            `(stack)`.
        type: e.g. `AWS::EC2::VPC`.
        status: as CloudFormation spells it.
        reason: why, masked; often empty.
        seconds: since the operation's first event.
    """

    resource: str
    type: str
    status: str
    reason: str
    seconds: float


@dataclass(frozen=True)
class Operation:
    """Something that was done to the rehearsal's stack, and what came of it.

    Attributes:
        name: what was done, e.g. `create`.
        status: the root's status at the end; `planned` for a change set that was only read; empty where it never came
            to an end.
        seconds: how long it took.
        events: what happened, in the order of time.
        changes: what the change set would do, e.g. `add VpcStack/Vpc (AWS::EC2::VPC)`.
        facts: what was found afterwards, by what was looked at.
        remarks: what deserves to be read though nothing is compared with it, such as launches that were tried again.
        error: the message of what ended it early; empty otherwise.
    """

    name: str
    status: str = ""
    seconds: float = 0.0
    events: tuple[OperationEvent, ...] = ()
    changes: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    remarks: tuple[str, ...] = ()
    error: str = ""


class Names:
    """Names of resources as they are in every region and with every program.

    Args:
        zones: the zones of the rehearsal: the subnet of the first is `SubnetA`, whatever the zone is called.
    """

    def __init__(self, zones: Sequence[str]) -> None:
        letters = {zone_id(zone): letter for zone, letter in zip(zones, "ABC", strict=False)}
        ids = "|".join(sorted(map(re.escape, letters), key=len, reverse=True))
        self._zone = re.compile(rf"^(Subnet|Zone)({ids})(?=[A-Z]|$)")
        self._letters = letters

    def __call__(self, logical_id: str) -> str:
        """Return a logical id without a program's digest, and with the zone's place for its letter."""
        logical_id = _PROGRAM.sub(r"\1", logical_id)
        return self._zone.sub(lambda match: match[1] + self._letters[match[2]], logical_id)

    def path(self, logical_ids: Iterable[str]) -> str:
        """Return the name of a resource by the logical ids that lead to it."""
        return "/".join(map(self, logical_ids))


def recorded_events(events: Sequence[Event], names: Names, masks: Masks) -> tuple[OperationEvent, ...]:
    """Return the events of an operation in the order of time, masked."""
    ordered = sorted(events, key=lambda event: event.time)
    return tuple(
        OperationEvent(
            resource=names.path((*event.path, STACK if event.of_stack else event.logical_id)),
            type=event.type,
            status=event.status,
            reason=masks(event.reason),
            seconds=(event.time - ordered[0].time).total_seconds(),
        )
        for event in ordered
    )


def transitions(events: Sequence[OperationEvent]) -> dict[str, tuple[str, ...]]:
    """Return the statuses that each resource went through.

    CloudFormation tells the same status several times, with other reasons: that something begins, that it is being
    looked after, that it has got its id. Only changes count.
    """
    found: dict[str, list[str]] = {}
    for event in events:
        statuses = found.setdefault(event.resource, [])
        if not statuses or statuses[-1] != event.status:
            statuses.append(event.status)
    return {name: tuple(statuses) for name, statuses in found.items()}
