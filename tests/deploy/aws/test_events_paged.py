"""Reading the events of a tree of stacks page by page: which are read, in which order, and when no more are to come."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from recorded import NESTED, NOW, STACK_ID, Recorded, RefusedError
from recorded_stack import NAME, arn, event

from cfngen.deploy.aws.errors import AwsError
from cfngen.deploy.aws.events import (
    MAX_EMPTY_READS,
    StackEvents,
    TreeEvents,
    parse_event,
    read_all_events,
    read_history,
    read_last_event,
)
from cfngen.deploy.aws.operation_events import LastOperation, all_events, is_at_rest, since_event, since_time
from cfngen.deploy.messages.message import Event

CHILD = f"{NAME}-VpcStack-1"
Entry = str | dict[str, Any]


class Histories(Recorded):
    """Histories of stacks, in pages.

    Attributes:
        stacks: events by the stack's name, oldest first.
        page: events in a page.
    """

    def __init__(
        self, *root: str | dict[str, Any], child: tuple[str | dict[str, Any], ...] = (), page: int = 3
    ) -> None:
        super().__init__()
        self.page = page
        self.stacks: dict[str, list[dict[str, Any]]] = {NAME: [], CHILD: []}
        self.add(*root)
        self.add(*child, stack=CHILD)
        self.answers["DescribeStackEvents"] = self._page

    def add(self, *entries: Entry, stack: str = NAME, at: int | None = None) -> None:
        for entry in entries:
            made = event(entry, stack, stack=stack) if isinstance(entry, str) else entry
            number = len(self.stacks[stack])
            time = NOW + timedelta(seconds=number if at is None else at)
            self.stacks[stack].append({"EventId": f"{stack}-{number}", **made, "Timestamp": time})

    def _page(self, sent: dict[str, Any]) -> dict[str, Any]:
        name = sent["StackName"].split("/")[1]
        begin = int(sent.get("NextToken", 0))
        entries = self.stacks[name][::-1]
        following = {"NextToken": str(begin + self.page)} if begin + self.page < len(entries) else {}
        return {"StackEvents": entries[begin : begin + self.page], **following}

    @property
    def pages(self) -> list[tuple[str, str]]:
        """Which pages were read of which stack."""
        return [
            (sent["StackName"].split("/")[1], sent.get("NextToken", "")) for sent in self.named("DescribeStackEvents")
        ]

    def reader(self, scope: Any = all_events, path: tuple[str, ...] = ()) -> StackEvents:
        return StackEvents(self.account, STACK_ID, path, scope)


def nested(status: str, **more: Any) -> dict[str, Any]:
    """What the root says of the nested stack."""
    return {**event(status, "VpcStack"), "PhysicalResourceId": arn(CHILD), "ResourceType": NESTED, **more}


def of_child(status: str, name: str = "Vpc") -> dict[str, Any]:
    return event(status, name, stack=CHILD)


def numbers(events: list[Event]) -> list[int]:
    return [int(event.id.rpartition("-")[2]) for event in events]


UPDATING, UPDATED = "UPDATE_IN_PROGRESS", "UPDATE_COMPLETE"


def test_nothing_is_told_before_there_is_no_gap() -> None:
    api = Histories(*["UPDATE_IN_PROGRESS"] * 7)
    reader = api.reader()
    assert reader.read_page() == []
    assert reader.has_more_pages
    assert reader.read_page() == []
    assert numbers(reader.read_page()) == [0, 1, 2, 3, 4, 5, 6]
    assert not reader.has_more_pages
    assert api.pages == [(NAME, ""), (NAME, "3"), (NAME, "6")]


def test_a_later_look_ends_at_what_is_known() -> None:
    api = Histories(UPDATING, event(UPDATING, "Vpc"))
    reader = api.reader()
    assert numbers(reader.read_page()) == [0, 1]
    assert reader.read_page() == []
    api.add(*[event(UPDATING, f"R{number}") for number in range(4)])
    assert reader.read_page() == []
    assert numbers(reader.read_page()) == [2, 3, 4, 5]
    api.add(UPDATED)
    assert numbers(reader.read_page()) == [6]
    assert reader.last_stack_event is not None
    assert reader.last_stack_event.status == UPDATED


def test_what_moves_to_the_next_page_meanwhile_is_told_once() -> None:
    api = Histories(*[event(UPDATING, f"R{number}") for number in range(5)])
    reader = api.reader()
    assert reader.read_page() == []
    api.add(event(UPDATING, "New"))
    assert numbers(reader.read_page()) == [0, 1, 2, 3, 4]
    assert numbers(reader.read_page()) == [5]


def test_a_token_that_has_ended_begins_again() -> None:
    api = Histories(*[event(UPDATING, f"R{number}") for number in range(5)])
    reader = api.reader()
    assert reader.read_page() == []
    page, refusals = api.answers["DescribeStackEvents"], [RefusedError("ValidationError", "token has expired")]

    def expired(sent: dict[str, Any]) -> dict[str, Any]:
        if "NextToken" in sent and refusals:
            raise refusals.pop()
        return page(sent)

    api.answers["DescribeStackEvents"] = expired
    assert reader.read_page() == []
    assert not reader.has_more_pages
    assert reader.read_page() == []
    assert numbers(reader.read_page()) == [0, 1, 2, 3, 4]
    assert [token for _, token in api.pages] == ["", "3", "", "3"]


@pytest.mark.parametrize(
    ("refusal", "tolerated"),
    [
        (RefusedError("ValidationError", "Stack [x] does not exist"), True),
        (RefusedError("ValidationError", "another rule"), False),
        (RefusedError("AccessDenied", "does not exist", 403), False),
    ],
)
def test_a_stack_that_is_not_known_everywhere_yet_has_no_events(refusal: RefusedError, tolerated: bool) -> None:
    api = Histories()

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise refusal

    api.answers["DescribeStackEvents"] = refuse
    reader = api.reader()
    if tolerated:
        assert reader.read_page() == []
        return
    with pytest.raises(Exception, match=refusal.code):
        reader.read_page()


@pytest.mark.parametrize(
    ("scope", "expected"),
    [
        (all_events, [0, 1, 2, 3, 4]),
        (since_time(NOW + timedelta(seconds=2)), [2, 3, 4]),
        (LastOperation, [3, 4]),
    ],
)
def test_events_are_told_from_where_they_are_wanted(scope: Any, expected: list[int]) -> None:
    api = Histories("CREATE_IN_PROGRESS", event("CREATE_COMPLETE", "Vpc"), "CREATE_COMPLETE", UPDATING, UPDATED, page=9)
    assert numbers(api.reader(scope).read_page()) == expected


def test_events_after_an_event_are_those_after_it_be_it_forgotten() -> None:
    api = Histories(*[UPDATING] * 4, page=9)
    before = parse_event(api.stacks[NAME][1], ())
    assert numbers(api.reader(since_event(before)).read_page()) == [2, 3]
    del api.stacks[NAME][1]
    assert numbers(api.reader(since_event(before)).read_page()) == [2, 3]


def test_the_review_of_a_change_set_is_no_event_of_an_operation() -> None:
    api = Histories("REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS", event("REVIEW_IN_PROGRESS", "Odd"))
    assert numbers(api.reader().read_page()) == [1, 2]


@pytest.mark.parametrize(
    ("events", "settled"),
    [((), False), ((UPDATING,), False), ((UPDATING, UPDATED), True), ((event(UPDATING, "Vpc"),), False)],
)
def test_a_root_is_settled_when_it_has_come_to_rest(events: tuple[Any, ...], settled: bool) -> None:
    reader = Histories(*events).reader()
    assert not reader.settled
    reader.read_page()
    assert reader.settled == settled


def test_a_nested_stack_is_settled_once_its_parent_and_it_itself_say_so() -> None:
    api = Histories(UPDATING, UPDATED)
    reader = api.reader(path=("VpcStack",))
    reader.read_page()
    # It has ended, and the parent has yet to say so.
    assert not reader.settled
    reader.handle_parent_event(parse_event({**nested(UPDATED), "EventId": "x"}, ()))
    assert not reader.settled
    reader.read_page()
    assert reader.settled
    # It begins anew: what it did before is another matter.
    reader.handle_parent_event(
        parse_event({**nested(UPDATING), "EventId": "y", "Timestamp": NOW + timedelta(minutes=5)}, ())
    )
    assert not reader.settled
    reader.handle_parent_event(parse_event({**nested(UPDATED), "EventId": "z"}, ()))
    for _ in range(MAX_EMPTY_READS - 1):
        reader.read_page()
        assert not reader.settled
    reader.read_page()
    # Nothing has changed in it: CloudFormation has left it alone.
    assert reader.settled


def test_one_that_is_begun_at_the_same_moment_has_begun() -> None:
    reader = Histories(UPDATING, UPDATED).reader(path=("VpcStack",))
    reader.handle_parent_event(
        parse_event({**nested(UPDATING), "EventId": "a", "Timestamp": NOW + timedelta(seconds=1)}, ())
    )
    reader.handle_parent_event(parse_event({**nested(UPDATED), "EventId": "b"}, ()))
    reader.read_page()
    assert reader.settled


def tree(api: Histories, scope: Any = all_events) -> TreeEvents:
    return TreeEvents(api.account, STACK_ID, scope)


def test_nested_stacks_are_read_once_they_have_an_id() -> None:
    api = Histories(
        UPDATING, nested(UPDATING, PhysicalResourceId=""), nested(UPDATING), nested(UPDATED), UPDATED,
        child=(UPDATING, of_child(UPDATING), of_child(UPDATED), UPDATED), page=9,
    )  # fmt: skip
    events = tree(api)
    assert events.advance(5) == 3
    assert api.pages == [(NAME, ""), (CHILD, "")]
    assert events.settled
    assert events.unsettled == []
    assert not events.behind
    told = events.take()
    assert {each.path for each in told} == {(), ("VpcStack",)}
    assert len(told) == 9
    assert events.take() == []


def test_calls_are_granted_to_the_root_first_and_no_more_than_there_are() -> None:
    api = Histories(UPDATING, nested(UPDATING), *[event(UPDATING, f"R{n}") for n in range(5)], child=(UPDATING,))
    events = tree(api)
    assert events.advance(2) == 0
    assert (events.behind, events.take()) == (True, [])
    assert events.advance(1) == 0
    assert events.behind
    assert events.take() == []
    assert events.advance(1) == 0
    # The root is asked at every look; the nested stack has waited and comes next.
    assert [name for name, _ in api.pages] == [NAME] * 4
    assert events.advance(2) == 0
    assert api.pages[-1] == (CHILD, "")
    assert not events.behind
    assert len(events.take()) == 8


def test_everything_can_be_taken_before_all_have_been_looked_at() -> None:
    api = Histories(UPDATING, nested(UPDATING), child=(UPDATING,))
    events = tree(api)
    events.advance(1)
    assert events.take() == []
    assert len(events.take(everything=True)) == 2


def test_each_nested_stack_has_its_turn() -> None:
    api = Histories(page=20)
    others = [f"{NAME}-S{number}-1" for number in range(3)]
    for name in others:
        api.stacks[name] = []
        api.add(UPDATING, stack=name)
    root = [nested(UPDATING, PhysicalResourceId=arn(name), LogicalResourceId=name) for name in others]
    api.add(UPDATING, *root)
    events = tree(api)
    for _ in range(4):
        events.advance(2)
    # One call of each look is the root's, the other goes round.
    assert [name for name, _ in api.pages if name != NAME] == [*others, others[0]]


def test_what_a_nested_stack_did_before_the_operation_is_not_wanted() -> None:
    api = Histories("CREATE_IN_PROGRESS", nested("CREATE_IN_PROGRESS"), "CREATE_COMPLETE", page=9)
    api.add("CREATE_IN_PROGRESS", "CREATE_COMPLETE", stack=CHILD, at=1)
    api.add(UPDATING, nested(UPDATING), at=60)
    api.add(UPDATING, of_child(UPDATING), stack=CHILD, at=61)
    events = tree(api, LastOperation)
    events.advance(9)
    assert [(each.stack, each.status) for each in events.take()] == [
        (NAME, UPDATING), (NAME, UPDATING), (CHILD, UPDATING), (CHILD, UPDATING),
    ]  # fmt: skip
    assert events.since == NOW + timedelta(seconds=60)
    assert [event.status for event in read_all_events(api.account, STACK_ID, all_events) if event.stack == CHILD] == [
        "CREATE_IN_PROGRESS", "CREATE_COMPLETE", UPDATING, UPDATING,
    ]  # fmt: skip


def test_very_long_histories_are_read_to_their_end() -> None:
    api = Histories(*[event(UPDATING, f"R{number}") for number in range(250)], page=1)
    assert len(read_all_events(api.account, STACK_ID, all_events)) == 250


def test_the_history_leaves_out_what_is_tidied_up_afterwards() -> None:
    api = Histories(
        UPDATING, event(UPDATING, "Vpc"), event(UPDATED, "Vpc"), "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        event("DELETE_COMPLETE", "Old"), event("DELETE_FAILED", "Bucket", reason="not empty"),
        event(UPDATED, "Late"), UPDATED, event("DELETE_COMPLETE", "Gone"), page=20,
    )  # fmt: skip
    told = [(each.logical_id, each.status) for each in read_history(api.account, STACK_ID)]
    assert told == [
        (NAME, UPDATING), ("Vpc", UPDATED), ("Bucket", "DELETE_FAILED"), ("Late", UPDATED), (NAME, UPDATED),
        ("Gone", "DELETE_COMPLETE"),
    ]  # fmt: skip
    assert len(read_history(api.account, STACK_ID, complete=True)) == 9


def test_the_whole_history_or_the_newest_operation_is_told() -> None:
    api = Histories(
        UPDATING, UPDATED, UPDATING, "UPDATE_FAILED", "UPDATE_ROLLBACK_IN_PROGRESS", "UPDATE_ROLLBACK_COMPLETE", page=9
    )
    assert len(read_history(api.account, STACK_ID)) == 4
    assert len(read_history(api.account, STACK_ID, operation="all")) == 6


def test_the_last_event() -> None:
    assert read_last_event(Histories().account, STACK_ID) is None
    newest = read_last_event(Histories(UPDATING, UPDATED).account, STACK_ID)
    assert newest is not None
    assert (newest.id, newest.of_stack, newest.path) == (f"{NAME}-1", True, ())
    api = Histories()

    def refuse(_: dict[str, Any]) -> dict[str, Any]:
        raise RefusedError("Boom", "oops")

    api.answers["DescribeStackEvents"] = refuse
    for ask in (
        lambda: read_last_event(api.account, STACK_ID),
        lambda: read_all_events(api.account, STACK_ID, all_events),
    ):
        with pytest.raises(AwsError, match="oops"):
            ask()


BARE = {"EventId": "1", "Timestamp": NOW, "StackId": STACK_ID}


@pytest.mark.parametrize(
    ("entry", "status", "reason"),
    [
        ({"ResourceStatus": "CREATE_FAILED", "ResourceStatusReason": "x"}, "CREATE_FAILED", "x"),
        (
            {"ResourceStatus": "CREATE_FAILED", "HookStatusReason": "no", "HookType": "A::B::C"},
            "CREATE_FAILED",
            "A::B::C: no",
        ),
        ({"HookStatusReason": "no"}, "", "hook: no"),
        ({"ValidationStatusReason": "bad", "ValidationPath": "/X"}, "VALIDATION_FAILED", "bad /X"),
        ({"ValidationStatusReason": "bad", "ValidationFailureMode": "WARN", "ResourceStatus": "S"}, "S", "bad"),
        (
            {"ValidationStatusReason": "bad", "ValidationFailureMode": "FAIL", "ResourceStatus": "S"},
            "VALIDATION_FAILED",
            "bad",
        ),
        ({"EventType": "PROVISIONING_ERROR"}, "PROVISIONING_FAILED", ""),
        ({"EventType": "STACK_EVENT"}, "", ""),
        ({"EventType": "PROVISIONING_ERROR", "ResourceStatus": "CREATE_FAILED"}, "CREATE_FAILED", ""),
    ],
)
def test_entries_of_both_calls_are_understood(entry: dict[str, Any], status: str, reason: str) -> None:
    found = parse_event({**BARE, **entry}, ("A",))
    assert (found.status, found.reason, found.stack, found.path) == (status, reason, NAME, ("A",))
    assert (found.logical_id, found.physical_id, found.type, found.operation_id) == ("", "", "", "")
    assert (found.id, found.time, found.stack_id) == ("1", NOW, STACK_ID)


def test_every_field_of_an_entry_is_kept() -> None:
    found = parse_event({**BARE, **event("CREATE_COMPLETE", "Vpc"), "StackName": "other", "OperationId": "op"}, ())
    assert (found.stack, found.logical_id, found.physical_id) == ("other", "Vpc", "physical-Vpc")
    assert (found.type, found.operation_id, found.of_stack) == ("AWS::EC2::VPC", "op", False)


@pytest.mark.parametrize(
    ("status", "rests"),
    [("REVIEW_IN_PROGRESS", True), (UPDATING, False), (UPDATED, True), ("DELETE_COMPLETE", True), ("ODD", False)],
)
def test_when_a_stack_is_at_rest(status: str, rests: bool) -> None:
    assert is_at_rest(status) is rests
