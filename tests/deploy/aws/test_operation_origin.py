"""Who is at work on a stack: how its operation began, and who else has been planning a change of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from recorded import CHANGE_SET, NOW, STACK_ID, Recorded, RefusedError, description

from cfngen.deploy.aws import operation_origin
from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Message, Notice
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations import recovery

STACK = StackView("kubernetes", STACK_ID, StackStatus("UPDATE_IN_PROGRESS"))
SOMEBODY = "arn:aws:iam::123456789012:user/colleague"


def event(number: int, status: str, minutes: int, token: str = "", name: str = "kubernetes") -> dict[str, Any]:
    return {
        "StackId": STACK_ID,
        "EventId": str(number),
        "StackName": "kubernetes",
        "LogicalResourceId": name,
        "PhysicalResourceId": STACK_ID if name == "kubernetes" else name,
        "ResourceType": "AWS::CloudFormation::Stack" if name == "kubernetes" else "AWS::EC2::VPC",
        "ResourceStatus": status,
        "Timestamp": NOW - timedelta(minutes=minutes),
        **({"ClientRequestToken": token} if token else {}),
    }


def updating(token: str, text: str | None = None) -> Recorded:
    """A stack in an update, whose events come newest first and in pages."""
    pages = {
        None: ([event(5, "UPDATE_IN_PROGRESS", 1, token, "Vpc")], "2"),
        "2": ([event(4, "UPDATE_IN_PROGRESS", 7, token)], "3"),
        "3": ([event(3, "CREATE_COMPLETE", 90, "other"), event(2, "CREATE_IN_PROGRESS", 99, "other")], ""),
    }
    api = Recorded()

    def events(sent: dict[str, Any]) -> dict[str, Any]:
        found, following = pages[sent.get("NextToken")]
        return {"StackEvents": found, **({"NextToken": following} if following else {})}

    def change_set(sent: dict[str, Any]) -> dict[str, Any]:
        assert (sent["ChangeSetName"], sent["StackName"]) == (token, STACK_ID)
        if text is None:
            raise RefusedError("ChangeSetNotFound", status=404)
        return description(CHANGE_SET, Description=text)

    api.answers |= {"DescribeStackEvents": events, "DescribeChangeSet": change_set}
    return api


@pytest.mark.parametrize("protect", [True, False])
def test_who_began_an_operation_and_what_is_due_at_its_end_is_read_from_its_change_set(protect: bool) -> None:
    text = operation_origin.change_set_description(Recorded().account, "kubernetes", protect=protect)
    begun = operation_origin.read_origin(updating("cfngen-plan-one", text).account, STACK)
    assert begun == operation_origin.OperationOrigin(
        NOW - timedelta(minutes=7), "arn:aws:iam::123456789012:user/operator", protect
    )


@pytest.mark.parametrize(
    ("token", "text"), [("cfngen-plan-one", None), ("cfngen-plan-one", "by hand"), ("Console-Update-1", "x"), ("", "x")]
)
def test_an_operation_of_which_nobody_knows_who_began_it_has_its_time_alone(token: str, text: str | None) -> None:
    assert operation_origin.read_origin(updating(token, text).account, STACK) == operation_origin.OperationOrigin(
        NOW - timedelta(minutes=7)
    )


def planned(name: str, minutes: int, **more: Any) -> dict[str, Any]:
    usual = {
        "ChangeSetName": name,
        "ChangeSetId": CHANGE_SET.replace("cfngen-plan-one", name),
        "Status": "CREATE_COMPLETE",
        "ExecutionStatus": "AVAILABLE",
        "CreationTime": NOW - timedelta(minutes=minutes),
    }
    return {**usual, **more}


def told(*summaries: dict[str, Any]) -> list[str]:
    api, said = Recorded(), list[Message]()
    pages = {None: (summaries[:1], "2"), "2": (summaries[1:], "")}

    def listed(sent: dict[str, Any]) -> dict[str, Any]:
        found, following = pages[sent.get("NextToken")]
        return {"Summaries": list(found), **({"NextToken": following} if following else {})}

    api.answers["ListChangeSets"] = listed
    recovery.report_other_plans(api.account, STACK, said.append)
    notices = [each for each in said if isinstance(each, Notice)]
    assert len(notices) == len(said)
    assert ["ask them before you continue" in notice.hint for notice in notices] == [True] * len(notices)
    return [notice.text for notice in notices]


def test_others_who_plan_a_change_are_named_with_the_time() -> None:
    note = f"cfngen: the cluster kubernetes, by {SOMEBODY}"
    assert told(planned("cfngen-plan-x", 4, Description=note), planned("by-hand", 0)) == [
        f"{SOMEBODY} has been planning a change of kubernetes since 11:56 UTC (4 minutes ago)",
        (
            "somebody (change set by-hand) has been planning a change of kubernetes since 12:00 UTC "
            "(less than a minute ago)"
        ),
    ]


@pytest.mark.parametrize(
    ("minutes", "more", "count"),
    [
        (60, {}, 1),
        (61, {}, 0),
        (1, {"Status": "CREATE_IN_PROGRESS", "ExecutionStatus": "UNAVAILABLE"}, 1),
        (1, {"Status": "CREATE_PENDING", "ExecutionStatus": "UNAVAILABLE"}, 1),
        (1, {"Status": "FAILED", "ExecutionStatus": "UNAVAILABLE"}, 0),
        (1, {"ExecutionStatus": "EXECUTE_COMPLETE"}, 0),
        (1, {"ParentChangeSetId": CHANGE_SET}, 0),
    ],
)
def test_only_what_may_still_be_executed_and_is_of_the_last_hour_is_told(
    minutes: int, more: dict[str, Any], count: int
) -> None:
    assert len(told(planned("one", minutes, **more))) == count


def test_who_may_not_list_change_sets_is_told_nothing() -> None:
    api, said = Recorded(), list[Message]()

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("AccessDenied", status=403)

    api.answers["ListChangeSets"] = refused
    recovery.report_other_plans(api.account, STACK, said.append)
    assert said == []


def history(*events: dict[str, Any]) -> Recorded:
    api = Recorded()
    api.answers["DescribeStackEvents"] = lambda sent: {"StackEvents": list(events[::-1])}
    return api


@pytest.mark.parametrize(
    ("events", "minutes"),
    [
        # The review of its change set is not when an operation began.
        ([event(1, "REVIEW_IN_PROGRESS", 9), event(2, "CREATE_IN_PROGRESS", 5)], 5),
        ([event(1, "REVIEW_IN_PROGRESS", 9)], None),
        ([], None),
        # What a resource does is nothing that the stack itself does.
        ([event(1, "UPDATE_IN_PROGRESS", 9, name="Vpc")], None),
        ([event(1, "CREATE_COMPLETE", 20), event(2, "UPDATE_IN_PROGRESS", 8), event(3, "UPDATE_COMPLETE", 6)], 8),
        # A rollback began with the operation that it rolls back.
        (
            [event(1, "CREATE_COMPLETE", 20), event(2, "UPDATE_IN_PROGRESS", 8), event(3, "UPDATE_FAILED", 7),
             event(4, "UPDATE_ROLLBACK_IN_PROGRESS", 3)],
            8,
        ),
    ],
)  # fmt: skip
def test_when_the_newest_operation_began(events: list[dict[str, Any]], minutes: int | None) -> None:
    expected = None if minutes is None else operation_origin.OperationOrigin(NOW - timedelta(minutes=minutes))
    assert operation_origin.read_origin(history(*events).account, STACK) == expected


def test_events_that_may_not_be_read_are_an_error() -> None:
    api = Recorded()

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("AccessDenied", status=403)

    api.answers["DescribeStackEvents"] = refused
    with pytest.raises(AwsError, match="DescribeStackEvents"):
        operation_origin.read_origin(api.account, STACK)


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "12:00 UTC (less than a minute ago)"),
        (29, "11:59 UTC (less than a minute ago)"),
        (31, "11:59 UTC (1 minute ago)"),
        (240, "11:56 UTC (4 minutes ago)"),
        (-60, "12:01 UTC (less than a minute ago)"),
    ],
)
def test_a_moment_is_told_with_how_long_ago_it_is(seconds: int, words: str) -> None:
    assert operation_origin.describe_time(Recorded().account, NOW - timedelta(seconds=seconds)) == words
