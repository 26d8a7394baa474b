"""Carrying the rehearsal out: step after step, until the last one or the first surprise, and always the way back.

    look for an earlier one -> consent -> steps: deploy, look, compare -> delete -> report

However it ends, by a surprise, an error, Ctrl-C or SIGTERM, what was made is removed before it returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cfngen import __version__
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.messages import Notice, Question, Step
from cfngen.deploy.recovery import DeclinedError, Interaction
from cfngen.deploy.watching.watch import Choice
from cfngen.errors import CfngenError
from cfngen.rehearse import cleaning, observing
from cfngen.rehearse.cleaning import Leftover
from cfngen.rehearse.clusters import NAME
from cfngen.rehearse.expectations import Expectations
from cfngen.rehearse.performance import Performance, StoppedError, only_shown
from cfngen.rehearse.report import Rehearsal, RehearsedStep, Result
from cfngen.rehearse.request import RehearsalRequest
from cfngen.rehearse.steps import DELETE, ends_stack
from cfngen.text import pluralize


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


def clean_up(account: Account, waiting: Interaction, request: RehearsalRequest) -> tuple[Leftover, ...]:
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
        quiet = Interaction(only_shown(waiting.report), lambda question: True, waiting.interrupted)
        return _removed(account, quiet, bucket=request.bucket)
    waiting.report(Step("no rehearsal has left a stack, a snapshot or a bucket"))
    return cleaning.remove_templates(account, waiting, bucket=request.bucket, made=False)


def rehearse(account: Account, request: RehearsalRequest, expected: Expectations | None, waiting: Interaction) -> Ended:
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
        self, account: Account, request: RehearsalRequest, expected: Expectations | None, waiting: Interaction
    ) -> None:
        self.account = account
        self.request = request
        self.outside = waiting
        self.performance = Performance(account, request, expected, waiting.report, self._interrupted)
        self.masks = self.performance.masks
        self.steps: list[RehearsedStep] = []
        self.interruptions = 0
        self.cleaning = False

    def run(self) -> Ended:
        """Rehearse."""
        stack, kept = cleaning.standing(self.account), cleaning.kept_by_earlier(self.account)
        self._ask(found=bool(stack or kept))
        began = self.account.clock.now()
        with translate_aws_errors():
            default_vpc = observing.has_default_vpc(self.account)
            bucket_there = cleaning.bucket_exists(self.account, self.request.bucket)
        stop: BaseException | None = None
        try:
            if stack or kept:
                self._remove_earlier()
            self._rehearse()
        except StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - whatever it is, what was made has to go first
            stop = error
        left = self._clean_up(made=not bucket_there)
        if stop is not None:
            result: Result = "interrupted" if isinstance(stop, (KeyboardInterrupt, SystemExit)) else "refused"
            self._end_step(result, "" if result == "interrupted" else self.masks(f"{type(stop).__name__}: {stop}"))
        while len(self.steps) < len(self.request.outlines):
            self.performance.operations = []
            self._end_step("not reached")
        return Ended(self._rehearsal(began, left, default_vpc=default_vpc), left, stop)

    def _end_step(self, result: Result, error: str = "") -> None:
        """Add the next step to the report."""
        outline = self.request.outlines[len(self.steps)]
        done = tuple(self.performance.operations)
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
            f"{step.number}. {step.title}: some {pluralize(step.minutes, 'minute')}, "
            + (", ".join(step.units) or "nothing that is billed")
            for step in steps
        ]
        if found:
            told.insert(0, f"what an earlier rehearsal has left, the stack {NAME} or what was in it, is removed first")
        told.append("everything is removed again; the minutes are estimates, and AWS takes its own time")
        profile = f" (profile {self.request.profile})" if self.request.profile else ""
        where = f"{account.region} of account {account.id}, as {account.caller}{profile}"
        if not self.outside.consent(Question(f"Rehearse {pluralize(len(steps), 'step')} in {where}?", tuple(told))):
            raise DeclinedError

    def _remove_earlier(self) -> None:
        self.outside.report(Step("removing what an earlier rehearsal has left"))
        if left := _removed(self.account, self.performance.waiting, bucket=self.request.bucket):
            raise AwsError(f"an earlier rehearsal's {left[0].kind} {left[0].id} stays: {left[0].why}")

    def _rehearse(self) -> None:
        steps = self.request.steps
        for number, step in enumerate(steps, 1):
            self.performance.operations = []
            self.outside.report(Step(f"step {number} of {len(steps)}: {step.title}"))
            try:
                for action in step.actions:
                    self.performance.carry_out(step, action)
                if ends_stack(step, steps) and step.actions[-1].verb != "plan":
                    self.performance.carry_out(step, DELETE)
            except StoppedError as stopped:
                self._end_step(stopped.result, str(stopped))
                raise
            self._end_step("as expected")

    def _clean_up(self, *, made: bool) -> tuple[Leftover, ...]:
        """Remove what is there; the first Ctrl-C in it is answered, the second one ends it."""
        self.cleaning, self.interruptions = True, 0
        left = self._tried(made=made)
        if left is None:
            left = self._tried(made=made)
        return left if left is not None else (_unknown("it was interrupted twice"),)

    def _tried(self, *, made: bool) -> tuple[Leftover, ...] | None:
        """Remove what is there; None if that was interrupted."""
        request, deleted = self.request, tuple(self.performance.deleted)
        try:
            return _removed(self.account, self.performance.waiting, bucket=request.bucket, made=made, deleted=deleted)
        except (KeyboardInterrupt, SystemExit):
            self._interrupted()
            return None
        except CfngenError as error:
            return (_unknown(str(error)),)

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
    account: Account, waiting: Interaction, *, bucket: str, made: bool = False, deleted: tuple[str, ...] = ()
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


def _unknown(why: str) -> Leftover:
    return Leftover("stack", NAME, f"whether all of it is gone is not known: {why}")
