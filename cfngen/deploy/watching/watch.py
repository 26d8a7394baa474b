"""Watch a CloudFormation operation until it has ended.

CloudFormation continues whether it is watched or not. A watch ends when the operation has ended, when the user detaches
with Ctrl-C, or when AWS finally refuses to answer; then the error says how to watch again. Throttling and network
failures only slow it down. The number of calls per read is limited for all stacks together: with more nested stacks,
new events are noticed later.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, ThrottledError, UnreachableError, as_aws_error, is_transient
from cfngen.deploy.aws.events import TreeEvents
from cfngen.deploy.aws.operation_events import LastOperation, Scope, since_change_set, since_event
from cfngen.deploy.aws.stacks import NoStackError, StackView, find_stack, stack_name
from cfngen.deploy.messages.message import Event, Finished, Notice, Report
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.watching.cancellation import cancel_operation
from cfngen.deploy.watching.expectations import Expectation
from cfngen.deploy.watching.overdue import OverdueResources
from cfngen.deploy.watching.progress import Progress, ProgressTracker
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

MAX_STALE_READS = 5
"""Number of reads that may still show the status from before the operation: CloudFormation is eventually consistent
(https://github.com/aws/aws-cdk-cli also reads REVIEW_IN_PROGRESS after ExecuteChangeSet)."""
READS_AFTER_END = 5
"""Number of reads after the stack has a final status, since its last events may become visible later."""
MAX_CONTRADICTING_READS = 100
"""Number of reads after which a final stack status counts, although the last event says that work is in progress."""
PAUSE_AFTER_END_SECONDS = 2.0  # seconds between the reads after the end
MAX_BOTO3_ATTEMPTS = 2  # attempts of boto3 for one call; the watch itself retries much longer
_COMPLETING_ACTIONS = ("create", "update", "import", "delete")


class InterruptChoice(StrEnum):
    """What to do after Ctrl-C."""

    WAIT = "wait"
    DETACH = "detach"
    CANCEL = "cancel"


class WatchEndedError(CfngenError):
    """AWS refuses to answer, e.g. because the credentials have expired; the operation itself continues."""

    code = "watch-ended"

    def __init__(self, stack: str, cause: AwsError) -> None:
        super().__init__(
            f"{cause}; the operation on the stack {stack} continues without cfngen",
            hint=CommandText(
                cause.hint, " " if cause.hint else "", "Then look again with ", suggest("watch", stack=stack), "."
            ),
        )
        self.stack = stack
        self.cause = cause


@dataclass(frozen=True)
class PollingBudget:
    """How often CloudFormation is called.

    Attributes:
        calls: maximum number of calls per read: one for the stack's status, the others for pages of events.
        interval: seconds between two reads while AWS answers.
        longest: maximum of the seconds between two reads: they double whenever AWS throttles or does not answer.
        tick: seconds between two progress messages while waiting for the next read.
    """

    calls: int = 12
    interval: float = 5.0
    longest: float = 30.0
    tick: float = 1.0


@dataclass(frozen=True)
class WatchResult:
    """How a watch ended.

    Attributes:
        action: `create`, `update`, `import`, `rollback`, `delete`, or `none` if no operation was in progress.
        detached: whether the operation continues, because the user detached from it.
        cancelled: whether the user cancelled it. An update is rolled back, and the rollback has ended unless `detached`
            is true. A creation continues until the caller deletes the stack.
    """

    stack: str
    stack_id: str
    status: StackStatus
    action: str
    succeeded: bool
    detached: bool
    cancelled: bool
    seconds: float
    events: tuple[Event, ...] = ()

    def finished(self, action: str, stack: StackView | None) -> Finished:
        """Return the last message of a command.

        Args:
            stack: the stack as it is now; None if it cannot be read any more.
        """
        return Finished(
            action=action,
            stack=self.stack,
            stack_id=self.stack_id,
            # Of an operation that continues, the status is the one that was last seen.
            status=stack.status.name if stack and not self.detached else self.status.name,
            succeeded=self.succeeded,
            seconds=self.seconds,
            outputs=stack.outputs if stack else {},
            in_progress=self.detached,
        )


def watch(
    account: Account,
    root_id: str,
    *,
    report: Report,
    since: datetime | Event | None = None,
    on_interrupt: Callable[[], InterruptChoice] = lambda: InterruptChoice.DETACH,
    budget: PollingBudget | None = None,
    expected: Expectation | None = None,
) -> WatchResult:
    """Watch an operation on a stack and its nested stacks until it has ended.

    Args:
        root_id: the root stack's ARN, or its name if it is not being deleted.
        report: called with every event, and regularly with the progress.
        since: where the operation starts: the creation time of its change set, or the last event before the operation
            (see `read_last_event`). None means the newest operation, whether it has ended or not.
        on_interrupt: called after Ctrl-C; asks the user what to do. Another Ctrl-C at this question means to detach.

    Raises:
        WatchEndedError: AWS refuses to answer, and waiting would not help; the operation itself continues.
        NoStackError: there is no such stack.
    """
    watcher = _OperationWatcher(
        account, root_id, report, _scope_since(since), budget or PollingBudget(), expected or Expectation()
    )
    while True:
        try:
            outcome = watcher.poll()
        except KeyboardInterrupt:
            outcome = watcher.handle_interrupt(on_interrupt)
        if outcome is not None:
            return outcome


@dataclass
class _OperationWatcher:
    """The state of one watch; `poll` is called until it returns the result.

    Attributes:
        reads_without_progress: consecutive reads that returned nothing new.
        has_final_status: whether the operation has ended; its last events may not be visible yet.
        poll_error: why the last read failed; empty if it succeeded.
        noticed_errors: kinds of errors that were reported.
    """

    account: Account
    root_id: str
    report: Report
    scope: Scope
    budget: PollingBudget
    expected: Expectation
    interval: float = field(init=False)
    progress_tracker: ProgressTracker = field(init=False)
    overdue: OverdueResources = field(init=False)
    stack: StackView | None = None
    events: TreeEvents | None = None
    events_to_report: list[Event] = field(default_factory=list)
    reported_events: list[Event] = field(default_factory=list)
    was_in_progress: bool = False
    reads_without_progress: int = 0
    has_final_status: bool = False
    has_new_events: bool = False
    cancelled: bool = False
    poll_error: str = ""
    noticed_errors: set[type] = field(default_factory=set)

    def __post_init__(self) -> None:
        # Retries by boto3 would add calls while AWS throttles them, and hide the throttling from the user.
        self.account = replace(self.account, attempts=min(self.account.attempts, MAX_BOTO3_ATTEMPTS), _clients={})
        self.interval = self.budget.interval
        self.progress_tracker = ProgressTracker(self.root_id, self.expected)
        self.overdue = OverdueResources(self.account)

    def poll(self) -> WatchResult | None:
        """Read status and events once, report them, and wait; return the outcome once the operation has ended."""
        self._report_events()  # events that were read before a Ctrl-C, which interrupted their report
        has_answered = self._read()
        self._report_events()
        self._report_progress(fresh=has_answered)
        if has_answered:
            self._explain_overdue()
        if has_answered and self._has_ended():
            return self._outcome()
        self._pause(
            min(PAUSE_AFTER_END_SECONDS, self.interval)
            if self.has_final_status and not self.poll_error
            else self.interval
        )
        return None

    def handle_interrupt(self, on_interrupt: Callable[[], InterruptChoice]) -> WatchResult | None:
        """Ask the user what to do after Ctrl-C, and do it; return the outcome if the watch ends."""
        try:
            choice = on_interrupt()
            if choice is InterruptChoice.CANCEL:
                return self._cancel()
            if choice is InterruptChoice.DETACH and self._ended_while_asking():
                return self._outcome()
        except KeyboardInterrupt:
            choice = InterruptChoice.DETACH
        return self._outcome(detached=True) if choice is InterruptChoice.DETACH else None

    def _ended_while_asking(self) -> bool:
        """Read once more, and return whether the operation has ended; its last events may be missing."""
        return self._read() and (self._has_ended() or self.has_final_status)

    def _read(self) -> bool:
        """Read status and events; return whether AWS answered."""
        from botocore.exceptions import BotoCoreError, ClientError

        calls = self.budget.calls - 1
        try:
            self.stack = find_stack(self.account, self.root_id) or self._last_known_stack()
            if self.stack is not None:
                if self.events is None:
                    self.root_id = self.stack.id
                    self.events = TreeEvents(self.account, self.root_id, self.scope)
                self.events.advance(calls)
        except (ClientError, BotoCoreError) as error:
            if not is_transient(error):
                raise WatchEndedError(self._name, as_aws_error(error)) from error
            self._slow_down(as_aws_error(error))
            return False
        finally:
            if self.events is not None:
                new_events = self.events.take()
                self.has_new_events = bool(new_events)
                self.events_to_report += new_events
        self.poll_error = ""
        self.interval = max(self.budget.interval, self.interval * 0.9)
        return True

    def _last_known_stack(self) -> StackView | None:
        """Return the stack as it was read before; a stack that was created a moment ago may not be visible yet."""
        self.reads_without_progress += 1
        if self.stack is None and self.reads_without_progress >= MAX_STALE_READS:
            raise NoStackError(self.account, self.root_id)
        return self.stack

    def _slow_down(self, error: AwsError) -> None:
        """Double the time until the next read, and report the error if it is the first of its class."""
        self.interval = min(self.interval * 2, self.budget.longest)
        self.poll_error = str(error)
        if type(error) in self.noticed_errors:
            return
        self.noticed_errors.add(type(error))
        if isinstance(error, ThrottledError):
            text = "AWS throttles API calls: progress is shown less often, the operation itself is not affected"
        elif isinstance(error, UnreachableError):
            text = f"AWS cannot be reached at the moment: {error}; the operation and this command continue"
        else:
            text = f"AWS does not answer properly at the moment: {error}; the operation and this command continue"
        self.report(Notice(text))

    def _report_events(self) -> None:
        """Report the events that were read; an event is only removed from the list after it was reported.

        So a Ctrl-C in between makes no event disappear.
        """
        while self.events_to_report:
            event = self.events_to_report[0]
            self.report(event)
            self.progress_tracker.add_event(event)
            self.reported_events.append(event)
            del self.events_to_report[0]

    def _report_progress(self, *, fresh: bool) -> None:
        now = self.account.clock.now()
        self.report(
            Progress(
                action=self.progress_tracker.action,
                stack=self._name,
                status=self.stack.status.name if self.stack else "",
                seconds=self.progress_tracker.seconds(now),
                expected=self.expected.seconds,
                stacks=self.progress_tracker.stacks(now),
                fresh=fresh,
                poll_error=self.poll_error,
            )
        )

    def _explain_overdue(self) -> None:
        if self.stack is None or not self.stack.status.in_progress:
            return
        now = self.account.clock.now()
        for notice in self.overdue.explain(self.stack, self.progress_tracker.stacks(now), self.reported_events, now):
            self.report(notice)

    def _has_ended(self) -> bool:
        if self.stack is None or self.events is None:
            return False
        last_stack_event = self.events.root.last_stack_event
        self.has_final_status = False
        if self.stack.status.in_progress:
            self.was_in_progress = True
            self.reads_without_progress = 0
            return False
        self.reads_without_progress += 1
        if last_stack_event is None:
            # There are no events in scope: the operation has not started yet, or there is none.
            is_still_empty = self.was_in_progress and self.stack.status.health is StackHealth.EMPTY
            return self.reads_without_progress >= MAX_STALE_READS and not is_still_empty
        if StackStatus(last_stack_event.status).in_progress or self.stack.status.health is StackHealth.EMPTY:
            # The status that was read is still the one from before the operation.
            return self.reads_without_progress >= MAX_CONTRADICTING_READS
        self.has_final_status = True
        if last_stack_event.status == self.stack.status.name and self.events.settled:
            return True
        if self.has_new_events or self.events.behind:
            self.reads_without_progress = 0
        return self.reads_without_progress >= READS_AFTER_END

    def _pause(self, seconds: float) -> None:
        remaining = seconds
        while remaining > 0:
            step = min(remaining, self.budget.tick)
            self.account.clock.sleep(step)
            remaining -= step
            if remaining > 0:
                self._report_progress(fresh=False)

    def _cancel(self) -> WatchResult | None:
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            cancellation = cancel_operation(self.account, self.root_id, started_at=self.progress_tracker.begun)
        except (ClientError, BotoCoreError) as error:
            raise WatchEndedError(self._name, as_aws_error(error)) from error
        self.cancelled = self.cancelled or cancellation.is_update_cancelled or cancellation.creation is not None
        if cancellation.notice:
            self.report(cancellation.notice)
        if cancellation.creation is None:
            return None
        self.stack = cancellation.creation
        return self._outcome()

    def _outcome(self, *, detached: bool = False) -> WatchResult:
        if self.events is not None:
            self.events_to_report += self.events.take(everything=True)
        self._report_events()
        status = self.stack.status if self.stack else StackStatus("")
        action = self.progress_tracker.action or "none"
        ran_to_its_end = not detached and not self.cancelled
        return WatchResult(
            stack=self._name,
            stack_id=self.root_id,
            status=status,
            action=action,
            succeeded=ran_to_its_end and _has_succeeded(action, status),
            detached=detached,
            cancelled=self.cancelled,
            seconds=self.progress_tracker.seconds(self.account.clock.now()),
            events=tuple(self.reported_events),
        )

    @property
    def _name(self) -> str:
        """Name of the root stack, or what the caller gave for it as long as the stack has not been read."""
        if self.stack is not None:
            return self.stack.name
        return stack_name(self.root_id) or self.root_id


def _scope_since(since: datetime | Event | None) -> Scope:
    """Return the scope of the events after a change set's creation or an event; None means the newest operation."""
    if since is None:
        return LastOperation
    return since_event(since) if isinstance(since, Event) else since_change_set(since)


def _has_succeeded(action: str, status: StackStatus) -> bool:
    if action == "rollback":
        return status.rolled_back
    return status.name == f"{action.upper()}_COMPLETE" if action in _COMPLETING_ACTIONS else status.succeeded
