"""The events of a stack and its nested stacks as one list, oldest first, and which of them tell a user something.

CloudFormation lists events per stack, newest first, in pages. It says neither which events belong to one operation nor
which nested stacks there are. Here every event is read once: a later read stops at the first event that is known
already. Times are CloudFormation's; the clock of this machine may be wrong and is not used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import error_code, translate_aws_errors
from cfngen.deploy.aws.operation_events import (
    Scope,
    all_events,
    is_at_rest,
    last_operation_and_failure,
    merge_events,
    since_time,
)
from cfngen.deploy.aws.stacks import NESTED_STACK, stack_name
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Event
from cfngen.deploy.messages.stack_status import StackStatus

MAX_EMPTY_READS = 3
"""Number of reads without events after which a nested stack that is complete, by its parent's events, counts as
settled: CloudFormation does not change a nested stack without changes, so it may have no events."""

_REPEATED_FAILURE_REASON = re.compile(r"^Embedded stack |^The following resource\(s\) failed to |^Nested change set ")
_CANCELLED_REASON = re.compile(r"^(Resource|Operation)\b.* cancell?ed")
_ROUTINE_REASONS = ("Eventual consistency check initiated", "Resource creation Initiated", "Resource import started.")
_CLEANUP_SUFFIX = "_CLEANUP_IN_PROGRESS"
_CALLS_PER_ADVANCE = 100  # when all events are read at once


def is_cancelled(event: Event) -> bool:
    """Return whether a resource or operation was cancelled because another one had failed."""
    return bool(_CANCELLED_REASON.search(event.reason))


def repeats_another_failure(event: Event) -> bool:
    """Return whether a failure only repeats the failure of another resource or of a nested stack."""
    return bool(_REPEATED_FAILURE_REASON.search(event.reason))


def is_worth_showing(event: Event) -> bool:
    """Return whether an event tells the user something that no other event of the operation tells."""
    status = StackStatus(event.status)
    if is_cancelled(event) or status.cleaning_up:
        return False
    if event.of_stack:
        # Of the root stack's operation, show the start and the end; of a nested stack's operation, only the end. A
        # nested stack's failure is not shown if it only repeats the failures of the resources in the stack.
        if event.status == "REVIEW_IN_PROGRESS":
            return False
        if event.path:
            return not event.status.endswith("_IN_PROGRESS") and not (event.failed and repeats_another_failure(event))
        return True
    if event.type == NESTED_STACK and stack_name(event.physical_id):
        # This is the parent's event about a nested stack. The reason is in the nested stack's own event, unless the
        # nested stack could not be created; then this is the only event.
        return event.failed and not repeats_another_failure(event)
    if event.status.endswith("_IN_PROGRESS"):
        return bool(event.reason) and event.reason not in _ROUTINE_REASONS
    return True


def parse_event(entry: AwsObject, path: tuple[str, ...]) -> Event:
    """Return the event in one entry of a DescribeStackEvents or DescribeEvents response.

    Only DescribeEvents has entries about hooks and validation; their reasons are in other keys.
    """
    status, reason = entry.get("ResourceStatus", ""), entry.get("ResourceStatusReason", "")
    if hook_reason := entry.get("HookStatusReason"):
        reason = f"{entry.get('HookType', 'hook')}: {hook_reason}"
    if validation_reason := entry.get("ValidationStatusReason"):
        status = "VALIDATION_FAILED" if entry.get("ValidationFailureMode") != "WARN" else status
        reason = " ".join(filter(None, (validation_reason, entry.get("ValidationPath", ""))))
    elif not status and entry.get("EventType", "").endswith("_ERROR"):
        status = entry["EventType"].replace("_ERROR", "_FAILED")
    return Event(
        id=entry["EventId"],
        time=entry["Timestamp"],
        stack=entry.get("StackName") or stack_name(entry["StackId"]),
        path=path,
        logical_id=entry.get("LogicalResourceId", ""),
        physical_id=entry.get("PhysicalResourceId", ""),
        type=entry.get("ResourceType", ""),
        status=status,
        reason=reason,
        stack_id=entry["StackId"],
        operation_id=entry.get("OperationId", ""),
    )


class StackEvents:
    """Reads the events of one stack, page by page.

    Attributes:
        path: logical ids from the root stack to this one.
        last_stack_event: the newest event in scope about the stack itself, not about a resource in it.
    """

    def __init__(self, account: Account, stack_id: str, path: tuple[str, ...], scope: Scope) -> None:
        self.id = stack_id
        self.path = path
        self.last_stack_event: Event | None = None
        self._client = account.client("cloudformation")
        self._scope = scope
        self._boundary = scope()
        self._parent_started_at: datetime | None = None  # when the parent started the operation on this stack
        self._parent_finished = not path  # whether the operation has ended by the parent's events; a root has no parent
        self._reads_since_finished = 0
        self._known_ids: set[str] = set()
        self._collected: list[Event] = []  # events of the pages read so far, newest first
        self._page_token = ""  # token of the next older page; empty if the newest page is read next

    @property
    def settled(self) -> bool:
        """Whether the stack's operation has ended and no more events are expected."""
        if not self._parent_finished or (self.path and not self._reads_since_finished):
            return False
        last_event, parent_started_at = self.last_stack_event, self._parent_started_at
        if last_event is not None and (parent_started_at is None or last_event.time >= parent_started_at):
            return is_at_rest(last_event.status)
        return bool(self.path) and self._reads_since_finished >= MAX_EMPTY_READS

    def handle_parent_event(self, parent_event: Event) -> None:
        """Process an event of the parent stack about this nested stack."""
        has_finished = not parent_event.status.endswith("_IN_PROGRESS")
        if not has_finished:
            self._parent_started_at = parent_event.time
        if has_finished != self._parent_finished:
            self._parent_finished = has_finished
            self._reads_since_finished = 0

    @property
    def has_more_pages(self) -> bool:
        """Whether older pages must still be read before the new events can be returned."""
        return bool(self._page_token)

    def read_page(self) -> list[Event]:
        """Read one page of events, which come newest first.

        Returns:
            All new events, oldest first, if a known event, the boundary or the last page was reached; else no events.

        Raises:
            ClientError: the call failed; the pages read so far are kept, and the next call continues there.
        """
        from botocore.exceptions import ClientError

        page_arguments = {"NextToken": self._page_token} if self._page_token else {}
        try:
            response = self._client.describe_stack_events(StackName=self.id, **page_arguments)
        except ClientError as error:
            if error_code(error) != "ValidationError":
                raise
            if self._page_token:
                # The token has expired: start again with the newest page.
                self._page_token = ""
                self._collected = []
                self._boundary = self._scope()
                return []
            if "does not exist" not in str(error):
                raise
            # CloudFormation is eventually consistent: a new stack may not be visible yet.
            response = {"StackEvents": []}
        is_complete = self._collect(response["StackEvents"])
        self._page_token = "" if is_complete else response.get("NextToken", "")
        return [] if self._page_token else self._take_collected()

    def _collect(self, entries: Sequence[AwsObject]) -> bool:
        """Add the new events of one page; return whether a known event or the boundary was reached."""
        collected_ids = {event.id for event in self._collected}
        for entry in entries:
            event = parse_event(entry, self.path)
            if event.id in self._known_ids:
                return True
            if event.id in collected_ids:
                continue  # read before: newer events have pushed it to the next page
            if self._boundary(event):
                self._known_ids.add(event.id)
                return True
            if not (event.of_stack and event.status == "REVIEW_IN_PROGRESS"):
                self._collected.append(event)
        return False

    def _take_collected(self) -> list[Event]:
        """Return the events read since the last call, oldest first, and remember that they are known."""
        new_events = self._collected[::-1]
        self._collected = []
        self._known_ids.update(event.id for event in new_events)
        # From now on, reading stops at the first known event.
        self._boundary = all_events() if self._known_ids else self._scope()
        stack_events = [event for event in new_events if event.of_stack]
        if stack_events:
            self.last_stack_event = stack_events[-1]
        if self._parent_finished:
            self._reads_since_finished += 1
        return new_events


class TreeEvents:
    """Reads the events of a root stack and all its nested stacks, within a number of calls that the caller allows.

    Attributes:
        since: time of the operation's first event, where reading of nested stacks stops; None if it is not known yet,
            or if all events are to be read.
    """

    def __init__(self, account: Account, root_id: str, scope: Scope) -> None:
        """Follow a root stack; nothing is read yet.

        Args:
            scope: `LastOperation`, what `since_time` returns, or `unbounded`.
        """
        self.root = StackEvents(account, root_id, (), scope)
        self.since: datetime | None = None
        self._account = account
        self._unbounded = scope is all_events
        self._children: dict[str, StackEvents] = {}
        self._turn = 0  # number of the current turn, in which every unsettled stack is read once
        self._last_turns: dict[str, int] = {}  # number of the turn in which a nested stack was last read, by its ARN
        self._pending: list[Event] = []  # events that were read, but not yet returned by `take`

    @property
    def settled(self) -> bool:
        """Whether no operation is in progress in any of the stacks, and all of their events have been read."""
        return self.root.settled and all(child.settled for child in self._children.values())

    @property
    def unsettled(self) -> list[StackEvents]:
        """Nested stacks with more events to come; the stack that was read longest ago comes first."""
        children = [child for child in self._children.values() if not child.settled]
        return sorted(children, key=lambda child: (not child.has_more_pages, self._last_turns[child.id]))

    @property
    def behind(self) -> bool:
        """Whether the last `advance` had too few calls to read the new events of all stacks."""
        return self.root.has_more_pages or any(self._is_due(child) for child in self.unsettled)

    def advance(self, calls: int) -> int:
        """Read up to this number of pages: the root's, then those of the nested stacks in turn.

        Returns:
            How many calls are left.

        Raises:
            ClientError: a call failed; what was read before is kept.
        """
        # A new turn starts only when every stack has been read in the last one.
        if not self.behind:
            self._turn += 1
        is_first_page = True
        while calls and (is_first_page or self.root.has_more_pages):
            self._read(self.root)
            calls -= 1
            is_first_page = False
        while calls and not self.root.has_more_pages:
            child = next((child for child in self.unsettled if self._is_due(child)), None)
            if child is None:
                break
            if not child.has_more_pages:
                self._last_turns[child.id] = self._turn
            self._read(child)
            calls -= 1
        return calls

    def take(self, *, everything: bool = False) -> list[Event]:
        """Return the new events of all stacks, oldest first; each event is returned once.

        Args:
            everything: return all events read so far, even if some stacks have not been read in this turn. By default,
                nothing is returned until all stacks have been read, since unread events may be older.
        """
        if self.behind and not everything:
            return []
        pending, self._pending = self._pending, []
        return merge_events(pending)

    def _is_due(self, child: StackEvents) -> bool:
        """Return whether a page of a nested stack's events still has to be read in this turn."""
        return child.has_more_pages or self._last_turns[child.id] != self._turn

    def _read(self, stack: StackEvents) -> None:
        for event in stack.read_page():
            self._pending.append(event)
            if self.since is None and not self._unbounded:
                self.since = event.time  # of the root's first event, before any nested stack is known
            if event.type == NESTED_STACK and not event.of_stack:
                self._follow(stack, event)

    def _follow(self, parent: StackEvents, event: Event) -> None:
        """Add the nested stack that a parent's event is about, if it is new, and pass the event on to it."""
        # The parent's first event about a nested stack has no physical id yet.
        if not stack_name(event.physical_id):
            return
        if event.physical_id not in self._children:
            scope = all_events if self.since is None else since_time(self.since)
            path = (*parent.path, event.logical_id)
            self._children[event.physical_id] = StackEvents(self._account, event.physical_id, path, scope)
            self._last_turns[event.physical_id] = -1
        self._children[event.physical_id].handle_parent_event(event)


def read_all_events(account: Account, root_id: str, scope: Scope) -> tuple[Event, ...]:
    """Return the events of a stack and all its nested stacks, oldest first.

    Args:
        scope: `LastOperation`, `last_operation_and_failure`, what `since_time` returns, or `unbounded`.
    """
    tree_events = TreeEvents(account, root_id, scope)
    with translate_aws_errors():
        while tree_events.advance(_CALLS_PER_ADVANCE) == 0:
            pass  # all calls were used, so there may be more pages
    return tuple(tree_events.take(everything=True))


def read_history(
    account: Account, root_id: str, *, operation: Literal["latest", "all"] = "latest", complete: bool = False
) -> tuple[Event, ...]:
    """Return the events of the last operation or of all operations, without events that only repeat others.

    Args:
        operation: `latest` for the newest operation (a rollback together with the operation that failed), or `all`.
        complete: whether to include events that only repeat others.
    """
    events = read_all_events(account, root_id, all_events if operation == "all" else last_operation_and_failure)
    if complete:
        return events
    stacks_in_cleanup: set[str] = set()
    relevant = []
    for event in events:
        if event.of_stack and event.status.endswith(_CLEANUP_SUFFIX):
            stacks_in_cleanup.add(event.stack_id)
        elif event.of_stack:
            stacks_in_cleanup.discard(event.stack_id)
        # During the cleanup, CloudFormation deletes replaced resources; only a failure of that is shown.
        is_routine_cleanup = (
            event.stack_id in stacks_in_cleanup
            and not event.of_stack
            and event.status.startswith("DELETE_")
            and not event.failed
        )
        if is_worth_showing(event) and not is_routine_cleanup:
            relevant.append(event)
    return tuple(relevant)


def read_last_event(account: Account, stack_id: str) -> Event | None:
    """Return the newest event of one stack; None if nothing has happened in it.

    Read it before a call that starts an operation and pass it to `watch`, which then knows where the operation starts
    without relying on this machine's clock.
    """
    with translate_aws_errors():
        entries = account.client("cloudformation").describe_stack_events(StackName=stack_id)["StackEvents"]
    return parse_event(entries[0], ()) if entries else None
