"""Taking a stack back: what is asked, what CloudFormation is told, and when it is told again."""

from __future__ import annotations

from typing import Any

import pytest
from recorded import STACK_ID, RefusedError
from recorded_stack import NAME, End, RecordedStack, Told, event, resource

from cfngen.cli.exit_codes import error_exit_code
from cfngen.deploy.aws.rollback_blockers import find_rollback_blockers
from cfngen.deploy.aws.stacks import NoStackError
from cfngen.deploy.messages.message import Event, Notice
from cfngen.deploy.operations.interaction import DeclinedError
from cfngen.deploy.operations.recovery import (
    MAX_ROLLBACK_ATTEMPTS,
    ImportRollbackFailedError,
    NothingToRollBackError,
    rollback,
)
from cfngen.deploy.preflight.stack_checks import BusyError, ForeignStackError
from cfngen.deploy.watching.watch import WatchResult

STUCK = "UPDATE_ROLLBACK_FAILED"
BACK = "UPDATE_ROLLBACK_COMPLETE"
HEALTHY = "CREATE_COMPLETE"


def failing(*names: str) -> dict[str, Any]:
    """A rollback in which these resources fail."""
    return {
        "resources": [resource(name, "UPDATE_FAILED", reason=f"{name} broke") for name in names],
        "events": [event("UPDATE_FAILED", name, reason=f"{name} broke") for name in names],
    }


def stuck(*names: str, ends: tuple[End, ...] = ()) -> RecordedStack:
    api = RecordedStack(STUCK, *ends)
    first = failing(*names)
    api.resources[NAME] = first["resources"]
    api.events[NAME] = [
        event("UPDATE_IN_PROGRESS"),
        event("UPDATE_ROLLBACK_IN_PROGRESS"),
        *first["events"],
        event(STUCK),
    ]
    return api


def back(api: RecordedStack, told: Told | None = None, **options: Any) -> WatchResult:
    return rollback(api.account, NAME, NAME, (told or Told()).waiting, **options)


def skipped(api: RecordedStack) -> list[list[str]]:
    return [
        [value for key, value in sent.items() if key.startswith("ResourcesToSkip")]
        for sent in api.named("ContinueUpdateRollback")
    ]


def test_a_rollback_is_tried_again_without_skipping_anything() -> None:
    api, told = stuck("Vpc", ends=(End(BACK),)), Told()
    outcome = back(api, told)
    assert (outcome.status.name, outcome.action, outcome.succeeded) == (BACK, "rollback", True)
    [sent] = api.named("ContinueUpdateRollback")
    assert sent["StackName"] == STACK_ID
    assert skipped(api) == [[]]
    [question] = told.questions
    assert question.text == f"Continue the rollback of {NAME}?"
    assert not question.dangerous
    assert question.consequences == ("the rollback is tried again; first fix what made it fail",)
    # Of the operations before, nothing is told.
    shown = [message.status for message in told.messages if isinstance(message, Event)]
    assert shown == ["UPDATE_ROLLBACK_IN_PROGRESS", BACK]


def test_what_is_named_is_skipped_and_told_to_be_left_as_it_is() -> None:
    api, told = stuck("Vpc", "Volume", ends=(End(STUCK, **failing("Vpc")),)), Told()
    assert back(api, told, skip=("Volume", "Nested.Vpc")).status.name == STUCK
    assert skipped(api) == [["Volume", "Nested.Vpc"]]
    [question] = told.questions
    assert question.dangerous
    assert [text.partition(" is left unchanged")[0] for text in question.consequences] == ["Volume", "Nested.Vpc"]


def test_each_round_of_a_forced_rollback_skips_what_failed_in_the_one_before() -> None:
    rounds = (End(STUCK, **failing("Vpc", "Volume")), End(STUCK, **failing("Eip")), End(BACK, resources=()))
    api, told = stuck("Vpc", ends=rounds), Told()
    assert back(api, told, force=True, skip=("Named",)).status.name == BACK
    assert skipped(api) == [["Named", "Vpc"], ["Named", "Vpc", "Volume"], ["Named", "Eip"]]
    assert len(told.questions) == 3
    assert all(question.dangerous for question in told.questions)
    # Another token for each call, or CloudFormation takes the later ones for repetitions of the first.
    assert len({sent["ClientRequestToken"] for sent in api.named("ContinueUpdateRollback")}) == 3


def test_a_forced_rollback_ends_where_skipping_does_not_help() -> None:
    api = stuck("Vpc", ends=(End(STUCK, **failing("Vpc")), End(BACK)))
    assert back(api, force=True).status.name == STUCK
    assert skipped(api) == [["Vpc"]]


def test_a_forced_rollback_is_given_up_after_some_rounds() -> None:
    ends = tuple(End(STUCK, **failing(f"R{number}")) for number in range(1, 20))
    api = stuck("R0", ends=ends)
    assert back(api, force=True).status.name == STUCK
    assert len(skipped(api)) == MAX_ROLLBACK_ATTEMPTS


def test_a_forced_rollback_that_is_left_is_not_begun_again() -> None:
    api, told = stuck("Vpc", ends=(End("UPDATE_ROLLBACK_IN_PROGRESS", **failing("Eip")),)), Told()
    api.interrupt_waiting()
    assert back(api, told, force=True).detached
    assert len(skipped(api)) == 1


def test_a_repeated_question_may_be_declined() -> None:
    told = Told(answer=False)
    api = stuck("Vpc")
    with pytest.raises(DeclinedError):
        back(api, told, force=True)
    assert skipped(api) == []


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (HEALTHY, NothingToRollBackError),
        (BACK, NothingToRollBackError),
        ("ROLLBACK_COMPLETE", NothingToRollBackError),
        ("DELETE_FAILED", NothingToRollBackError),
        ("REVIEW_IN_PROGRESS", NothingToRollBackError),
        ("UPDATE_IN_PROGRESS", BusyError),
        ("IMPORT_ROLLBACK_FAILED", ImportRollbackFailedError),
        ("DELETE_COMPLETE", NoStackError),
    ],
)
def test_from_other_statuses_nothing_is_asked_of_cloudformation(status: str, error: type[Exception]) -> None:
    api, told = RecordedStack(status, cluster="" if status == "REVIEW_IN_PROGRESS" else NAME), Told()
    with pytest.raises(error):
        back(api, told)
    assert not told.questions
    assert not {"ContinueUpdateRollback", "RollbackStack", "DeleteStack"} & {name for name, _ in api.calls}


def test_the_stack_of_another_cluster_is_left_alone() -> None:
    api = RecordedStack(STUCK, cluster="other")
    with pytest.raises(ForeignStackError, match="belongs to the cluster other"):
        back(api)


def test_from_where_a_healthy_stack_goes_back_is_said_in_words() -> None:
    with pytest.raises(NothingToRollBackError) as raised:
        back(RecordedStack(HEALTHY))
    assert "check out the earlier cluster file" in str(raised.value.hint)
    with pytest.raises(NothingToRollBackError) as raised:
        back(RecordedStack("DELETE_FAILED"))
    assert "cfngen delete --stack-name kubernetes" in str(raised.value.hint)


BEGINNING = ("REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_FAILED")


@pytest.mark.parametrize(
    ("history", "deletes"),
    [
        (("CREATE_IN_PROGRESS", "CREATE_FAILED"), True),
        ((*BEGINNING, "UPDATE_IN_PROGRESS", "UPDATE_FAILED"), True),
        (("REVIEW_IN_PROGRESS", "UPDATE_IN_PROGRESS", "UPDATE_FAILED"), True),
        (("CREATE_IN_PROGRESS", HEALTHY, "UPDATE_IN_PROGRESS", "UPDATE_FAILED"), False),
        ((*BEGINNING, "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE", "UPDATE_IN_PROGRESS", "UPDATE_FAILED"), False),
        # Its beginning is forgotten.
        (("UPDATE_IN_PROGRESS", "UPDATE_FAILED"), False),
    ],
)
def test_a_stack_that_never_succeeded_is_rolled_back_by_deleting_it(history: tuple[str, ...], deletes: bool) -> None:
    api, told = RecordedStack(history[-1], End("DELETE_COMPLETE" if deletes else BACK), protected=True), Told()
    # Nested stacks succeed before the root does.
    child = {**event(HEALTHY, "VpcStack"), "PhysicalResourceId": "arn:aws:cloudformation:::stack/child/1"}
    api.events[NAME] = [*map(event, history[:-1]), child, event(history[-1])]
    outcome = back(api, told)
    assert outcome.succeeded
    [question] = told.questions
    assert question.text == f"Roll back {NAME}?"
    assert question.dangerous == deletes
    assert ("deletes everything" in question.consequences[0]) == deletes
    assert bool(api.named("UpdateTerminationProtection")) == deletes
    [sent] = api.named("RollbackStack")
    assert sent["StackName"] == STACK_ID
    assert sent["ClientRequestToken"].startswith("cfngen-")
    shown = [message.status for message in told.messages if isinstance(message, Event) and message.of_stack]
    assert shown == ["UPDATE_ROLLBACK_IN_PROGRESS", "DELETE_COMPLETE" if deletes else BACK]


def test_only_what_a_failed_creation_leaves_is_looked_for_afterwards() -> None:
    created, updated = ("CREATE_IN_PROGRESS", "CREATE_FAILED"), (HEALTHY, "UPDATE_FAILED")
    ends = ((updated, BACK, False), (created, "DELETE_COMPLETE", True), (created, "DELETE_IN_PROGRESS", False))
    for history, end, looked in ends:
        kept = resource("Volume", "DELETE_SKIPPED", type_="AWS::EC2::Volume")
        api, told = RecordedStack(history[-1], End(end, resources=[kept])), Told()
        api.interrupt_waiting()
        api.events[NAME] = [event(status) for status in history]
        back(api, told)
        # Nobody here may ask EC2 about the volume's snapshots, which is said.
        notices = [message.text for message in told.messages if isinstance(message, Notice)]
        assert any(notice.startswith("could not find out what earlier stacks left") for notice in notices) == looked


class TestBlockers:
    def test_each_is_named_with_its_reason(self) -> None:
        api = stuck("Vpc", "Volume")
        assert find_rollback_blockers(api.account, api.view) == {"Vpc": "Vpc broke", "Volume": "Volume broke"}

    def test_what_did_not_fail_is_none(self) -> None:
        api = stuck("Vpc")
        api.resources[NAME] += [resource("Gateway", "UPDATE_COMPLETE"), resource("Eip", "CREATE_FAILED")]
        assert set(find_rollback_blockers(api.account, api.view)) == {"Vpc"}

    def test_of_a_stack_in_which_nothing_failed_no_events_are_read(self) -> None:
        api = stuck()
        assert find_rollback_blockers(api.account, api.view) == {}
        assert not api.named("DescribeStackEvents")

    @pytest.mark.parametrize(
        "later",
        [
            event("UPDATE_FAILED", "Vpc", reason="Resource update cancelled"),
            event("UPDATE_COMPLETE", "Vpc"),
        ],
    )
    def test_what_was_given_up_or_is_restored_cannot_be_skipped(self, later: dict[str, Any]) -> None:
        api = stuck("Vpc", "Volume")
        api.events[NAME].append(later)
        assert set(find_rollback_blockers(api.account, api.view)) == {"Volume"}

    def test_what_failed_before_the_newest_rollback_cannot_be_skipped(self) -> None:
        api = stuck("Vpc")
        api.events[NAME] += [
            event("UPDATE_ROLLBACK_IN_PROGRESS"),
            # A nested stack's own rollback is no boundary.
            event("UPDATE_FAILED", "Volume"),
            event("UPDATE_ROLLBACK_IN_PROGRESS", "VpcStack"),
            event(STUCK),
        ]
        api.resources[NAME].append(resource("Volume", "UPDATE_FAILED"))
        assert set(find_rollback_blockers(api.account, api.view)) == {"Volume"}

    def test_those_of_a_nested_stack_bear_its_name(self) -> None:
        api = stuck("Vpc")
        child = api.nest("VpcStack", STUCK, resource("Route", "UPDATE_FAILED", reason="no route"))
        api.events[child] = [event("UPDATE_FAILED", "Route", stack=child)]
        assert find_rollback_blockers(api.account, api.view) == {"Vpc": "Vpc broke", f"{child}.Route": "no route"}

    @pytest.mark.parametrize("status", ["DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED"])
    def test_a_nested_stack_that_is_being_deleted_is_skipped_as_a_whole(self, status: str) -> None:
        api = stuck("Vpc")
        child = api.nest("VpcStack", status, resource("Route", "UPDATE_FAILED"))
        api.events[child] = [event("UPDATE_FAILED", "Route", stack=child)]
        assert find_rollback_blockers(api.account, api.view) == {"Vpc": "Vpc broke", "VpcStack": "VpcStack failed"}

    def test_one_that_is_not_there_any_more_is_skipped_as_a_whole(self) -> None:
        api = stuck()
        api.children.pop(api.nest("VpcStack", STUCK))
        assert find_rollback_blockers(api.account, api.view) == {"VpcStack": "VpcStack failed"}

    def test_a_nested_stack_that_never_came_about_is_a_resource_as_any_other(self) -> None:
        api = stuck("VpcStack")
        api.resources[NAME][0]["ResourceType"] = "AWS::CloudFormation::Stack"
        api.resources[NAME][0].pop("PhysicalResourceId")
        assert find_rollback_blockers(api.account, api.view) == {"VpcStack": "VpcStack broke"}


@pytest.mark.parametrize(
    ("token", "note", "since"),
    [
        ("cfngen-plan-one", True, "started by arn:aws:iam::123456789012:user/operator"),
        ("console", True, "not started by a deployment of cfngen"),
    ],
)
def test_who_is_at_work_and_since_when_is_said(token: str, note: bool, since: str) -> None:
    api = RecordedStack("UPDATE_IN_PROGRESS")
    api.events[NAME] = [event(HEALTHY), event("UPDATE_IN_PROGRESS", token=token)]
    api.change_sets[token] = {
        "Description": "cfngen: the cluster kubernetes, by arn:aws:iam::123456789012:user/operator"
    }
    with pytest.raises(BusyError) as raised:
        back(api)
    message = str(raised.value)
    assert f"the stack {NAME} is in UPDATE_IN_PROGRESS since 12:00 UTC (less than a minute ago), {since}" in message
    assert "cfngen watch --stack-name kubernetes" in str(raised.value.hint)
    assert error_exit_code(raised.value.code) == 6


def test_who_may_not_read_events_is_told_of_the_operation_alone() -> None:
    api = RecordedStack("UPDATE_IN_PROGRESS")

    def refused(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("AccessDenied", status=403)

    api.answers["DescribeStackEvents"] = refused
    with pytest.raises(BusyError) as raised:
        back(api)
    assert str(raised.value) == f"another operation is in progress: the stack {NAME} is in UPDATE_IN_PROGRESS"
