"""Which of a history's failures is the cause, what only follows from it, and the ways on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest
from answers import Answers
from diagnosed import BACK, UNDOING, UPDATING, answering, cancelled, diagnosed, failed, names
from recorded import NESTED, NOW, STACK_ID, RefusedError
from recorded_stack import NAME, RecordedStack, arn, event

from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.watching.diagnosis import diagnose


@pytest.mark.parametrize(
    ("events", "causes", "undoing"),
    [
        (("CREATE_IN_PROGRESS", failed("A"), *BACK), ["A"], []),
        # What is given up because of another failure, or only repeats it, is no cause.
        (("CREATE_IN_PROGRESS", cancelled("B"), failed("A"), cancelled("C"), *BACK), ["A"], []),
        (("CREATE_IN_PROGRESS", failed("A"), failed("B"), *BACK), ["A", "B"], []),
        (
            (
                "CREATE_IN_PROGRESS",
                failed("A"),
                failed("S", "Embedded stack arn was not successfully created: x"),
                *BACK,
            ),
            ["A"],
            [],
        ),
        (
            (
                "CREATE_IN_PROGRESS",
                failed("A"),
                "ROLLBACK_IN_PROGRESS",
                failed("B", status="DELETE_FAILED"),
                "ROLLBACK_FAILED",
            ),
            ["A"],
            ["B"],
        ),
        (
            (
                UPDATING,
                failed("A", status="UPDATE_FAILED"),
                UNDOING,
                failed("A", status="UPDATE_FAILED"),
                "UPDATE_ROLLBACK_FAILED",
            ),
            ["A"],
            ["A"],
        ),
        # OnFailure=DELETE.
        (
            (
                "CREATE_IN_PROGRESS",
                failed("A"),
                {**event("DELETE_IN_PROGRESS", reason="failed")},
                failed("B", status="DELETE_FAILED"),
                "DELETE_FAILED",
            ),
            ["A"],
            ["B"],
        ),
        # Of each resource the first.
        (("CREATE_IN_PROGRESS", failed("A", "first"), failed("A", "second"), *BACK), ["A"], []),
        # A rollback by hand goes back to the failure before it.
        (("CREATE_IN_PROGRESS", failed("A"), "CREATE_FAILED", *BACK), ["A"], []),
        # Of several attempts to roll back the last one.
        (
            (
                *(UPDATING, failed("A"), UNDOING, failed("B"), "UPDATE_ROLLBACK_FAILED"),
                *(UNDOING, failed("C"), "UPDATE_ROLLBACK_FAILED"),
            ),
            ["A"],
            ["C"],
        ),
        # A stack that fails by itself.
        (
            (
                "CREATE_IN_PROGRESS",
                event("ROLLBACK_IN_PROGRESS", reason="Parameters: [X] must have values"),
                "ROLLBACK_COMPLETE",
            ),
            [NAME],
            [],
        ),
        (
            (UPDATING, event("UPDATE_FAILED", reason="Output X is wrong"), UNDOING, "UPDATE_ROLLBACK_COMPLETE"),
            [NAME],
            [],
        ),
        # A failure without any reason is one all the same; a nested stack's without a reason is told in it.
        (("CREATE_IN_PROGRESS", failed("A", ""), *BACK), ["A"], []),
        (("CREATE_IN_PROGRESS", failed("S", "", ResourceType=NESTED), failed("A"), *BACK), ["A"], []),
        (("CREATE_IN_PROGRESS", failed("S", "no template", ResourceType=NESTED), *BACK), ["S"], []),
        # Where all that there is only points elsewhere, the last resort is one that failed.
        (("CREATE_IN_PROGRESS", cancelled("B"), failed("S", "Embedded stack x was not created"), *BACK), ["S"], []),
        (("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), [], []),
    ],
)
def test_the_cause_and_what_failed_afterwards(events: tuple[Any, ...], causes: list[str], undoing: list[str]) -> None:
    last = events[-1]
    found = diagnosed(last if isinstance(last, str) else last["ResourceStatus"], *events)
    assert names(found.cause, *found.others) == causes
    assert names(*found.rollback_failures) == undoing
    assert not found.cancelled
    if causes == ["A"] and found.cause:
        assert found.cause.event.reason in ("broken", "first", "")


def test_a_rollback_alone_has_its_own_failures() -> None:
    update = (UPDATING, failed("A"), UNDOING, failed("B"), "UPDATE_ROLLBACK_FAILED")
    again = (UNDOING, failed("B", "still broken"), failed("C"), "UPDATE_ROLLBACK_FAILED")
    found = diagnosed("UPDATE_ROLLBACK_FAILED", *update, *again, with_failure=False)
    assert (found.action, names(found.cause, *found.others), found.rollback_failures) == ("rollback", ["B", "C"], ())
    assert found.cause
    assert found.cause.event.reason == "still broken"


def test_only_the_newest_operation_counts() -> None:
    found = diagnosed(
        "UPDATE_COMPLETE", UPDATING, failed("A"), UNDOING, "UPDATE_ROLLBACK_COMPLETE", UPDATING, "UPDATE_COMPLETE"
    )
    assert (found.cause, found.others, found.rollback_failures, found.action, found.next_steps) == (
        None,
        (),
        (),
        "update",
        (),
    )


@pytest.mark.parametrize(
    ("events", "ended"),
    [
        (("CREATE_IN_PROGRESS", event("DELETE_IN_PROGRESS", reason="User Initiated"), "DELETE_COMPLETE"), True),
        (("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"), True),
        (("CREATE_IN_PROGRESS", event("DELETE_IN_PROGRESS", reason="it failed"), "DELETE_COMPLETE"), False),
        ((UPDATING, event(UNDOING, reason="User Initiated"), "UPDATE_ROLLBACK_COMPLETE"), True),
        ((UPDATING, UNDOING, "UPDATE_ROLLBACK_COMPLETE"), True),
        (("IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE"), True),
        ((UPDATING, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "UPDATE_COMPLETE"), False),
        ((UPDATING, failed("A"), event(UNDOING, reason="User Initiated"), "UPDATE_ROLLBACK_COMPLETE"), False),
    ],
)
def test_whether_somebody_ended_it(events: tuple[Any, ...], ended: bool) -> None:
    assert diagnosed(str(events[-1]), *events).cancelled == ended


@pytest.mark.parametrize(
    ("status", "events", "commands", "words"),
    [
        (
            "UPDATE_ROLLBACK_COMPLETE",
            (UPDATING, failed("A"), UNDOING, "UPDATE_ROLLBACK_COMPLETE"),
            ["deploy"],
            "retries, once the cause is fixed",
        ),
        (
            "UPDATE_ROLLBACK_COMPLETE",
            (UPDATING, UNDOING, "UPDATE_ROLLBACK_COMPLETE"),
            ["deploy"],
            "applies the change after all",
        ),
        (
            "DELETE_COMPLETE",
            ("CREATE_IN_PROGRESS", failed("A"), event("DELETE_IN_PROGRESS", reason="x"), "DELETE_COMPLETE"),
            ["deploy"],
            "creates the cluster, once the cause is fixed",
        ),
        ("DELETE_COMPLETE", ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"), ["deploy"], "creates the cluster"),
        (
            "ROLLBACK_COMPLETE",
            ("CREATE_IN_PROGRESS", failed("A"), *BACK),
            ["deploy", "delete"],
            "asks to delete the remains",
        ),
        (
            "UPDATE_ROLLBACK_FAILED",
            (UPDATING, failed("A"), UNDOING, failed("A"), "UPDATE_ROLLBACK_FAILED"),
            ["rollback", "rollback --force"],
            "continues the rollback",
        ),
        (
            "IMPORT_ROLLBACK_FAILED",
            ("IMPORT_IN_PROGRESS", failed("A"), "IMPORT_ROLLBACK_FAILED"),
            ["delete"],
            "deletes",
        ),
        ("CREATE_COMPLETE", ("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), [], ""),
        # Of what nothing is known any more.
        ("UPDATE_ROLLBACK_COMPLETE", (), ["deploy"], "retries"),
        ("DELETE_COMPLETE", (), ["deploy"], "creates the cluster, once the cause is fixed"),
    ],
)
def test_the_ways_on(status: str, events: tuple[Any, ...], commands: list[str], words: str) -> None:
    found = diagnosed(status, *events)
    assert [str(step.command) for step in found.next_steps] == [
        f"cfngen {each} --stack-name {NAME}" for each in commands
    ]
    assert [step.purpose.startswith(words) for step in found.next_steps[:1]] == [True] * bool(commands)
    assert (found.stack, found.stack_id, found.status) == (NAME, STACK_ID, status)


@pytest.mark.parametrize(("name", "stack_id"), [("other", ""), (arn("other"), arn("other"))])
def test_of_a_stack_that_nobody_knows_there_is_nothing_to_tell(name: str, stack_id: str) -> None:
    found = diagnose(answering(RecordedStack("CREATE_COMPLETE"), {}).account, name)
    assert (found.stack, found.stack_id, found.status, found.next_steps) == ("other", stack_id, "", ())


# Failures of nested stacks


def _told(identifier: str, entry: dict[str, Any]) -> dict[str, Any]:
    """An event as DescribeEvents has it, without the stack's name."""
    return {"EventId": identifier, **{key: value for key, value in entry.items() if key != "StackName"}}


def failures(api: RecordedStack, **events_of: list[dict[str, Any]]) -> Answers:
    """A CloudFormation that tells failures by themselves."""

    def events(sent: dict[str, Any]) -> Mapping[str, Any]:
        assert sent["Filters"] == {"FailedEvents": True}
        name = sent["StackName"].split("/")[1].replace("-", "_")
        return {"OperationEvents": [_told(f"{name}-{n}", each) for n, each in enumerate(events_of.get(name, []))]}

    return answering(api, {"cloudformation:DescribeEvents": events})


def test_failures_of_nested_stacks_are_read_without_their_histories() -> None:
    api = RecordedStack("ROLLBACK_COMPLETE")
    child = api.nest("VpcStack", "ROLLBACK_COMPLETE")
    echo = failed(
        "VpcStack", f"Embedded stack {arn(child)} was not created", PhysicalResourceId=arn(child), ResourceType=NESTED
    )
    back = [event(status, time=NOW + timedelta(minutes=1)) for status in BACK]
    api.events[NAME] = [event("CREATE_IN_PROGRESS"), echo, *back]
    of_child = {"StackId": arn(child), "StackName": child}
    old = {**failed("Old"), **of_child, "Timestamp": NOW - timedelta(hours=1)}
    planned = {**failed("Planned"), **of_child, "OperationType": "CREATE_CHANGESET"}
    one = {**failed("Vpc", "no more VPCs"), **of_child, "Timestamp": NOW, "OperationType": "CREATE_STACK"}
    later = {**failed("Subnet", "later"), **of_child, "Timestamp": NOW + timedelta(seconds=1)}
    account = failures(api, kubernetes=[echo], kubernetes_VpcStack_1=[later, old, one, planned]).account
    found = diagnose(account, STACK_ID)
    assert names(found.cause, *found.others) == ["Vpc", "Subnet"]
    assert found.cause is not None
    assert found.cause.event.path == ("VpcStack",)


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAction", "UnknownOperation", "UnsupportedOperation"])
def test_where_failures_are_not_found_by_themselves_all_is_read(code: str) -> None:
    api = RecordedStack("ROLLBACK_COMPLETE")
    api.events[NAME] = [event("CREATE_IN_PROGRESS"), failed("A"), *map(event, BACK)]
    refusal = RefusedError(code, status=403 if code == "AccessDenied" else 400)
    account = answering(api, {"cloudformation:DescribeEvents": refusal}).account
    assert names(diagnose(account, STACK_ID).cause) == ["A"]


def test_other_errors_of_that_call_are_errors() -> None:
    api = RecordedStack("ROLLBACK_COMPLETE")
    api.events[NAME] = [event("CREATE_IN_PROGRESS"), *map(event, BACK)]
    with pytest.raises(AwsError, match="oops"):
        diagnose(answering(api, {"cloudformation:DescribeEvents": RefusedError("Boom", "oops")}).account, STACK_ID)
