"""Carries out several stack updates one after another, each compared with what the user agreed to.

They are the phases of one deployment, or a series of deployments.

The change set of each phase is created just before it, and compared with what the user agreed to. Of a series, each
deployment is found anew from the deployed stack (`cfngen.deploy.plan.issuer_updates`), has its own change set and can
be rolled back to the state before it. So what stopped half-way is continued by deploying again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from cfngen.cluster.iam.issuer_stages import IssuerState
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.events import read_last_event
from cfngen.deploy.aws.stacks import StackView
from cfngen.deploy.messages.message import Danger, Finished, Notice, Question, Report, Step
from cfngen.deploy.messages.next_steps import next_steps
from cfngen.deploy.messages.stack_status import StackStatus
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest
from cfngen.deploy.operations.interaction import DeclinedError, Interaction
from cfngen.deploy.plan import change_sets
from cfngen.deploy.plan.issuer_updates import TOKEN_LIFETIME
from cfngen.deploy.plan.phases.phases import UpdatePart, phase_documents
from cfngen.deploy.plan.plan import Change, Plan, PlannedUpdate, StackPlan
from cfngen.deploy.watching.watch import WatchResult
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.templates.document import Document
from cfngen.templates.issuer import BUCKET_OUTPUT

if TYPE_CHECKING:
    from cfngen.deploy.plan.phases.phases import PhasedUpdate


class WorseChange(NamedTuple):
    """A change that is more dangerous than the user agreed to.

    Attributes:
        text: the changed resource, and what the change means.
    """

    text: str
    danger: Danger


def find_worse_changes(confirmed: Iterable[StackPlan], actual: Plan) -> tuple[WorseChange, ...]:
    """Return the changes of a phase that are more dangerous than the user agreed to.

    A change that was not in the confirmed plan counts as harmless there, so it is returned if it is dangerous or
    disruptive.

    Args:
        confirmed: the changes of the phase in the plan of the whole update.
        actual: the plan of the phase, from its own change set.
    """
    confirmed_changes = {(stack.path, change.logical_id): change for stack in confirmed for change in stack.changes}
    worse_dangers: dict[str, Danger] = {}
    for stack in actual.stacks:
        for change in stack.changes:
            confirmed_change = confirmed_changes.get((stack.path, change.logical_id))
            confirmed_rank = confirmed_change.danger.rank if confirmed_change else Danger.NONE.rank
            if change.danger.rank > confirmed_rank:
                worse_dangers[_describe_change(stack, change)] = change.danger
    return tuple(WorseChange(text, danger) for text, danger in worse_dangers.items())


def _describe_change(stack: StackPlan, change: Change) -> str:
    resource_path = "/".join((*stack.path, change.logical_id))
    return f"{resource_path}: {change.impact.text}" if change.impact else f"{resource_path} {change.action}s"


ExecutePlan = Callable[[Plan, Sequence[Document]], WatchResult]


class UnfinishedError(CfngenError):
    """An update ended between two phases: the completed phases stay, the others were not started.

    Attributes:
        left: titles of the phases that were not started.
    """

    code = "update-unfinished"

    def __init__(self, reason: str, remaining_titles: Sequence[str]) -> None:
        super().__init__(
            f"{reason}; not started: {', '.join(remaining_titles)}",
            hint=CommandText(suggest("deploy"), " continues with these phases."),
        )
        self.left = tuple(remaining_titles)


def carry_out_phases(
    account: Account, update: PhasedUpdate, interaction: Interaction, execute: ExecutePlan, cluster: str
) -> WatchResult:
    """Carry out all phases; stop after the first that fails or that is no longer watched.

    Args:
        cluster: name of the cluster, which the user has to type if a phase turns out to be dangerous unexpectedly.

    Raises:
        UnfinishedError: the update ended between two phases.
        CfngenError: a phase could not be started; the remaining phases were reported.
    """
    total = len(update.parts)
    seconds = 0.0
    # The outcome of the last phase that was executed; a phase with nothing to do is skipped.
    outcome: WatchResult | None = None
    for index, part in enumerate(update.parts):
        remaining_titles = [remaining_part.title for remaining_part in update.parts[index:]]
        templates = phase_documents(update.deployed, update.requested, update.parts[index:])
        plan = update.first_plan
        if outcome is not None:
            with _reporting_what_remains(interaction.report, remaining_titles, index, total):
                plan = update.plan_part(update.parts[index:], templates, index)
                if not plan.is_empty:
                    _confirm_again(account, part, plan, interaction, cluster, remaining_titles)
            if plan.is_empty:
                continue
        interaction.report(Step(f"phase {index + 1} of {total}: {remaining_titles[0]}"))
        outcome = execute(plan, templates)
        seconds += outcome.seconds
        outcome = replace(outcome, seconds=seconds)
        if outcome.detached:
            _report_not_started(interaction.report, plan.stack, remaining_titles[1:])
            return outcome
        if not outcome.succeeded:
            reason = f"phase {index + 1} of {total} did not succeed"
            interaction.report(_phases_notice(remaining_titles, reason, outcome.status, plan.stack))
            return outcome
    if outcome is None:
        raise ValueError("the update has no phases")
    return outcome


def _report_not_started(report: Report, stack: str, titles: Sequence[str]) -> None:
    hint = CommandText(
        suggest("watch", stack=stack), " follows it; when it has ended, ", suggest("deploy"), " continues."
    )
    if titles:
        report(Notice(f"not started: {', '.join(titles)}", hint))


@contextmanager
def _reporting_what_remains(report: Report, remaining_titles: Sequence[str], index: int, total: int) -> Iterator[None]:
    """Say which phases remain if the next one, after `index` others, cannot start, or Ctrl-C was pressed."""
    try:
        yield
    except KeyboardInterrupt:
        raise UnfinishedError(f"interrupted after phase {index} of {total}", remaining_titles) from None
    except UnfinishedError:
        raise
    except CfngenError:
        report(_phases_notice(remaining_titles, f"phase {index + 1} of {total} could not start"))
        raise


def _phases_notice(
    remaining_titles: Sequence[str], reason: str, status: StackStatus | None = None, stack: str = ""
) -> Notice:
    return Notice(
        f"{reason}; the changes of earlier phases are kept. Remaining: {', '.join(remaining_titles)}",
        _continue_hint("when the cause is fixed, ", "phases", status, stack),
    )


def _continue_hint(condition: str, remaining: str, status: StackStatus | None, stack: str) -> CommandText:
    """Return what continues with the rest; in a status that refuses deployments, first what ends it.

    Args:
        remaining: what remains, e.g. `phases`.
        status: the stack's status after a failure; None if nothing has failed.
    """
    deployment = CommandText(suggest("deploy"), f" continues with the remaining {remaining}.")
    if status is None or status.change_set_type:
        return CommandText(condition, deployment)
    step = next_steps(status, stack)[0]
    return CommandText("first, ", step.command, f" {step.purpose}; then ", deployment)


def _confirm_again(
    account: Account,
    part: UpdatePart,
    plan: Plan,
    interaction: Interaction,
    cluster: str,
    remaining_titles: Sequence[str],
) -> None:
    """Ask for confirmation again if a phase does more than the user agreed to.

    Args:
        plan: the plan of the phase, from its own change set, which is deleted if the phase does not start.

    Raises:
        UnfinishedError: the phase would fail, or the user declined.
    """
    worse_changes = find_worse_changes(part.stacks, plan)
    if not worse_changes and not plan.refusal_reason:
        return
    interaction.report(plan)
    try:
        if plan.refusal_reason:
            raise UnfinishedError(f"{remaining_titles[0]} would fail: {plan.refusal_reason}", remaining_titles)
        is_dangerous = any(change.danger is Danger.DANGEROUS for change in worse_changes)
        question = Question(
            f"Continue with {remaining_titles[0]}, which does more than was predicted?",
            consequences=tuple(change.text for change in worse_changes),
            dangerous=is_dangerous,
            name=cluster if is_dangerous else "",
        )
        if not interaction.consent(question):
            raise UnfinishedError(f"you did not agree to {remaining_titles[0]}", remaining_titles)
    except BaseException:
        change_sets.discard(account, plan, interaction.report)
        raise


class Deployment(NamedTuple):
    """One deployment that has ended."""

    finished: Finished
    plan: Plan


DeployOnce = Callable[[DeploymentRequest, bool], Deployment]
"""Takes the request for the wanted cluster, and whether the user has agreed already; deploys the next state."""


def carry_out_series(request: DeploymentRequest, interaction: Interaction, deploy_once: DeployOnce) -> Finished:
    """Deploy until the cluster is as the request says; return the result of the last deployment.

    Raises:
        CfngenError: refused before anything was changed, or between two updates.
    """
    finished, first_plan = deploy_once(request, False)
    updates = first_plan.updates
    seconds, unplanned = finished.seconds, finished.unplanned
    for done in range(1, len(updates)):
        position = f"update {done} of {len(updates)}"
        if not finished.succeeded:
            reason = f"{position} has not ended" if finished.in_progress else f"{position} did not succeed"
            remaining = updates[done:] if finished.in_progress else updates[done - 1 :]
            interaction.report(_updates_notice(reason, remaining, finished))
            return replace(finished, seconds=seconds, unplanned=unplanned)
        interaction.report(Step(f"update {done + 1} of {len(updates)}: {updates[done].title}"))
        next_request = replace(request, token=f"{request.token}-u{done + 1}")
        try:
            finished, plan = deploy_once(next_request, True)
        except DeclinedError:
            raise UnfinishedError(f"you did not agree to update {done + 1}", _titles(updates[done:])) from None
        except (CfngenError, KeyboardInterrupt):
            interaction.report(_updates_notice(f"{position} is complete", updates[done:]))
            raise
        if plan.updates and finished.action == "none":
            raise UnfinishedError(f"update {done + 1} found nothing to change", _titles(updates[done:]))
        seconds += finished.seconds
        unplanned += finished.unplanned
    if updates and not (finished.succeeded or finished.in_progress):
        reason = f"update {len(updates)} of {len(updates)} did not succeed"
        interaction.report(_updates_notice(reason, updates[-1:], finished))
    return replace(finished, seconds=seconds, unplanned=unplanned)


def wait_for_new_tokens(account: Account, stack: StackView, interaction: Interaction) -> None:
    """Wait until no pod holds a token any more that was issued before the last update of a stack."""
    last_event = read_last_event(account, stack.id)
    if last_event is None:
        return
    end = last_event.time + TOKEN_LIFETIME
    seconds = (end - account.clock.now()).total_seconds()
    if seconds > 0:
        text = (
            f"waiting until {end:%H:%M} UTC: pods may hold tokens of the issuer for an hour after the last update, and "
            "API servers would refuse them; Ctrl-C ends the wait, and a later deployment continues"
        )
        interaction.report(Step(text))
        account.clock.sleep(seconds)


def buckets_of(issuer: IssuerState, stack: StackView) -> tuple[str, ...]:
    """Return the buckets that a stack made for the documents of an issuer; none if that is the user's own."""
    bucket = "" if issuer.url else stack.outputs.get(BUCKET_OUTPUT, "")
    return (bucket,) if bucket else ()


def _updates_notice(reason: str, remaining: Sequence[PlannedUpdate], failed: Finished | None = None) -> Notice:
    status = StackStatus(failed.status) if failed and not failed.in_progress else None
    return Notice(
        f"{reason}; the updates before are kept, and the cluster works in this state. "
        f"Remaining: {', '.join(_titles(remaining))}",
        _continue_hint("when nothing is in the way, ", "updates", status, failed.stack if failed else ""),
    )


def _titles(updates: Sequence[PlannedUpdate]) -> list[str]:
    return [update.title for update in updates]
