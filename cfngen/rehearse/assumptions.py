"""What cfngen assumes about CloudFormation's change sets, and what a rehearsal says about it.

`_ASSUMPTIONS` lists what a rehearsal settles. A judge yields the resources of a change set that show an assumption, and
whether it holds there; a single case in which it does not refutes it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from cfngen.deploy.aws.change_sets import Unshown, shown_value
from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.deploy.aws.types import AwsObject
from cfngen.rehearse.operations import DescribedChangeSet, Operation, status_transitions

MAX_SHOWN_LENGTH = 1_024  # of a property's value in characters; AWS documents no limit
_LENGTH = re.compile(r"\((\d+) characters\)")  # what a record has in place of a long text
_Cases = Iterator[tuple[bool, tuple[str, ...]]]


@dataclass(frozen=True)
class JudgedAssumption:
    """An assumption about AWS, and what a rehearsal says about it.

    Attributes:
        fact: what is assumed.
        verdict: `confirmed`, `refuted`, or `not seen` if nothing in the rehearsal shows it.
        shown: by what, with the keys of a fact in the tests of the emulator: the `case`; `values` and `plain`, how the
            change set describes the resources concerned with property values and without; the `events` that followed.
    """

    fact: str
    verdict: Literal["confirmed", "refuted", "not seen"]
    shown: Mapping[str, Any] = field(default_factory=dict)


def judge_assumptions(operations: Sequence[Operation]) -> tuple[JudgedAssumption, ...]:
    """Return what the records of operations say about each assumption."""
    return tuple(_judge(fact, judge, operations) for fact, judge in _ASSUMPTIONS.items())


def _judge(
    fact: str, judge: Callable[[Operation, DescribedChangeSet], _Cases], operations: Sequence[Operation]
) -> JudgedAssumption:
    shown: dict[bool, list[Mapping[str, Any]]] = {True: [], False: []}  # by whether the assumption holds
    for operation in operations:
        for change_set in operation.change_sets:
            for holds, resources in judge(operation, change_set):
                case = {
                    "case": f"{operation.name}, {change_set.stack or 'root'}",
                    "values": _described(change_set.with_values, resources),
                    "plain": _described(change_set.without_values, resources),
                    "events": {name: _statuses(operation, change_set, name) for name in resources},
                }
                shown[holds].append(case)
    clearest = max(shown[False] or shown[True], key=lambda case: len(str(case)), default={})
    return JudgedAssumption(fact, "refuted" if shown[False] else "confirmed" if shown[True] else "not seen", clearest)


def _statuses(operation: Operation, change_set: DescribedChangeSet, resource: str) -> str:
    name = f"{change_set.stack}/{resource}".removeprefix("/")
    return " ".join(status_transitions(operation.events).get(name, ()))


def _described(changes: Mapping[str, AwsObject], resources: Sequence[str]) -> dict[str, list[str]]:
    """Return the action of each resource with replacement and policy, then its details, as the tests write them."""
    described = {}
    for name in resources:
        if change := changes.get(name):
            is_replaced = change.get("Action") == "Modify" and change.get("Replacement") != "False"
            action = _words(
                change.get("Action"), change.get("Replacement") if is_replaced else "", change.get("PolicyAction")
            )
            described[name] = [action, *map(_detail, change.get("Details", ()))]
    return described


def _detail(detail: AwsObject) -> str:
    target = detail.get("Target", {})
    what = _words(target.get("Name") or target.get("Attribute"), target.get("RequiresRecreation"))
    text = _words(what, detail.get("Evaluation"), detail.get("ChangeSource"), detail.get("CausingEntity"))
    values = [target.get("BeforeValue", ""), target.get("AfterValue", "")]
    return f"{text}: {' -> '.join(values)}" if any(values) else text


def _words(*words: str | None) -> str:
    return " ".join(filter(None, words))


def _resources_read(change: AwsObject) -> set[str]:
    """Return the resources whose attributes are a cause of a change."""
    causes = [detail.get("CausingEntity", "") for detail in change.get("Details", ())]
    return {cause.partition(".")[0] for cause in causes if "." in cause}


def _judge_attribute_of_updated_resource(operation: Operation, change_set: DescribedChangeSet) -> _Cases:
    if operation.status != "UPDATE_COMPLETE":
        return
    plain = change_set.without_values
    in_place = {
        name
        for name, change in plain.items()
        if change.get("Replacement") == "False" and change.get("ResourceType") != NESTED_STACK
    }
    for name, change in plain.items():
        listed = _resources_read(change_set.with_values.get(name, {}))
        is_updated = "UPDATE_COMPLETE" in _statuses(operation, change_set, name)
        for resource in sorted(in_place & _resources_read(change)):
            yield is_updated and resource not in listed, (resource, name)


def _judge_long_value(operation: Operation, change_set: DescribedChangeSet) -> _Cases:
    for name, change in change_set.with_values.items():
        for context in ("BeforeContext", "AfterContext"):
            definition = change.get(context)
            properties = definition["Properties"] if isinstance(definition, Mapping) else {}
            for value in map(str, properties.values()):
                length = _LENGTH.fullmatch(value)
                if length and int(length[1]) > MAX_SHOWN_LENGTH:
                    yield False, (name,)
                elif shown_value(value) is Unshown.TRUNCATED:
                    yield True, (name,)


_ASSUMPTIONS: Mapping[str, Callable[[Operation, DescribedChangeSet], _Cases]] = {
    "what reads an attribute of a resource that is updated in place is updated, but listed only without values": (
        _judge_attribute_of_updated_resource
    ),
    f"a property's value of more than {MAX_SHOWN_LENGTH:,} characters is not shown": _judge_long_value,
}
