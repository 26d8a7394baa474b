"""Compare what AWS did with what the emulator does, event by event.

A *surprise* is a difference that ends the rehearsal: the stack's final status, a missing or unexpected resource, the
statuses of a resource, a change in a change set, an order that the templates do not allow, or a fact observed
afterwards. A *remark* is a difference that does not matter: the text of a reason, or the time an operation took.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from cfngen.rehearse.expectations import ExpectedOperation
from cfngen.rehearse.masking import without_numbers
from cfngen.rehearse.operations import (
    ROUTINE_REASONS,
    NameNormalizer,
    Operation,
    OperationEvent,
    status_transitions,
    template_bodies,
)
from cfngen.templates.document import Document
from cfngen.templates.expressions import references

SLOW_FACTOR = 3
"""Factor: an operation gets a remark if it takes longer than its estimated time multiplied by this."""


@dataclass(frozen=True)
class Surprise:
    """A difference between AWS and the emulator that ends the rehearsal.

    Attributes:
        about: what the difference is about: `status`, `event`, `order`, `change`, `fact` or `error`.
        what: what differs, e.g. the resource `VpcStack/Vpc` or the operation `create`.
        expected: what the emulator does.
        seen: what AWS did.
    """

    about: str
    what: str
    expected: str
    seen: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}; seen {self.seen}"


def find_surprises(
    expected: ExpectedOperation, actual: Operation, documents: Sequence[Document], names: NameNormalizer
) -> list[Surprise]:
    """Return the differences that end the rehearsal.

    Args:
        documents: the templates that were deployed; if empty, the order of events is not compared.
    """
    return [
        *_final_status_surprises(expected, actual),
        *_transition_surprises(expected, actual),
        *_order_surprises(actual.events, documents, names),
        *_change_surprises(expected, actual),
        *_fact_surprises(expected, actual),
    ]


def find_remarks(expected: ExpectedOperation, actual: Operation, minutes: int) -> list[str]:
    """Return the differences that do not matter, after the operation's own remarks.

    Args:
        minutes: how long such an operation usually takes.
    """
    differences = list(actual.remarks)
    if actual.seconds > 60 * SLOW_FACTOR * max(1, minutes):
        differences.append(f"{actual.name} took {actual.seconds / 60:.0f} minutes; it was estimated to take {minutes}")
    reported: set[str] = set()
    for event in actual.events:
        resource_and_status = f"{event.resource} {event.status}"
        reason = without_numbers(event.reason)
        expected_reasons = expected.reasons.get(resource_and_status, ())
        is_new = reason and reason not in expected_reasons and not event.reason.startswith(ROUTINE_REASONS)
        if is_new and f"{resource_and_status} {reason}" not in reported:
            reported.add(f"{resource_and_status} {reason}")
            emulator_says = "; ".join(expected_reasons) or "nothing"
            differences.append(f"{resource_and_status} says {event.reason!r}; the emulator says {emulator_says}")
    return differences


def _final_status_surprises(expected: ExpectedOperation, actual: Operation) -> Iterator[Surprise]:
    """Yield a surprise if AWS refused the operation, or if the root stack ended in another status."""
    if actual.error:
        yield Surprise(about="error", what=actual.name, expected=expected.status or "no stack", seen=actual.error)
    elif actual.status != expected.status:
        yield Surprise(
            about="status", what=actual.name, expected=expected.status or "no stack", seen=actual.status or "no stack"
        )


def _transition_surprises(expected: ExpectedOperation, actual: Operation) -> Iterator[Surprise]:
    """Yield the resources that went through other statuses, and those that are missing or unexpected."""
    statuses_by_resource = status_transitions(actual.events)
    first_seconds = {event.resource: event.seconds for event in reversed(actual.events)}
    missing = [name for name in expected.transitions if name not in statuses_by_resource]
    # Resources that failed first come first, so that a surprise comes before its consequences.
    by_time = sorted(
        statuses_by_resource, key=lambda resource: _failure_time(resource, actual.events, first_seconds[resource])
    )
    for name in by_time:
        expected_statuses = expected.transitions.get(name, ())
        if statuses_by_resource[name] != expected_statuses:
            unexpected = [
                event for event in actual.events if event.resource == name and event.status not in expected_statuses
            ]
            reasons = "; ".join(dict.fromkeys(event.reason for event in unexpected if event.reason))
            statuses = " → ".join(statuses_by_resource[name]) + (f" ({reasons})" if reasons else "")
            yield Surprise(
                about="event", what=name, expected=" → ".join(expected_statuses) or "no event", seen=statuses
            )
    for name in missing:
        yield Surprise(about="event", what=name, expected=" → ".join(expected.transitions[name]), seen="no event")


def _failure_time(name: str, events: Sequence[OperationEvent], first_event_seconds: float) -> tuple[float, int]:
    """Return a sort key for a resource: the time when it failed, or else the time of its first event."""
    failures = [event.seconds for event in events if event.resource == name and event.status.endswith("_FAILED")]
    return (min(failures), 0) if failures else (first_event_seconds, 1)


def _change_surprises(expected: ExpectedOperation, actual: Operation) -> Iterator[Surprise]:
    """Yield the changes that only one of the two change sets contains."""
    for change in sorted(set(expected.changes) - set(actual.changes)):
        yield Surprise(about="change", what="the change set", expected=change, seen="nothing of it")
    for change in sorted(set(actual.changes) - set(expected.changes)):
        yield Surprise(about="change", what="the change set", expected="nothing of it", seen=change)


def _fact_surprises(expected: ExpectedOperation, actual: Operation) -> Iterator[Surprise]:
    """Yield the observed facts that differ; a fact that was not observed counts as `nothing`."""
    for name in dict.fromkeys((*expected.facts, *actual.facts)):
        expected_value, actual_value = expected.facts.get(name, "nothing"), actual.facts.get(name, "nothing")
        if expected_value != actual_value:
            yield Surprise(about="fact", what=name, expected=expected_value, seen=actual_value)


def _order_surprises(
    events: Sequence[OperationEvent], documents: Sequence[Document], names: NameNormalizer
) -> Iterator[Surprise]:
    """Yield the resources whose creation or update started too early for their dependencies.

    A resource must start after its `DependsOn` resources are complete. Resources that it only refers to must at least
    have started: CloudFormation continues as soon as they are configured ("How we sped up AWS CloudFormation
    deployments with optimistic stabilization", AWS DevOps Blog, March 2024).
    """
    start_seconds: dict[str, float] = {}
    completion_seconds: dict[str, float] = {}
    for event in events:
        if event.status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
            start_seconds.setdefault(event.resource, event.seconds)
        elif event.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            completion_seconds.setdefault(event.resource, event.seconds)
    for resource, dependency, must_be_complete in _dependencies(documents, names):
        if resource not in start_seconds or dependency not in start_seconds:
            continue
        if must_be_complete:
            if completion_seconds.get(dependency, float("inf")) > start_seconds[resource]:
                yield Surprise(
                    about="order", what=resource, expected=f"begins once {dependency} is complete", seen="began before"
                )
        elif start_seconds[dependency] > start_seconds[resource]:
            yield Surprise(
                about="order", what=resource, expected=f"begins once {dependency} has begun", seen="began before"
            )


class _Dependency(NamedTuple):
    """A resource that depends on another one, which must be complete first (`DependsOn`), or only must have started."""

    resource: str
    depends_on: str
    must_be_complete: bool


def _dependencies(documents: Sequence[Document], names: NameNormalizer) -> Iterator[_Dependency]:
    """Yield the dependencies between resources of the same template; none if there is no root template."""
    for path, body in template_bodies(documents).items():
        resources = body["Resources"]
        for logical_id, resource in resources.items():
            depends_on_value = resource.get("DependsOn", ())
            depends_on = {depends_on_value} if isinstance(depends_on_value, str) else set(depends_on_value)
            referenced = {name for name, _ in references(resource.get("Properties", {})) if name in resources}
            resource_name = names.path((*path, logical_id))
            for dependency in sorted(depends_on):
                yield _Dependency(resource_name, names.path((*path, dependency)), must_be_complete=True)
            for dependency in sorted(referenced - depends_on - {logical_id}):
                yield _Dependency(resource_name, names.path((*path, dependency)), must_be_complete=False)
