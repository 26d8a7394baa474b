"""Formats the pause of a cluster, and its end, as text: the plan, the progress and the result."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from cfngen.cli.display.suggested_commands import next_line
from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import BOLD, FAINT, paragraph, screen_width, table
from cfngen.cli.render.operations import operation_plan_lines
from cfngen.cli.render.plan_costs import unit_form
from cfngen.deploy.aws.pause import KeptGroup, PauseState
from cfngen.deploy.operations.pausing.reports import (
    GroupPlan,
    Paused,
    PausePlan,
    PauseProgress,
    RemainingInstances,
    Resumed,
    ResumePlan,
    ResumeProgress,
)
from cfngen.deploy.plan.costs.costs import Cost
from cfngen.hints import Line, suggest
from cfngen.text import pluralize

MAX_SENTENCES_SHOWN = 3


def pause_plan_lines(message: PausePlan) -> list[str]:
    """Return what a pause will do: the groups with the sizes that are kept, and the consequences."""
    verb = "will be paused" if message.pause is None else "is still being paused"
    first = ("a snapshot of etcd is taken first",) if message.snapshot else ()
    return operation_plan_lines(
        message,
        [f"{verb}{_since(message)}"],
        table=_group_table(message.groups),
        consequences=(*first, *message.consequences),
    )


def pause_progress_lines(message: PauseProgress) -> list[str]:
    """Return how many instances each group still has, on one line."""
    groups = ", ".join(_remaining_text(group) for group in message.remaining)
    return [f"  {duration_text(message.seconds)}: {groups}"]


def paused_lines(message: Paused) -> list[Line]:
    """Return that the cluster is paused, what AWS still charges for, and the next command."""
    text = f"{message.cluster} is paused, after {duration_text(message.seconds)}."
    if not message.changed:
        text = f"{message.cluster} {message.pause.text}; nothing was changed."
    lines: list[Line] = [click.style(text, fg="green", bold=True), ""]
    if message.costs is not None:
        lines += _cost_lines(message.costs, screen_width())
    return [*lines, next_line(suggest("resume"), "   starts it again.")]


def resume_plan_lines(message: ResumePlan) -> list[str]:
    """Return what the end of a pause will do: the groups with the sizes that they get."""
    sentence = f"will be started again{_since(message)}"
    return operation_plan_lines(message, [sentence], table=_group_table(message.groups))


def resume_progress_lines(message: ResumeProgress) -> list[str]:
    """Return what is not ready yet; of much, the first and how much more."""
    sentences = list(message.waiting_for[:MAX_SENTENCES_SHOWN])
    if len(message.waiting_for) > len(sentences):
        sentences.append(f"and {len(message.waiting_for) - len(sentences):,} more")
    text = f"{duration_text(message.seconds)}: waiting for {message.phase}: {'; '.join(sentences)}"
    return list(paragraph(text, screen_width(), 2, 4))


def resumed_lines(message: Resumed) -> list[Line]:
    """Return that the cluster is no longer paused, and the next command."""
    if not message.changed:
        return [f"{message.cluster} is not paused; nothing was changed."]
    result = "works again" if message.waited else "is starting again; nothing was waited for"
    return [
        click.style(f"{message.cluster} {result}, after {duration_text(message.seconds)}.", fg="green", bold=True),
        "",
        next_line(suggest("validate cluster"), "   checks the system's pods as well."),
    ]


def pause_state_lines(pause: PauseState) -> Iterator[Line]:
    """Yield the state of a pause for `cfngen status`: since when, and the sizes that are kept."""
    yield click.style(f"Pause       the cluster {pause.text}", fg="yellow")
    rows = [(_title(group), f"{group.desired}", f"{group.minimum}-{group.maximum}") for group in pause.groups]
    yield from (f"          {line}" for line in table(("KEPT SIZES OF", "DESIRED", "SIZE"), rows))


def _since(message: PausePlan | ResumePlan) -> str:
    since = message.pause.since if message.pause else None
    return f"; paused since {since:%Y-%m-%d %H:%M} UTC" if since else ""


def _group_table(groups: Sequence[GroupPlan]) -> list[str]:
    rows = [
        (_title(group), str(group.instances), str(group.desired), f"{group.minimum}-{group.maximum}", group.note)
        for group in groups
    ]
    return table(("GROUP", "INSTANCES NOW", "AFTER RESUME", "SIZE", ""), rows)


def _cost_lines(costs: Sequence[Cost], width: int) -> Iterator[str]:
    yield from paragraph("Still billed while it is paused", width, style=BOLD)
    rows = [(f"{cost.quantity:,}", unit_form(cost.quantity, cost.unit), cost.what, cost.detail) for cost in costs]
    yield from table((), rows, width, right_aligned=(0,))
    note = "Stored snapshots and logs are billed by use; see AWS's price list."
    yield from paragraph(note, width, 2, style=FAINT)
    yield ""


def _remaining_text(group: RemainingInstances) -> str:
    draining = f", {group.draining} draining" if group.draining else ""
    return f"{_title(group)}: {pluralize(group.count, 'instance')}{draining}"


def _title(group: GroupPlan | RemainingInstances | KeptGroup) -> str:
    if group.role == "bastion":
        return "bastion"
    return f"master {group.name}" if group.role == "master" else f"node group {group.name}"
