"""Formats a diagnosis as text: the cause of a failure, its meaning, the instances' messages, and the next commands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import click

from cfngen.cli.render.layout import max_line_width, wrapped
from cfngen.cli.render.resource_names import resource_name, resource_path, stack_path
from cfngen.cli.render.verbs import OPERATION_VERBS
from cfngen.deploy.next_steps import NextStep
from cfngen.deploy.watching.console_output import ConsoleExcerpt
from cfngen.deploy.watching.diagnosis import Cause, Diagnosis

_MIN_PURPOSE_WIDTH = 24  # characters; where less space is left, a command's purpose goes below the command


def diagnosis_lines(diagnosis: Diagnosis, width: int | None = None) -> list[str]:
    """Return a diagnosis as lines of text.

    Args:
        diagnosis: the diagnosis.
        width: width of the terminal in characters; None means the actual one.
    """
    return list(_all_lines(diagnosis, max_line_width(width)))


def _all_lines(diagnosis: Diagnosis, max_width: int) -> Iterator[str]:
    """Yield a diagnosis as lines of at most `max_width` characters."""
    activity = f"{OPERATION_VERBS.get(diagnosis.action, 'the last operation on')} {diagnosis.stack}"
    subject = activity[0].upper() + activity[1:]
    if diagnosis.cause is not None:
        yield from _bold_start(f"{subject} failed", f" ({diagnosis.status})", max_width)
        yield ""
        yield from _cause_lines(diagnosis.cause, max_width)
    elif diagnosis.cancelled:
        ending = "was ended by deleting the stack" if diagnosis.action == "create" else "was cancelled"
        yield from _bold_start(f"{subject} {ending}", f" ({diagnosis.status}); no resource failed", max_width)
    else:
        status = diagnosis.status or "there is no such stack"
        yield from wrapped(
            f"There is no known failure of {activity} ({status})", max_width, indent="  ", first_indent=""
        )
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
        command_width = max(len(str(step.command)) for step in diagnosis.next_steps)
        for step in diagnosis.next_steps:
            yield from _next_step_lines(step, command_width, max_width)


def _bold_start(bold_text: str, plain_text: str, max_width: int) -> Iterator[str]:
    """Yield the bold text and, on the same line, the plain text, wrapped together."""
    first_line, *other_lines = wrapped(bold_text + plain_text, max_width, indent="  ", first_indent="")
    # A bold text that was wrapped over two lines is not found in the first line, and stays plain.
    yield first_line.replace(bold_text, click.style(bold_text, bold=True), 1)
    yield from other_lines


def _next_step_lines(step: NextStep, command_width: int, max_width: int) -> Iterator[str]:
    """Yield a command and its purpose: beside the command, or in the lines below it on a narrow terminal.

    Args:
        step: the command and its purpose.
        command_width: width of the longest command; the purposes are aligned to the right of it.
        max_width: maximum width of a line in characters.
    """
    purpose_indent = 2 + command_width + 2
    if max_width - purpose_indent >= _MIN_PURPOSE_WIDTH:
        first_line, *other_lines = wrapped(step.purpose, max_width, indent=" " * purpose_indent)
        yield f"  {click.style(str(step.command).ljust(command_width), fg='cyan')}  {first_line.lstrip()}".rstrip()
        yield from other_lines
    else:
        yield f"  {click.style(str(step.command), fg='cyan')}"
        yield from wrapped(step.purpose, max_width, indent="      ")


def _cause_lines(cause: Cause, max_width: int) -> Iterator[str]:
    """Yield everything that is known about a failure: its resource, reason, meaning, instances, notes and hint."""
    yield from _headline_lines(cause, max_width)
    yield from wrapped(cause.event.reason or "CloudFormation gives no reason", max_width, indent="      ")
    for launch in cause.launches:
        if launch not in cause.event.reason:
            yield from wrapped(f"Auto Scaling: {launch}", max_width, indent="      ")
    if cause.explanation:
        yield from _labelled_text_lines("means:", cause.explanation, max_width)
    yield from _instance_lines(cause.instances, max_width)
    if cause.occupants:
        yield "    still in use by:"
        for occupant in cause.occupants:
            yield from wrapped(occupant, max_width, indent="        ", first_indent="      ")
    for note in cause.notes:
        yield from _labelled_text_lines("not determined:", note, max_width)
    if cause.hint:
        yield from _labelled_text_lines("to fix:", str(cause.hint), max_width)


def _brief_cause_lines(cause: Cause, max_width: int) -> Iterator[str]:
    """Yield a failure in few lines: its resource, reason and hint."""
    yield from _headline_lines(cause, max_width)
    yield from wrapped(cause.event.reason or "CloudFormation gives no reason", max_width, indent="      ")
    if cause.hint:
        yield from _labelled_text_lines("to fix:", str(cause.hint), max_width)


def _headline_lines(cause: Cause, max_width: int) -> Iterator[str]:
    """Yield the failed resource, its status and the time."""
    event = cause.event
    if event.of_stack:
        subject, kind = f"stack {stack_path(event.path, event.stack)}", "the stack itself"
    else:
        subject, kind = resource_path(event.path, event.logical_id), resource_name(event.logical_id)
    time = event.time.strftime("%H:%M:%SZ")
    first_line, *other_lines = wrapped(
        f"✗ {subject} ({kind}) {event.status} at {time}", max_width, indent="      ", first_indent="  "
    )
    first_line = first_line.replace("✗", click.style("✗", fg="red"), 1)
    # A subject that was wrapped over two lines is not found in the first line, and is not printed in bold.
    first_line = first_line.replace(f" {subject} ", f" {click.style(subject, bold=True)} ", 1)
    yield first_line
    yield from other_lines


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
            is_failure = " FAILED after " in line
            for part_of_line in wrapped(line, max_width, indent="      | "):
                yield click.style(part_of_line, fg="red") if is_failure else part_of_line
        if instance.note:
            yield from wrapped(instance.note, max_width, indent="      ")
    for (state, note), instances_with_reason in without_console_lines.items():
        yield from wrapped(
            f"{', '.join(instance.id for instance in instances_with_reason)}{_state_in_brackets(state)}:",
            max_width,
            indent="    ",
        )
        yield from wrapped(note, max_width, indent="      ")
        if instances_with_reason[0].fetch:
            yield f"      {click.style(instances_with_reason[0].fetch, fg='cyan')}"


def _state_in_brackets(state: str) -> str:
    """Return the state of an instance, to follow its id; empty if the state is not known."""
    return f" ({state})" if state else ""


def _labelled_text_lines(label: str, text: str, max_width: int) -> Iterator[str]:
    """Yield a text after a bold label; further lines are indented to the end of the label."""
    label_width = len(f"    {label} ")
    first_line, *other_lines = wrapped(text, max_width, indent=" " * label_width)
    yield "    " + click.style(label, bold=True) + " " + first_line.lstrip()
    yield from other_lines
