"""Formats a plan as text: the changes by stack, and the warnings last, just above the question for consent."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from cfngen.cli.display.suggested_commands import next_line
from cfngen.cli.render.layout import BOLD, FAINT, PLAIN, Piece, flow, hanging, line_width, paragraph, table
from cfngen.cli.render.plan_changes import (
    CHANGE_STYLES,
    CHANGE_SYMBOLS,
    change_lines,
    effect_in_words,
    impact_lines,
    shorten_to_difference,
)
from cfngen.cli.render.plan_costs import bill_lines, cost_and_quota_lines, creation_lines, stack_heading
from cfngen.cli.render.resource_names import stack_path
from cfngen.hints import CommandText, Line, SuggestedCommand, SuggestedOption, suggest
from cfngen.text import join_and, pluralize

if TYPE_CHECKING:
    from cfngen.deploy.aws.kept_file import FileChange
    from cfngen.deploy.plan.plan import Change, Plan, RecreationPlan, StackPlan
    from cfngen.deploy.preflight.quotas.quota import Quota
    from cfngen.userdata.downloads import Downloads


WAIT_CONDITION_HANDLE = "AWS::CloudFormation::WaitConditionHandle"  # its metadata in a stack is a boot program
# By CloudFormation's name for what happens after a failure; the default, to roll back, needs no sentence.
_ON_FAILURE_SENTENCES = {
    "DELETE": "If it fails, everything that it created is deleted.",
    "DO_NOTHING": "If it fails, everything is kept as it is; nothing is rolled back.",
}
_MASTER_SENTENCE = re.compile(r"master (?P<slot>[a-e]) (?P<verb>is|might be) (?P<rest>.+)", re.DOTALL)


def plan_lines(plan: Plan, *, width: int | None = None, full: bool = False) -> list[str]:
    """Return a plan as styled lines; `full` shows long values completely, and boot programs."""
    return list(_plan_lines(plan, line_width(width, without_terminal=100), full=full))


def recreation_lines(plan: RecreationPlan) -> list[Line]:
    """Return what a deployment does to a stack whose creation failed."""
    width = line_width(without_terminal=100)
    remains = f"what is left of it ({', '.join(plan.remains)})" if plan.remains else "the empty stack"
    return [
        *paragraph(f"The creation of the stack {plan.stack} failed: it is in {plan.status}.", width, style=BOLD),
        *paragraph(
            f"A deployment asks, deletes {remains}, and creates the cluster again; it then shows the plan of the "
            "creation, which CloudFormation cannot make before. Nothing was changed.",
            width,
        ),
        "",
        next_line(suggest("deploy", stack=plan.stack), "   deletes it and creates the cluster again."),
        CommandText("      ", suggest("delete", stack=plan.stack), "   only deletes it.", quote=""),
    ]


def next_lines(plan: Plan, options: tuple[SuggestedOption, ...], *, is_paused: bool) -> list[Line]:
    """Return what to run after `cfngen plan`: what carries the plan out, or allows to; nothing if nothing does.

    Args:
        options: the options of the plan that decide what is deployed.
    """
    if plan.is_empty or any(impact.fails for impact in plan.consequences):
        return []
    command = SuggestedCommand("deploy", options)
    if is_paused:
        command, text = suggest("resume"), "starts the cluster, which is paused; then deploy."
    elif "--ignore-quotas" in plan.refusal_reason:
        command = SuggestedCommand("deploy", (*options, ("--ignore-quotas",)))
        text = "tries it although the quotas are too low; AWS then decides."
    elif plan.refusal_reason:
        others = tuple(option for option in options if option[0] not in ("--express", "--on-failure"))
        command, text = SuggestedCommand("deploy", others), "may replace resources, and rolls back if it fails."
    elif plan.is_dangerous:
        text = "asks for the cluster's name, as something may be lost; without a terminal add --yes --allow-danger."
    else:
        text = "shows this plan again and asks; without a terminal add --yes."
    return ["", next_line(command, f"   {text}")]


def _plan_lines(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    if plan.is_empty:
        yield from paragraph(f"No changes: the stack {plan.stack} is up to date.", width, style={"fg": "green"})
        if plan.bill:
            yield ""
            yield from bill_lines(plan.bill, width, is_new=False)
        return
    yield from _change_lines(plan, width, full=full)
    if plan.subnet_tags:
        yield ""
        yield from paragraph("Tags that existing subnets get first, by which controllers find them", width, style=BOLD)
        yield from table((), [(tag.subnet, f"{tag.key} = {tag.value}") for tag in plan.subnet_tags], width)
    if plan.downloads is not None:
        yield from download_lines(plan.downloads, width, is_complete=full or plan.creation is not None)
    if plan.express:
        yield from paragraph("Express mode: it ends before resources are stable.", width)
    if plan.on_failure in _ON_FAILURE_SENTENCES:
        yield from paragraph(_ON_FAILURE_SENTENCES[plan.on_failure], width)
    yield from _warning_lines(plan, width)


def _change_lines(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    """Yield what happens to the stack: a creation, an update with its changes, a second try, or nothing."""
    if plan.leaves_stack:
        yield from paragraph(f"The stack {plan.stack} is up to date.", width, style=BOLD)
    elif plan.retries:
        yield from paragraph(
            f"The last operation on the stack {plan.stack} failed and was not rolled back.", width, style=BOLD
        )
        yield from paragraph(
            f"Templates and parameter values stay the same; tried again: {', '.join(plan.retries)}.", width
        )
    elif plan.creation is not None:
        yield from creation_lines(plan, plan.creation, width)
    else:
        yield from stack_heading("Update of the stack", plan, width)
        if plan.unfinished:
            text = "The last operation failed and was not rolled back; what failed is tried again as well: "
            yield from paragraph(f"{text}{', '.join(plan.unfinished)}.", width, 2)
        yield from _update_lines(plan, width)
        for impact in plan.predicted:
            yield from impact_lines(impact, width, indent=2)
        # The changes of a plan with phases are shown by phase.
        if not plan.phases:
            for stack in plan.stacks:
                yield from _stack_section_lines(plan, stack, width, full=full)
        yield from _phase_lines(plan, width, full=full)
        if plan.file_change:
            yield from _file_lines(plan.file_change, width)
        yield from cost_and_quota_lines(plan, width)
        yield ""
        if not full:
            program_changes = [change for change in plan.changes if _is_boot_program_change(change)]
            yield from _boot_program_lines(program_changes, width)
        yield from paragraph(_summary(plan), width, style=BOLD)


def _file_lines(file_change: FileChange, width: int) -> Iterator[str]:
    """Yield the keys of the cluster file that differ from the deployed one."""
    text = "Of the cluster file only comments or layout differ from the deployed one; the stack keeps the new one."
    if file_change.first:
        text = "The stack has not kept the cluster file yet; from now on it does."
    elif file_change.keys:
        text = "Keys of the cluster file that differ from the deployed one"
    yield from ("", *paragraph(text, width, style=BOLD if file_change.keys else PLAIN))
    for change in file_change.keys:
        old, new = shorten_to_difference(change.before, change.after, (width - len(change.key) - 12) // 2)
        kind = "add" if old is None else "remove" if new is None else "update"
        values = f"{old} -> {new}" if kind == "update" else old or new
        yield from hanging(CHANGE_SYMBOLS[kind], f"{change.key}: {values}", width, 2, style=CHANGE_STYLES[kind])


def _summary(plan: Plan) -> str:
    counts = plan.counts
    counts_and_words = [
        (counts.replace, "to replace"),
        (counts.might_replace, "that might be replaced"),
        (counts.remove, "to remove"),
        (counts.update, "to update"),
        (counts.add, "to add"),
        (len(plan.unfinished), "to try again"),
    ]
    counts_in_words = [f"{number} {words}" for number, words in counts_and_words if number]
    if not counts_in_words:
        return "No resource changes: only descriptions, outputs or metadata of the templates."
    return f"Plan: {', '.join(counts_in_words)}."


def _is_boot_program_change(change: Change) -> bool:
    """Return whether a change adds or removes a boot program: metadata of a stack, without a resource in AWS."""
    return change.type == WAIT_CONDITION_HANDLE and change.action in ("add", "remove") and change.danger.value == "none"


def _boot_program_lines(changes: Sequence[Change], width: int) -> Iterator[str]:
    """Yield one line that counts the boot programs added and removed.

    A changed program has a new logical id: the old one is removed and the new one is added.
    """
    counts: list[str] = []
    for action in ("add", "remove"):
        number = sum(change.action == action for change in changes)
        if number:
            counts.append(f"{CHANGE_SYMBOLS[action]}{number}")
    if counts:
        text = (
            f"Not counted, since they are metadata of the stacks: boot programs {', '.join(counts)}; --full shows them."
        )
        yield from paragraph(text, width, style=FAINT)


def _stack_section_lines(plan: Plan, stack: StackPlan, width: int, *, full: bool) -> Iterator[str]:
    """Yield the changes of one stack after an empty line, and nothing if the stack has no changes to show.

    Changes of boot programs are shown only with `full`.
    """
    changes = [change for change in stack.changes if full or not _is_boot_program_change(change)]
    if changes or stack.action != "update":
        yield ""
        yield from _stack_lines(plan, stack, changes, width, full=full)


def _update_lines(plan: Plan, width: int) -> Iterator[str]:
    if not plan.updates:
        return
    yield from paragraph(f"In {len(plan.updates)} updates, because {plan.updates_reason}:", width)
    for number, update in enumerate(plan.updates, 1):
        suffix = " (shown below)" if number == 1 else " (foreseen)"
        yield from paragraph(f"{number}. {update.title}{suffix}: {update.effect}", width, 2, 5)
    yield from paragraph(
        "You agree to all of them at once. If one fails, it is rolled back to the state after the one before it, in "
        "which the cluster works; deploying again continues.",
        width,
    )


def _phase_lines(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    for number, phase in enumerate(plan.phases, 1):
        yield ""
        heading: list[Piece] = [(f"Phase {number} of {len(plan.phases)}: {phase.title}", BOLD)]
        if phase.predicted:
            heading.append(("(predicted; a change set confirms it before the phase starts)", FAINT))
        yield from flow(heading, width, hanging=4)
        if phase.kind == "volumes":
            yield from paragraph("If it fails, nothing is rolled back: volumes cannot shrink.", width, 2)
        for stack in phase.stacks:
            yield from _stack_section_lines(plan, stack, width, full=full)
    if plan.phases:
        text = "The phases run one after another; if one fails, the phases before it are not undone."
        yield ""
        yield from paragraph(text, width)


def _stack_lines(plan: Plan, stack: StackPlan, changes: Sequence[Change], width: int, *, full: bool) -> Iterator[str]:
    """Yield the title of a stack, what happens to the stack as a whole, and those changes of it that are shown."""
    title: Piece = (stack_path(stack.path, root_name=plan.stack), BOLD)
    pieces = [title]
    if stack.action == "create":
        style = CHANGE_STYLES["add"]
        pieces = [(CHANGE_SYMBOLS["add"], style), title, ("new stack", style)]
    elif stack.action == "delete":
        style = CHANGE_STYLES["remove"]
        pieces = [(CHANGE_SYMBOLS["remove"], style), title, ("stack is deleted with everything in it", style)]
    yield from flow(pieces, width, hanging=4)
    if stack.impact:
        yield from impact_lines(stack.impact, width, indent=2)
    for change in changes:
        yield from change_lines(change, width, full=full)


def _warning_lines(plan: Plan, width: int) -> Iterator[str]:
    insufficient_quotas = [_quota_text(quota) for quota in plan.quotas if quota.sufficient is False]
    quotas_insufficient_later = [
        _quota_text(quota) for quota in plan.quotas if quota.sufficient and quota.room_to_grow is False
    ]
    dangerous_changes = [
        f"{change.logical_id} ({change.type}) {effect_in_words(change)}"
        for change in plan.changes
        if change.danger.value == "dangerous" and change.impact is None
    ]
    hints = {impact.text: str(impact.hint) for impact in plan.consequences if impact.hint}
    for title, colour, texts in (
        ("Disruptive:", "yellow", _impact_texts(plan, "disruptive")),
        ("The account's quotas are too low:", "red", insufficient_quotas),
        ("The account's quotas are too low for the maximum sizes:", "yellow", quotas_insufficient_later),
        (
            "DANGER: data, addresses or the cluster may be lost, or everybody let in:",
            "red",
            [*_impact_texts(plan, "dangerous"), *dangerous_changes],
        ),
    ):
        if texts:
            yield ""
            yield from paragraph(title, width, style={"fg": colour, "bold": True})
            for text in dict.fromkeys(texts):
                yield from hanging("!", text, width, 2)
                if text in hints:
                    yield from paragraph(hints[text], width, 4)
    if plan.refusal_reason:
        yield ""
        label: Piece = ("This plan cannot be carried out:", {"fg": "red", "bold": True})
        yield from flow([label, (f"{plan.refusal_reason}.", PLAIN)], width)


def _impact_texts(plan: Plan, danger: str) -> list[str]:
    """Return what the changes mean for the cluster, one text for each impact of this danger."""
    impacts = [impact for impact in plan.consequences if impact.danger.value == danger]
    return list(_join_masters(impact.dangerous_part or impact.text for impact in impacts))


def _join_masters(texts: Iterable[str]) -> Iterator[str]:
    """Yield texts in their order; those that say the same of several masters are one, at the place of the first."""
    slots_by_sentence: dict[tuple[str, str], list[str]] = {}
    for text in texts:
        match = _MASTER_SENTENCE.fullmatch(text)
        slots = slots_by_sentence.setdefault((match["verb"], match["rest"]) if match else ("", text), [])
        if match and match["slot"] not in slots:
            slots.append(match["slot"])
    for (verb, rest), slots in slots_by_sentence.items():
        if len(slots) > 1:
            plural_rest = rest.replace("one master at a time", "one at a time")
            yield f"masters {join_and(slots)} {'are' if verb == 'is' else verb} {plural_rest}"
        else:
            yield f"master {slots[0]} {verb} {rest}" if slots else rest


def _quota_text(quota: Quota) -> str:
    return f"{quota.name}: {quota.hint}" if quota.hint else quota.name


def download_lines(downloads: Downloads, width: int, *, is_complete: bool) -> Iterator[str]:
    """Yield what mirrors must serve: each file and chart, or, unless `is_complete`, how many there are."""
    yield ""
    yield from paragraph("Without a way to the internet", width, style=BOLD)
    urls = [*downloads.files, *downloads.charts]
    counts = join_and([pluralize(len(downloads.files), "file"), pluralize(len(downloads.charts), "chart")])
    server = downloads.mirror or "assets.mirror, which is not set,"
    text = f"{server} must serve {counts} to instances whose images do not contain them"
    if not is_complete:
        yield from paragraph(f"{text}; --full lists them.", width, 2)
    else:
        yield from paragraph(f"{text}:", width, 2)
        yield from (f"    {downloads.mirror}/{url.partition('://')[2]}" for url in urls)
    registries = join_and([*downloads.registries, "those of the charts' images"])
    yield from paragraph(
        f"Mirrors of registries (containerd.registryMirrors) must serve the images of {registries}. Packages of the "
        "distribution that the image lacks come from its own mirrors.",
        width,
        2,
        style=FAINT,
    )
