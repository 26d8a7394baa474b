"""Formats stack events as lines of text."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from datetime import datetime

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.render.resource_names import place, stack_path
from cfngen.deploy.messages import Event

_MIN_WIDTH = 40
_STATUS_WIDTH = 20  # most statuses of resources fit
_COLOURS = (
    ("_FAILED", "red"),
    ("ROLLBACK_COMPLETE", "yellow"),
    ("ROLLBACK_IN_PROGRESS", "yellow"),
    ("DELETE_SKIPPED", "yellow"),
    ("_COMPLETE", "green"),
    ("_IN_PROGRESS", "cyan"),
)


def coloured(status: str, text: str = "") -> str:
    """Return `text` in the colour of the status; without `text`, the status itself."""
    colour = next((colour for ending, colour in _COLOURS if status.endswith(ending)), None)
    return click.style(text or status, fg=colour)


def event_lines(event: Event, start: datetime | None = None, width: int | None = None) -> list[str]:
    """Return an event for a log: a line with its status, and the reason in the lines below.

    Args:
        event: the event.
        start: when the operation started; if it is None, the elapsed time is not shown.
        width: width of the terminal in columns; None means the actual one.
    """
    elapsed = "" if start is None else f"{duration((event.time - start).total_seconds()):>11}  "
    status = coloured(event.status, event.status.ljust(_STATUS_WIDTH))
    line = f"{_clock(event.time)}  {elapsed}{status}  {_subject(event)}".rstrip()
    return [line, *_reason_lines(event, " " * 10, width)]


def history_lines(events: Sequence[Event], width: int | None = None) -> list[str]:
    """Return the events of several stacks as a table.

    Args:
        events: the events, oldest first.
        width: width of the terminal in columns; None means the actual one.
    """
    if not events:
        return ["Nothing has happened yet."]
    status_width = max(len(event.status) for event in events)
    lines: list[str] = []
    day = ""
    for event in events:
        if (today := event.time.strftime("%Y-%m-%d")) != day:
            day = today
            lines.append(click.style(f"{day} (UTC)", bold=True))
        status = coloured(event.status, event.status.ljust(status_width))
        lines.append(f"  {_clock(event.time)}  {status}  {_subject(event)}".rstrip())
        lines.extend(_reason_lines(event, " " * 12, width))
    return lines


def _clock(time: datetime) -> str:
    return time.strftime("%H:%M:%SZ")


def _subject(event: Event) -> str:
    """Return the stack or the resource that an event is about."""
    if event.of_stack:
        return click.style(f"stack {stack_path(event.path, event.stack)}", bold=True)
    kind = event.type.removeprefix("AWS::").replace("::", " ")
    return f"{place(event.path, event.logical_id)}  {click.style(kind, dim=True)}"


def _reason_lines(event: Event, indent: str, width: int | None) -> list[str]:
    columns = max(_MIN_WIDTH, (width or shutil.get_terminal_size().columns) - 1)
    wrapped = textwrap.wrap(
        event.reason,
        columns,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return [click.style(line, fg="red") if event.failed else line for line in wrapped]
