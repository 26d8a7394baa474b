"""When a watch believes that an operation has ended, what it calls the end, and what it answers to Ctrl-C."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from recorded import NOW, STACK_ID, RefusedError
from recorded_stack import NAME, RecordedStack, Told, event

from cfngen.deploy.aws.stacks import NoStackError
from cfngen.deploy.messages.message import Event
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import InterruptChoice, PollingBudget, WatchEndedError, WatchResult, watch

QUIET = PollingBudget(tick=60)  # no messages in which only time passes
UPDATING = "UPDATE_IN_PROGRESS"
UPDATED = "UPDATE_COMPLETE"


def recorded(status: str, *events: dict[str, Any] | str) -> RecordedStack:
    api = RecordedStack(status)
    api.events[NAME] = [event(each) if isinstance(each, str) else each for each in events]
    return api


def follow(api: RecordedStack, told: Told | None = None, **options: Any) -> WatchResult:
    told = told or Told()
    options = {"budget": QUIET, "on_interrupt": lambda: told.choice, **options}
    return watch(api.account, options.pop("stack", STACK_ID), report=told.messages.append, **options)


def looks(api: RecordedStack) -> int:
    return len(api.named("DescribeStacks"))


def after(api: RecordedStack, seconds: float, status: str, *events: str) -> None:
    """Let something happen after so many seconds of waiting."""
    sleep, pending = api.clock.sleep, [True]

    def waits(duration: float) -> None:
        sleep(duration)
        if pending and sum(api.clock.slept) >= seconds:
            pending.clear()
            assert api.stack is not None
            api.stack["StackStatus"] = status
            api.events[NAME] += [event(each) for each in events]

    api.clock.sleep = waits  # type: ignore[method-assign]


class TestTheEndIsBelieved:
    def test_at_once_where_status_and_events_agree(self) -> None:
        api = recorded(UPDATED, UPDATING, UPDATED)
        assert follow(api).status.name == UPDATED
        assert looks(api) == 1
        assert api.clock.slept == []

    def test_after_minutes_where_events_speak_of_work_and_the_status_does_not(self) -> None:
        api = recorded(UPDATED, UPDATING)
        outcome = follow(api)
        assert (outcome.status.name, outcome.succeeded) == (UPDATED, True)
        # Eight minutes, in which the status could be one that is not yet told everywhere.
        assert sum(api.clock.slept) == 495

    def test_not_before_the_operation_that_has_begun_is_seen_in_the_status(self) -> None:
        api = recorded("CREATE_COMPLETE", UPDATING)
        after(api, 480, UPDATED, UPDATED)
        assert follow(api).status.name == UPDATED

    @pytest.mark.parametrize("status", ["CREATE_COMPLETE", UPDATED])
    def test_after_some_looks_where_nothing_happens(self, status: str) -> None:
        api = recorded(status, UPDATED)
        outcome = follow(api, since=NOW.replace(year=2027))
        assert (outcome.action, outcome.events) == ("none", ())
        assert looks(api) == 5
        assert sum(api.clock.slept) == 20

    def test_not_while_the_creation_has_not_shown_in_the_stack(self) -> None:
        api = recorded("REVIEW_IN_PROGRESS", "REVIEW_IN_PROGRESS")
        assert follow(api).action == "none"
        assert looks(api) == 5

    def test_an_empty_stack_that_was_at_work_goes_on(self) -> None:
        """A stale read between others, before any event."""
        api = recorded("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS")
        after(api, 5, "REVIEW_IN_PROGRESS")
        stale = api.clock.sleep

        def waits(seconds: float) -> None:
            stale(seconds)
            if sum(api.clock.slept) >= 60 and api.stack and api.stack["StackStatus"] != "CREATE_COMPLETE":
                api.stack["StackStatus"] = "CREATE_COMPLETE"
                api.events[NAME] += [event("CREATE_IN_PROGRESS"), event("CREATE_COMPLETE")]

        api.clock.sleep = waits  # type: ignore[method-assign]
        assert follow(api).action == "create"

    def test_after_some_quick_looks_where_the_last_event_is_another_end(self) -> None:
        api = recorded("UPDATE_ROLLBACK_COMPLETE", UPDATING, "UPDATE_FAILED")
        follow(api)
        # The first comes with events; the others are two seconds apart.
        assert api.clock.slept == [2.0] * 5

    def test_later_where_events_still_come(self) -> None:
        api = recorded("UPDATE_ROLLBACK_COMPLETE", UPDATING, "UPDATE_FAILED")
        after(api, 8, "UPDATE_ROLLBACK_COMPLETE", "UPDATE_FAILED")
        outcome = follow(api)
        assert len(outcome.events) == 3
        assert sum(api.clock.slept) == 18

    def test_a_stack_that_nobody_knows_is_looked_for_a_while(self) -> None:
        api = recorded(UPDATED, UPDATED)
        with pytest.raises(NoStackError):
            follow(api, stack="other")
        assert looks(api) == 5

    def test_a_stack_that_is_known_a_moment_later_is_followed(self) -> None:
        api = recorded(UPDATED, UPDATING, UPDATED)
        answers = iter([RefusedError("ValidationError", "Stack does not exist")] * 4)
        usual = api.answers["DescribeStacks"]

        def late(sent: dict[str, Any]) -> dict[str, Any]:
            for refusal in answers:
                raise refusal
            return usual(sent)

        api.answers["DescribeStacks"] = late
        assert follow(api).succeeded

    def test_one_that_is_not_known_any_more_has_ended(self) -> None:
        api = recorded("DELETE_IN_PROGRESS", "DELETE_IN_PROGRESS")
        told = Told(choice=InterruptChoice.DETACH)
        usual = api.answers["DescribeStacks"]
        seen: list[int] = []

        def forgotten(sent: dict[str, Any]) -> dict[str, Any]:
            seen.append(1)
            if len(seen) > 30:
                raise KeyboardInterrupt
            if len(seen) > 1:
                raise RefusedError("ValidationError", "Stack does not exist")
            return usual(sent)

        api.answers["DescribeStacks"] = forgotten
        outcome = follow(api, told)
        # What was known of it is kept, and nobody is told that it was never there.
        assert (outcome.detached, outcome.status.name) == (True, "DELETE_IN_PROGRESS")


@pytest.mark.parametrize(
    ("events", "action", "succeeded"),
    [
        (("CREATE_IN_PROGRESS", "CREATE_COMPLETE"), "create", True),
        (("CREATE_IN_PROGRESS", "CREATE_FAILED"), "create", False),
        (("CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"), "create", False),
        (("CREATE_IN_PROGRESS", "DELETE_IN_PROGRESS", "DELETE_COMPLETE"), "create", False),
        ((UPDATING, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", UPDATED), "update", True),
        ((UPDATING, "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"), "update", False),
        (("IMPORT_IN_PROGRESS", "IMPORT_COMPLETE"), "import", True),
        (("IMPORT_IN_PROGRESS", "IMPORT_ROLLBACK_IN_PROGRESS", "IMPORT_ROLLBACK_COMPLETE"), "import", False),
        (("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE"), "rollback", True),
        (("UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_FAILED"), "rollback", False),
        (("ROLLBACK_IN_PROGRESS", "ROLLBACK_COMPLETE"), "rollback", True),
        (("ROLLBACK_IN_PROGRESS", "DELETE_COMPLETE"), "rollback", True),
        (("DELETE_IN_PROGRESS", "DELETE_COMPLETE"), "delete", True),
        (("DELETE_IN_PROGRESS", "DELETE_FAILED"), "delete", False),
    ],
)
def test_what_has_ended_and_whether_well(events: Sequence[str], action: str, succeeded: bool) -> None:
    outcome = follow(recorded(events[-1], "CREATE_COMPLETE", *events))
    assert (outcome.action, outcome.succeeded, outcome.status.name) == (action, succeeded, events[-1])
    assert (outcome.stack, outcome.stack_id) == (NAME, STACK_ID)
    assert not outcome.detached
    finished = outcome.finished("deploy", None)
    assert (finished.action, finished.status, finished.outputs, finished.in_progress) == (
        "deploy",
        events[-1],
        {},
        False,
    )


def test_the_last_message_is_about_the_stack_as_it_is_now() -> None:
    api = recorded(UPDATED, UPDATING, UPDATED)
    outcome = follow(api)
    assert api.stack is not None
    api.stack |= {"StackStatus": UPDATING, "Outputs": [{"OutputKey": "Endpoint", "OutputValue": "https://api"}]}
    finished = outcome.finished("update", api.view)
    assert (finished.stack, finished.stack_id, finished.status) == (NAME, STACK_ID, UPDATING)
    assert (finished.succeeded, finished.seconds) == (True, outcome.seconds)
    assert finished.outputs == {"Endpoint": "https://api"}


@pytest.mark.parametrize(
    ("status", "words"),
    [
        ("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", "only replaced resources are still being deleted"),
        ("UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS", "only replaced resources"),
        ("UPDATE_ROLLBACK_IN_PROGRESS", "the operation is already being rolled back"),
        ("ROLLBACK_IN_PROGRESS", "the operation is already being rolled back"),
        ("DELETE_IN_PROGRESS", "a deletion cannot be cancelled"),
        ("IMPORT_IN_PROGRESS", "CloudFormation cannot cancel an operation while the stack is in IMPORT_IN_PROGRESS"),
        (UPDATED, "the operation has ended; the stack is in UPDATE_COMPLETE"),
    ],
)
def test_what_cannot_be_cancelled_goes_on_and_why_is_said(status: str, words: str) -> None:
    api, told = recorded(UPDATING, UPDATING), Told(choice=InterruptChoice.CANCEL)
    interrupted: list[float] = []

    def wait(seconds: float) -> None:
        interrupted.append(seconds)
        assert api.stack is not None
        if len(interrupted) == 1:
            api.stack["StackStatus"] = status
            raise KeyboardInterrupt
        api.stack["StackStatus"] = UPDATED
        api.events[NAME] = [event(UPDATING), event(UPDATED)]

    api.clock.sleep = wait  # type: ignore[method-assign]
    outcome = follow(api, told)
    assert (outcome.cancelled, outcome.detached, outcome.succeeded) == (False, False, True)
    assert len(told.notices) == 1
    assert told.notices[0].startswith("not cancelled: ")
    assert words in told.notices[0]
    assert not api.named("CancelUpdateStack")


@pytest.mark.parametrize("status", ["CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS"])
def test_of_a_creation_only_the_wish_to_end_it_is_noted(status: str) -> None:
    api, told = recorded(status, "REVIEW_IN_PROGRESS"), Told(choice=InterruptChoice.CANCEL)
    api.interrupt_waiting()
    outcome = follow(api, told)
    assert (outcome.cancelled, outcome.detached, outcome.succeeded, outcome.status.name) == (True, False, False, status)
    assert told.notices == []


def cancelling(refusal: RefusedError | None = None) -> tuple[RecordedStack, Told]:
    """An update that the user wants to cancel once, and that ends by itself five seconds later."""
    api, told = recorded(UPDATING, UPDATING), Told(choice=InterruptChoice.CANCEL)
    waited: list[float] = []

    def wait(seconds: float) -> None:
        waited.append(seconds)
        assert api.stack is not None
        if len(waited) == 1:
            raise KeyboardInterrupt
        end = UPDATED if refusal else "UPDATE_ROLLBACK_COMPLETE"
        api.stack["StackStatus"] = end
        api.events[NAME] = [event(UPDATING), event(end)]

    def cancel(_: dict[str, Any]) -> dict[str, Any]:
        if refusal:
            raise refusal
        return {}

    api.clock.sleep = wait  # type: ignore[method-assign]
    api.answers["CancelUpdateStack"] = cancel
    return api, told


def test_an_update_is_cancelled_once_for_each_operation() -> None:
    tokens = []
    for _ in range(2):
        api, told = cancelling()
        outcome = follow(api, told)
        assert (outcome.cancelled, outcome.succeeded) == (True, False)
        assert told.notices == ["the update is being cancelled: its changes so far are rolled back"]
        [sent] = api.named("CancelUpdateStack")
        assert sent["StackName"] == STACK_ID
        tokens.append(sent["ClientRequestToken"])
    # A repetition of the same wish is no second call for CloudFormation.
    assert tokens[0] == tokens[1]
    assert tokens[0].startswith("cfngen-")


@pytest.mark.parametrize(
    ("refusal", "words", "hint"),
    [
        (RefusedError("ValidationError", "cannot be called from current stack status"), "cannot be called", ""),
        (RefusedError("Throttling", "Rate exceeded"), "AWS throttles API calls", "press Ctrl-C to try again."),
        (RefusedError("InternalFailure", "oops", 500), "oops", "press Ctrl-C to try again."),
    ],
)
def test_a_cancellation_that_fails_is_told_and_the_watch_goes_on(refusal: RefusedError, words: str, hint: str) -> None:
    api, told = cancelling(refusal)
    outcome = follow(api, told)
    assert (outcome.cancelled, outcome.succeeded) == (False, True)
    [notice] = [message for message in told.messages if message.kind == "notice"]
    assert words in notice.text  # type: ignore[attr-defined]
    assert notice.hint == hint  # type: ignore[attr-defined]


def test_a_cancellation_that_is_forbidden_ends_the_watch() -> None:
    api, told = cancelling(RefusedError("AccessDenied", "no", 403))
    with pytest.raises(WatchEndedError, match="the operation on the stack kubernetes continues without cfngen"):
        follow(api, told)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        (RefusedError("Throttling", "Rate exceeded"), "AWS throttles API calls: progress is shown less often"),
        (RefusedError("InternalFailure", "oops", 500), "AWS does not answer properly at the moment"),
    ],
)
def test_trouble_is_told_once_for_each_kind_and_slows_the_watch_down(refusal: RefusedError, words: str) -> None:
    api, told = recorded(UPDATED, UPDATING, UPDATED), Told()
    usual, failures = api.answers["DescribeStacks"], iter([refusal] * 4)

    def troubled(sent: dict[str, Any]) -> dict[str, Any]:
        for failure in failures:
            raise failure
        return usual(sent)

    api.answers["DescribeStacks"] = troubled
    assert follow(api, told).succeeded
    [notice] = told.notices
    assert notice.startswith(words)
    # Twice as long is waited each time, half a minute at most.
    assert [seconds for seconds in api.clock.slept if seconds >= 5] == [10, 20, 30, 30]
    progress = [message for message in told.messages if isinstance(message, Progress)]
    assert [bool(message.poll_error) for message in progress] == [True] * 4 + [False]
    assert [message.fresh for message in progress] == [False] * 4 + [True]


def test_after_trouble_it_looks_as_often_as_before_by_and_by() -> None:
    api, told = recorded(UPDATING, UPDATING), Told()
    usual, failures = api.answers["DescribeStacks"], iter([RefusedError("Throttling", "slow")] * 2)

    def troubled(sent: dict[str, Any]) -> dict[str, Any]:
        for failure in failures:
            raise failure
        return usual(sent)

    api.answers["DescribeStacks"] = troubled
    after(api, 200, UPDATED, UPDATED)
    follow(api, told)
    assert [round(seconds, 2) for seconds in api.clock.slept[:6]] == [10, 20, 18, 16.2, 14.58, 13.12]
    assert api.clock.slept[-1] == 5


def test_time_passes_on_the_screen_between_looks() -> None:
    api, told = recorded(UPDATING, UPDATING), Told()
    after(api, 10, UPDATED, UPDATED)
    follow(api, told, budget=PollingBudget(interval=5, tick=2))
    assert api.clock.slept == [2, 2, 1, 2, 2, 1]
    progress = [message for message in told.messages if isinstance(message, Progress)]
    assert [message.fresh for message in progress] == [True, False, False, True, False, False, True]
    assert [message.seconds for message in progress] == [0, 2, 4, 5, 7, 9, 0]
    assert {message.stack for message in progress} == {NAME}
    assert [message.status for message in progress] == [UPDATING] * 6 + [UPDATED]
    assert {message.action for message in progress} == {"update"}


def test_leaving_tells_what_has_happened_so_far() -> None:
    api, told = recorded(UPDATING, UPDATING), Told()
    api.interrupt_waiting()
    outcome = follow(api, told)
    assert (outcome.detached, outcome.cancelled, outcome.succeeded) == (True, False, False)
    assert [message.status for message in told.messages if isinstance(message, Event)] == [UPDATING]
    assert outcome.finished("update", None).in_progress


def test_a_second_ctrl_c_leaves() -> None:
    api = recorded(UPDATING, UPDATING)
    api.interrupt_waiting()

    def again() -> InterruptChoice:
        raise KeyboardInterrupt

    assert follow(api, on_interrupt=again).detached


def test_going_on_after_ctrl_c() -> None:
    api, told = recorded(UPDATING, UPDATING), Told(choice=InterruptChoice.WAIT)
    sleep = api.clock.sleep

    def wait(seconds: float) -> None:
        sleep(seconds)
        if len(api.clock.slept) == 1:
            raise KeyboardInterrupt
        assert api.stack is not None
        api.stack["StackStatus"] = UPDATED
        api.events[NAME] = [event(UPDATING), event(UPDATED)]

    api.clock.sleep = wait  # type: ignore[method-assign]
    assert follow(api, told).succeeded
