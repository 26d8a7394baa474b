"""What AWS was recorded to say, fed straight to what reads it: the classification of errors, and the explanation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from botocore.exceptions import ClientError
from recorded_facts import Fact, facts

from cfngen.deploy.aws.change_sets import ChangeSet
from cfngen.deploy.aws.errors import as_aws_error
from cfngen.deploy.aws.events import is_worth_showing, repeats_another_failure
from cfngen.deploy.messages.message import Event
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.watching.reasons import explain_reason

PENDING = pytest.mark.xfail(reason="no reader knows these words yet", strict=False)


def rows(keep: Callable[[Fact], object]) -> list[Any]:
    return [
        pytest.param(fact, id=fact.name, marks=[PENDING] if reads(fact).get("pending") else [])
        for fact in facts()
        if keep(fact)
    ]


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
