"""What cfngen assumes about CloudFormation's change sets without a recording of it, and what a rehearsal says about it.

`_ASSUMPTIONS` is the list of what a rehearsal settles. A judge yields the resources of a change set in which an
assumption shows, and whether it holds there; one in which it does not hold refutes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from cfngen.deploy.aws.change_sets import Unshown, shown_value
from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.deploy.aws.types import AwsObject
from cfngen.rehearse.operations import DescribedChangeSet, Operation, status_transitions

MAX_SHOWN_LENGTH = 1_024  # of a property's value in characters; AWS documents no limit
_LENGTH = re.compile(r"\((\d+) characters\)")  # what a record has in place of a long text
_Resources = tuple[str, ...]
_Events = Mapping[str, str]


@dataclass(frozen=True)
class JudgedAssumption:
    """An assumption about AWS, and what a rehearsal says about it, written as the facts in the tests of the emulator.

    Attributes:
        fact: what is assumed.
        verdict: `confirmed`, `refuted`, or `not seen` if nothing in the rehearsal shows it.
        case: the last operation and stack that refute it, or else that show it; empty if there is none.
        values: how the change set describes the resources concerned with property values: action and replacement, then
            each detail; masked.
        plain: how it describes them without values.
        events: the statuses that they then went through.
    """

    fact: str
    verdict: Literal["confirmed", "refuted", "not seen"]
    case: str = ""
    values: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    plain: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    events: Mapping[str, str] = field(default_factory=dict)


def judge_assumptions(operations: Sequence[Operation]) -> tuple[JudgedAssumption, ...]:
    """Return what the records of operations say about each assumption."""
    judged = []
    for fact in _ASSUMPTIONS:
        results = [JudgedAssumption(fact, "not seen"), *_results(fact, operations)]
        refutations = [result for result in results if result.verdict == "refuted"]
        judged.append([*results, *refutations][-1])  # updates, which come last, show most
    return tuple(judged)


def _results(fact: str, operations: Sequence[Operation]) -> Iterator[JudgedAssumption]:
    for operation in operations:
        transitions = status_transitions(operation.events)
        for change_set in operation.change_sets:
            prefix = f"{change_set.stack}/" if change_set.stack else ""
            events = {
                name.removeprefix(prefix): " ".join(statuses)
                for name, statuses in transitions.items()
                if name.startswith(prefix) and operation.status == "UPDATE_COMPLETE"
            }
            for holds, resources in _ASSUMPTIONS[fact](change_set, events):
                yield JudgedAssumption(
                    fact=fact,
                    verdict="confirmed" if holds else "refuted",
                    case=f"{operation.name}, {change_set.stack or 'root'}",
                    values=_described(change_set.with_values, resources),
                    plain=_described(change_set.without_values, resources),
                    events={name: events[name] for name in resources if name in events},
                )


def _described(changes: Mapping[str, AwsObject], resources: _Resources) -> dict[str, tuple[str, ...]]:
    return {
        name: (_action(changes[name]), *map(_detail, _details(changes[name]))) for name in resources if name in changes
    }


def _action(change: AwsObject) -> str:
    replacement = change.get("Replacement", "") if change["Action"] == "Modify" else ""
    return " ".join(filter(None, (change["Action"], replacement.replace("False", ""), change.get("PolicyAction"))))


def _detail(detail: AwsObject) -> str:
    target = detail.get("Target", {})
    words = (
        target.get("Name") or target.get("Attribute"),
        target.get("RequiresRecreation"),
        detail.get("Evaluation"),
        detail.get("ChangeSource"),
        detail.get("CausingEntity"),
    )
    text = " ".join(filter(None, words))
    values = [target.get("BeforeValue", ""), target.get("AfterValue", "")]
    return f"{text}: {' -> '.join(values)}" if any(values) else text


def _details(change: AwsObject) -> Sequence[AwsObject]:
    details: Sequence[AwsObject] = change.get("Details", ())
    return details


def _judge_attribute_of_updated_resource(
    change_set: DescribedChangeSet, events: _Events
) -> Iterator[tuple[bool, _Resources]]:
    plain = change_set.without_values
    updated = [name for name, change in plain.items() if change.get("Replacement") == "False"]
    for name, change in plain.items():
        for cause in {detail.get("CausingEntity", "") for detail in _details(change)}:
            resource, dot, _ = cause.partition(".")
            if dot and resource in updated and plain[resource]["ResourceType"] != NESTED_STACK:
                causes = [detail.get("CausingEntity") for detail in _details(change_set.with_values.get(name, {}))]
                is_updated = not events or "UPDATE_COMPLETE" in events.get(name, "")
                yield cause not in causes and is_updated, (resource, name)


def _judge_long_value(change_set: DescribedChangeSet, events: _Events) -> Iterator[tuple[bool, _Resources]]:
    for name, change in change_set.with_values.items():
        for context in ("BeforeContext", "AfterContext"):
            for value in change.get(context, {}).get("Properties", {}).values():
                length = _LENGTH.fullmatch(str(value))
                if length and int(length[1]) > MAX_SHOWN_LENGTH:
                    yield False, (name,)
                elif shown_value(str(value)) is Unshown.TRUNCATED:
                    yield True, (name,)


def _judge_value_known_later(change_set: DescribedChangeSet, events: _Events) -> Iterator[tuple[bool, _Resources]]:
    for name, change in change_set.with_values.items():
        kinds: dict[str, list[str]] = {}  # by the path of a value
        for detail in _details(change):
            if shown_value(detail.get("Target", {}).get("AfterValue")) is Unshown.KNOWN_LATER:
                kind = f"{detail.get('ChangeSource')} {detail.get('Evaluation')}"
                kinds.setdefault(detail["Target"].get("Path", ""), []).append(kind)
        for pair in kinds.values():
            first, *others = sorted(pair)
            are_by_cause = {"ResourceReference Static", "ResourceAttribute Static"}.issuperset(others)
            yield first == "DirectModification Dynamic" and bool(others) and are_by_cause, (name,)


_ASSUMPTIONS: Mapping[str, Callable[[DescribedChangeSet, _Events], Iterator[tuple[bool, _Resources]]]] = {
    "what reads an attribute of a resource that is updated in place is updated, but listed only without values": (
        _judge_attribute_of_updated_resource
    ),
    f"a property's value of more than {MAX_SHOWN_LENGTH:,} characters is not shown": _judge_long_value,
    "a value that is known later has a dynamic detail of its own, and a static one for each cause": (
        _judge_value_known_later
    ),
}
