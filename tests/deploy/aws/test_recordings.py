"""Change sets, events, stacks and errors that the real AWS was recorded to answer, read by the code that reads AWS.

The recordings are not part of this repository: docs/develop/development.md says how to fetch them. Without the
environment variable `AWS_RECORDINGS` nothing here runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from answers import Answers
from botocore.exceptions import ClientError
from recorded import NOW

from cfngen.deploy.aws.change_sets import read_change_set
from cfngen.deploy.aws.errors import as_aws_error
from cfngen.deploy.aws.events import is_worth_showing, parse_event
from cfngen.deploy.aws.stacks import parse_stack
from cfngen.deploy.watching.reasons import explain_event, explain_reason

FOLDER = os.environ.get("AWS_RECORDINGS", "")
pytestmark = [pytest.mark.drill, pytest.mark.skipif(not FOLDER, reason="AWS_RECORDINGS names no folder")]

VALUES = "-prop-values"
MOST_TOO_MANY = 2
# Recorders write these words in place of times, and JSON texts as the objects in them.
TIMES = ("CreationTime", "LastUpdatedTime", "DeletionTime", "Timestamp", "LastCheckTimestamp")
JSON_TEXTS = ("BeforeContext", "AfterContext", "BeforeValue", "AfterValue")


@dataclass(frozen=True)
class Case:
    """One recorded test.

    Attributes:
        name: file and test.
        answers: AWS's answers by the names that the test gave them.
    """

    name: str
    answers: Mapping[str, Any]


@cache
def cases() -> tuple[Case, ...]:
    files = sorted(Path(FOLDER).rglob("*.snapshot.json"))
    return tuple(
        Case(f"{file.name}::{test.rpartition('::')[2]}", answer_like_aws(entry.get("recorded-content") or {}))
        for file in files
        for test, entry in json.loads(file.read_text()).items()
    )


def without_children(description: dict[str, Any]) -> dict[str, Any]:
    """A description whose nested stacks have no change sets of their own, since those were not recorded."""
    changes = [dict(change["ResourceChange"]) for change in description["Changes"]]
    for change in changes:
        change.pop("ChangeSetId", None)
    return {**description, "Changes": [{"Type": "Resource", "ResourceChange": change} for change in changes]}


def answer_like_aws(value: Any, key: str = "") -> Any:
    """A recorded answer as boto3 returns it: with times, and with JSON as texts."""
    if key in TIMES:
        return NOW
    if key in JSON_TEXTS and not isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        return {name: answer_like_aws(member, name) for name, member in value.items() if name != "ResponseMetadata"}
    return [answer_like_aws(member) for member in value] if isinstance(value, list) else value


def objects(value: Any) -> Iterator[dict[str, Any]]:
    """Every object in a recorded answer."""
    if isinstance(value, dict):
        yield value
        for member in value.values():
            yield from objects(member)
    elif isinstance(value, list):
        for member in value:
            yield from objects(member)


def listed(case: Case, number: int) -> dict[str, str]:
    """What our reader lists of one change set: actions by logical id."""
    name = f"describe-change-set-{number}"
    with_values, without_values = case.answers[name + VALUES], case.answers[name]

    def describe(arguments: dict[str, Any]) -> dict[str, Any]:
        return dict(with_values if arguments.get("IncludePropertyValues") else without_values)

    account = Answers({"cloudformation:DescribeChangeSet": describe}).account
    change_set = read_change_set(account, with_values["ChangeSetId"])
    return {change.logical_id: change.action for change in change_set.resource_changes.values()}


def happened(case: Case) -> dict[str, str]:
    """What executing the second change set really did, by logical id: the action that it should have listed."""
    events = case.answers["per-resource-events"]
    statuses = {name: [event["ResourceStatus"] for event in entries] for name, entries in events.items()}
    if sequence := case.answers.get("all-events"):  # goes on to the deletion of the stack
        sequence = sequence[: sequence.index(["<stack-name:1>", "DELETE_IN_PROGRESS"])]
        statuses = {name: [status for other, status in sequence if other == name] for name in statuses}
    first_resources = listed(case, 1)
    actions: dict[str, str] = {}
    for name in filter(lambda name: not is_stack(name), statuses):
        if any(status.startswith("UPDATE_") for status in statuses[name]):
            actions[name] = "Modify"
        elif name not in first_resources:
            actions[name] = "Add"
        elif "DELETE_COMPLETE" in statuses[name]:
            actions[name] = "Remove"
    return actions


def deletions_were_recorded(case: Case) -> bool:
    """Whether one can tell what the update deleted.

    Some recorders left out what happens in the cleanup after an update, others went on to the deletion of the stack.
    """
    of_stack = [
        event["ResourceStatus"]
        for name, entries in case.answers["per-resource-events"].items()
        for event in entries
        if is_stack(name)
    ]
    return "all-events" in case.answers or "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS" in of_stack


def is_stack(name: str) -> bool:
    """Whether events are those of the stack itself, not of a resource."""
    return name == "Stack" or name.startswith("<stack-name")


def executed() -> list[Case]:
    """Cases with two executed change sets, both described with and without values, and with what then happened."""
    names = [f"describe-change-set-{number}{values}" for number in (1, 2) for values in ("", VALUES)]
    return [case for case in cases() if {*names, "per-resource-events"} <= set(case.answers)]


def test_a_change_set_lists_every_resource_that_was_then_changed() -> None:
    missing: list[str] = []
    too_many: list[str] = []
    for case in executed():
        ignored = () if deletions_were_recorded(case) else ("Remove",)
        really, ours = (
            {(name, action) for name, action in actions.items() if action not in ignored}
            for actions in (happened(case), listed(case, 2))
        )
        missing += [f"{case.name}: {action} {name}" for name, action in really - ours]
        too_many += [f"{case.name}: {action} {name}" for name, action in ours - really]
    assert executed()
    assert missing == []
    assert len(too_many) <= MOST_TOO_MANY, too_many


def test_no_recorded_event_stops_its_reader() -> None:
    events = [each for each in everything() if {"ResourceStatus", "ResourceType", "StackId", "EventId"} <= set(each)]
    for entry in events:
        event = parse_event(entry, ())
        explain_event(event, "us-west-2")
        is_worth_showing(event)
    assert events


def test_no_recorded_stack_stops_its_reader() -> None:
    stacks = [each for each in everything() if {"StackId", "StackStatus", "CreationTime", "StackName"} <= set(each)]
    for stack in stacks:
        assert parse_stack(stack).status.health
    assert stacks


def test_no_recorded_change_set_stops_its_reader() -> None:
    descriptions = [each for each in everything() if {"ChangeSetId", "Changes", "Status", "StackName"} <= set(each)]
    for description in descriptions:
        account = Answers({"cloudformation:DescribeChangeSet": without_children(description)}).account
        assert read_change_set(account, description["ChangeSetId"]).status
    assert descriptions


def test_no_recorded_error_stops_its_reader() -> None:
    errors = [each["Error"] for each in everything() if isinstance(each.get("Error"), dict) and "Code" in each["Error"]]
    for error in errors:
        assert as_aws_error(ClientError({"Error": error}, "AnyCall")).aws_code == error["Code"]
        explain_reason(f"{error.get('Message', '')} ({error['Code']})", "us-west-2")
    assert errors


def everything() -> Iterator[dict[str, Any]]:
    return (each for case in cases() for each in objects(case.answers))
