"""Compares the actual plan of a phase with the plan that the user agreed to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple

from cfngen.deploy.aws.account import Account
from cfngen.deploy.messages.message import Danger, Notice, Question, Report, Step
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan import change_sets
from cfngen.deploy.plan.phases.parts import UpdatePart
from cfngen.deploy.plan.phases.phases import phase_documents
from cfngen.deploy.plan.plan import Change, Plan, StackPlan
from cfngen.deploy.watching.watch import WatchResult
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.templates.document import Document

if TYPE_CHECKING:
    from cfngen.deploy.plan.phases.phases import PhasedUpdate


class WorseChange(NamedTuple):
    """A change that is more dangerous than the user agreed to.

    Attributes:
        text: the changed resource, and what the change means.
        danger: how dangerous it is.
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
    """Return a changed resource with the impact of the change or, if there is none, with what is done to it."""
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


def carry_out(
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
    # The outcome of the last phase that was executed; a phase with nothing to do is skipped.
    outcome: WatchResult | None = None
    for index, part in enumerate(update.parts):
        remaining_titles = [remaining_part.title for remaining_part in update.parts[index:]]
        templates = phase_documents(update.deployed, update.requested, update.parts[index:])
        plan = update.first_plan
        if outcome is not None:
            with _reporting_what_remains(interaction.report, remaining_titles, index, total):
                plan = update.plan_part(part, templates, index)
                if not plan.is_empty:
                    _confirm_again(account, part, plan, interaction, cluster, remaining_titles)
            if plan.is_empty:
                continue
        interaction.report(Step(f"phase {index + 1} of {total}: {remaining_titles[0]}"))
        outcome = execute(plan, templates)
        if outcome.detached:
            hint = CommandText(
                suggest("watch", stack=plan.stack), " follows it; when it has ended, ", suggest("deploy"), " continues."
            )
            if remaining_titles[1:]:
                interaction.report(Notice(f"not started: {', '.join(remaining_titles[1:])}", hint))
            return outcome
        if not outcome.succeeded:
            interaction.report(_remaining_notice(remaining_titles, f"phase {index + 1} of {total} did not succeed"))
            return outcome
    if outcome is None:
        raise ValueError("the update has no phases")
    return outcome


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
        report(_remaining_notice(remaining_titles, f"phase {index + 1} of {total} could not start"))
        raise


def _remaining_notice(remaining_titles: Sequence[str], reason: str) -> Notice:
    return Notice(
        f"{reason}; the changes of earlier phases are kept. Remaining: {', '.join(remaining_titles)}",
        CommandText("when the cause is fixed, ", suggest("deploy"), " continues with the remaining phases."),
    )


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
        part: the part of the update, with the changes that the user agreed to.
        plan: the plan of the phase, from its own change set, which is deleted if the phase does not start.
        cluster: name of the cluster, which the user has to type to confirm dangerous changes.
        remaining_titles: titles of this phase and of all later ones.

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
