"""Run the rehearsal, step by step, until the last step or the first surprise.

    look for leftovers -> consent -> steps: deploy, observe, compare -> delete -> report

However it ends (surprise, error, Ctrl-C, SIGTERM), everything that was created is removed before it returns.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cfngen import __version__
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.existing_resources import bucket_exists
from cfngen.deploy.messages.message import Notice, Question, Step
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.publishing.bucket import default_name
from cfngen.deploy.watching.watch import InterruptChoice
from cfngen.errors import CfngenError
from cfngen.rehearse import cleanup, observations
from cfngen.rehearse.assumptions import judge_assumptions
from cfngen.rehearse.cleanup import Leftover
from cfngen.rehearse.clusters import REHEARSAL_NAME
from cfngen.rehearse.expectations import Expectations
from cfngen.rehearse.operation_runner import OperationRunner, RehearsalRequest, StoppedError, only_shown
from cfngen.rehearse.report import Rehearsal, RehearsedStep, StepResult
from cfngen.rehearse.steps import DELETE, ends_stack
from cfngen.text import pluralize


@dataclass(frozen=True)
class RehearsalResult:
    """The result of a rehearsal.

    Attributes:
        left: resources that could not be removed.
        stop: exception that the caller raises after writing the report: Ctrl-C or SIGTERM, or an unexpected
            error; None if the rehearsal ended normally.
    """

    rehearsal: Rehearsal
    left: tuple[Leftover, ...]
    stop: BaseException | None = None


def clean_up(account: Account, interaction: Interaction, request: RehearsalRequest) -> tuple[Leftover, ...]:
    """Remove what earlier rehearsals have left, after the user's consent; return what could not be removed.

    Raises:
        ForeignRehearsalStackError: a stack with the rehearsal's name was not created by a rehearsal.
        DeclinedError: the user declined.
    """
    stack, retained = cleanup.find_rehearsal_stack(account), cleanup.deleted_stacks_with_leftovers(account)
    if stack or retained:
        interaction.require_consent(Question("Remove the leftovers of rehearsals?"))
        # The user has agreed to all of it: answer the deletion's questions with yes, and drop its warnings, which are
        # meant for clusters with data.
        quiet = Interaction(only_shown(interaction.report), lambda question: True, interaction.on_interrupt)
        return _remove_everything(account, quiet, bucket=request.bucket)
    interaction.report(Step("no rehearsal has left a stack, a snapshot or a bucket"))
    return cleanup.remove_templates(account, interaction, bucket=request.bucket, is_bucket_new=False)


def rehearse(
    account: Account, request: RehearsalRequest, expected: Expectations | None, interaction: Interaction
) -> RehearsalResult:
    """Run a rehearsal, and remove everything that it created.

    Args:
        expected: what the emulator does; None to record operations without comparing them.
        interaction: receives messages and asks for consent. Ctrl-C does not ask: it always means to clean up and end.

    Raises:
        ForeignRehearsalStackError: a stack with the rehearsal's name was not created by a rehearsal.
        DeclinedError: the user declined.
        AwsError: a call failed before anything was created.
    """
    return _RehearsalRun(account, request, expected, interaction).run()


class _RehearsalRun:
    """One rehearsal: its steps so far, and how often the user has pressed Ctrl-C."""

    def __init__(
        self, account: Account, request: RehearsalRequest, expected: Expectations | None, interaction: Interaction
    ) -> None:
        self.account = account
        self.request = request
        self.interaction = interaction
        self.runner = OperationRunner(account, request, expected, interaction.report, self._interrupted)
        self.masks = self.runner.masks
        self.steps: list[RehearsedStep] = []
        self.interruptions = 0
        self.is_cleaning_up = False

    def run(self) -> RehearsalResult:
        """Run all steps, remove everything that they created, and return the result."""
        stack, retained = (
            cleanup.find_rehearsal_stack(self.account),
            cleanup.deleted_stacks_with_leftovers(self.account),
        )
        self._ask_for_consent(has_leftovers=bool(stack or retained))
        start_time = self.account.clock.now()
        with translate_aws_errors():
            default_vpc = observations.has_default_vpc(self.account)
            has_bucket = bucket_exists(self.account, self.request.bucket or default_name(self.account))
        stop: BaseException | None = None
        try:
            if stack or retained:
                self._remove_earlier()
            self._run_steps()
        except StoppedError:
            pass
        except BaseException as error:  # noqa: BLE001 - clean up first, whatever the error is
            stop = error
        leftovers = self._clean_up(is_bucket_new=not has_bucket)
        if stop is not None:
            result: StepResult = "interrupted" if isinstance(stop, KeyboardInterrupt) else "refused"
            self._end_step(result, "" if result == "interrupted" else self.masks(f"{type(stop).__name__}: {stop}"))
        while len(self.steps) < len(self.request.outlines):
            self.runner.operations = []
            self._end_step("not reached")
        return RehearsalResult(self._make_report(start_time, leftovers, default_vpc=default_vpc), leftovers, stop)

    def _end_step(self, result: StepResult, error: str = "") -> None:
        outline = self.request.outlines[len(self.steps)]
        self.steps.append(
            RehearsedStep(
                number=outline.number,
                name=outline.name,
                title=outline.title,
                result=result,
                operations=tuple(self.runner.operations),
                error=error,
            )
        )

    def _make_report(self, start_time: datetime, leftovers: tuple[Leftover, ...], *, default_vpc: bool) -> Rehearsal:
        import boto3

        results = [step.result for step in self.steps if step.result != "as expected"]
        return Rehearsal(
            version=__version__,
            boto3=boto3.__version__,
            began=start_time,
            region=self.account.region,
            partition=self.account.partition,
            default_vpc=default_vpc,
            result=results[0] if results else "as expected",
            steps=tuple(self.steps),
            assumptions=judge_assumptions([done.operation for step in self.steps for done in step.operations]),
            left=tuple(self.masks(f"{leftover.kind} {leftover.id}: {leftover.why}") for leftover in leftovers),
        )

    def _ask_for_consent(self, *, has_leftovers: bool) -> None:
        account, steps = self.account, self.request.outlines
        details = [
            f"{step.number}. {step.title}: some {pluralize(step.minutes, 'minute')}, "
            + (", ".join(step.units) or "nothing that is billed")
            for step in steps
        ]
        if has_leftovers:
            details.insert(
                0,
                f"the leftovers of an earlier rehearsal, the stack {REHEARSAL_NAME} or its resources, "
                "are removed first",
            )
        details.append("everything is removed again; the minutes are estimates, and AWS takes its own time")
        profile = f" (profile {self.request.profile})" if self.request.profile else ""
        self.interaction.require_consent(
            Question(f"Rehearse {pluralize(len(steps), 'step')} as {account.caller}{profile}?", tuple(details))
        )

    def _remove_earlier(self) -> None:
        """Remove what earlier rehearsals left; raise an error if something of it cannot be removed."""
        self.interaction.report(Step("removing the leftovers of an earlier rehearsal"))
        if leftovers := _remove_everything(self.account, self.runner.interaction, bucket=self.request.bucket):
            raise AwsError(
                f"an earlier rehearsal's {leftovers[0].kind} {leftovers[0].id} was not removed: {leftovers[0].why}"
            )

    def _run_steps(self) -> None:
        steps = self.request.steps
        for number, step in enumerate(steps, 1):
            self.runner.operations = []
            self.interaction.report(Step(f"step {number} of {len(steps)}: {step.title}"))
            try:
                for action in step.actions:
                    self.runner.carry_out(step, action)
                if ends_stack(step, steps) and step.actions[-1].verb != "plan":
                    self.runner.carry_out(step, DELETE)
            except StoppedError as stopped:
                self._end_step(stopped.result, str(stopped))
                raise
            self._end_step("as expected")

    def _clean_up(self, *, is_bucket_new: bool) -> tuple[Leftover, ...]:
        """Remove everything; if that is interrupted, try once more."""
        self.is_cleaning_up, self.interruptions = True, 0
        leftovers = self._try_to_remove_everything(is_bucket_new=is_bucket_new)
        if leftovers is None:
            leftovers = self._try_to_remove_everything(is_bucket_new=is_bucket_new)
        return leftovers if leftovers is not None else (_unknown_leftover("it was interrupted twice"),)

    def _try_to_remove_everything(self, *, is_bucket_new: bool) -> tuple[Leftover, ...] | None:
        """Remove everything and return what could not be removed; None if it was interrupted."""
        request, deleted = self.request, tuple(self.runner.deleted)
        try:
            return _remove_everything(
                self.account,
                self.runner.interaction,
                bucket=request.bucket,
                is_bucket_new=is_bucket_new,
                deleted=deleted,
            )
        except KeyboardInterrupt:
            self._interrupted()
            return None
        except CfngenError as error:
            return (_unknown_leftover(str(error)),)

    def _interrupted(self) -> InterruptChoice:
        """Return what to do after Ctrl-C: cancel the operation in progress, or keep waiting during the cleanup.

        A second Ctrl-C during the cleanup detaches from it.
        """
        self.interruptions += 1
        if not self.is_cleaning_up:
            self.interaction.report(Notice("interrupted: everything that was created is removed now"))
            return InterruptChoice.CANCEL
        if self.interruptions > 1:
            return InterruptChoice.DETACH
        hint = f"another Ctrl-C stops the removal; `{self.request.command}` then continues it."
        self.interaction.report(Notice("everything that was created is being removed", hint))
        return InterruptChoice.WAIT


def _remove_everything(
    account: Account,
    interaction: Interaction,
    *,
    bucket: str,
    is_bucket_new: bool = False,
    deleted: tuple[str, ...] = (),
) -> tuple[Leftover, ...]:
    """Delete the stack, all retained resources and the templates of rehearsals; return what could not be removed."""
    leftovers: list[Leftover] = []
    stack = cleanup.find_rehearsal_stack(account)
    if stack is not None:
        result = cleanup.remove_stack(account, stack, interaction)
        if result.in_progress or result.status:
            return (Leftover(kind="stack", id=REHEARSAL_NAME, why=f"it is in {result.status or 'deletion'}"),)
    leftovers += cleanup.remove_retained_resources(
        account, dict.fromkeys((*deleted, *cleanup.deleted_stacks_with_leftovers(account))), interaction.report
    )
    leftovers += cleanup.remove_templates(account, interaction, bucket=bucket, is_bucket_new=is_bucket_new)
    return tuple(leftovers)


def _unknown_leftover(reason: str) -> Leftover:
    """Return the leftover that says that a removal ended early, for this reason, so resources may remain."""
    return Leftover(kind="stack", id=REHEARSAL_NAME, why=f"it is not known whether everything was removed: {reason}")
