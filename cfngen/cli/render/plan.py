"""Formats a plan as text: the changes by stack, and the warnings last, just above the question for consent."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from cfngen.cli.render.plan_changes import STYLES, SYMBOLS, change_lines, fate, impact_lines
from cfngen.cli.render.plan_costs import cost_and_quota_lines, creation_lines
from cfngen.cli.render.styled_text import BOLD, FAINT, PLAIN, Piece, bullets, flow, paragraph

if TYPE_CHECKING:
    from cfngen.deploy.preview.changes import Change, StackPlan
    from cfngen.deploy.preview.plan import Plan
    from cfngen.deploy.quotas.quota import Quota

MIN_WIDTH, MAX_WIDTH = 40, 120
HANDLE = "AWS::CloudFormation::WaitConditionHandle"
_ON_FAILURE = {
    "DELETE": "If it fails, everything that it created is deleted.",
    "DO_NOTHING": "If it fails, everything is kept as it is; nothing is rolled back.",
}


def lines(plan: Plan, *, width: int | None = None, full: bool = False) -> list[str]:
    """Return a plan as styled lines.

    Args:
        plan: the plan.
        width: width of the terminal in columns; None means the actual one.
        full: whether to show long values completely, and boot programs.
    """
    columns = width or shutil.get_terminal_size((100, 24)).columns
    return list(_lines(plan, max(MIN_WIDTH, min(columns, MAX_WIDTH)), full=full))


def _lines(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    if plan.is_empty:
        yield from paragraph(f"No changes: the stack {plan.stack} is up to date.", {"fg": "green"}, width)
        return
    if plan.retries:
        yield from paragraph(
            f"The last operation on the stack {plan.stack} failed and was not rolled back.", BOLD, width
        )
        yield from paragraph(
            f"Templates and parameter values stay the same; tried again: {', '.join(plan.retries)}.", PLAIN, width
        )
    elif plan.creation is not None:
        yield from creation_lines(plan, plan.creation, width)
    else:
        yield from paragraph(f"Update of the stack {plan.stack}", BOLD, width)
        for impact in plan.predicted:
            yield from impact_lines(impact, width, indent=2)
        # The changes of a plan with phases are shown by phase.
        if not plan.phases:
            for stack in plan.stacks:
                yield from _stack_section(plan, stack, width, full=full)
        yield from _phases(plan, width, full=full)
        yield from cost_and_quota_lines(plan, width)
        yield ""
        if not full:
            yield from _boot_program_summary([change for change in plan.changes if _is_program(change)], width)
        yield from paragraph(_summary(plan), BOLD, width)
    if plan.express:
        yield from paragraph("Express mode: it ends before resources are stable.", PLAIN, width)
    if plan.on_failure in _ON_FAILURE:
        yield from paragraph(_ON_FAILURE[plan.on_failure], PLAIN, width)
    yield from _warnings(plan, width)


def _summary(plan: Plan) -> str:
    """Return the line with the number of resources for each kind of change, e.g. `Plan: 2 to update, 1 to add`."""
    counts = plan.counts
    counts_and_words = [
        (counts.replace, "to replace"),
        (counts.might_replace, "that might be replaced"),
        (counts.remove, "to remove"),
        (counts.update, "to update"),
        (counts.add, "to add"),
    ]
    counts_text = [f"{number} {words}" for number, words in counts_and_words if number]
    if not counts_text:
        return "No resource changes: only descriptions, outputs or metadata of the templates."
    return f"Plan: {', '.join(counts_text)}."


def _is_program(change: Change) -> bool:
    """Return whether a change adds or removes a boot program: metadata of a stack, without a resource in AWS."""
    return change.type == HANDLE and change.action in ("add", "remove") and change.danger.value == "none"


def _boot_program_summary(changes: Sequence[Change], width: int) -> Iterator[str]:
    """Yield one line that counts the boot programs added and removed.

    A changed program has a new logical id: the old one is removed and the new one is added.
    """
    counts = [(sum(change.action == action for change in changes), SYMBOLS[action]) for action in ("add", "remove")]
    counts_text = ", ".join(f"{symbol}{number}" for number, symbol in counts if number)
    if counts_text:
        yield from paragraph(
            f"Boot programs, as metadata of the stacks: {counts_text}; --full shows them.", FAINT, width
        )


def _stack_section(plan: Plan, stack: StackPlan, width: int, *, full: bool) -> Iterator[str]:
    """Yield the changes of one stack; boot programs only with `full`. Yields nothing if the stack has no changes."""
    changes = stack.changes if full else tuple(change for change in stack.changes if not _is_program(change))
    if changes or stack.action != "update":
        yield ""
        yield from _stack(plan, stack, changes, width, full=full)


def _phases(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    """Yield the changes of each phase of an update."""
    for number, phase in enumerate(plan.phases, 1):
        yield ""
        heading: list[Piece] = [(f"Phase {number} of {len(plan.phases)}: {phase.title}", BOLD)]
        if phase.predicted:
            heading.append(("(predicted; a change set confirms it before the phase starts)", FAINT))
        yield from flow(heading, width, hanging=4)
        if phase.kind == "volumes":
            yield from paragraph(
                "If it fails, nothing is rolled back: volumes cannot shrink.", PLAIN, width, indent=2, hanging=2
            )
        for stack in phase.stacks:
            yield from _stack_section(plan, stack, width, full=full)
    if plan.phases:
        text = "The phases run one after another; if one fails, the phases before it are not undone."
        yield ""
        yield from paragraph(text, PLAIN, width)


def _stack(plan: Plan, stack: StackPlan, changes: Sequence[Change], width: int, *, full: bool) -> Iterator[str]:
    """Yield the title of a stack, what happens to the stack as a whole, and the changes of its resources."""
    name = "/".join(stack.path) or plan.stack
    pieces: list[Piece] = [(name, BOLD)]
    if stack.action != "update":
        action = {"create": "add", "delete": "remove"}[stack.action]
        description = {"create": "new stack", "delete": "stack is deleted with everything in it"}[stack.action]
        pieces = [(SYMBOLS[action], STYLES[action]), *pieces, (description, STYLES[action])]
    yield from flow(pieces, width, hanging=4)
    if stack.impact:
        yield from impact_lines(stack.impact, width, indent=2)
    for change in changes:
        yield from change_lines(change, width, full=full)


def _warnings(plan: Plan, width: int) -> Iterator[str]:
    """Yield disruptions, quotas that are too low, dangers, and why the plan cannot be carried out."""
    insufficient = [_quota_text(quota) for quota in plan.quotas if quota.sufficient is False]
    insufficient_later = [
        _quota_text(quota) for quota in plan.quotas if quota.sufficient and quota.room_to_grow is False
    ]
    dangerous_changes = [
        f"{change.logical_id} ({change.type}) {fate(change)}"
        for change in plan.changes
        if change.danger.value == "dangerous" and change.impact is None
    ]
    for title, colour, texts in (
        ("Disruptive:", "yellow", _impacts(plan, "disruptive")),
        ("The account's quotas are too low:", "red", insufficient),
        ("The account's quotas are too low for the maximum sizes:", "yellow", insufficient_later),
        (
            "DANGER: data, addresses or the cluster may be lost:",
            "red",
            [*_impacts(plan, "dangerous"), *dangerous_changes],
        ),
    ):
        if texts:
            yield ""
            yield from paragraph(title, {"fg": colour, "bold": True}, width)
            yield from bullets(texts, width)
    if plan.refusal_reason:
        yield ""
        yield from flow(
            [("This plan cannot be carried out:", {"fg": "red", "bold": True}), (f"{plan.refusal_reason}.", PLAIN)],
            width,
        )


def _impacts(plan: Plan, danger: str) -> list[str]:
    """Return what the changes with this danger mean for the cluster, one text for each impact."""
    return [impact.dangerous_part or impact.text for impact in plan.consequences if impact.danger.value == danger]


def _quota_text(quota: Quota) -> str:
    return f"{quota.name}: {quota.hint}" if quota.hint else quota.name
