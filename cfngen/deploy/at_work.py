"""Who else works on a stack, and since when.

CloudFormation does not say whose an operation is. But each change set of ours bears a note with the caller's ARN, and
each operation of ours bears the change set's name as its token, so that events lead from the operation to the note.
What others begin, in the console say, is told without a name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.messages import Event, Notice, Report
from cfngen.deploy.stacks import StackView
from cfngen.deploy.watching.event_scope import LastOperation
from cfngen.deploy.watching.events import parsed
from cfngen.text import pluralize

PREFIX = "cfngen-plan-"
"""How the names of our change sets begin."""

_NOTE = re.compile(r"^cfngen: the cluster (?P<cluster>\S+), by (?P<caller>arn:\S+?)(?P<unprotected>, not protected)?$")
_RECENT = timedelta(hours=1)
_OPEN = ("CREATE_PENDING", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
_WAITING = ("AVAILABLE", "UNAVAILABLE")


@dataclass(frozen=True)
class Begun:
    """How the present operation of a stack began.

    Attributes:
        time: when.
        caller: ARN of who began it with cfngen; empty if it was begun otherwise, or that is not known.
        protect: whether the stack is to be protected against deletion at the end; None if that is not known.
    """

    time: datetime
    caller: str = ""
    protect: bool | None = None


def note(account: Account, cluster: str, *, protect: bool) -> str:
    """Return the description of a change set, which says who made it and what is to be done at the end."""
    return f"cfngen: the cluster {cluster}, by {account.caller}{'' if protect else ', not protected'}"


def begun(account: Account, stack: StackView) -> Begun | None:
    """Return how a stack's newest operation began; None if its events do not tell.

    Raises:
        AwsError: events cannot be read.
    """
    with translate_aws_errors():
        first = _first(account, stack)
    if first is None:
        return None
    event, token = first
    if token.startswith(PREFIX):
        try:
            with translate_aws_errors():
                found = account.client("cloudformation").describe_change_set(ChangeSetName=token, StackName=stack.id)
        except AwsError:
            return Begun(event.time)
        if match := _NOTE.match(found.get("Description", "")):
            return Begun(event.time, match["caller"], not match["unprotected"])
    return Begun(event.time)


def _first(account: Account, stack: StackView) -> tuple[Event, str] | None:
    """Return the stack's own first event of its newest operation, with the token of the call that began it."""
    older, first = LastOperation(with_failure=True), None
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    for entry in (entry for page in pages for entry in page["StackEvents"]):
        event = parsed(entry, ())
        if older(event):
            break
        if event.of_stack and event.status != "REVIEW_IN_PROGRESS":
            first = event, str(entry.get("ClientRequestToken", ""))
    return first


def tell_of_others(account: Account, stack: StackView, report: Report) -> None:
    """Report the change sets that others have made for a stack and may be about to execute, of the last hour.

    Whoever executes first changes the stack, and the other's change set is not executed any more. Where change sets may
    not be listed, nothing is told.
    """
    try:
        with translate_aws_errors():
            pages = account.client("cloudformation").get_paginator("list_change_sets").paginate(StackName=stack.id)
            summaries = [summary for page in pages for summary in page["Summaries"] if _is_open(account, summary)]
    except AwsError:
        return
    for summary in summaries:
        match = _NOTE.match(summary.get("Description", ""))
        who = match["caller"] if match else f"somebody (change set {summary['ChangeSetName']})"
        made: datetime = summary["CreationTime"]
        report(
            Notice(
                f"{who} has been planning a change of {stack.name} since {moment(account, made)}",
                "ask before you go on: whoever deploys first makes the other's plan void; after an hour, or when it is "
                "only left over, it means nothing.",
            )
        )


def _is_open(account: Account, summary: dict[str, Any]) -> bool:
    created = summary.get("CreationTime")
    return (
        summary.get("Status") in _OPEN
        and summary.get("ExecutionStatus") in _WAITING
        and not summary.get("ParentChangeSetId")
        and created is not None
        and account.clock.now() - created <= _RECENT
    )


def moment(account: Account, time: datetime) -> str:
    """Return a time with how long ago that is, e.g. `12:03 UTC (4 minutes ago)`."""
    minutes = round((account.clock.now() - time).total_seconds() / 60)
    return f"{time:%H:%M} UTC ({pluralize(minutes, 'minute') if minutes > 0 else 'less than a minute'} ago)"
