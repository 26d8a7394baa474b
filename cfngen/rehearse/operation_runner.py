"""Runs the operations that a rehearsal's request asks for, and compares each with what the emulator does.

Events, the plan and the diagnosis are collected from the messages that the operation reports.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from cfngen import __version__
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import (
    AwsError,
    CredentialsError,
    DeniedError,
    RegionError,
    ThrottledError,
    UnreachableError,
    translate_aws_errors,
)
from cfngen.deploy.aws.stacks import find_stack
from cfngen.deploy.messages.message import Event, Message, Notice, Report, Step
from cfngen.deploy.operations.deployment import deploy as deployment
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
from cfngen.deploy.operations.interaction import DeclinedError, Interaction
from cfngen.deploy.plan.plan import Plan, Replacement
from cfngen.deploy.plan.publishing.bucket import BucketError
from cfngen.deploy.preflight.stack_checks import BusyError
from cfngen.deploy.watching.diagnosis import Diagnosis
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import InterruptChoice, WatchEndedError
from cfngen.errors import CfngenError
from cfngen.rehearse import cleanup, observations
from cfngen.rehearse.cleanup import REHEARSAL_TAG
from cfngen.rehearse.clusters import REHEARSAL_NAME
from cfngen.rehearse.comparison import find_remarks, find_surprises
from cfngen.rehearse.descriptions import RecordingSession
from cfngen.rehearse.expectations import Expectations, expectation_key
from cfngen.rehearse.masking import Masks
from cfngen.rehearse.operations import NameNormalizer, Operation, recorded_events
from cfngen.rehearse.outlines import Outline, make_deployable, usual_minutes
from cfngen.rehearse.report import RehearsedOperation, StepResult
from cfngen.rehearse.steps import PARAMETER_VALUES, Deployable, RehearsalStep, StepAction
from cfngen.text import pluralize


@dataclass(frozen=True)
class RehearsalRequest:
    """What to rehearse, and how.

    Attributes:
        outlines: their durations and costs, which the user sees before consent.
        zones: three zones of a region; steps with one zone use the first.
        bucket: bucket for the templates; cfngen's own bucket if empty.
        role_arn: service role of CloudFormation; if empty, CloudFormation uses the caller's permissions.
        profile: the caller's profile, which must not appear in the report; empty if there is none.
        command: the command that removes leftovers of a rehearsal, for hints.
    """

    steps: tuple[RehearsalStep, ...]
    outlines: tuple[Outline, ...]
    zones: tuple[str, ...]
    bucket: str = ""
    role_arn: str = ""
    profile: str = ""
    command: str = "cfngen rehearse --clean-up"


# Errors because of the account, its permissions or the network: they are no differences between AWS and the emulator.
_ACCOUNT_ERRORS = (
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
_SHOWN_MESSAGES = (Step, Notice, Event, Progress, Diagnosis)


class StoppedError(CfngenError):
    """A step ended the rehearsal: AWS refused an operation, or did something else than the emulator."""

    code = "rehearsal-stopped"

    def __init__(self, result: StepResult, message: str = "") -> None:
        super().__init__(message)
        self.result: StepResult = result


class OperationRunner:
    """Runs the operations of a rehearsal one after another.

    Args:
        expected: what the emulator does; None to record operations without comparing them.
        on_interrupt: called after each Ctrl-C; returns what to do with the operation in progress.

    Attributes:
        masks: masks what a report must not contain.
        deleted: ids of the stacks that were deleted.
    """

    def __init__(
        self,
        account: Account,
        request: RehearsalRequest,
        expected: Expectations | None,
        report: Report,
        on_interrupt: Callable[[], InterruptChoice],
    ) -> None:
        self._session = RecordingSession(account.session)
        self.account = replace(account, session=self._session, _clients={})
        self.request = request
        self.expected = expected
        self.interaction = Interaction(self.report, lambda question: True, self._interrupt)
        caller = account.caller.split(":")[-1].split("/")[1:]
        self.masks = Masks((request.profile, request.bucket, request.role_arn.rpartition("/")[2], *caller))
        self.operations: list[RehearsedOperation] = []
        self.deleted: list[str] = []
        self._report_shown = only_shown(report)
        self._choose_after_interrupt = on_interrupt
        self._is_interrupted = False
        self._names = NameNormalizer(request.zones)
        self._events: list[Event] = []
        self._event_ids: set[str] = set()
        self._plan: Plan | None = None
        self._diagnosis: Diagnosis | None = None
        self._secrets: Mapping[str, str] = {}

    def carry_out(self, step: RehearsalStep, action: StepAction) -> None:
        """Run one operation, and compare it with what the emulator does.

        Raises:
            StoppedError: AWS refused the operation, or did something else than the emulator.
            KeyboardInterrupt: the user pressed Ctrl-C.
        """
        self._events, self._plan, self._diagnosis = [], None, None
        start = self.account.clock.now()
        deployable = make_deployable(action.make, self.request.zones) if action.make else None
        try:
            operation = self._perform(action, deployable)
        except deployment.StartInterruptedError:
            raise KeyboardInterrupt from None
        except CfngenError as error:
            cause = error.cause if isinstance(error, WatchEndedError) else error
            seconds = (self.account.clock.now() - start).total_seconds()
            operation = Operation(name=action.name, seconds=seconds, error=self.masks(str(error)))
            if isinstance(cause, _ACCOUNT_ERRORS):
                self._add_to_report(operation, deployable, expected=None, step=step, action=action)
                raise StoppedError(
                    "refused", self.masks(" ".join(filter(None, (str(error), str(error.hint)))))
                ) from error
        if self._is_interrupted:
            self._add_to_report(operation, deployable, expected=None, step=step, action=action)
            raise KeyboardInterrupt
        self._add_to_report(operation, deployable, expected=self.expected, step=step, action=action)
        if differences := self.operations[-1].surprises:
            raise StoppedError("surprise", f"{pluralize(len(differences), 'surprise')}, first {differences[0]}")

    def _add_to_report(
        self,
        operation: Operation,
        deployable: Deployable | None,
        *,
        expected: Expectations | None,
        step: RehearsalStep,
        action: StepAction,
    ) -> None:
        operation = replace(
            operation,
            events=recorded_events(self._events, self._names, self.masks),
            changes=_describe_changes(self._plan, self._names),
            change_sets=self._session.take(self._names, self.masks),
            facts={name: self.masks(value) for name, value in operation.facts.items()},
            remarks=tuple(map(self.masks, (*operation.remarks, *_describe_diagnosis(self._diagnosis)))),
        )
        if expected is None:
            self.operations.append(RehearsedOperation(operation=operation, remarks=operation.remarks))
            return
        expectation = expected[expectation_key(step.stack, action.name)]
        differences = find_surprises(expectation, operation, deployable.documents if deployable else (), self._names)
        operation_remarks = find_remarks(
            expectation, operation, usual_minutes(step, action, self.request.zones, expected)
        )
        self.operations.append(
            RehearsedOperation(operation=operation, surprises=tuple(differences), remarks=tuple(operation_remarks))
        )

    def _perform(self, action: StepAction, deployable: Deployable | None) -> Operation:
        """Carry out a plan, deployment or deletion, and return its record; `deployable` is None for a deletion."""
        if deployable is None:
            return self._delete(action)
        request = self._deployment_request(deployable)
        if action.verb == "plan":
            start = self.account.clock.now()
            self._plan = deployment.plan(self.account, request, self.interaction)
            seconds = (self.account.clock.now() - start).total_seconds()
            return self._with_observations(action, Operation(name=action.name, status="planned", seconds=seconds), "")
        finished = deployment.deploy(self.account, request, self.interaction)
        unplanned = [self._names.path((*change.path, change.logical_id)) for change in finished.unplanned]
        facts = {"touched without being in the plan": ", ".join(unplanned)} if unplanned else {}
        operation = Operation(name=action.name, status=finished.status, seconds=finished.seconds, facts=facts)
        return self._with_observations(action, operation, finished.stack_id)

    def _deployment_request(self, deployable: Deployable) -> DeploymentRequest:
        """Return the request that deploys the templates as the rehearsal's stack, without termination protection."""
        root = next(document for document in deployable.documents if document.children)
        return DeploymentRequest(
            cluster=deployable.cluster,
            documents=deployable.documents,
            stack_name=REHEARSAL_NAME,
            token=uuid.uuid4().hex[:12],
            bucket=self.request.bucket,
            flags={name: value for name, value in PARAMETER_VALUES.items() if name in root.body.get("Parameters", {})},
            tags={REHEARSAL_TAG: __version__},
            role_arn=self.request.role_arn,
            protect=False,
        )

    def _with_observations(self, action: StepAction, operation: Operation, stack_id: str) -> Operation:
        observation = observations.Observation()
        try:
            with translate_aws_errors():
                if action.observe == "empty-stacks":
                    observation = observations.count_empty_stacks(self.account)
                elif action.observe == "masters":
                    observation = observations.observe_masters(self.account, stack_id)
                elif action.observe == "secret-ids":
                    self._secrets = observations.read_secret_ids(self.account, stack_id)
                elif action.observe == "deleted-secrets":
                    observation = observations.observe_deleted_secrets(self.account, self._secrets)
        except AwsError as error:
            observation.remarks.append(f"it could not be looked at: {error}")
        return replace(
            operation,
            facts={**operation.facts, **observation.facts},
            remarks=(*operation.remarks, *observation.remarks),
        )

    def _delete(self, action: StepAction) -> Operation:
        """Delete the rehearsal's stack and what CloudFormation retains of it, and return the record of the deletion."""
        stack = cleanup.find_rehearsal_stack(self.account)
        if stack is None:
            return Operation(name=action.name, status="deleted")
        self.deleted.append(stack.id)
        deleted = cleanup.remove_stack(self.account, stack, self.interaction)
        with translate_aws_errors():
            stack_after = find_stack(self.account, stack.id)
            facts = cleanup.count_retained_resources(self.account, stack.id)
        status = stack_after.status.name if stack_after else ""
        operation = self._with_observations(
            action, Operation(name=action.name, status=status, seconds=deleted.seconds, facts=facts), ""
        )
        cleanup.remove_retained_resources(self.account, [stack.id], self.report)
        return operation

    def report(self, message: Message) -> None:
        """Collect the events, plan and diagnosis of the operation, and pass on what the user should see."""
        if isinstance(message, Event):
            # The next operation may read the last events of the previous one again.
            if message.id not in self._event_ids:
                self._events.append(message)
            self._event_ids.add(message.id)
        elif isinstance(message, Plan):
            self._plan = message
        elif isinstance(message, Diagnosis):
            self._diagnosis = message
        self._report_shown(message)

    def _interrupt(self) -> InterruptChoice:
        """Remember that the user pressed Ctrl-C, and return what to do with the operation in progress."""
        self._is_interrupted = True
        return self._choose_after_interrupt()


def only_shown(report: Report) -> Report:
    """Return a function that passes on the messages that the user should see, and drops all others."""

    def report_if_shown(message: Message) -> None:
        if isinstance(message, _SHOWN_MESSAGES):
            report(message)

    return report_if_shown


def _describe_changes(plan: Plan | None, names: NameNormalizer) -> tuple[str, ...]:
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


def _describe_diagnosis(diagnosis: Diagnosis | None) -> tuple[str, ...]:
    if diagnosis is None:
        return ()
    causes = [*([diagnosis.cause] if diagnosis.cause else []), *diagnosis.others, *diagnosis.rollback_failures]
    return tuple(
        line
        for cause in causes
        for line in (
            f"failed: {'/'.join((*cause.event.path, cause.event.logical_id))}: {cause.event.reason}",
            *(f"could not be launched: {reason}" for reason in cause.launches),
            *(f"console of {instance.id}: {word}" for instance in cause.instances for word in instance.lines),
        )
    )
