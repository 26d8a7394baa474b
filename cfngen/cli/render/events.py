"""Formats stack events as lines of text."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import click

from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import line_width, paragraph
from cfngen.cli.render.resource_names import resource_path, stack_path
from cfngen.deploy.messages.message import Event

_STATUS_WIDTH = 20  # characters; most statuses of resources fit
# The first ending that fits a status decides its colour.
_STATUS_ENDINGS_AND_COLOURS = (
    ("_FAILED", "red"),
    ("ROLLBACK_COMPLETE", "yellow"),
    ("ROLLBACK_IN_PROGRESS", "yellow"),
    ("DELETE_SKIPPED", "yellow"),
    ("_COMPLETE", "green"),
    ("_IN_PROGRESS", "cyan"),
)


def in_status_colour(status: str, text: str = "") -> str:
    """Return the status in its colour, or another text in the colour of the status."""
    colour = next((colour for ending, colour in _STATUS_ENDINGS_AND_COLOURS if status.endswith(ending)), None)
    return click.style(text or status, fg=colour)


def event_lines(event: Event, start: datetime | None = None, width: int | None = None) -> list[str]:
    """Return an event as lines of a log: a line with its status, and the reason in the lines below.

    Args:
        start: when the operation started; if it is None, the elapsed time is not shown.
    """
    elapsed = ""
    if start is not None:
        # Eleven characters hold every duration of less than 100 hours.
        elapsed = f"{duration_text((event.time - start).total_seconds()):>11}  "
    status = in_status_colour(event.status, event.status.ljust(_STATUS_WIDTH))
    line = f"{_time_of_day(event.time)}  {elapsed}{status}  {_stack_or_resource(event)}".rstrip()
    return [line, *_reason_lines(event, indent=10, width=width)]


def history_lines(events: Sequence[Event], width: int | None = None) -> list[str]:
    """Return the events of several stacks as a table, with a heading for each day."""
    if not events:
        return ["Nothing has happened yet."]
    status_width = max(len(event.status) for event in events)
    lines: list[str] = []
    previous_day = ""
    for event in events:
        day = event.time.strftime("%Y-%m-%d")
        if day != previous_day:
            lines.append(click.style(f"{day} (UTC)", bold=True))
            previous_day = day
        status = in_status_colour(event.status, event.status.ljust(status_width))
        lines.append(f"  {_time_of_day(event.time)}  {status}  {_stack_or_resource(event)}".rstrip())
        lines += _reason_lines(event, indent=12, width=width)
    return lines


def _time_of_day(time: datetime) -> str:
    return time.strftime("%H:%M:%SZ")


def _stack_or_resource(event: Event) -> str:
    if event.of_stack:
        return click.style(f"stack {stack_path(event.path, event.stack)}", bold=True)
    resource_type = event.type.removeprefix("AWS::").replace("::", " ")
    return f"{resource_path(event.path, event.logical_id)}  {click.style(resource_type, dim=True)}"


def _reason_lines(event: Event, *, indent: int, width: int | None) -> list[str]:
    lines = paragraph(event.reason, line_width(width), indent)
    return [click.style(line, fg="red") if event.failed else line for line in lines]
