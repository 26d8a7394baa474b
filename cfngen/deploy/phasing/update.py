"""Carries out an update phase by phase; the change set of each phase is created just before it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cfngen.cluster.naming.network_ids import RuleId
from cfngen.deploy.account import Account
from cfngen.deploy.interaction import Interaction
from cfngen.deploy.messages import Notice, Question, Step
from cfngen.deploy.phasing import comparison, documents
from cfngen.deploy.phasing.deployed import DeployedTemplates
from cfngen.deploy.phasing.part_planning import NO_ROLLBACK
from cfngen.deploy.phasing.parts import UpdatePart, divide_into_parts
from cfngen.deploy.preview import change_sets
from cfngen.deploy.preview.changes import Change, Danger
from cfngen.deploy.preview.plan import Phase, Plan
from cfngen.deploy.watching.watch import WatchResult
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.templates.document import Document

PlanPart = Callable[[UpdatePart, Sequence[Document], int], Plan]
"""Takes a part, the templates to deploy, and the part's position, which becomes part of the change set's name."""
ExecutePlan = Callable[[Plan, Sequence[Document]], WatchResult]
"""Takes a plan and its templates, executes the plan, and watches the stack until the operation ends."""


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


@dataclass
class PhasedUpdate:
    """An update in phases; only the first phase has a change set yet.

    Attributes:
        overall_plan: the plan of the whole update, as the user sees it.
        first_plan: the plan of the first phase, whose change set can be executed.
        parts: all parts, including the first.
        deployed: the templates and parameters before the update.
        requested: the requested templates of the cluster.
        plan_part: makes the plan of a part.
    """

    overall_plan: Plan
    first_plan: Plan
    parts: tuple[UpdatePart, ...]
    deployed: DeployedTemplates
    requested: tuple[Document, ...]
    plan_part: PlanPart


def plan_phases(
    overall_plan: Plan,
    deployed: DeployedTemplates,
    requested: Sequence[Document],
    plan_part: PlanPart,
    discard: Callable[[Plan], None],
    *,
    parallel_groups: int = 1,
) -> PhasedUpdate | None:
    """Return an update in phases; None if one normal stack update is enough.

    An update of nothing but volumes is one phase too, since it must not be rolled back: EBS cannot shrink volumes.

    Args:
        overall_plan: the plan of the whole update; its change set is deleted if there are several phases.
        deployed: the templates and parameters before the update.
        requested: the requested templates of the cluster.
        plan_part: makes the plan of a part.
        discard: removes a plan's change set.
        parallel_groups: how many node groups with disruptive changes are updated together.
    """
    root = next(document for document in requested if document.children)
    # If nodes get another security group, the rules for the old one must stay until the last node has the new one.
    changes_nodes_group = any(
        _is_for_other_nodes_group(change) for stack in overall_plan.stacks for change in stack.changes
    )
    separable_groups = frozenset() if changes_nodes_group else documents.separable_groups(deployed, requested)
    parts = divide_into_parts(
        overall_plan, separable_groups, list(root.body["Resources"]), parallel_groups=parallel_groups
    )
    if len(parts) == 1 and parts[0].kind == "volumes":
        plan = replace(overall_plan, on_failure=NO_ROLLBACK)
        return PhasedUpdate(
            overall_plan=plan,
            first_plan=plan,
            parts=parts,
            deployed=deployed,
            requested=tuple(requested),
            plan_part=plan_part,
        )
    if len(parts) < 2:
        return None
    discard(overall_plan)
    for position, part in enumerate(parts):
        first_plan = plan_part(part, _phase_documents(deployed, requested, remaining_parts=parts[position:]), position)
        if first_plan.is_empty:
            continue  # nothing changes in this part, so the update starts with the next one
        later_parts = parts[position + 1 :]
        first_phase = Phase(part.kind, part.groups, predicted=False, stacks=first_plan.stacks)
        return PhasedUpdate(
            overall_plan=replace(
                overall_plan,
                change_set_id=first_plan.change_set_id,
                created=first_plan.created,
                # The plan lists phases only if there are several.
                phases=(first_phase, *(later.phase(predicted=True) for later in later_parts)) if later_parts else (),
            ),
            first_plan=first_plan,
            parts=parts[position:],
            deployed=deployed,
            requested=tuple(requested),
            plan_part=plan_part,
        )
    return None


def _is_for_other_nodes_group(change: Change) -> bool:
    """Return whether a change replaces a rule for the nodes' security group by one for another group."""
    rule = RuleId.parse(change.logical_id)
    return (
        rule is not None
        and rule.source == "Nodes"
        and any(
            property_.certain and property_.path == "/Properties/SourceSecurityGroupId"
            for property_ in change.properties
        )
    )


def carry_out(
    account: Account, update: PhasedUpdate, interaction: Interaction, execute: ExecutePlan, cluster: str
) -> WatchResult:
    """Carry out all phases; stop after the first that fails or that is no longer watched.

    Args:
        account: the account and region.
        update: the update in phases.
        interaction: reports to the user and asks for confirmation.
        execute: carries out the plan of one phase.
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
        templates = _phase_documents(update.deployed, update.requested, update.parts[index:])
        plan = update.first_plan
        if outcome is not None:
            try:
                plan = update.plan_part(part, templates, index)
                if plan.is_empty:
                    continue
                _confirm_again(
                    account,
                    part=part,
                    plan=plan,
                    interaction=interaction,
                    cluster=cluster,
                    remaining_titles=remaining_titles,
                )
            except KeyboardInterrupt:
                raise UnfinishedError(f"interrupted after phase {index} of {total}", remaining_titles) from None
            except UnfinishedError:
                raise
            except CfngenError:
                interaction.report(_remaining_notice(remaining_titles, f"phase {index + 1} of {total} could not start"))
                raise
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


def _remaining_notice(remaining_titles: Sequence[str], reason: str) -> Notice:
    """Return a notice that says which phases remain, and how to continue with them."""
    return Notice(
        f"{reason}; the changes of earlier phases are kept. Remaining: {', '.join(remaining_titles)}",
        CommandText("when the cause is fixed, ", suggest("deploy"), " continues with the remaining phases."),
    )


def _phase_documents(
    deployed: DeployedTemplates, requested: Sequence[Document], remaining_parts: Sequence[UpdatePart]
) -> tuple[Document, ...]:
    """Return the templates for the first of the remaining parts; node groups of later parts stay as deployed."""
    if remaining_parts[0].kind == "volumes":
        return documents.volume_phase_documents(deployed, requested)
    groups_of_later_parts = [group for part in remaining_parts[1:] for group in part.groups]
    if not groups_of_later_parts:
        return tuple(requested)
    return documents.with_unchanged_groups(deployed, requested, unchanged=groups_of_later_parts)


def _confirm_again(
    account: Account,
    *,
    part: UpdatePart,
    plan: Plan,
    interaction: Interaction,
    cluster: str,
    remaining_titles: Sequence[str],
) -> None:
    """Ask for confirmation again if a phase does more than the user agreed to.

    Args:
        account: the account and region.
        part: the part of the update, with the changes that the user agreed to.
        plan: the plan of the phase, from its own change set, which is deleted if the phase does not start.
        interaction: reports to the user and asks for confirmation.
        cluster: name of the cluster, which the user has to type to confirm dangerous changes.
        remaining_titles: titles of this phase and of all later ones.

    Raises:
        UnfinishedError: the phase would fail, or the user declined.
    """
    worse_changes = comparison.find_worse_changes(part.stacks, plan)
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
