"""Events of an operation that failed: of the root stack, failures alone, and the signal of an instance."""

from __future__ import annotations

import re
from datetime import datetime
from itertools import islice

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import DeniedError, as_aws_error, error_code
from cfngen.deploy.aws.events import StackEvents, parse_event
from cfngen.deploy.aws.operation_events import LastOperation, last_operation_and_failure
from cfngen.deploy.aws.stacks import NESTED_STACK, stack_name
from cfngen.deploy.messages.message import Event

_FAILURE_SIGNAL_REASON = re.compile(r"Received FAILURE signal with UniqueId (i-[0-9a-f]+)")
_MAX_EVENTS = 500  # the newest events of a stack, among which the signal of an instance is searched


def read_operation(account: Account, stack_id: str, *, with_failure: bool = True) -> list[Event]:
    """Return the root stack's events in the last operation, oldest first.

    Args:
        with_failure: whether to include the failed operation if the last operation is its rollback.
    """
    stack_events = StackEvents(account, stack_id, (), last_operation_and_failure if with_failure else LastOperation)
    events = stack_events.read_page()
    while stack_events.has_more_pages:
        events = stack_events.read_page()
    return events


def read_failures(account: Account, stack_id: str, start: datetime, path: tuple[str, ...] = ()) -> list[Event] | None:
    """Return the failures in a stack and its nested stacks; None if CloudFormation cannot list failures alone."""
    from botocore.exceptions import ClientError

    failures: list[Event] = []
    try:
        # The order of the events is not documented. Failures of a change set's creation are reported by `plan`.
        failures += [
            parse_event(entry, path)
            for entry in account.items(
                "cloudformation.describe_events",
                "OperationEvents",
                StackName=stack_id,
                Filters={"FailedEvents": True},
            )
            if entry.get("OperationType") != "CREATE_CHANGESET"
        ]
    except ClientError as error:
        # `InvalidAction` and the like: not every region and partition has DescribeEvents.
        if isinstance(as_aws_error(error), DeniedError) or error_code(error).startswith(
            ("Invalid", "Unknown", "Unsupported")
        ):
            return None
        raise
    failures = sorted((event for event in failures if event.time >= start), key=lambda event: event.time)
    # Logical ids of the nested stacks that have failed, by ARN.
    children = {
        event.physical_id: event.logical_id
        for event in failures
        if event.type == NESTED_STACK and not event.of_stack and stack_name(event.physical_id)
    }
    for child_id, logical_id in children.items():
        failures += read_failures(account, child_id, start, (*path, logical_id)) or []
    return failures


def find_failed_instance(account: Account, event: Event) -> str:
    """Return the id of the instance whose FAILURE signal made the resource of an event fail; empty if none did.

    When an update of a group fails, the event has only the number of signals; the signal itself is an earlier event.
    """
    if match := _FAILURE_SIGNAL_REASON.search(event.reason):
        return match[1]
    is_older = False
    entries = account.items("cloudformation.describe_stack_events", "StackEvents", StackName=event.stack_id)
    for entry in islice(entries, _MAX_EVENTS):
        # Events come newest first; events of the rollback that follows may have the same timestamp as the failure.
        is_older = is_older or entry["EventId"] == event.id or entry["Timestamp"] < event.time
        if not is_older or entry.get("LogicalResourceId") != event.logical_id:
            continue
        reason = entry.get("ResourceStatusReason", "")
        if match := _FAILURE_SIGNAL_REASON.search(reason):
            return match[1]
        if not reason and entry.get("ResourceStatus", "").endswith("_IN_PROGRESS"):
            break  # the update of the group started with this event
    return ""
