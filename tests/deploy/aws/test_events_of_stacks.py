"""Reading events: which belong to an operation, in which order, and which tell a person something."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest

from cfngen.deploy.aws.events import is_worth_showing
from cfngen.deploy.aws.operation_events import LastOperation, merge_events
from cfngen.deploy.messages.message import Event

NOON = datetime(2026, 9, 1, 12, tzinfo=UTC)
ROOT = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s/1"
CHILD = "arn:aws:cloudformation:us-west-2:123456789012:stack/k8s-VpcStack-ABC/2"
STACK = "AWS::CloudFormation::Stack"
NUMBERS = itertools.count()


def own(status: str, reason: str = "", *, second: int = 0, child: bool = False, operation: str = "") -> Event:
    """An event of a stack itself."""
    stack, path, name = (CHILD, ("VpcStack",), "k8s-VpcStack-ABC") if child else (ROOT, (), "k8s")
    time = NOON + timedelta(seconds=second)
    return Event(str(next(NUMBERS)), time, name, path, name, stack, STACK, status, reason, stack, operation)


def nested(status: str, reason: str = "", *, second: int = 0, physical_id: str = CHILD) -> Event:
    """An event of the root about a nested stack."""
    time = NOON + timedelta(seconds=second)
    return Event(str(next(NUMBERS)), time, "k8s", (), "VpcStack", physical_id, STACK, status, reason, ROOT)


def of(status: str, reason: str = "", *, name: str = "Vpc", second: int = 0) -> Event:
    """An event of a resource in the nested stack."""
    time = NOON + timedelta(seconds=second)
    kind = "AWS::EC2::VPC"
    return Event(
        str(next(NUMBERS)), time, "k8s-VpcStack-ABC", ("VpcStack",), name, "vpc-1", kind, status, reason, CHILD
    )


@pytest.mark.parametrize(
    "event",
    [
        own("CREATE_IN_PROGRESS", "User Initiated"),
        own("CREATE_COMPLETE"),
        own("ROLLBACK_IN_PROGRESS", "The following resource(s) failed to create: [VpcStack]. "),
        own("CREATE_COMPLETE", child=True),
        own("CREATE_FAILED", "Parameter validation failed: no such zone", child=True),
        nested("CREATE_FAILED", "S3 error: Access Denied", physical_id=""),
        of("CREATE_COMPLETE"),
        of("CREATE_FAILED", "The maximum number of VPCs has been reached."),
        of("DELETE_SKIPPED"),
        of(
            "UPDATE_IN_PROGRESS",
            "Requested update requires the creation of a new physical resource; hence creating one.",
        ),
        of("CREATE_IN_PROGRESS", "Received SUCCESS signal with UniqueId i-1"),
    ],
)
def test_what_is_interesting(event: Event):
    assert is_worth_showing(event)


@pytest.mark.parametrize(
    "event",
    [
        own("REVIEW_IN_PROGRESS", "User Initiated"),
        own("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"),
        own("CREATE_IN_PROGRESS", "User Initiated", child=True),
        own("CREATE_FAILED", "The following resource(s) failed to create: [Vpc]. ", child=True),
        nested("CREATE_COMPLETE"),
        nested("CREATE_FAILED", f"Embedded stack {CHILD} was not successfully created: no"),
        of("CREATE_IN_PROGRESS"),
        of("CREATE_IN_PROGRESS", "Resource creation Initiated"),
        of("CREATE_IN_PROGRESS", "Eventual consistency check initiated"),
        of("IMPORT_IN_PROGRESS", "Resource import started."),
        of("CREATE_FAILED", "Resource creation cancelled"),
        of("UPDATE_FAILED", "Resource update cancelled"),
    ],
)
def test_what_tells_nothing_new(event: Event):
    assert not is_worth_showing(event)


def operation(*newest_first: Event, with_failure: bool = False) -> list[str]:
    """The statuses that belong to the last operation, oldest first."""
    boundary = LastOperation(with_failure=with_failure)
    kept = itertools.takewhile(lambda event: not boundary(event), newest_first)
    return [event.status for event in kept][::-1]


CREATION = (own("CREATE_COMPLETE"), own("CREATE_IN_PROGRESS"), own("REVIEW_IN_PROGRESS"))


def test_an_operation_begins_where_the_stack_leaves_rest():
    update = (own("UPDATE_COMPLETE"), own("UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"), own("UPDATE_IN_PROGRESS"))
    assert operation(*update, *CREATION) == [
        "UPDATE_IN_PROGRESS",
        "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS",
        "UPDATE_COMPLETE",
    ]
    assert operation(*CREATION) == ["CREATE_IN_PROGRESS", "CREATE_COMPLETE"]


def test_one_that_is_under_way():
    assert operation(own("UPDATE_IN_PROGRESS"), *CREATION) == ["UPDATE_IN_PROGRESS"]


def test_an_automatic_rollback_is_one_operation_with_its_failure():
    rolled = (own("UPDATE_ROLLBACK_COMPLETE"), own("UPDATE_ROLLBACK_IN_PROGRESS"), own("UPDATE_IN_PROGRESS"))
    assert len(operation(*rolled, *CREATION)) == 3


def test_a_rollback_that_was_asked_for_brings_the_failed_operation_along_if_wanted():
    rolled = (own("UPDATE_ROLLBACK_COMPLETE"), own("UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated"))
    failed = (own("UPDATE_FAILED"), own("UPDATE_IN_PROGRESS"))
    assert operation(*rolled, *failed, *CREATION)[0] == "UPDATE_ROLLBACK_IN_PROGRESS"
    assert operation(*rolled, *failed, *CREATION, with_failure=True)[0] == "UPDATE_IN_PROGRESS"


def test_a_rollback_in_several_attempts_goes_back_to_the_failed_operation():
    second = (own("UPDATE_ROLLBACK_COMPLETE"), own("UPDATE_ROLLBACK_IN_PROGRESS"))
    first = (own("UPDATE_ROLLBACK_FAILED"), own("UPDATE_ROLLBACK_IN_PROGRESS"), own("UPDATE_IN_PROGRESS"))
    assert operation(*second, *first, *CREATION, with_failure=True)[0] == "UPDATE_IN_PROGRESS"


def test_a_deletion_by_the_user_stands_for_itself():
    deletion = (own("DELETE_COMPLETE"), own("DELETE_IN_PROGRESS", "User Initiated"))
    failed = (own("CREATE_FAILED"), own("CREATE_IN_PROGRESS"))
    assert operation(*deletion, *failed, with_failure=True) == ["DELETE_IN_PROGRESS", "DELETE_COMPLETE"]


def test_events_of_one_operation_id_are_not_parted():
    events = (own("DELETE_IN_PROGRESS", operation="1"), own("CREATE_FAILED", operation="1"), own("CREATE_IN_PROGRESS"))
    assert len(operation(*events)) == 3


def test_where_times_are_the_same_a_nested_stack_fits_between_what_its_parent_says():
    root = [own("CREATE_IN_PROGRESS"), nested("CREATE_IN_PROGRESS"), nested("CREATE_COMPLETE"), own("CREATE_COMPLETE")]
    child = [own("CREATE_IN_PROGRESS", child=True), of("CREATE_COMPLETE"), own("CREATE_COMPLETE", child=True)]
    expected = [*root[:2], *child, *root[2:]]
    assert merge_events([*root, *child]) == expected


def test_where_times_are_the_same_a_failure_precedes_what_follows_from_it():
    root = [
        own("CREATE_IN_PROGRESS"),
        nested("CREATE_IN_PROGRESS"),
        nested("CREATE_FAILED", "Embedded stack"),
        own("ROLLBACK_IN_PROGRESS"),
        nested("DELETE_IN_PROGRESS"),
        nested("DELETE_COMPLETE"),
        own("ROLLBACK_COMPLETE"),
    ]
    failing = [own("CREATE_IN_PROGRESS", child=True), of("CREATE_FAILED", "no"), own("CREATE_FAILED", child=True)]
    leaving = [own("DELETE_IN_PROGRESS", child=True), of("DELETE_COMPLETE"), own("DELETE_COMPLETE", child=True)]
    assert merge_events([*root, *failing, *leaving]) == [*root[:2], *failing, *root[2:5], *leaving, *root[5:]]


def test_time_goes_first():
    early, late = of("CREATE_COMPLETE", second=1), own("CREATE_COMPLETE", second=2)
    assert merge_events([late, early]) == [early, late]
