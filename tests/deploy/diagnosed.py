"""Diagnoses of histories that a test writes down."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from answers import Answer, Answers
from recorded import NOW, STACK_ID, RefusedError
from recorded_stack import NAME, RecordedStack, event

from cfngen.deploy.watching.diagnosis import Cause, Diagnosis, diagnose

GROUP = "AWS::AutoScaling::AutoScalingGroup"
BACK = ("ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE")
UPDATING, UNDOING = "UPDATE_IN_PROGRESS", "UPDATE_ROLLBACK_IN_PROGRESS"


def failed(logical_id: str, reason: str = "broken", status: str = "CREATE_FAILED", **more: Any) -> dict[str, Any]:
    return {**event(status, logical_id, reason=reason), **more}


def cancelled(logical_id: str) -> dict[str, Any]:
    return failed(logical_id, "Resource creation cancelled")


def answering(api: RecordedStack, given: Mapping[str, Answer]) -> Answers:
    """The same CloudFormation beside other services; it does not tell failures by themselves."""
    stack = {f"cloudformation:{name}": answer for name, answer in api.answers.items()}
    return Answers({**stack, "cloudformation:DescribeEvents": RefusedError("InvalidAction"), **given})


def diagnosed(
    status: str,
    *events: dict[str, Any] | str,
    given: Mapping[str, Answer] | None = None,
    apart: int = 1,
    with_failure: bool = True,
) -> Diagnosis:
    """Diagnose a history.

    Args:
        status: of the stack.
        events: what happened, oldest first; a status stands for the stack's own event.
        given: what other services answer.
        apart: seconds between two events.
        with_failure: whether a rollback is diagnosed with the operation before it.
    """
    api = RecordedStack(status)
    entries = [event(each) if isinstance(each, str) else each for each in events]
    api.events[NAME] = [
        {**entry, "Timestamp": NOW + timedelta(seconds=apart * number)} for number, entry in enumerate(entries)
    ]
    return diagnose(answering(api, given or {}).account, STACK_ID, with_failure=with_failure)


def names(*causes: Cause | None) -> list[str]:
    return [cause.event.logical_id for cause in causes if cause]
