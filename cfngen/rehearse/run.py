"""Carrying the rehearsal out: step after step, until the last one or the first surprise, and always the way back.

    look for an earlier one -> consent -> steps: deploy, look, compare -> delete -> report

However it ends, by a surprise, an error, Ctrl-C or SIGTERM, what was made is removed before it returns.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from cfngen import __version__
from cfngen.deploy import operation as deployment
from cfngen.deploy.account import Account
from cfngen.deploy.failures import (
    AwsError,
    CredentialsError,
    DeniedError,
    RegionError,
    ThrottledError,
    UnreachableError,
    aws_errors,
)
from cfngen.deploy.messages import Event, Message, Notice, Question, Report, Step
from cfngen.deploy.preview.plan import Plan, Replacement
from cfngen.deploy.publishing.bucket import BucketError
from cfngen.deploy.recovery import BusyError, DeclinedError, Waiting
from cfngen.deploy.stacks import find
from cfngen.deploy.watching.diagnosis import Diagnosis
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import Choice, WatchEndedError
from cfngen.errors import CfngenError
from cfngen.rehearse import cleaning, observing
from cfngen.rehearse.cleaning import MARK, Leftover
from cfngen.rehearse.clusters import NAME
from cfngen.rehearse.comparison import remarks, surprises
from cfngen.rehearse.expectations import Expectations, key
from cfngen.rehearse.masking import Masks
from cfngen.rehearse.operations import Names, Operation, recorded_events
from cfngen.rehearse.outlines import Outline, made, minutes
from cfngen.rehearse.report import Rehearsal, RehearsedOperation, RehearsedStep, Result
from cfngen.rehearse.steps import DELETE, VALUES, Action, Deployable, RehearsalStep, ends_stack
from cfngen.words import counted

# Of the account, or of the way to it: they say nothing about how AWS does things.
_OF_THE_ACCOUNT = (
    BucketError,
    BusyError,
    CredentialsError,
    DeclinedError,
    DeniedError,
    RegionError,
    ThrottledError,
    UnreachableError,
    deployment.ImpossiblePlanError,
)
_SHOWN = (Step, Notice, Event, Progress, Diagnosis)


@dataclass(frozen=True)
class RehearsalRequest:
    """What is to be rehearsed, and how.

    Attributes:
        steps: the steps, in order.
        outlines: what they take and cost, as the user is told before consent.
        zones: three zones of a region; the steps with one zone use the first.
        bucket: bucket for the templates; cfngen's own if empty.
        role_arn: service role of CloudFormation; the caller's rights if empty.
        profile: the caller's profile, which must not appear in the report; empty if none is named.
        command: what removes what a rehearsal has left, as the user types it.
    """

    steps: tuple[RehearsalStep, ...]
    outlines: tuple[Outline, ...]
    zones: tuple[str, ...]
    bucket: str = ""
    role_arn: str = ""
    profile: str = ""
    command: str = "cfngen rehearse --clean-up"


@dataclass(frozen=True)
class Ended:
    """How a rehearsal ended.

    Attributes:
        rehearsal: the report.
        left: what could not be removed.
        stop: what has to go on once the report is written: SIGTERM's exit, or a fault of cfngen's; usually None.
    """

    rehearsal: Rehearsal
    left: tuple[Leftover, ...]
    stop: BaseException | None = None


class _StoppedError(CfngenError):
    """A step did not go as expected; the rehearsal ends."""

    def __init__(self, result: Result, message: str = "") -> None:
        super().__init__(message)
        self.result: Result = result


def clean_up(account: Account, waiting: Waiting, request: RehearsalRequest) -> tuple[Leftover, ...]:
    """Remove what earlier rehearsals have left, after consent; return what stays.

    Raises:
        NotOursError: the stack of the rehearsal's name is somebody else's.
        DeclinedError: the user said no.
        AwsError: a call failed.
    """
    stack, kept = cleaning.standing(account), cleaning.kept_by_earlier(account)
    if stack or kept:
        if not waiting.consent(Question(f"Remove what rehearsals have left in {account.region} of {account.id}?")):
            raise DeclinedError
        # It was agreed to as a whole, and what a deletion says of its parts is said of clusters that somebody needs.
        quiet = Waiting(_only(_SHOWN, waiting.report), lambda question: True, waiting.interrupted)
        return _removed(account, quiet, bucket=request.bucket)
    waiting.report(Step("no rehearsal has left a stack, a snapshot or a bucket"))
    return cleaning.remove_templates(account, waiting, bucket=request.bucket, made=False)


def rehearse(account: Account, request: RehearsalRequest, expected: Expectations | None, waiting: Waiting) -> Ended:
    """Rehearse, and leave nothing behind.

    Args:
        account: where.
        request: what.
        expected: what the emulator does; None records instead of comparing.
        waiting: who is told and asked. Its answer to Ctrl-C is not asked for: that always means to clean up and end.

    Raises:
        NotOursError: the stack of the rehearsal's name is somebody else's.
        DeclinedError: the user said no.
        AwsError: a call failed before anything was made.
    """
    return _Run(account, request, expected, waiting).run()


class _Run:
    def __init__(
        self, account: Account, request: RehearsalRequest, expected: Expectations | None, waiting: Waiting
    ) -> None:
        self.account = account
        self.request = request
        self.expected = expected
        self.outside = waiting
        self.waiting = Waiting(self._report, lambda question: True, self._interrupted)
        self.names = Names(request.zones)
        caller = account.caller.split(":")[-1].split("/")[1:]
        self.masks = Masks((request.profile, request.bucket, request.role_arn.rpartition("/")[2], *caller))
        self.steps: list[RehearsedStep] = []
        self.operations: list[RehearsedOperation] = []
        self.events: list[Event] = []
        self.known: set[str] = set()
        self.plan: Plan | None = None
        self.diagnosis: Diagnosis | None = None
        self.made: Mapping[str, str] = {}
        self.deleted: list[str] = []
        self.interruptions = 0
        self.cleaning = False

    def run(self) -> Ended:
        """Rehearse."""
        stack, kept = cleaning.standing(self.account), cleaning.kept_by_earlier(self.account)
        self._ask(found=bool(stack or kept))
        began = self.account.clock.now()
        with aws_errors():
            default_vpc = observing.has_default_vpc(self.account)
            bucket_there = cleaning.bucket_exists(self.account, self.request.bucket)
        stop: BaseException | None = None
        try:
            if stack or kept:
                self._remove_earlier()
            self._rehearse()
        except _StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, what was made has to go first
            stop = error
        left = self._clean_up(made=not bucket_there)
        if stop is not None:
            result: Result = "interrupted" if isinstance(stop, (KeyboardInterrupt, SystemExit)) else "refused"
            self._end_step(result, "" if result == "interrupted" else self.masks(f"{type(stop).__name__}: {stop}"))
        while len(self.steps) < len(self.request.outlines):
            self.operations = []
            self._end_step("not reached")
        return Ended(self._rehearsal(began, left, default_vpc=default_vpc), left, stop)

    def _end_step(self, result: Result, error: str = "") -> None:
        """Add the next step to the report."""
        outline = self.request.outlines[len(self.steps)]
        done = tuple(self.operations)
        self.steps.append(RehearsedStep(outline.number, outline.name, outline.title, result, done, error))

    def _rehearsal(self, began: Any, left: tuple[Leftover, ...], *, default_vpc: bool) -> Rehearsal:
        import boto3

        results = [step.result for step in self.steps if step.result != "as expected"]
        return Rehearsal(
            version=__version__,
            boto3=boto3.__version__,
            began=began,
            region=self.account.region,
            partition=self.account.partition,
            default_vpc=default_vpc,
            result=results[0] if results else "as expected",
            steps=tuple(self.steps),
            left=tuple(self.masks(f"{each.kind} {each.id}: {each.why}") for each in left),
        )

    def _ask(self, *, found: bool) -> None:
        account, steps = self.account, self.request.outlines
        told = [
            f"{each.number}. {each.title}: some {counted(each.minutes, 'minute')}, "
            + (", ".join(each.units) or "nothing that is billed")
            for each in steps
        ]
        if found:
            told.insert(0, f"what an earlier rehearsal has left, the stack {NAME} or what was in it, is removed first")
        told.append("everything is removed again; the minutes are estimates, and AWS takes its own time")
        profile = f" (profile {self.request.profile})" if self.request.profile else ""
        where = f"{account.region} of account {account.id}, as {account.caller}{profile}"
        if not self.outside.consent(Question(f"Rehearse {counted(len(steps), 'step')} in {where}?", tuple(told))):
            raise DeclinedError

    def _remove_earlier(self) -> None:
        self.outside.report(Step("removing what an earlier rehearsal has left"))
        if left := _removed(self.account, self.waiting, bucket=self.request.bucket):
            raise AwsError(f"an earlier rehearsal's {left[0].kind} {left[0].id} stays: {left[0].why}")

    def _rehearse(self) -> None:
        steps = self.request.steps
        for number, step in enumerate(steps, 1):
            self.operations = []
            self.outside.report(Step(f"step {number} of {len(steps)}: {step.title}"))
            try:
                for action in step.actions:
                    self._do(step, action)
                if ends_stack(step, steps) and step.actions[-1].verb != "plan":
                    self._do(step, DELETE)
            except _StoppedError as stopped:
                self._end_step(stopped.result, str(stopped))
                raise
            self._end_step("as expected")

    def _do(self, step: RehearsalStep, action: Action) -> None:
        """Carry one operation out, and compare it.

        Raises:
            _StoppedError: it was refused, or something differs.
            KeyboardInterrupt: the user wants to end.
        """
        self.events, self.plan, self.diagnosis = [], None, None
        began = self.account.clock.now()
        deployable = made(action.make, self.request.zones) if action.make else None
        try:
            seen = self._done(action, deployable)
        except deployment.BegunError:
            raise KeyboardInterrupt from None
        except CfngenError as error:
            cause = error.cause if isinstance(error, WatchEndedError) else error
            seconds = (self.account.clock.now() - began).total_seconds()
            seen = Operation(action.name, seconds=seconds, error=self.masks(str(error)))
            if isinstance(cause, _OF_THE_ACCOUNT):
                self._keep(seen, deployable, None, step, action)
                raise _StoppedError("refused", self.masks(" ".join(filter(None, (str(error), error.hint))))) from error
        if self.interruptions:
            self._keep(seen, deployable, None, step, action)
            raise KeyboardInterrupt
        self._keep(seen, deployable, self.expected, step, action)
        if found := self.operations[-1].surprises:
            raise _StoppedError("surprise", f"{counted(len(found), 'surprise')}, first {found[0]}")

    def _keep(
        self,
        seen: Operation,
        deployable: Deployable | None,
        expected: Expectations | None,
        step: RehearsalStep,
        action: Action,
    ) -> None:
        """Add an operation to the report, with what differs."""
        seen = replace(
            seen,
            events=recorded_events(self.events, self.names, self.masks),
            changes=_changes(self.plan, self.names),
            facts={name: self.masks(value) for name, value in seen.facts.items()},
            remarks=tuple(map(self.masks, (*seen.remarks, *_told(self.diagnosis)))),
        )
        if expected is None:
            self.operations.append(RehearsedOperation(seen, remarks=seen.remarks))
            return
        usual = expected[key(step.stack, action.name)]
        differing = surprises(usual, seen, deployable.documents if deployable else (), self.names)
        noted = remarks(usual, seen, minutes(step, action, self.request.zones, expected))
        self.operations.append(RehearsedOperation(seen, tuple(differing), tuple(noted)))

    def _done(self, action: Action, deployable: Deployable | None) -> Operation:
        if deployable is None:
            return self._delete(action)
        wanted = self._wanted(deployable)
        if action.verb == "plan":
            began = self.account.clock.now()
            self.plan = deployment.plan(self.account, wanted, self.waiting)
            seconds = (self.account.clock.now() - began).total_seconds()
            return self._looked(action, Operation(action.name, "planned", seconds), "")
        finished = deployment.deploy(self.account, wanted, self.waiting)
        return self._looked(action, Operation(action.name, finished.status, finished.seconds), finished.stack_id)

    def _wanted(self, deployable: Deployable) -> deployment.Wanted:
        root = next(each for each in deployable.documents if each.children)
        return deployment.Wanted(
            cluster=deployable.cluster,
            documents=deployable.documents,
            stack_name=NAME,
            token=uuid.uuid4().hex[:12],
            bucket=self.request.bucket,
            flags={name: value for name, value in VALUES.items() if name in root.body.get("Parameters", {})},
            tags={MARK: __version__},
            role_arn=self.request.role_arn,
            protect=False,
        )

    def _looked(self, action: Action, seen: Operation, stack_id: str) -> Operation:
        """Return an operation with what is found after it."""
        sight = observing.Sight()
        try:
            with aws_errors():
                if action.look == "shells":
                    sight = observing.shells(self.account, NAME)
                elif action.look == "slot":
                    sight = observing.slot(self.account, stack_id)
                elif action.look == "made":
                    self.made = observing.secrets_made(self.account, stack_id)
                elif action.look == "gone":
                    sight = observing.secrets_gone(self.account, self.made)
        except AwsError as error:
            sight.remarks.append(f"it could not be looked at: {error}")
        return replace(seen, facts={**seen.facts, **sight.facts}, remarks=(*seen.remarks, *sight.remarks))

    def _delete(self, action: Action) -> Operation:
        stack = cleaning.standing(self.account)
        if stack is None:
            return Operation(action.name, "deleted")
        self.deleted.append(stack.id)
        deleted = cleaning.remove_stack(self.account, stack, self.waiting)
        with aws_errors():
            after = find(self.account, stack.id)
            facts = cleaning.kept(self.account, stack.id)
        status = after.status.name if after else ""
        seen = self._looked(action, Operation(action.name, status, deleted.seconds, facts=facts), "")
        if not self.cleaning:
            cleaning.remove_kept(self.account, [stack.id], self._report)
        return seen

    def _clean_up(self, *, made: bool) -> tuple[Leftover, ...]:
        """Remove what is there; the first Ctrl-C in it is answered, the second one ends it."""
        self.cleaning, self.interruptions = True, 0
        left = self._tried(made=made)
        if left is None:
            left = self._tried(made=made)
        return left if left is not None else (_unknown("it was interrupted twice"),)

    def _tried(self, *, made: bool) -> tuple[Leftover, ...] | None:
        """Remove what is there; None if that was interrupted."""
        request, deleted = self.request, tuple(self.deleted)
        try:
            return _removed(self.account, self.waiting, bucket=request.bucket, made=made, deleted=deleted)
        except (KeyboardInterrupt, SystemExit):
            self._interrupted()
            return None
        except CfngenError as error:
            return (_unknown(str(error)),)

    def _report(self, message: Message) -> None:
        if isinstance(message, Event):
            # Where an operation follows at once, its events are read together with the last ones of the one before.
            if message.id not in self.known:
                self.events.append(message)
            self.known.add(message.id)
        elif isinstance(message, Plan):
            self.plan = message
        elif isinstance(message, Diagnosis):
            self.diagnosis = message
        _only(_SHOWN, self.outside.report)(message)

    def _interrupted(self) -> Choice:
        """Answer Ctrl-C: what is under way ends, and everything is removed; it takes two more to leave that."""
        self.interruptions += 1
        if not self.cleaning:
            self.outside.report(Notice("interrupted: what was made is removed now"))
            return Choice.CANCEL
        if self.interruptions > 1:
            return Choice.DETACH
        hint = f"once more leaves it as it is; `{self.request.command}` then removes it."
        self.outside.report(Notice("what was made is being removed", hint))
        return Choice.WAIT


def _removed(
    account: Account, waiting: Waiting, *, bucket: str, made: bool = False, deleted: tuple[str, ...] = ()
) -> tuple[Leftover, ...]:
    """Remove the stack, what CloudFormation keeps of it and of earlier ones, and the templates; return what stays."""
    left: list[Leftover] = []
    stack = cleaning.standing(account)
    if stack is not None:
        result = cleaning.remove_stack(account, stack, waiting)
        if result.goes_on or result.status:
            return (Leftover("stack", NAME, f"it is in {result.status or 'deletion'}"),)
    left += cleaning.remove_kept(account, dict.fromkeys((*deleted, *cleaning.kept_by_earlier(account))), waiting.report)
    left += cleaning.remove_templates(account, waiting, bucket=bucket, made=made)
    return tuple(left)


def _only(kinds: tuple[type[Message], ...], report: Report) -> Report:
    """Return what reports messages of some kinds, and passes over all others."""

    def tell(message: Message) -> None:
        if isinstance(message, kinds):
            report(message)

    return tell


def _unknown(why: str) -> Leftover:
    return Leftover("stack", NAME, f"whether all of it is gone is not known: {why}")


def _changes(plan: Plan | None, names: Names) -> tuple[str, ...]:
    """Return what a change set would do, in one line for each resource."""
    if plan is None:
        return ()
    return tuple(
        sorted(
            f"{'replace' if change.replacement is Replacement.WILL else change.action} "
            f"{names.path((*stack.path, change.logical_id))} ({change.type})"
            for stack in plan.stacks
            for change in stack.changes
        )
    )


def _told(diagnosis: Diagnosis | None) -> tuple[str, ...]:
    """Return what the diagnosis of a failure says, with the last words of the instances that it is about."""
    if diagnosis is None:
        return ()
    causes = [*([diagnosis.cause] if diagnosis.cause else []), *diagnosis.others, *diagnosis.undoing]
    return tuple(
        line
        for cause in causes
        for line in (
            f"failed: {'/'.join((*cause.event.path, cause.event.logical_id))}: {cause.event.reason}",
            *(f"could not be launched: {why}" for why in cause.launches),
            *(f"console of {said.id}: {word}" for said in cause.instances for word in said.words),
        )
    )
