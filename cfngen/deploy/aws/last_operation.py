"""Finds out who started a stack's latest operation, and who else is planning a change to the stack.

CloudFormation does not record who started an operation. cfngen therefore writes the caller's ARN into the description
of each change set, and uses the change set's name as the client request token of the operation. The token appears in
the stack's events and leads back to the description. Operations started elsewhere, e.g. in the console, have no caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from cfngen.cluster.naming.names import CHANGE_SET_PREFIX
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.event_lists import LastOperation
from cfngen.deploy.aws.events import is_cancelled, parse_event
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackView, find_stack, list_resources
from cfngen.deploy.messages.message import Event
from cfngen.text import pluralize

DESCRIPTION_PATTERN = re.compile(
    r"^cfngen: the cluster (?P<cluster>\S+), by (?P<caller>arn:\S+?)(?P<unprotected>, not protected)?$"
)


@dataclass(frozen=True)
class OperationOrigin:
    """When and by whom a stack's latest operation was started.

    Attributes:
        caller: ARN of the user or role that started it with cfngen; empty if unknown or not started with cfngen.
        protect: whether the deployment enables termination protection at its end; None if unknown.
    """

    time: datetime
    caller: str = ""
    protect: bool | None = None


def change_set_description(account: Account, cluster: str, *, protect: bool) -> str:
    """Return the description of a change set: who created it, and whether to protect the stack at the end."""
    return f"cfngen: the cluster {cluster}, by {account.caller}{'' if protect else ', not protected'}"


def read_origin(account: Account, stack: StackView) -> OperationOrigin | None:
    """Return when and by whom a stack's latest operation was started; None if its events do not show it."""
    with translate_aws_errors():
        first_event = _read_first_event(account, stack)
    if first_event is None:
        return None
    event, token = first_event.event, first_event.request_token
    if token.startswith(CHANGE_SET_PREFIX):
        try:
            with translate_aws_errors():
                change_set = account.client("cloudformation").describe_change_set(
                    ChangeSetName=token, StackName=stack.id
                )
        except AwsError:
            return OperationOrigin(time=event.time)
        if description := DESCRIPTION_PATTERN.match(change_set.get("Description", "")):
            return OperationOrigin(
                time=event.time, caller=description["caller"], protect=not description["unprotected"]
            )
    return OperationOrigin(time=event.time)


class _FirstEvent(NamedTuple):
    """The first event about a stack itself in its latest operation.

    Attributes:
        request_token: client request token of the operation; empty if the caller gave none.
    """

    event: Event
    request_token: str


def _read_first_event(account: Account, stack: StackView) -> _FirstEvent | None:
    is_of_older_operation = LastOperation(with_failure=True)
    first_event: _FirstEvent | None = None
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    # Events are listed newest first, so the last event before an older operation is the first one of the latest.
    for entry in (entry for page in pages for entry in page["StackEvents"]):
        event = parse_event(entry, ())
        if is_of_older_operation(event):
            break
        if event.of_stack and event.status != "REVIEW_IN_PROGRESS":
            first_event = _FirstEvent(event, request_token=str(entry.get("ClientRequestToken", "")))
    return first_event


def describe_time(account: Account, time: datetime) -> str:
    """Return a time and how long ago it was, e.g. `12:03 UTC (4 minutes ago)`."""
    minutes = round((account.clock.now() - time).total_seconds() / 60)
    return f"{time:%H:%M} UTC ({pluralize(minutes, 'minute') if minutes > 0 else 'less than a minute'} ago)"


# A nested stack in one of these statuses can be skipped as a whole (API reference, ContinueUpdateRollback).
SKIPPABLE_STACK_STATUSES = frozenset({"DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED"})


def find_rollback_blockers(account: Account, root: StackView) -> dict[str, str]:
    """Return the resources that made a rollback fail; keys are as `ResourcesToSkip` spells them, values the reasons.

    A resource in a nested stack is spelled as the nested stack's *name*, a dot and the logical id. A nested stack
    itself is included only if it is being deleted, because skipping it skips all of its resources.
    """
    return dict(_find_blockers(account, root, ""))


def _find_blockers(account: Account, stack: StackView, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the resources that made a stack's rollback fail: (entry for `ResourcesToSkip`, reason of the failure).

    `prefix` is the beginning of the entries: the stack's name and a dot, or empty for the root.
    """
    failed = [resource for resource in list_resources(account, stack.id) if resource.status == "UPDATE_FAILED"]
    rollback_failures = _find_failed_in_rollback(account, stack) if failed else frozenset[str]()
    for resource in failed:
        if resource.type == NESTED_STACK and resource.physical_id:
            yield from _find_nested_blockers(account, resource, prefix)
        elif resource.logical_id in rollback_failures:
            yield f"{prefix}{resource.logical_id}", resource.reason


def _find_nested_blockers(account: Account, resource: ResourceView, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the same as `_find_blockers` for a nested stack, or only the nested stack itself if it is being deleted."""
    child = find_stack(account, resource.physical_id)
    if child is None or child.status.name in SKIPPABLE_STACK_STATUSES:
        yield f"{prefix}{resource.logical_id}", resource.reason
    else:
        yield from _find_blockers(account, child, f"{child.name}.")


def _find_failed_in_rollback(account: Account, stack: StackView) -> frozenset[str]:
    """Return the logical ids of the resources that failed after the latest rollback started or was continued."""
    # Events are listed newest first; only the newest event of each resource counts.
    has_failed_by_id: dict[str, bool] = {}
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    for entry in (entry for page in pages for entry in page["StackEvents"]):
        event = parse_event(entry, ())
        if event.of_stack and event.status == "UPDATE_ROLLBACK_IN_PROGRESS":
            break
        has_failed = event.status == "UPDATE_FAILED" and not is_cancelled(event)
        has_failed_by_id.setdefault(event.logical_id, has_failed)
    return frozenset(logical_id for logical_id, has_failed in has_failed_by_id.items() if has_failed)
