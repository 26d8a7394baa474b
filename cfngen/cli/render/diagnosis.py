"""Why an operation failed, as text: first the cause, then what it means, who saw it, and what to type now."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterator, Sequence

import click

from cfngen.cli.render.resource_names import place, resource_name
from cfngen.cli.render.verbs import VERBS
from cfngen.deploy.watching.console_output import InstanceWords
from cfngen.deploy.watching.diagnosis import Cause, Diagnosis

_NARROWEST = 40
_WIDEST = 120  # text in longer lines is hard to read


def lines(diagnosis: Diagnosis, width: int | None = None) -> list[str]:
    """Return a diagnosis as lines.

    Args:
        diagnosis: the diagnosis.
        width: of the terminal; None asks for it.
    """
    columns = min(_WIDEST, max(_NARROWEST, (width or shutil.get_terminal_size().columns) - 1))
    return list(_told(diagnosis, columns))


def _told(diagnosis: Diagnosis, columns: int) -> Iterator[str]:
    doing = f"{VERBS.get(diagnosis.action, 'the last operation on')} {diagnosis.stack}"
    head = doing[0].upper() + doing[1:]
    if diagnosis.cause is not None:
        yield click.style(f"{head} failed", bold=True) + f" ({diagnosis.status})"
        yield ""
        yield from _cause(diagnosis.cause, columns)
    elif diagnosis.cancelled:
        how = "was ended by deleting the stack" if diagnosis.action == "create" else "was cancelled"
        yield click.style(f"{head} {how}", bold=True) + f" ({diagnosis.status}); nothing failed by itself"
    else:
        yield f"No failure is known of {doing} ({diagnosis.status or 'there is no such stack'})"
    if diagnosis.others:
        yield ""
        yield click.style("Failed as well, by themselves:", bold=True)
        for other in diagnosis.others:
            yield from _other(other, columns)
    if diagnosis.undoing:
        yield ""
        yield click.style("Failed while it was taken back:", bold=True)
        for other in diagnosis.undoing:
            yield from _cause(other, columns)
    if diagnosis.next_steps:
        yield ""
        yield click.style("Next:", bold=True)
        longest = max(len(step.command) for step in diagnosis.next_steps)
        for step in diagnosis.next_steps:
            command = click.style(step.command.ljust(longest), fg="cyan")
            yield f"  {command}  {step.purpose}"


def _cause(cause: Cause, columns: int) -> Iterator[str]:
    yield _headline(cause)
    yield from _wrapped(cause.event.reason or "CloudFormation gives no reason", "      ", columns)
    for launch in cause.launches:
        if launch not in cause.event.reason:
            yield from _wrapped(f"Auto Scaling: {launch}", "      ", columns)
    if cause.explanation:
        yield from _labelled("means:", cause.explanation, columns)
    yield from _instances(cause.instances, columns)
    if cause.occupants:
        yield "    still in use by:"
        yield from (f"      {each}" for each in cause.occupants)
    for note in cause.notes:
        yield from _labelled("unknown:", note, columns)
    if cause.hint:
        yield from _labelled("do:", cause.hint, columns)


def _other(cause: Cause, columns: int) -> Iterator[str]:
    yield _headline(cause)
    yield from _wrapped(cause.event.reason or "CloudFormation gives no reason", "      ", columns)
    if cause.hint:
        yield from _labelled("do:", cause.hint, columns)


def _headline(cause: Cause) -> str:
    event = cause.event
    if event.of_stack:
        what, kind = f"stack {place(event.path, '').rstrip('/') or event.stack}", "the stack itself"
    else:
        what, kind = place(event.path, event.logical_id), resource_name(event.logical_id)
    when = event.time.strftime("%H:%M:%SZ")
    return f"  {click.style('✗', fg='red')} {click.style(what, bold=True)} ({kind}) {event.status} at {when}"


def _instances(instances: Sequence[InstanceWords], columns: int) -> Iterator[str]:
    silent: dict[tuple[str, str], list[InstanceWords]] = {}
    for each in instances:
        if not each.words:
            silent.setdefault((each.state, each.note), []).append(each)
            continue
        yield f"    {each.id}{_state(each.state)} said last:"
        for line in each.words:
            failed = " FAILED after " in line
            for part in _wrapped(line, "      | ", columns):
                yield click.style(part, fg="red") if failed else part
        if each.note:
            yield from _wrapped(each.note, "      ", columns)
    for (state, note), alike in silent.items():
        yield from _wrapped(f"{', '.join(each.id for each in alike)}{_state(state)}:", "    ", columns)
        yield from _wrapped(note, "      ", columns)
        if alike[0].fetch:
            yield f"      {click.style(alike[0].fetch, fg='cyan')}"


def _state(state: str) -> str:
    return f" ({state})" if state else ""


def _labelled(label: str, text: str, columns: int) -> Iterator[str]:
    first = f"    {label} "
    lines = _wrapped(text, " " * len(first), columns)
    yield "    " + click.style(label, bold=True) + " " + lines[0].lstrip()
    yield from lines[1:]


def _wrapped(text: str, indent: str, columns: int) -> list[str]:
    """Return a text in lines that can still be copied: commands and addresses are not torn apart."""
    return textwrap.wrap(
        text, columns, initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [indent.rstrip()]
