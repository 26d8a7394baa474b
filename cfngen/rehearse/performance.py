"""One operation of a rehearsal: carried out, watched, and compared with what the emulator does.

What is reported meanwhile is kept: the events, the plan and the diagnosis are what is compared.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace

from cfngen import __version__
from cfngen.deploy import operation as deployment
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import (
    AwsError,
    CredentialsError,
    DeniedError,
    RegionError,
    ThrottledError,
    UnreachableError,
    translate_aws_errors,
)
from cfngen.deploy.messages import Event, Message, Notice, Report, Step
from cfngen.deploy.preview.plan import Plan, Replacement
from cfngen.deploy.publishing.bucket import BucketError
from cfngen.deploy.recovery import BusyError, DeclinedError, Interaction
from cfngen.deploy.stacks import find
from cfngen.deploy.watching.diagnosis import Diagnosis
from cfngen.deploy.watching.progress import Progress
from cfngen.deploy.watching.watch import Choice, WatchEndedError
from cfngen.errors import CfngenError
from cfngen.rehearse import cleaning, observing
from cfngen.rehearse.cleaning import MARK
from cfngen.rehearse.clusters import NAME
from cfngen.rehearse.comparison import remarks, surprises
from cfngen.rehearse.expectations import Expectations, key
from cfngen.rehearse.masking import Masks
from cfngen.rehearse.operations import Names, Operation, recorded_events
from cfngen.rehearse.outlines import made, minutes
from cfngen.rehearse.report import RehearsedOperation, Result
from cfngen.rehearse.request import RehearsalRequest
from cfngen.rehearse.steps import VALUES, Action, Deployable, RehearsalStep
from cfngen.text import pluralize

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


class StoppedError(CfngenError):
    """A step did not go as expected; the rehearsal ends."""

    def __init__(self, result: Result, message: str = "") -> None:
        super().__init__(message)
        self.result: Result = result


class Performance:
    """The operations of a rehearsal, one after another in one account.

    Args:
        account: where.
        request: what.
        expected: what the emulator does; None records instead of comparing.
        report: told what a person should see meanwhile.
        interrupted: called for each Ctrl-C; answers what is to become of the operation under way.

    Attributes:
        waiting: who hears of the operations and answers them.
        masks: hide what a report must not tell.
        operations: those carried out since somebody emptied it.
        deleted: ids of the stacks that were deleted.
    """

    def __init__(
        self,
        account: Account,
        request: RehearsalRequest,
        expected: Expectations | None,
        report: Report,
        interrupted: Callable[[], Choice],
    ) -> None:
        self.account = account
        self.request = request
        self.expected = expected
        self.waiting = Interaction(self.report, lambda question: True, self._interrupt)
        caller = account.caller.split(":")[-1].split("/")[1:]
        self.masks = Masks((request.profile, request.bucket, request.role_arn.rpartition("/")[2], *caller))
        self.operations: list[RehearsedOperation] = []
        self.deleted: list[str] = []
        self._shown = only_shown(report)
        self._answer = interrupted
        self._interrupted = False
        self._names = Names(request.zones)
        self._events: list[Event] = []
        self._known: set[str] = set()
        self._plan: Plan | None = None
        self._diagnosis: Diagnosis | None = None
        self._secrets: Mapping[str, str] = {}

    def carry_out(self, step: RehearsalStep, action: Action) -> None:
        """Carry one operation out, and compare it.

        Raises:
            StoppedError: it was refused, or something differs.
            KeyboardInterrupt: the user wants to end.
        """
        self._events, self._plan, self._diagnosis = [], None, None
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
                raise StoppedError("refused", self.masks(" ".join(filter(None, (str(error), error.hint))))) from error
        if self._interrupted:
            self._keep(seen, deployable, None, step, action)
            raise KeyboardInterrupt
        self._keep(seen, deployable, self.expected, step, action)
        if found := self.operations[-1].surprises:
            raise StoppedError("surprise", f"{pluralize(len(found), 'surprise')}, first {found[0]}")

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
            events=recorded_events(self._events, self._names, self.masks),
            changes=_changes(self._plan, self._names),
            facts={name: self.masks(value) for name, value in seen.facts.items()},
            remarks=tuple(map(self.masks, (*seen.remarks, *_told(self._diagnosis)))),
        )
        if expected is None:
            self.operations.append(RehearsedOperation(seen, remarks=seen.remarks))
            return
        usual = expected[key(step.stack, action.name)]
        differing = surprises(usual, seen, deployable.documents if deployable else (), self._names)
        noted = remarks(usual, seen, minutes(step, action, self.request.zones, expected))
        self.operations.append(RehearsedOperation(seen, tuple(differing), tuple(noted)))

    def _done(self, action: Action, deployable: Deployable | None) -> Operation:
        if deployable is None:
            return self._delete(action)
        wanted = self._wanted(deployable)
        if action.verb == "plan":
            began = self.account.clock.now()
            self._plan = deployment.plan(self.account, wanted, self.waiting)
            seconds = (self.account.clock.now() - began).total_seconds()
            return self._looked(action, Operation(action.name, "planned", seconds), "")
        finished = deployment.deploy(self.account, wanted, self.waiting)
        return self._looked(action, Operation(action.name, finished.status, finished.seconds), finished.stack_id)

    def _wanted(self, deployable: Deployable) -> deployment.DeploymentRequest:
        root = next(document for document in deployable.documents if document.children)
        return deployment.DeploymentRequest(
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
            with translate_aws_errors():
                if action.look == "shells":
                    sight = observing.shells(self.account, NAME)
                elif action.look == "slot":
                    sight = observing.slot(self.account, stack_id)
                elif action.look == "made":
                    self._secrets = observing.secrets_made(self.account, stack_id)
                elif action.look == "gone":
                    sight = observing.secrets_gone(self.account, self._secrets)
        except AwsError as error:
            sight.remarks.append(f"it could not be looked at: {error}")
        return replace(seen, facts={**seen.facts, **sight.facts}, remarks=(*seen.remarks, *sight.remarks))

    def _delete(self, action: Action) -> Operation:
        stack = cleaning.standing(self.account)
        if stack is None:
            return Operation(action.name, "deleted")
        self.deleted.append(stack.id)
        deleted = cleaning.remove_stack(self.account, stack, self.waiting)
        with translate_aws_errors():
            after = find(self.account, stack.id)
            facts = cleaning.kept(self.account, stack.id)
        status = after.status.name if after else ""
        seen = self._looked(action, Operation(action.name, status, deleted.seconds, facts=facts), "")
        cleaning.remove_kept(self.account, [stack.id], self.report)
        return seen

    def report(self, message: Message) -> None:
        """Keep what is compared afterwards, and tell what a person should see."""
        if isinstance(message, Event):
            # Where an operation follows at once, its events are read together with the last ones of the one before.
            if message.id not in self._known:
                self._events.append(message)
            self._known.add(message.id)
        elif isinstance(message, Plan):
            self._plan = message
        elif isinstance(message, Diagnosis):
            self._diagnosis = message
        self._shown(message)

    def _interrupt(self) -> Choice:
        self._interrupted = True
        return self._answer()


def only_shown(report: Report) -> Report:
    """Return what reports what a person should see of an operation, and passes over the rest."""

    def tell(message: Message) -> None:
        if isinstance(message, _SHOWN):
            report(message)

    return tell


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
