"""Shows an operation in progress: on a terminal a tree that is redrawn in place, elsewhere one line for each event.

The tree depends only on the latest `Progress` message, so it can be interrupted by a question and redrawn below it. The
only control sequences are those that move the cursor up, erase, and hide the cursor; every terminal supports them.
"""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum

import click

from cfngen.cli.display.terminal import visible
from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.events import event_lines
from cfngen.cli.render.layout import Piece, Style
from cfngen.cli.render.operations import OPERATION_VERBS
from cfngen.cli.render.resource_names import resource_name, stack_title
from cfngen.deploy.aws.events import is_worth_showing
from cfngen.deploy.aws.operation_events import is_at_rest
from cfngen.deploy.aws.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.aws.types import Clock
from cfngen.deploy.messages.message import Event, Message
from cfngen.deploy.watching.progress import Progress, ResourceProgress, StackProgress, is_overdue

WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
HEARTBEAT_SECONDS = 60
"""How long a log stays without output before it gets a line of progress; some CI systems abort jobs that are silent."""
MAX_RUNNING_SHOWN = 5  # resources in progress; of each stack in the tree, and of all stacks in a line of progress
MAX_REASON_LINES = 3  # of each failed resource

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_SPINNER = "|/-\\"


class DropRank(IntEnum):
    """The order in which lines of the tree are dropped if the terminal is too small: the highest rank first."""

    NEVER = 0
    FAILED_RESOURCE = 1
    ACTIVE_STACK = 2
    RUNNING_RESOURCE = 3
    UNTOUCHED_STACK = 4
    FINISHED_STACK = 5


@dataclass(frozen=True)
class TreeLine:
    """A line of the tree."""

    pieces: tuple[Piece, ...]
    drop_rank: DropRank = DropRank.NEVER

    @property
    def text(self) -> str:
        """The text without styles."""
        return "".join(visible(text) for text, _ in self.pieces)

    def styled(self, width: int) -> str:
        """Return the styled line, cut to this number of characters."""
        width_left = width
        styled_texts: list[str] = []
        for text, style in self.pieces:
            visible_text = visible(text)[:width_left]
            width_left -= len(visible_text)
            if style and visible_text:
                visible_text = click.style(visible_text, **style)
            styled_texts.append(visible_text)
        return "".join(styled_texts)


class LiveScreen:
    """Shows the messages of an operation as a tree or as a log; `close` restores the terminal.

    Args:
        size: returns the size of the terminal; None means to write a log, because there is no terminal, or none that
            can move the cursor.
    """

    def __init__(
        self, write: Callable[[str], object], *, size: Callable[[], os.terminal_size] | None, clock: Clock
    ) -> None:
        self._write = write
        self._size = size
        self._clock = clock
        self._drawn_widths: list[int] = []  # the width of each line of the tree on the screen
        self._cursor_hidden = False
        self._operation_start: datetime | None = None
        self._root_was_at_rest = False  # whether no operation was in progress at the root stack's latest event
        self._last_output = clock.now()

    def show(self, message: Message) -> None:
        """Show an event or progress; other messages are ignored."""
        if self._size is None:
            self._log(message)
        elif isinstance(message, Progress):
            self._draw(message, self._size())

    def close(self) -> None:
        """Keep the drawn tree on the screen, and show the cursor; a later tree is drawn below."""
        if self._cursor_hidden:
            self._write(_SHOW_CURSOR)
        self._cursor_hidden = False
        self._drawn_widths = []

    def _draw(self, progress: Progress, size: os.terminal_size) -> None:
        # The spinner turns by one step each second.
        spinner = _SPINNER[int(self._clock.now().timestamp()) % len(_SPINNER)]
        # The last column and the last row are not used: writing there makes terminals wrap and scroll.
        width, height = max(20, size.columns - 1), max(3, size.lines - 1)
        lines = fit_to_height(tree_lines(progress, width, spinner), height)
        # If the terminal has become narrower, the drawn lines have been wrapped over several rows.
        rows = sum(max(1, math.ceil(line_width / size.columns)) for line_width in self._drawn_widths)
        cursor_up = f"\x1b[{rows}F" if rows else ""
        tree_text = "".join(f"{line.styled(width)}{_ERASE_LINE}\n" for line in lines)
        self._write(("" if self._cursor_hidden else _HIDE_CURSOR) + cursor_up + tree_text + _ERASE_BELOW)
        self._cursor_hidden = True
        self._drawn_widths = [min(width, len(line.text)) for line in lines]

    def _log(self, message: Message) -> None:
        """Write an event to a log, or a line of progress if there has been no output for some time."""
        now = self._clock.now()
        if isinstance(message, Event):
            self._update_operation_start(message)
            if is_worth_showing(message):
                self._last_output = now
                self._write(visible("\n".join(event_lines(message, self._operation_start))) + "\n")
        elif isinstance(message, Progress) and (now - self._last_output).total_seconds() >= HEARTBEAT_SECONDS:
            self._last_output = now
            self._write(visible(heartbeat_line(message)) + "\n")

    def _update_operation_start(self, event: Event) -> None:
        """Take the time of an event as the start of the operation, if the event is the first one of an operation.

        That is the first event of all, and each event that says that the root stack starts another operation.
        """
        is_about_root = event.of_stack and not event.path
        starts_operation = is_about_root and self._root_was_at_rest and not is_at_rest(event.status)
        if self._operation_start is None or starts_operation:
            self._operation_start = event.time
        if is_about_root:
            self._root_was_at_rest = is_at_rest(event.status)


def heartbeat_line(progress: Progress) -> str:
    """Return one line with the elapsed time and the resources that the operation is waiting for."""
    running = [resource for stack in progress.stacks for resource in stack.resources if resource.running]
    running_texts = [
        f"{resource_name(resource.logical_id)}: {_resource_state(resource)}" for resource in running[:MAX_RUNNING_SHOWN]
    ]
    if len(running) > MAX_RUNNING_SHOWN:
        running_texts.append(f"and {len(running) - MAX_RUNNING_SHOWN} more")
    line = f"{progress.stack} {progress.status} after {_elapsed_text(progress)}"
    if running_texts:
        line += f": {'; '.join(running_texts)}"
    if progress.poll_error:
        line += f" ({progress.poll_error})"
    return line


def tree_lines(progress: Progress, width: int, spinner: str = "|") -> list[TreeLine]:
    """Return the lines of the tree, from the root stack to the resources."""
    return list(_tree_lines(progress, width, spinner))


def fit_to_height(lines: Sequence[TreeLine], height: int) -> list[TreeLine]:
    """Return at most `height` lines; if some are dropped, the last line says how many.

    The lines with the highest rank are dropped first; among lines of one rank, the lowest on the screen.
    """
    if len(lines) <= height:
        return list(lines)
    droppable_numbers = [number for number, line in enumerate(lines) if line.drop_rank]
    droppable_numbers.sort(key=lambda number: (lines[number].drop_rank, number), reverse=True)
    # One more line is dropped, to make room for the line that says how many.
    dropped_numbers = set(droppable_numbers[: len(lines) - height + 1])
    kept_lines = [line for number, line in enumerate(lines) if number not in dropped_numbers]
    # If even the lines that are never dropped do not fit, the last of them are cut off.
    kept_lines = kept_lines[: height - 1]
    return [*kept_lines, TreeLine(((f"  … and {len(lines) - len(kept_lines)} more", {"dim": True}),))]


def _tree_lines(progress: Progress, width: int, spinner: str) -> Iterator[TreeLine]:
    activity = OPERATION_VERBS.get("rollback" if "ROLLBACK" in progress.status else progress.action, "watching")
    yield TreeLine(
        (
            (f"{spinner} ", {"fg": "cyan"}),
            (f"{activity} {progress.stack}", {"bold": True}),
            (f"  {progress.status}  ", _status_style(progress.status)),
            (_elapsed_text(progress), {}),
        )
    )
    if progress.poll_error:
        yield TreeLine(((f"  {progress.poll_error}", {"fg": "yellow"}),))
    titles = {stack.path: stack_title(stack.path[-1:], stack.name) for stack in progress.stacks}
    # The longest title of a nested stack, with its indent of two spaces for each level.
    title_width = max((2 * len(path) + len(title) for path, title in titles.items() if path), default=0)
    can_roll_back = progress.action not in ("delete", "rollback")
    for stack in progress.stacks:
        if stack.path:
            indent = "  " * len(stack.path)
            padded_title = titles[stack.path].ljust(title_width - len(indent))
            yield _stack_line(stack, indent, padded_title, can_roll_back=can_roll_back)
        yield from _resource_lines(stack, "  " * (len(stack.path) + 2), width)


def _stack_line(stack: StackProgress, indent: str, title: str, *, can_roll_back: bool) -> TreeLine:
    """Return the line of a nested stack: its mark, title, number of resources and elapsed time.

    Args:
        title: the title of the stack, padded to the width of the longest.
        can_roll_back: whether a deletion in the stack means that the operation is undone.
    """
    is_undone = can_roll_back and ("ROLLBACK" in stack.status or stack.status.startswith("DELETE"))
    count = f"{stack.done:>2} of {stack.total}" if stack.total else f"{stack.done:>2} done"
    if not stack.status:
        return TreeLine(((f"{indent}· {title}  {count}", {"dim": True}),), DropRank.UNTOUCHED_STACK)
    if is_undone:
        count += " undone"
    mark, drop_rank = "✓", DropRank.FINISHED_STACK
    if stack.running:
        mark, drop_rank = "●", DropRank.ACTIVE_STACK
    elif stack.status.endswith("_FAILED"):
        mark, drop_rank = "✗", DropRank.ACTIVE_STACK
    pieces: tuple[Piece, ...] = (
        (f"{indent}{mark} ", _status_style(stack.status)),
        (f"{title}  {count}  {duration_text(stack.seconds)}", {}),
    )
    return TreeLine(pieces, drop_rank)


def _resource_lines(stack: StackProgress, indent: str, width: int) -> Iterator[TreeLine]:
    for resource in stack.resources:
        if resource.reason:
            name = resource_name(resource.logical_id)
            heading = f"{indent}✗ {name} failed ({resource.logical_id})"
            for text in (heading, *_reason_lines(resource.reason, indent + "  ", width)):
                yield TreeLine(((text, {"fg": "red"}),), DropRank.FAILED_RESOURCE)
    running = [resource for resource in stack.resources if resource.running]
    for resource in running[:MAX_RUNNING_SHOWN]:
        style: Style = {"fg": "yellow"} if resource.overdue else {}
        name = resource_name(resource.logical_id)
        pieces: tuple[Piece, ...] = ((f"{indent}{name}: ", {}), (_resource_state(resource), style))
        yield TreeLine(pieces, DropRank.RUNNING_RESOURCE)
    if len(running) > MAX_RUNNING_SHOWN:
        text = f"{indent}… and {len(running) - MAX_RUNNING_SHOWN} more"
        yield TreeLine(((text, {"dim": True}),), DropRank.RUNNING_RESOURCE)


def _reason_lines(reason: str, indent: str, width: int) -> list[str]:
    return textwrap.wrap(
        reason,
        max(width, len(indent) + 20),
        initial_indent=indent,
        subsequent_indent=indent,
        max_lines=MAX_REASON_LINES,
        placeholder=" …",
    )


def _resource_state(resource: ResourceProgress) -> str:
    """Return what CloudFormation does with a resource or waits for, the elapsed time, and the usual time."""
    elapsed = _elapsed_of_usual(resource.seconds, resource.expected)
    # CREATE_IN_PROGRESS becomes `creating`.
    activity = resource.status.partition("_")[0].lower().removesuffix("e") + "ing"
    if resource.type == AUTO_SCALING_GROUP and not resource.status.startswith("DELETE"):
        if resource.signals_expected:
            return f"{resource.signals} of {resource.signals_expected} signals, {elapsed}"
        return f"waiting for signals, {resource.signals} so far, {elapsed}"
    if resource.type == WAIT_CONDITION and not resource.status.startswith("DELETE"):
        return f"waiting for its signal, {elapsed}"
    return f"{activity}, {elapsed}"


def _elapsed_text(progress: Progress) -> str:
    """Return the elapsed time of an operation, and the usual time; a rollback has no usual time."""
    return _elapsed_of_usual(progress.seconds, 0 if "ROLLBACK" in progress.status else progress.expected)


def _elapsed_of_usual(seconds: float, expected: int) -> str:
    elapsed, usual = duration_text(seconds), duration_text(expected)
    if not expected:
        return elapsed
    return f"{elapsed}, overdue: usually {usual}" if is_overdue(seconds, expected) else f"{elapsed} of about {usual}"


def _status_style(status: str) -> Style:
    if status.endswith("_FAILED"):
        return {"fg": "red"}
    if "ROLLBACK" in status:
        return {"fg": "yellow"}
    return {"fg": "green" if status.endswith("_COMPLETE") else "cyan"}
