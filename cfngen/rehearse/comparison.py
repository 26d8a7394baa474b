"""What differs between what AWS did and what the emulator does, event by event.

A *surprise* ends the rehearsal: another status, a resource that is missing or unexpected, one that went through other
statuses, another change in a change set, an order that the templates do not allow, another fact afterwards. A *remark*
does not: other words for the same thing, and times.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cfngen.deploy.publishing.publish import nested
from cfngen.deploy.references import references
from cfngen.rehearse.expectations import Expected
from cfngen.rehearse.masking import shape
from cfngen.rehearse.operations import CHATTER, Names, Operation, OperationEvent, transitions
from cfngen.templates.document import Document

SLOW = 3
"""How many times its usual time an operation may take before that is remarked on."""


@dataclass(frozen=True)
class Surprise:
    """Something that AWS did otherwise than the emulator.

    Attributes:
        about: `status`, `event`, `order`, `change`, `fact` or `error`.
        what: what it is about, e.g. the resource `VpcStack/Vpc`.
        expected: what the emulator does.
        seen: what AWS did.
    """

    about: str
    what: str
    expected: str
    seen: str

    def __str__(self) -> str:
        return f"{self.what}: expected {self.expected}; seen {self.seen}"


def surprises(expected: Expected, seen: Operation, documents: Sequence[Document], names: Names) -> list[Surprise]:
    """Return what differs in a way that ends the rehearsal.

    Args:
        expected: what the emulator does.
        seen: what happened.
        documents: the templates that were deployed; none for an order that is not compared.
        names: of resources.
    """
    return [
        *_ending(expected, seen),
        *_events(expected, seen),
        *_order(seen.events, documents, names),
        *_sets("change", "the change set", expected.changes, seen.changes),
        *_facts(expected, seen),
    ]


def remarks(expected: Expected, seen: Operation, minutes: int) -> list[str]:
    """Return what differs without weight, and what the operation itself remarks on.

    Args:
        expected: what the emulator does.
        seen: what happened.
        minutes: how long such an operation usually takes.
    """
    found = list(seen.remarks)
    if seen.seconds > 60 * SLOW * max(1, minutes):
        found.append(f"{seen.name} took {seen.seconds / 60:.0f} minutes; it was estimated to take {minutes}")
    told: set[str] = set()
    for event in seen.events:
        about = f"{event.resource} {event.status}"
        words = shape(event.reason)
        new = words and words not in expected.words.get(about, ()) and not event.reason.startswith(CHATTER)
        if new and f"{about} {words}" not in told:
            told.add(f"{about} {words}")
            known = "; ".join(expected.words.get(about, ())) or "nothing"
            found.append(f"{about} says {event.reason!r}; the emulator says {known}")
    return found


def _ending(expected: Expected, seen: Operation) -> Iterator[Surprise]:
    if seen.error:
        yield Surprise("error", seen.name, expected.status or "no stack", seen.error)
    elif seen.status != expected.status:
        yield Surprise("status", seen.name, expected.status or "no stack", seen.status or "no stack")


def _events(expected: Expected, seen: Operation) -> Iterator[Surprise]:
    happened = transitions(seen.events)
    first = {event.resource: event.seconds for event in reversed(seen.events)}
    # In the order in which it happened: what follows from a surprise comes after it.
    missing = [name for name in expected.transitions if name not in happened]
    for name in sorted(happened, key=lambda each: _failed_at(each, seen.events, first[each])):
        usual = expected.transitions.get(name, ())
        if happened[name] != usual:
            why = "; ".join(
                dict.fromkeys(
                    e.reason for e in seen.events if e.resource == name and e.reason and e.status not in usual
                )
            )
            statuses = " → ".join(happened[name]) + (f" ({why})" if why else "")
            yield Surprise("event", name, " → ".join(usual) or "no event", statuses)
    for name in missing:
        yield Surprise("event", name, " → ".join(expected.transitions[name]), "no event")


def _failed_at(name: str, events: Sequence[OperationEvent], first: float) -> tuple[float, int]:
    failures = [event.seconds for event in events if event.resource == name and event.status.endswith("_FAILED")]
    return (min(failures), 0) if failures else (first, 1)


def _sets(about: str, what: str, expected: Sequence[str], seen: Sequence[str]) -> Iterator[Surprise]:
    for each in sorted(set(expected) - set(seen)):
        yield Surprise(about, what, each, "nothing of it")
    for each in sorted(set(seen) - set(expected)):
        yield Surprise(about, what, "nothing of it", each)


def _facts(expected: Expected, seen: Operation) -> Iterator[Surprise]:
    for name in dict.fromkeys((*expected.facts, *seen.facts)):
        usual, actual = expected.facts.get(name, "nothing"), seen.facts.get(name, "nothing")
        if usual != actual:
            yield Surprise("fact", name, usual, actual)


def _order(events: Sequence[OperationEvent], documents: Sequence[Document], names: Names) -> Iterator[Surprise]:
    """Yield what began before that on which it depends, or went after it.

    What is named in `DependsOn` is complete before; what is only referred to has at least begun, since CloudFormation
    goes on as soon as a resource is configured ("How we sped up AWS CloudFormation deployments with optimistic
    stabilization", AWS DevOps Blog, March 2024).
    """
    begun: dict[str, float] = {}
    complete: dict[str, float] = {}
    for event in events:
        if event.status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
            begun.setdefault(event.resource, event.seconds)
        elif event.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
            complete.setdefault(event.resource, event.seconds)
    for resource, needed, strictly in _dependencies(documents, names):
        if resource not in begun:
            continue
        if strictly and needed in begun and complete.get(needed, float("inf")) > begun[resource]:
            yield Surprise("order", resource, f"begins once {needed} is complete", "began before")
        elif not strictly and needed in begun and begun[needed] > begun[resource]:
            yield Surprise("order", resource, f"begins once {needed} has begun", "began before")


def _dependencies(documents: Sequence[Document], names: Names) -> Iterator[tuple[str, str, bool]]:
    root = next((document for document in documents if document.children), None)
    if root is None:
        return
    bodies: dict[tuple[str, ...], Mapping[str, Any]] = {(): root.body}
    by_name = {document.name: document.body for document in documents}
    for logical_id, name in nested(root.body).items():
        bodies[(logical_id,)] = by_name[name]
    for path, body in bodies.items():
        resources = body["Resources"]
        for logical_id, resource in resources.items():
            explicit = resource.get("DependsOn", ())
            after = {explicit} if isinstance(explicit, str) else set(explicit)
            referred = {name for name, _ in references(resource.get("Properties", {})) if name in resources}
            own = names.path((*path, logical_id))
            yield from ((own, names.path((*path, each)), True) for each in sorted(after))
            yield from ((own, names.path((*path, each)), False) for each in sorted(referred - after - {logical_id}))
