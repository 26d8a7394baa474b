"""What AWS was recorded to say, fed straight to what reads it: errors, reasons, statuses and change sets."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from answers import Answers
from botocore.exceptions import ClientError
from recorded import CHANGE_SET, change, description
from recorded_facts import Fact, facts

from cfngen.deploy.aws.change_sets import ChangeSet, read_change_set
from cfngen.deploy.aws.errors import as_aws_error
from cfngen.deploy.aws.events import is_worth_showing, repeats_another_failure
from cfngen.deploy.messages.message import Event
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.watching.reasons import explain_reason


def rows(keep: Callable[[Fact], object]) -> list[Any]:
    return [pytest.param(fact, id=fact.name) for fact in facts() if keep(fact)]


def reads(fact: Fact) -> dict[str, Any]:
    """What is to be read."""
    return dict(fact.entry.get("reads") or {})


def refusal(fact: Fact) -> dict[str, Any]:
    return dict(fact.entry.get("refused") or fact.entry.get("error") or {})


def text_of(fact: Fact) -> str:
    if "text" in fact.entry:
        return str(fact.entry["text"])
    return f"{refusal(fact).get('words', '')} ({refusal(fact).get('code', '')})"


@pytest.mark.parametrize("fact", rows(lambda fact: {"refused", "error"} & set(fact.entry)))
def test_an_error_is_told_by_its_code(fact: Fact) -> None:
    code, status = refusal(fact)["code"], refusal(fact)["status"]
    response = {
        "Error": {"Code": code, "Message": text_of(fact)},
        "ResponseMetadata": {"HTTPStatusCode": status},
    }
    error = as_aws_error(ClientError(response, "AnyCall"))  # type: ignore[arg-type]
    assert error.aws_code == code
    assert error.code == reads(fact).get("error", "aws-error")
    assert reads(fact).get("call", "") in str(error.hint)


@pytest.mark.parametrize("fact", rows(lambda fact: "text" in fact.entry or reads(fact)))
def test_a_text_is_explained_or_shown_as_it_is(fact: Fact) -> None:
    expected, text = reads(fact), text_of(fact)
    explanation = explain_reason(text, "us-west-2")
    hint = str(explanation.hint)
    assert expected.get("meaning", "") in explanation.meaning
    assert expected.get("hint", "") in hint
    if not {"meaning", "hint", "error"} & set(expected):
        assert (explanation.meaning, hint) == ("", "")
    if "nothing_to_do" in expected:
        reason = fact.entry.get("change_set", {}).get("StatusReason", text)
        assert ChangeSet("id", "stack", "s", "FAILED", reason=reason).nothing_to_do
    assert repeats_another_failure(event("CREATE_FAILED", text)) == expected.get("repeats", False)


@pytest.mark.parametrize("fact", rows(lambda fact: "events" in fact.entry))
def test_every_status_is_known(fact: Fact) -> None:
    sequences = [words for name, words in fact.entry["events"].items() if not name.startswith(("order", "physical"))]
    for status in " ".join(sequences).split():
        assert StackStatus(status).health in StackHealth
        assert event(status, "").failed == status.endswith("_FAILED")
        assert is_worth_showing(event(status, "")) in (True, False)


def event(status: str, reason: str) -> Event:
    known = {field.name: "" for field in dataclasses.fields(Event)}
    return Event(**{**known, "path": (), "status": status, "reason": reason})  # type: ignore[arg-type]


@pytest.mark.parametrize("fact", rows(lambda fact: {"values", "plain"} <= set(fact.entry)))
def test_both_descriptions_of_a_change_set_are_read_as_one(fact: Fact) -> None:
    with_values, without_values = described(fact.entry["values"]), described(fact.entry["plain"])

    def describe(arguments: dict[str, Any]) -> dict[str, Any]:
        return with_values if arguments.get("IncludePropertyValues") else without_values

    account = Answers({"cloudformation:DescribeChangeSet": describe}).account
    read = read_change_set(account, CHANGE_SET).resource_changes
    assert set(read) == set(fact.entry["values"]) | set(fact.entry["plain"])
    for name, (_, *details) in fact.entry["plain"].items():
        ways = {(detail.name, detail.source, detail.cause) for detail in read[name].details}
        words = [[*detail.split(), ""] for detail in details]
        assert {(name, source, cause) for name, _, _, source, cause, *_ in words} <= ways


def described(changes: Mapping[str, list[str]]) -> dict[str, Any]:
    """A description that lists changes as the file writes them."""
    return description(
        CHANGE_SET,
        *(
            change(name, "AWS::IAM::Role", *map(told, details), action=head.split()[0], replacement=str("True" in head))
            for name, (head, *details) in changes.items()
        ),
    )


def told(text: str) -> dict[str, Any]:
    words, _, values = text.partition(": ")
    name, recreation, evaluation, source, *cause = words.split()
    before, _, after = values.partition(" -> ")
    shown = {"BeforeValue": before, "AfterValue": after} if values else {}
    target = {"Attribute": "Properties", "Name": name, "RequiresRecreation": recreation, **shown}
    return {
        "Target": target,
        "Evaluation": evaluation,
        "ChangeSource": source,
        **({"CausingEntity": cause[0]} if cause else {}),
    }
