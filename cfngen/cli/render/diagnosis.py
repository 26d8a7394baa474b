"""Formats a diagnosis as text: the cause of a failure, its meaning, the instances' messages, and the next commands."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence

import click

from cfngen.cli.render.resource_names import place, resource_name, stack_path
from cfngen.cli.render.verbs import VERBS
from cfngen.cli.render.wrapping import wrapped
from cfngen.deploy.next_steps import NextStep
from cfngen.deploy.watching.console_output import ConsoleExcerpt
from cfngen.deploy.watching.diagnosis import Cause, Diagnosis

_MIN_WIDTH = 40
_MIN_TEXT_WIDTH = 24  # columns; where less space is left, the text goes below its command
_MAX_WIDTH = 120  # text in longer lines is hard to read


def lines(diagnosis: Diagnosis, width: int | None = None) -> list[str]:
    """Return a diagnosis as lines.

    Args:
        diagnosis: the diagnosis.
        width: width of the terminal in columns; None means the actual one.
    """
    columns = min(_MAX_WIDTH, max(_MIN_WIDTH, (width or shutil.get_terminal_size().columns) - 1))
    return list(_diagnosis_lines(diagnosis, columns))


def _diagnosis_lines(diagnosis: Diagnosis, columns: int) -> Iterator[str]:
    activity = f"{VERBS.get(diagnosis.action, 'the last operation on')} {diagnosis.stack}"
    subject = activity[0].upper() + activity[1:]
    if diagnosis.cause is not None:
        yield from _bold_start(f"{subject} failed", f" ({diagnosis.status})", columns)
        yield ""
        yield from _cause(diagnosis.cause, columns)
    elif diagnosis.cancelled:
        ending = "was ended by deleting the stack" if diagnosis.action == "create" else "was cancelled"
        yield from _bold_start(f"{subject} {ending}", f" ({diagnosis.status}); no resource failed", columns)
    else:
        status = diagnosis.status or "there is no such stack"
        yield from wrapped(f"There is no known failure of {activity} ({status})", columns, "  ", first="")
    if diagnosis.others:
        yield ""
        yield click.style("Other failures, independent of it:", bold=True)
        for other in diagnosis.others:
            yield from _brief_cause(other, columns)
    if diagnosis.rollback_failures:
        yield ""
        yield click.style("Failed during the rollback:", bold=True)
        for failure in diagnosis.rollback_failures:
            yield from _cause(failure, columns)
    if diagnosis.next_steps:
        yield ""
        yield click.style("Next:", bold=True)
        command_width = max(len(str(step.command)) for step in diagnosis.next_steps)
        for step in diagnosis.next_steps:
            yield from _step(step, command_width, columns)


def _bold_start(head: str, rest: str, columns: int) -> Iterator[str]:
    """Yield a wrapped line whose first part is bold."""
    first_line, *other_lines = wrapped(head + rest, columns, "  ", first="")
    yield first_line.replace(head, click.style(head, bold=True), 1)
    yield from other_lines


def _step(step: NextStep, command_width: int, columns: int) -> Iterator[str]:
    """Yield a command on one line; its purpose is beside the command, or below on a narrow terminal.

    Args:
        step: the command and its purpose.
        command_width: width of the longest command; the purposes are aligned to the right of it.
        columns: maximum width of a line.
    """
    text_column = 2 + command_width + 2
    if columns - text_column >= _MIN_TEXT_WIDTH:
        first_line, *other_lines = wrapped(step.purpose, columns, " " * text_column)
        yield f"  {click.style(str(step.command).ljust(command_width), fg='cyan')}  {first_line.lstrip()}".rstrip()
        yield from other_lines
    else:
        yield f"  {click.style(str(step.command), fg='cyan')}"
        yield from wrapped(step.purpose, columns, "      ")


def _cause(cause: Cause, columns: int) -> Iterator[str]:
    """Yield everything that is known about a failure."""
    yield from _headline(cause, columns)
    yield from wrapped(cause.event.reason or "CloudFormation gives no reason", columns, "      ")
    for launch in cause.launches:
        if launch not in cause.event.reason:
            yield from wrapped(f"Auto Scaling: {launch}", columns, "      ")
    if cause.explanation:
        yield from _labelled("means:", cause.explanation, columns)
    yield from _instances(cause.instances, columns)
    if cause.occupants:
        yield "    still in use by:"
        for occupant in cause.occupants:
            yield from wrapped(occupant, columns, "        ", first="      ")
    for note in cause.notes:
        yield from _labelled("not determined:", note, columns)
    if cause.hint:
        yield from _labelled("to fix:", str(cause.hint), columns)


def _brief_cause(cause: Cause, columns: int) -> Iterator[str]:
    """Yield a failure with its reason and hint only."""
    yield from _headline(cause, columns)
    yield from wrapped(cause.event.reason or "CloudFormation gives no reason", columns, "      ")
    if cause.hint:
        yield from _labelled("to fix:", str(cause.hint), columns)


def _headline(cause: Cause, columns: int) -> Iterator[str]:
    """Yield the failed resource, its status and the time."""
    event = cause.event
    if event.of_stack:
        subject, kind = f"stack {stack_path(event.path, event.stack)}", "the stack itself"
    else:
        subject, kind = place(event.path, event.logical_id), resource_name(event.logical_id)
    time = event.time.strftime("%H:%M:%SZ")
    first_line, *other_lines = wrapped(f"✗ {subject} ({kind}) {event.status} at {time}", columns, "      ", first="  ")
    first_line = first_line.replace("✗", click.style("✗", fg="red"), 1)
    # A subject that was wrapped over two lines is not found in the first line, and is not printed in bold.
    first_line = first_line.replace(f" {subject} ", f" {click.style(subject, bold=True)} ", 1)
    yield first_line
    yield from other_lines


def _instances(instances: Sequence[ConsoleExcerpt], columns: int) -> Iterator[str]:
    """Yield the last console lines of each instance, or why there are none, for all instances with the same reason."""
    without_messages: dict[tuple[str, str], list[ConsoleExcerpt]] = {}
    for instance in instances:
        if not instance.lines:
            without_messages.setdefault((instance.state, instance.note), []).append(instance)
            continue
        yield f"    {instance.id}{_state(instance.state)}, console output:"
        for line in instance.lines:
            failed = " FAILED after " in line
            for part_of_line in wrapped(line, columns, "      | "):
                yield click.style(part_of_line, fg="red") if failed else part_of_line
        if instance.note:
            yield from wrapped(instance.note, columns, "      ")
    for (state, note), same_state in without_messages.items():
        yield from wrapped(f"{', '.join(instance.id for instance in same_state)}{_state(state)}:", columns, "    ")
        yield from wrapped(note, columns, "      ")
        if same_state[0].fetch:
            yield f"      {click.style(same_state[0].fetch, fg='cyan')}"


def _state(state: str) -> str:
    return f" ({state})" if state else ""


def _labelled(label: str, text: str, columns: int) -> Iterator[str]:
    """Yield a text after a bold label; further lines are indented to the end of the label."""
    label_width = len(f"    {label} ")
    first_line, *other_lines = wrapped(text, columns, " " * label_width)
    yield "    " + click.style(label, bold=True) + " " + first_line.lstrip()
    yield from other_lines
