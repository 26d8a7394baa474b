"""Following an operation of CloudFormation until it has ended, whatever happens to the one who follows it.

CloudFormation works on its own: losing sight of it changes nothing. So a watch ends when the operation has ended, when
the user leaves, or when AWS refuses to answer for good, and then says how to come back. Throttling and a lost network
only slow it down. All stacks share one allowance of calls; the number of nested stacks makes a watch slower to notice,
not louder.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, ThrottledError, UnreachableError, as_aws_error, is_transient
from cfngen.deploy.messages import Event, Finished, Notice, Report
from cfngen.deploy.stacks import NoStackError, StackView, find, stack_name
from cfngen.deploy.status import StackHealth, StackStatus
from cfngen.deploy.watching.event_scope import LastOperation, Scope, since_event, since_time
from cfngen.deploy.watching.events import TreeEvents
from cfngen.deploy.watching.expectations import Expectation
from cfngen.deploy.watching.progress import Progress, Tree
from cfngen.errors import CfngenError

STALE_READS = 5
"""Reads that may show the stack at rest right after an operation was started: what CloudFormation says of a stack lags
behind what it does (https://github.com/aws/aws-cdk-cli reads REVIEW_IN_PROGRESS after ExecuteChangeSet likewise)."""
LAST_LOOKS = 5
"""Further reads when the status says that the operation has ended, for events that become visible after the status."""
LATE_LOOKS = 100
"""Reads after which an end is believed though the events still speak of work."""
LAST_PAUSE = 2.0  # seconds between those reads
TRIES = 2  # of one call, at once: patience is the watch's own
_COMPLETING_ACTIONS = ("create", "update", "import", "delete")


class Choice(str, Enum):
    """What to do after Ctrl-C."""

    WAIT = "wait"
    DETACH = "detach"
    CANCEL = "cancel"


class WatchEndedError(CfngenError):
    """AWS does not answer these credentials any more; the operation goes on without cfngen.

    Attributes:
        stack: name of the root stack.
        cause: what AWS said.
    """

    exit_code = 6

    def __init__(self, stack: str, cause: AwsError) -> None:
        super().__init__(
            f"{cause}; the operation on the stack {stack} goes on without cfngen",
            hint=" ".join(filter(None, (cause.hint, f"Then look again with `cfngen watch --stack-name {stack}`."))),
        )
        self.stack = stack
        self.cause = cause


@dataclass(frozen=True)
class Budget:
    """How often CloudFormation is asked.

    Attributes:
        calls: calls for each look, of which one is for the status and the others are for pages of events.
        interval: seconds between two looks.
        longest: seconds between two looks when AWS asks for fewer calls or cannot be reached.
        tick: seconds between two messages of progress, in which only time passes.
    """

    calls: int = 12
    interval: float = 5.0
    longest: float = 30.0
    tick: float = 1.0


@dataclass(frozen=True)
class Outcome:
    """How a watch ended.

    Attributes:
        stack: name of the root stack.
        stack_id: its ARN.
        status: its status at the end.
        action: `create`, `update`, `import`, `rollback`, `delete`, or `none` if nothing was under way.
        succeeded: whether the operation ended as it was meant to.
        detached: whether it goes on, because the user left it.
        cancelled: whether the user wanted to end it: an update rolls back, and has ended if `detached` is false. Of a
            creation only the wish is noted: it goes on until the caller deletes the stack.
        seconds: how long the operation has taken, from its first event to its last, or so far.
        events: everything that happened, in the order in which it was seen.
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
            action: what the command was about.
            stack: the stack as it is now, if it can still be read.
        """
        return Finished(
            action=action,
            stack=self.stack,
            stack_id=self.stack_id,
            status=stack.status.name if stack else self.status.name,
            succeeded=self.succeeded,
            seconds=self.seconds,
            outputs=stack.outputs if stack else {},
            goes_on=self.detached,
        )


def watch(
    account: Account,
    root_id: str,
    *,
    report: Report,
    since: datetime | Event | None = None,
    interrupted: Callable[[], Choice] = lambda: Choice.DETACH,
    budget: Budget | None = None,
    expected: Expectation | None = None,
) -> Outcome:
    """Follow what is being done to a stack and the stacks it nests, until it has ended.

    Args:
        account: where it is.
        root_id: its ARN, or its name if it is not being deleted.
        report: is told every event, and again and again how far the operation has come.
        since: where the operation begins: a time of the service, as that of the change set's creation, or the last
            event before it (see `last_event`). None means the newest operation, be it under way or ended.
        interrupted: asks what to do after Ctrl-C; another Ctrl-C in it means to detach.
        budget: how often CloudFormation is asked.
        expected: what is known of the operation beforehand.

    Raises:
        WatchEndedError: AWS refuses to answer for a reason that waiting does not change; the operation goes on.
        NoStackError: there is no such stack.
    """
    watcher = _Watch(account, root_id, report, since, budget or Budget(), expected or Expectation())
    while True:
        try:
            outcome = watcher.look()
        except KeyboardInterrupt:
            outcome = watcher.asked(interrupted)
        if outcome is not None:
            return outcome


class _Watch:
    def __init__(
        self,
        account: Account,
        root_id: str,
        report: Report,
        since: datetime | Event | None,
        budget: Budget,
        expected: Expectation,
    ) -> None:
        # boto3's own retries would multiply the calls just when AWS asks for fewer, and hide that it does.
        self.account = replace(account, attempts=min(account.attempts, TRIES), _clients={})
        self.root_id = root_id
        self.report = report
        self.budget = budget
        self.interval = budget.interval
        self.scope = _scope(since)
        self.expected = expected
        self.stack: StackView | None = None
        self.events: TreeEvents | None = None
        self.tree = Tree(root_id, expected)
        self.unreported: list[Event] = []
        self.reported: list[Event] = []
        self.begun = False
        self.quiet = 0
        self.ending = False
        self.news = False
        self.cancelled = False
        self.trouble = ""
        self.noticed: set[type] = set()

    def look(self) -> Outcome | None:
        """Ask CloudFormation once, tell what is new, and wait; return the outcome once there is one."""
        self._tell()  # what Ctrl-C has left
        has_answered = self._read()
        self._tell()
        self._tell_progress(fresh=has_answered)
        if has_answered and self._has_ended():
            return self._outcome()
        self._pause(min(LAST_PAUSE, self.interval) if self.ending and not self.trouble else self.interval)
        return None

    def asked(self, interrupted: Callable[[], Choice]) -> Outcome | None:
        """Do what the user wants after Ctrl-C."""
        try:
            choice = interrupted()
            if choice is Choice.CANCEL:
                return self._cancel()
        except KeyboardInterrupt:
            choice = Choice.DETACH
        return self._outcome(detached=True) if choice is Choice.DETACH else None

    def _read(self) -> bool:
        """Read status and events; return whether AWS answered."""
        from botocore.exceptions import BotoCoreError, ClientError

        calls = self.budget.calls - 1
        try:
            self.stack = find(self.account, self.root_id) or self._missing()
            if self.stack is not None:
                if self.events is None:
                    self.root_id = self.stack.id
                    self.events = TreeEvents(self.account.client("cloudformation"), self.root_id, self.scope)
                self.events.advance(calls)
        except (ClientError, BotoCoreError) as error:
            if not is_transient(error):
                raise WatchEndedError(self._name, as_aws_error(error)) from error
            self._slow_down(as_aws_error(error))
            return False
        finally:
            if self.events is not None:
                new = self.events.take()
                self.news = bool(new)
                self.unreported += new
        self.trouble = ""
        self.interval = max(self.budget.interval, self.interval * 0.9)
        return True

    def _missing(self) -> StackView | None:
        """Keep what is known of a stack that is not found; it may have been made a moment ago."""
        self.quiet += 1
        if self.stack is None and self.quiet >= STALE_READS:
            raise NoStackError(self.account, self.root_id)
        return self.stack

    def _slow_down(self, error: AwsError) -> None:
        self.interval = min(self.interval * 2, self.budget.longest)
        self.trouble = str(error)
        if type(error) in self.noticed:
            return
        self.noticed.add(type(error))
        if isinstance(error, ThrottledError):
            text = "AWS asks for fewer calls: progress is shown less often, the operation itself is not affected"
        elif isinstance(error, UnreachableError):
            text = f"AWS cannot be reached at the moment: {error}; the operation goes on, and so does this watch"
        else:
            text = f"AWS does not answer properly at the moment: {error}; the operation goes on, and so does this watch"
        self.report(Notice(text))

    def _tell(self) -> None:
        while self.unreported:
            event = self.unreported[0]
            self.report(event)
            self.tree.see(event)
            self.reported.append(event)
            del self.unreported[0]

    def _tell_progress(self, *, fresh: bool) -> None:
        now = self.account.clock.now()
        self.report(
            Progress(
                action=self.tree.action,
                stack=self._name,
                status=self.stack.status.name if self.stack else "",
                seconds=self.tree.seconds(now),
                expected=self.expected.seconds,
                stacks=self.tree.stacks(now),
                fresh=fresh,
                trouble=self.trouble,
            )
        )

    def _has_ended(self) -> bool:
        """Return whether the operation has ended and everything about it has been read, as far as can be known."""
        if self.stack is None or self.events is None:
            return False
        last_stack_event = self.events.root.last
        self.ending = False
        if self.stack.status.in_progress:
            self.begun, self.quiet = True, 0
            return False
        self.quiet += 1
        if last_stack_event is None:
            # Nothing has happened within the scope: not yet, or not at all.
            return self.quiet >= STALE_READS and not (self.begun and self.stack.status.standing is StackHealth.EMPTY)
        if StackStatus(last_stack_event.status).in_progress or self.stack.status.standing is StackHealth.EMPTY:
            # The status is that from before the operation.
            return self.quiet >= LATE_LOOKS
        self.ending = True
        if last_stack_event.status == self.stack.status.name and self.events.settled:
            return True
        if self.news or self.events.behind:
            self.quiet = 0
        return self.quiet >= LAST_LOOKS

    def _pause(self, seconds: float) -> None:
        remaining = seconds
        while remaining > 0:
            step = min(remaining, self.budget.tick)
            self.account.clock.sleep(step)
            remaining -= step
            if remaining > 0:
                self._tell_progress(fresh=False)

    def _cancel(self) -> Outcome | None:
        """Cancel the operation if it can be; else say why it cannot."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            stack = find(self.account, self.root_id)
            status = stack.status if stack else StackStatus("")
            if status.cancellable:
                token = f"cfngen-{uuid.uuid5(uuid.NAMESPACE_URL, f'cancel {self.root_id} {self.tree.begun}')}"
                self.account.client("cloudformation").cancel_update_stack(
                    StackName=self.root_id, ClientRequestToken=token
                )
                self.cancelled = True
                self.report(Notice("the update is being cancelled: what it has changed so far is taken back"))
                return None
        except (ClientError, BotoCoreError) as error:
            if is_transient(error):
                self.report(Notice(f"not cancelled: {as_aws_error(error)}", "press Ctrl-C to try again."))
            elif isinstance(error, ClientError) and error.response["Error"]["Code"] == "ValidationError":
                # It has left the only status that can be cancelled between the two calls.
                self.report(Notice(f"not cancelled: {error.response['Error']['Message']}"))
            else:
                raise WatchEndedError(self._name, as_aws_error(error)) from error
            return None
        if status.name == "CREATE_IN_PROGRESS" or status.standing is StackHealth.EMPTY:
            self.stack = stack
            self.cancelled = True
            return self._outcome()
        self.report(Notice(f"not cancelled: {_not_cancellable_reason(status)}"))
        return None

    def _outcome(self, *, detached: bool = False) -> Outcome:
        if self.events is not None:
            self.unreported += self.events.take(everything=True)
        self._tell()
        status = self.stack.status if self.stack else StackStatus("")
        action = self.tree.action or "none"
        ran_to_its_end = not detached and not self.cancelled
        return Outcome(
            stack=self._name,
            stack_id=self.root_id,
            status=status,
            action=action,
            succeeded=ran_to_its_end and _succeeded(action, status),
            detached=detached,
            cancelled=self.cancelled,
            seconds=self.tree.seconds(self.account.clock.now()),
            events=tuple(self.reported),
        )

    @property
    def _name(self) -> str:
        if self.stack is not None:
            return self.stack.name
        return stack_name(self.root_id) or self.root_id


def _scope(since: datetime | Event | None) -> Scope:
    if since is None:
        return LastOperation
    return since_event(since) if isinstance(since, Event) else since_time(since)


def _succeeded(action: str, status: StackStatus) -> bool:
    if action == "rollback":
        return status.taken_back
    return status.name == f"{action.upper()}_COMPLETE" if action in _COMPLETING_ACTIONS else status.succeeded


def _not_cancellable_reason(status: StackStatus) -> str:
    if status.cleaning_up:
        return "the outcome is decided; only resources that have been replaced are still being removed"
    if status.rolling_back:
        return "what was done is being taken back already"
    if status.name == "DELETE_IN_PROGRESS":
        return "a deletion cannot be cancelled"
    if not status.in_progress:
        return f"the operation has ended; the stack is in {status}"
    return f"CloudFormation cancels nothing while a stack is in {status}"
