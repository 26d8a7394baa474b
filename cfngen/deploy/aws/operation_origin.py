"""Finds out who started a stack's latest operation, and who else is planning a change to the stack.

CloudFormation does not record who started an operation. cfngen therefore writes the caller's ARN into the description
of each change set, and uses the change set's name as the client request token of the operation. The token appears in
the stack's events and leads back to the description. Operations started elsewhere, e.g. in the console, have no caller.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from textwrap import shorten
from typing import NamedTuple

from cfngen.cluster.naming.names import CHANGE_SET_PREFIX
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.events import parse_event
from cfngen.deploy.aws.operation_events import LastOperation
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Event
from cfngen.text import pluralize

DESCRIPTION_PATTERN = re.compile(
    r"^cfngen: the cluster (?P<cluster>\S+), by (?P<caller>arn:\S+?)(?P<unprotected>, not protected)?"
    r"(?:; then (?P<following>.+))?$"
)
_MAX_FOLLOWING = 400  # characters; the whole description may have 1024


@dataclass(frozen=True)
class OperationOrigin:
    """When and by whom a stack's latest operation was started.

    Attributes:
        caller: ARN of the user or role that started it with cfngen; empty if unknown or not started with cfngen.
        protect: whether the deployment enables termination protection at its end; None if unknown.
        following: titles of the phases and updates that the deployment has after this operation; may be empty.
    """

    time: datetime
    caller: str = ""
    protect: bool | None = None
    following: str = ""


def change_set_description(account: Account, cluster: str, *, protect: bool) -> str:
    """Return the description of a change set: who created it, and whether to protect the stack at the end."""
    return f"cfngen: the cluster {cluster}, by {account.caller}{'' if protect else ', not protected'}"


def followed_by(description: str, titles: Iterable[str]) -> str:
    """Return the description of a change set after which its deployment has further phases or updates."""
    description, _, later = description.partition("; then ")
    following = shorten(", ".join(filter(None, (*titles, later))), _MAX_FOLLOWING, placeholder=" …")
    return f"{description}; then {following}" if following else description


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
                time=event.time,
                caller=description["caller"],
                protect=not description["unprotected"],
                following=description["following"] or "",
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
    # Events are listed newest first, so the last event before an older operation is the first one of the latest.
    for entry in account.items("cloudformation.describe_stack_events", "StackEvents", StackName=stack.id):
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
