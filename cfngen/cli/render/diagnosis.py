"""Formats a diagnosis as text: the cause of a failure, its meaning, the instances' messages, and the next commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from cfngen.cli.render.layout import BOLD, PLAIN, Piece, flow, hanging, line_width, paragraph, table, unbroken
from cfngen.cli.render.operations import OPERATION_VERBS
from cfngen.cli.render.resource_names import resource_name, resource_path, stack_path
from cfngen.deploy.aws.consoles import ConsoleExcerpt
from cfngen.deploy.watching.diagnosis import Cause, Diagnosis


def diagnosis_lines(diagnosis: Diagnosis, width: int | None = None) -> list[str]:
    """Return a diagnosis as lines of text."""
    return list(_all_lines(diagnosis, line_width(width)))


def _all_lines(diagnosis: Diagnosis, max_width: int) -> Iterator[str]:
    activity = f"{OPERATION_VERBS.get(diagnosis.action, 'the last operation on')} {diagnosis.stack}"
    subject = activity[0].upper() + activity[1:]
    if diagnosis.control_plane:
        yield from paragraph(diagnosis.control_plane, max_width, style=BOLD)
        yield ""
    if diagnosis.cause is not None:
        yield from flow(
            [(f"{subject} failed", BOLD), (f"({diagnosis.status}): {_short_text(diagnosis.cause)}", PLAIN)],
            max_width,
            0,
            2,
        )
        yield ""
        yield from _cause_lines(diagnosis.cause, max_width)
    elif diagnosis.cancelled:
        ending = "was ended by deleting the stack" if diagnosis.action == "create" else "was cancelled"
        status = f"({diagnosis.status}); no resource failed"
        yield from flow([(f"{subject} {ending}", BOLD), (status, PLAIN)], max_width, 0, 2)
    else:
        status = diagnosis.status or "there is no such stack"
        yield from paragraph(f"There is no known failure of {activity} ({status})", max_width, 0, 2)
    if diagnosis.others:
        yield ""
        yield click.style("Other failures, independent of it:", bold=True)
        for other in diagnosis.others:
            yield from _brief_cause_lines(other, max_width)
    if diagnosis.rollback_failures:
        yield ""
        yield click.style("Failed during the rollback:", bold=True)
        for failure in diagnosis.rollback_failures:
            yield from _cause_lines(failure, max_width)
    if diagnosis.next_steps:
        yield ""
        yield click.style("Next:", bold=True)
        rows = [(click.style(unbroken(str(step.command)), fg="cyan"), step.purpose) for step in diagnosis.next_steps]
        yield from table((), rows, max_width)


def _cause_lines(cause: Cause, max_width: int) -> Iterator[str]:
    yield from _headline_lines(cause, max_width)
    yield from paragraph(cause.event.reason or "CloudFormation gives no reason", max_width, 6)
    for launch in cause.launches:
        if launch not in cause.event.reason:
            yield from paragraph(f"Auto Scaling: {launch}", max_width, 6)
    if cause.explanation:
        yield from hanging("means:", cause.explanation, max_width, 4)
    yield from _instance_lines(cause.instances, max_width)
    if cause.occupants:
        yield "    still in use by:"
        for occupant in cause.occupants:
            yield from paragraph(occupant, max_width, 6, 8)
    for note in cause.notes:
        yield from hanging("not determined:", note, max_width, 4)
    if cause.hint:
        yield from hanging("to fix:", str(cause.hint), max_width, 4)


def _short_text(cause: Cause) -> str:
    """Return a failure in a few words: the group, the instance and its failed step, or what AWS's reason means."""
    name = "the stack itself" if cause.event.of_stack else resource_name(cause.event.logical_id)
    instance = next((instance for instance in cause.instances if instance.step), None)
    if instance is not None:
        return f"{name}, {instance.id}, {instance.step}"
    return f"{name}: {cause.explanation or cause.event.reason or 'CloudFormation gives no reason'}"


def _brief_cause_lines(cause: Cause, max_width: int) -> Iterator[str]:
    yield from _headline_lines(cause, max_width)
    yield from paragraph(cause.event.reason or "CloudFormation gives no reason", max_width, 6)
    if cause.hint:
        yield from hanging("to fix:", str(cause.hint), max_width, 4)


def _headline_lines(cause: Cause, max_width: int) -> Iterator[str]:
    event = cause.event
    if event.of_stack:
        subject, kind = f"stack {stack_path(event.path, event.stack)}", "the stack itself"
    else:
        subject, kind = resource_path(event.path, event.logical_id), resource_name(event.logical_id)
    time = event.time.strftime("%H:%M:%SZ")
    pieces: list[Piece] = [("✗", {"fg": "red"}), (subject, BOLD), (f"({kind}) {event.status} at {time}", PLAIN)]
    yield from flow(pieces, max_width, 2, 6)


def _instance_lines(instances: Sequence[ConsoleExcerpt], max_width: int) -> Iterator[str]:
    """Yield the last console lines of each instance; then the instances without any, grouped by the reason for it."""
    # By the state of the instances and the note that says why there are no lines.
    without_console_lines: dict[tuple[str, str], list[ConsoleExcerpt]] = {}
    for instance in instances:
        if not instance.lines:
            without_console_lines.setdefault((instance.state, instance.note), []).append(instance)
            continue
        yield f"    {instance.id}{_state_in_brackets(instance.state)}, console output:"
        for line in instance.lines:
            colour = "red" if " FAILED after " in line else None
            yield click.style(f"      | {line}", fg=colour) if colour else f"      | {line}"
        yield from paragraph(instance.note, max_width, 6)
        yield from _command_lines(instance.fetch)
    for (state, note), instances_with_reason in without_console_lines.items():
        ids = ", ".join(instance.id for instance in instances_with_reason)
        yield from paragraph(f"{ids}{_state_in_brackets(state)}:", max_width, 4)
        yield from paragraph(note, max_width, 6)
        yield from _command_lines(instances_with_reason[0].fetch)


def _command_lines(command: str) -> Iterator[str]:
    if command:
        yield f"      {click.style(command, fg='cyan')}"


def _state_in_brackets(state: str) -> str:
    return f" ({state})" if state else ""
