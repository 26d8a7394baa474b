"""Carries an update out, phase after phase: each with a change set of its own, made when its turn has come."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cfngen.deploy.account import Account
from cfngen.deploy.messages import Notice, Question, Step
from cfngen.deploy.phasing import comparison, documents
from cfngen.deploy.phasing.deployed import Deployed
from cfngen.deploy.phasing.part_planning import NO_WAY_BACK
from cfngen.deploy.phasing.parts import Part, divided
from cfngen.deploy.preview import change_sets
from cfngen.deploy.preview.plan import Danger, Phase, Plan
from cfngen.deploy.recovery import Interaction
from cfngen.deploy.watching.watch import Outcome
from cfngen.errors import CfngenError
from cfngen.templates.document import Document

PlanPart = Callable[[Part, Sequence[Document], int], Plan]
"""Makes the plan of a part from its templates; its number tells its change set from those of the others."""
CarryOut = Callable[[Plan, Sequence[Document]], Outcome]
"""Executes a plan and watches it to its end."""


class UnfinishedError(CfngenError):
    """An update has ended between two phases: what was carried out stays, and the rest was not begun.

    Attributes:
        left: what is left, in words.
    """

    exit_code = 6

    def __init__(self, why: str, left: Sequence[str]) -> None:
        super().__init__(f"{why}; not begun: {', '.join(left)}", hint="`cfngen deploy` goes on with what is left.")
        self.left = tuple(left)


@dataclass
class Phased:
    """An update in phases, of which the first is planned.

    Attributes:
        plan: the plan of all of it, as it is shown.
        first: the plan of the first phase, whose change set stands ready.
        parts: the parts, the first one's included.
        deployed: what was deployed before.
        wanted: the templates of the cluster as it is wanted.
        plan_part: makes the plan of a part.
    """

    plan: Plan
    first: Plan
    parts: tuple[Part, ...]
    deployed: Deployed
    wanted: tuple[Document, ...]
    plan_part: PlanPart


def phased(
    whole: Plan, deployed: Deployed, wanted: Sequence[Document], plan_part: PlanPart, discard: Callable[[Plan], None]
) -> Phased | None:
    """Return the phases of an update, or None where one operation does it as it would any.

    Args:
        whole: the plan of everything at once; its change set is removed if there are phases.
        deployed: what is deployed.
        wanted: the templates of the cluster as it is wanted.
        plan_part: makes the plan of a part.
        discard: removes a plan's change set.
    """
    root = next(each for each in wanted if each.children)
    parts = divided(whole, documents.separate(deployed, wanted), list(root.body["Resources"]))
    if len(parts) == 1 and parts[0].kind == "volumes":
        plan = replace(whole, on_failure=NO_WAY_BACK)
        return Phased(plan, plan, parts, deployed, tuple(wanted), plan_part)
    if len(parts) < 2:
        return None
    discard(whole)
    for number, part in enumerate(parts):
        rest = parts[number:]
        first = plan_part(part, _documents(deployed, wanted, rest), number)
        if not first.is_empty:
            shown = (
                Phase(part.kind, part.groups, False, first.stacks),
                *(each.phase(foreseen=True) for each in rest[1:]),
            )
            plan = replace(
                whole, change_set_id=first.change_set_id, created=first.created, phases=shown if rest[1:] else ()
            )
            return Phased(plan, first, rest, deployed, tuple(wanted), plan_part)
    return None


def carry_out(account: Account, found: Phased, waiting: Interaction, execute: CarryOut, cluster: str) -> Outcome:
    """Carry all phases out; end with the first that does not succeed, or is left to itself.

    Args:
        account: where.
        found: the phases.
        waiting: who is told and asked.
        execute: carries one out.
        cluster: name of the cluster, to be typed where a phase turns out dangerous that was not.

    Raises:
        UnfinishedError: ended between two phases.
        CfngenError: a phase could not be begun; what is left was reported.
    """
    total = len(found.parts)
    # A phase that turned out to have nothing to do leaves the outcome of the one before it.
    outcome: Outcome | None = None
    for index, part in enumerate(found.parts):
        left = [each.title for each in found.parts[index:]]
        templates = _documents(found.deployed, found.wanted, found.parts[index:])
        plan = found.first
        if outcome is not None:
            try:
                plan = found.plan_part(part, templates, index)
                if plan.is_empty:
                    continue
                _agreed(account, part, plan, waiting, cluster, left)
            except KeyboardInterrupt:
                raise UnfinishedError(f"interrupted after phase {index} of {total}", left) from None
            except UnfinishedError:
                raise
            except CfngenError:
                waiting.report(_left(left, f"phase {index + 1} of {total} could not begin"))
                raise
        waiting.report(Step(f"phase {index + 1} of {total}: {left[0]}"))
        outcome = execute(plan, templates)
        if outcome.detached:
            hint = f"`cfngen watch --stack-name {plan.stack}` follows it; when it has ended, `cfngen deploy` goes on."
            if left[1:]:
                waiting.report(Notice(f"not begun: {', '.join(left[1:])}", hint))
            return outcome
        if not outcome.succeeded:
            waiting.report(_left(left, f"phase {index + 1} of {total} did not succeed"))
            return outcome
    if outcome is None:
        raise ValueError("an update without phases")
    return outcome


def _left(left: Sequence[str], what: str) -> Notice:
    stays = "what the phases before it did stays"
    return Notice(
        f"{what}; {stays}. Left: {', '.join(left)}",
        "when the cause is mended, `cfngen deploy` goes on with what is left.",
    )


def _documents(deployed: Deployed, wanted: Sequence[Document], rest: Sequence[Part]) -> tuple[Document, ...]:
    """Return the templates of the first of the parts that are left."""
    if rest[0].kind == "volumes":
        return documents.of_volumes(deployed, wanted)
    kept = [group for part in rest[1:] for group in part.groups]
    return documents.with_kept(deployed, wanted, kept) if kept else tuple(wanted)


def _agreed(account: Account, part: Part, plan: Plan, waiting: Interaction, cluster: str, left: Sequence[str]) -> None:
    """Ask again where a phase does more than was agreed to.

    Raises:
        UnfinishedError: it would fail, or the user said no.
    """
    found = comparison.worse(part.stacks, plan)
    if not found and not plan.refusal:
        return
    waiting.report(plan)
    try:
        if plan.refusal:
            raise UnfinishedError(f"{left[0]} would fail: {plan.refusal}", left)
        dangerous = any(danger is Danger.DANGEROUS for _, danger in found)
        question = Question(
            f"Go on with {left[0]}, which does more than was foreseen?",
            tuple(text for text, _ in found),
            dangerous=dangerous,
            name=cluster if dangerous else "",
        )
        if not waiting.consent(question):
            raise UnfinishedError(f"you did not agree to {left[0]}", left)
    except BaseException:
        change_sets.discard(account, plan, waiting.report)
        raise
