"""What the emulator assumes about CloudFormation's change sets, and what a rehearsal says about it.

A judge yields what it has seen in a change set, and whether that agrees with its assumption; one that disagrees refutes
it. `_JUDGES` is the list of what a rehearsal settles: a further assumption is a row there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from cfngen.deploy.aws.stacks import NESTED_STACK
from cfngen.rehearse.operations import DescribedChangeSet, Operation

Verdict = Literal["confirmed", "refuted", "not seen"]
LARGEST_SHOWN_VALUE = 1024  # characters of a property's value; AWS documents no limit
_SIGNATURE, _UNKNOWN = "(Truncated-Signature):", "{{changeSet:KNOWN_AFTER_APPLY}}"
_LENGTH = re.compile(r"\((\d+) characters\)")  # what a report has in place of a long text


@dataclass(frozen=True)
class JudgedAssumption:
    """An assumption about AWS, and what a rehearsal says about it.

    Attributes:
        id: id of the fact that is assumed.
        assumption: what is assumed.
        verdict: `confirmed`, `refuted`, or `not seen` if nothing in the rehearsal shows it.
        seen: what the verdict rests on, masked.
    """

    id: str
    assumption: str
    verdict: Verdict
    seen: tuple[str, ...] = ()


def judge_assumptions(operations: Sequence[Operation]) -> tuple[JudgedAssumption, ...]:
    """Return what the records of operations say about each assumption."""
    judged = []
    for id_, (assumption, judge) in _JUDGES.items():
        texts: dict[bool, list[str]] = {True: [], False: []}  # by whether they agree with the assumption
        for operation in operations:
            for change_set in operation.change_sets:
                for agrees, text in judge(operation, change_set):
                    texts[agrees].append(f"{operation.name}: {change_set.stack or 'root'}: {text}")
        verdict: Verdict = "refuted" if texts[False] else "confirmed" if texts[True] else "not seen"
        judged.append(JudgedAssumption(id_, assumption, verdict, tuple(texts[False] or texts[True])))
    return tuple(judged)


_Sights = Iterator[tuple[bool, str]]


def _in_place_attribute(operation: Operation, change_set: DescribedChangeSet) -> _Sights:
    plain = change_set.without_values
    in_place = {change["LogicalResourceId"] for change in plain if change.get("Replacement") == "False"}
    listed = {change["LogicalResourceId"] for change in change_set.with_values}
    updated = {event.resource for event in operation.events if event.status.startswith("UPDATE_")}
    for change in plain:
        causes = [
            detail.get("CausingEntity", "").partition(".")[0] * (detail.get("ChangeSource") == "ResourceAttribute")
            for detail in change.get("Details", ())
        ]
        if causes and in_place.issuperset(causes):
            name = change["LogicalResourceId"]
            is_listed, is_updated = name in listed, "/".join(filter(None, (change_set.stack, name))) in updated
            text = f"{name} is{'' if is_listed else ' not'} listed, and{'' if is_updated else ' not'} updated"
            yield not is_listed and (is_updated or not operation.events), text


def _large_value(operation: Operation, change_set: DescribedChangeSet) -> _Sights:
    for change in change_set.with_values:
        values = [change.get(context, {}).get("Properties") for context in ("BeforeContext", "AfterContext")]
        targets = [detail["Target"] for detail in change.get("Details", ())]
        text = json.dumps(values + [target for target in targets if target.get("Path", "").startswith("/Properties/")])
        longest = max(map(int, _LENGTH.findall(text)), default=0)
        if longest > LARGEST_SHOWN_VALUE:
            yield False, f"{change['LogicalResourceId']} shows a value of {longest} characters"
        elif _SIGNATURE in text:
            yield True, f"{change['LogicalResourceId']} is not shown whole; its longest value shown has {longest}"


def _unknown_value(operation: Operation, change_set: DescribedChangeSet) -> _Sights:
    for change in change_set.with_values:
        kinds: dict[str, set[str]] = {}  # by the path of a value that becomes known later
        for detail in change.get("Details", ()):
            if _UNKNOWN in detail["Target"].get("AfterValue", ""):
                kind = f"{detail.get('ChangeSource')}/{detail.get('Evaluation')}"
                kinds.setdefault(detail["Target"].get("Path", ""), set()).add(kind)
        for path, seen in kinds.items():
            others = seen - {"DirectModification/Dynamic"}
            agrees = len(seen) == 2 and others <= {"ResourceReference/Static", "ResourceAttribute/Static"}
            yield agrees, f"{change['LogicalResourceId']} {path}: {', '.join(sorted(seen))}"


def _unchanged_nested_stack(operation: Operation, change_set: DescribedChangeSet) -> _Sights:
    for change in change_set.with_values:
        sources = {detail.get("ChangeSource", "none") for detail in change.get("Details", ())}
        if change["ResourceType"] == NESTED_STACK and sources and "DirectModification" not in sources:
            yield sources == {"Automatic"}, f"{change['LogicalResourceId']}: {', '.join(sorted(sources))}"


_JUDGES: Mapping[str, tuple[str, Callable[[Operation, DescribedChangeSet], _Sights]]] = {
    "in-place-attribute": (
        "with values, what reads an attribute of a resource that changes in place is not listed; it is updated all the same",
        _in_place_attribute,
    ),
    "large-value": (
        f"a property's value of more than {LARGEST_SHOWN_VALUE} characters is replaced by its signature, no other is",
        _large_value,
    ),
    "unknown-value": (
        "a value that becomes known later has two details, DirectModification/Dynamic and Resource…/Static",
        _unknown_value,
    ),
    "unchanged-nested-stack": (
        "a nested stack whose template does not change is listed as Automatic only",
        _unchanged_nested_stack,
    ),
}
