"""Where a deployment can begin: what is refused, waited for, asked or told in each status of the stack."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import NOW, STACK_ID
from recorded_stack import NAME, End, RecordedStack, Told, event, resource

from cfngen.deploy.aws.planning_account import PlanningAccount
from cfngen.deploy.aws.stacks import CLUSTER_TAG, StackView
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.recovery import (
    BlockedError,
    FailedCreationError,
    ImportRollbackFailedError,
    ensure_deployable,
)
from cfngen.deploy.preflight.stack_checks import BusyError, ForeignStackError, NameConflictError
from cfngen.deploy.watching.watch import InterruptChoice

CHANGES = {"DeleteStack", "ContinueUpdateRollback", "RollbackStack", "UpdateTerminationProtection"}
SOMEBODY = "arn:aws:iam::123456789012:user/colleague"


def begin(api: RecordedStack, told: Told | None = None) -> StackView | None:
    return ensure_deployable(api.account, NAME, NAME, (told or Told()).waiting)


def changes(api: RecordedStack) -> list[str]:
    return [name for name, _ in api.calls if name in CHANGES]


def planned_by_somebody(api: RecordedStack) -> None:
    note = f"cfngen: the cluster {NAME}, by {SOMEBODY}"
    usual = {"ChangeSetName": "one", "Status": "CREATE_COMPLETE", "ExecutionStatus": "AVAILABLE", "CreationTime": NOW}
    api.summaries = [{**usual, "Description": note}]


@pytest.mark.parametrize(
    ("status", "notices"),
    [
        ("CREATE_COMPLETE", []),
        ("UPDATE_COMPLETE", []),
        ("IMPORT_ROLLBACK_COMPLETE", []),
        ("UPDATE_ROLLBACK_COMPLETE", ["the last update of kubernetes was rolled back; this is a new update"]),
        ("CREATE_FAILED", ["kubernetes is in CREATE_FAILED: this continues where the last operation failed"]),
        ("UPDATE_FAILED", ["kubernetes is in UPDATE_FAILED: this continues where the last operation failed"]),
    ],
)
def test_a_stack_that_can_be_updated_is_returned(status: str, notices: list[str]) -> None:
    api, told = RecordedStack(status), Told()
    planned_by_somebody(api)
    found = begin(api, told)
    assert found is not None
    assert (found.id, found.status.name) == (STACK_ID, status)
    others = f"{SOMEBODY} has been planning"
    assert len(told.notices) == len(notices) + 1
    assert all(text.startswith(start) for text, start in zip(told.notices, [*notices, others], strict=True))
    assert not changes(api)


@pytest.mark.parametrize(
    ("status", "error", "words"),
    [
        ("UPDATE_IN_PROGRESS", BusyError, "another operation is in progress"),
        ("DELETE_IN_PROGRESS", BusyError, "another operation is in progress"),
        ("SOMETHING_NEW", BusyError, "another operation is in progress"),
        ("UPDATE_ROLLBACK_FAILED", BlockedError, "the rollback of its last update failed"),
        ("IMPORT_ROLLBACK_FAILED", ImportRollbackFailedError, "an import into it failed"),
        ("DELETE_FAILED", BlockedError, "its deletion failed half-way"),
    ],
)
def test_a_status_that_must_be_left_first_is_refused(status: str, error: type[Exception], words: str) -> None:
    api = RecordedStack(status)
    with pytest.raises(error, match=words) as raised:
        begin(api)
    assert f"cfngen {'watch' if error is BusyError else ''}" in str(raised.value.hint)  # type: ignore[attr-defined]
    assert not changes(api)


def test_where_there_is_no_stack_there_is_nothing_to_wait_for() -> None:
    assert begin(RecordedStack("DELETE_COMPLETE", cluster="other")) is None


def test_the_stack_of_another_cluster_is_left_alone() -> None:
    for status in ("CREATE_COMPLETE", "ROLLBACK_COMPLETE", "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"):
        with pytest.raises(ForeignStackError):
            begin(RecordedStack(status, cluster="other"))


def test_an_empty_stack_is_nobodys_and_others_who_plan_in_it_are_named() -> None:
    api, told = RecordedStack("REVIEW_IN_PROGRESS", cluster=""), Told()
    planned_by_somebody(api)
    assert begin(api, told) is None
    assert [text.partition(" has ")[0] for text in told.notices] == [SOMEBODY]


@pytest.mark.parametrize("status", ["", "REVIEW_IN_PROGRESS", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED"])
def test_no_second_cluster_of_a_name_is_created(status: str) -> None:
    api = RecordedStack(status or "DELETE_COMPLETE", cluster=NAME if "ROLLBACK" in status else "")
    other = {"StackName": "two", "StackId": "arn:two", "StackStatus": "CREATE_COMPLETE", "CreationTime": NOW}
    api.others = [
        {**other, "Tags": [{"Key": CLUSTER_TAG, "Value": NAME}]},
        # Neither an empty stack, nor one that was rolled back whole, nor a nested stack is in anybody's way.
        {**other, "StackName": "three", "StackStatus": "REVIEW_IN_PROGRESS", "Tags": api.stack["Tags"]},
        {
            **other,
            "StackName": "four",
            "StackStatus": "ROLLBACK_COMPLETE",
            "Tags": [{"Key": CLUSTER_TAG, "Value": NAME}],
        },
        {**other, "StackName": "five", "ParentId": "arn:two", "Tags": [{"Key": CLUSTER_TAG, "Value": NAME}]},
        {**other, "StackName": "six", "Tags": [{"Key": CLUSTER_TAG, "Value": "another"}]},
    ]
    with pytest.raises(NameConflictError, match="already exists in the stack two: ") as raised:
        begin(api)
    assert raised.value.stacks == ("two",)
    assert "choose another `name`" in raised.value.hint
    assert not changes(api)


@pytest.mark.parametrize("after", ["UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE"])
def test_the_end_of_a_cleanup_is_waited_for(after: str) -> None:
    during = f"{after}_CLEANUP_IN_PROGRESS"
    api, told = RecordedStack(during), Told()
    api.events[NAME] = [event("UPDATE_IN_PROGRESS"), event(during)]
    sleep = api.clock.sleep

    def finish(seconds: float) -> None:
        sleep(seconds)
        if len(api.clock.slept) > 12:
            assert api.stack is not None
            api.stack["StackStatus"] = after
            api.events[NAME] += [event(after)] if api.events[NAME][-1]["ResourceStatus"] != after else []

    api.clock.sleep = finish  # type: ignore[method-assign]
    found = begin(api, told)
    assert found is not None
    assert found.status.name == after
    assert told.steps == [f"waiting for {NAME} to finish {during}"]


def test_a_cleanup_that_is_left_is_still_under_way() -> None:
    api, told = RecordedStack("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"), Told(choice=InterruptChoice.DETACH)
    api.interrupt_waiting()
    with pytest.raises(BusyError):
        begin(api, told)


def dead(status: str, *ends: End, **options: Any) -> RecordedStack:
    api = RecordedStack(status, *ends, **options)
    api.resources[NAME] = [
        resource("Vpc", "DELETE_FAILED"),
        resource("Gateway", "DELETE_COMPLETE"),
        resource("Bucket", "DELETE_SKIPPED", type_="AWS::S3::Bucket"),
    ]
    return api


@pytest.mark.parametrize(("status", "dangerous"), [("ROLLBACK_COMPLETE", False), ("ROLLBACK_FAILED", True)])
def test_the_remains_of_a_creation_are_deleted_with_consent(status: str, dangerous: bool) -> None:
    api, told = dead(status, End("DELETE_COMPLETE"), protected=True), Told()
    assert begin(api, told) is None
    [question] = told.questions
    assert question.text == f"Delete the remains of {NAME} and create it again?"
    assert question.dangerous == dangerous
    assert question.consequences[0].startswith(f"{NAME} is in {status}: its creation failed")
    assert question.consequences[1] == "it still contains: Vpc, Bucket"
    assert changes(api) == ["UpdateTerminationProtection", "DeleteStack"]
    [sent] = api.named("UpdateTerminationProtection")
    assert (sent["StackName"], sent["EnableTerminationProtection"]) == (STACK_ID, "false")
    [sent] = api.named("DeleteStack")
    assert sent["StackName"] == STACK_ID
    assert sent["ClientRequestToken"].startswith("cfngen-")
    assert told.steps == [f"deleting the remains of {NAME}"]


def test_that_nothing_is_left_is_said() -> None:
    api, told = RecordedStack("ROLLBACK_COMPLETE", End("DELETE_COMPLETE")), Told()
    assert begin(api, told) is None
    assert told.questions[0].consequences[1] == "it no longer contains resources"
    assert changes(api) == ["DeleteStack"]


def test_only_a_bucket_with_snapshots_in_it_is_no_reason_for_caution() -> None:
    api, told = RecordedStack("ROLLBACK_FAILED", End("DELETE_COMPLETE")), Told()
    api.resources[NAME] = [resource("Bucket", "DELETE_FAILED", type_="AWS::S3::Bucket")]
    begin(api, told)
    assert not told.questions[0].dangerous


def test_whoever_declines_keeps_the_remains() -> None:
    api = dead("ROLLBACK_COMPLETE")
    with pytest.raises(DeclinedError, match="nothing was changed: you declined"):
        begin(api, Told(answer=False))
    assert not changes(api)


def test_remains_that_cannot_be_deleted_are_for_delete() -> None:
    api = dead("ROLLBACK_COMPLETE", End("DELETE_FAILED"))
    with pytest.raises(BlockedError, match="in DELETE_FAILED: what its failed creation left could not be removed"):
        begin(api)


def test_who_leaves_while_the_remains_are_deleted_deploys_later() -> None:
    api = dead("ROLLBACK_COMPLETE", End("DELETE_IN_PROGRESS"))
    api.interrupt_waiting()
    with pytest.raises(BusyError, match="the stack kubernetes is in DELETE_IN_PROGRESS since 12:01 UTC"):
        begin(api)


@pytest.mark.parametrize("left", [("Vpc", "Bucket"), ()])
def test_a_plan_only_names_the_remains(left: tuple[str, ...]) -> None:
    api = dead("ROLLBACK_COMPLETE") if left else RecordedStack("ROLLBACK_COMPLETE")
    with pytest.raises(FailedCreationError) as raised:
        ensure_deployable(PlanningAccount.of(api.account), NAME, NAME, Told().waiting)
    assert (raised.value.plan.status, raised.value.plan.remains) == ("ROLLBACK_COMPLETE", left)
    assert "cfngen delete --stack-name kubernetes" in str(raised.value.hint)
    assert not changes(api)
