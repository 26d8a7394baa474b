"""Shows an operation in progress: on a terminal a tree that is redrawn in place, elsewhere one line for each event.

The tree depends only on the latest `Progress` message, so it can be interrupted by a question and redrawn below it. The
only control sequences are those that move the cursor up, erase, and hide the cursor; every terminal supports them.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.render.events import event_lines
from cfngen.cli.render.resource_names import resource_name, stack_title
from cfngen.cli.render.styled_text import Piece, Style
from cfngen.cli.render.verbs import VERBS
from cfngen.deploy.clock import Clock
from cfngen.deploy.messages import Event, Message
from cfngen.deploy.stacks import AUTO_SCALING_GROUP
from cfngen.deploy.watching.event_scope import is_at_rest
from cfngen.deploy.watching.events import is_worth_showing
from cfngen.deploy.watching.progress import Progress, ResourceProgress, StackProgress

CONDITION = "AWS::CloudFormation::WaitCondition"
HEARTBEAT = 60
"""Seconds without output after which a log gets a line of progress; some CI systems abort jobs that are silent."""
MAX_RUNNING_SHOWN = 5
MAX_REASON_LINES = 3

_HIDE_CURSOR, _SHOW_CURSOR = "\x1b[?25l", "\x1b[?25h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_SPINNER = "|/-\\"


@dataclass(frozen=True)
class Line:
    """A line of the tree.

    Attributes:
        spans: pieces of text, each with the arguments of `click.style`.
        rank: if the terminal is too small, lines with the highest rank are dropped first; lines of rank 0 are kept.
    """

    spans: tuple[Piece, ...]
    rank: int = 0

    @property
    def text(self) -> str:
        """The text without styles."""
        return "".join(text for text, _ in self.spans)

    def styled(self, width: int) -> str:
        """Return the styled line, cut to this number of columns."""
        columns_left, styled_parts = width, []
        for text, style in self.spans:
            visible_text = text[:columns_left]
            columns_left -= len(visible_text)
            styled_parts.append(click.style(visible_text, **style) if style and visible_text else visible_text)
        return "".join(styled_parts)


class LiveScreen:
    """Shows the messages of an operation as a tree or as a log; `close` restores the terminal.

    Args:
        write: writes text to the terminal or log.
        size: returns the size of the terminal; None means to write a log, as for a terminal without cursor movement.
        clock: the clock of the account.
    """

    def __init__(
        self, write: Callable[[str], object], *, size: Callable[[], os.terminal_size] | None, clock: Clock
    ) -> None:
        self._write = write
        self._size = size
        self._clock = clock
        self._drawn: list[int] = []  # the width of each line on the screen
        self._cursor_hidden = False
        self._start: datetime | None = None
        self._was_at_rest = False  # the root stack, at its latest event
        self._last_output = clock.now()

    def show(self, message: Message) -> None:
        """Show an event or progress; other messages are ignored."""
        if self._size is None:
            self._log(message)
        elif isinstance(message, Progress):
            self._draw(message, self._size())

    def close(self) -> None:
        """Keep the drawn tree on the screen, show the cursor, and draw the next tree below."""
        if self._cursor_hidden:
            self._write(_SHOW_CURSOR)
        self._cursor_hidden, self._drawn = False, []

    def _draw(self, progress: Progress, size: os.terminal_size) -> None:
        """Redraw the tree in place."""
        frame = int(self._clock.now().timestamp()) % len(_SPINNER)
        # The last column and the last row are not used: writing there makes terminals wrap and scroll.
        width, height = max(20, size.columns - 1), max(3, size.lines - 1)
        lines = fitted(tree_lines(progress, width, _SPINNER[frame]), height)
        # If the terminal has become narrower, the drawn lines have been wrapped over several rows.
        rows = sum(max(1, math.ceil(line_width / size.columns)) for line_width in self._drawn)
        cursor_up = f"\x1b[{rows}F" if rows else ""
        tree_text = "".join(f"{line.styled(width)}{_ERASE_LINE}\n" for line in lines)
        self._write(("" if self._cursor_hidden else _HIDE_CURSOR) + cursor_up + tree_text + _ERASE_BELOW)
        self._cursor_hidden = True
        self._drawn = [min(width, len(line.text)) for line in lines]

    def _log(self, message: Message) -> None:
        """Write an event to a log, or a line of progress if there has been no output for some time."""
        now = self._clock.now()
        if isinstance(message, Event):
            self._note_start(message)
            if is_worth_showing(message):
                self._last_output = now
                self._write("\n".join(event_lines(message, self._start)) + "\n")
        elif isinstance(message, Progress) and (now - self._last_output).total_seconds() >= HEARTBEAT:
            self._last_output = now
            self._write(heartbeat(message) + "\n")

    def _note_start(self, event: Event) -> None:
        """Set the start of the operation: the time of the first event, or of the first after the root stack's rest."""
        of_root = event.of_stack and not event.path
        if self._start is None or (of_root and self._was_at_rest and not is_at_rest(event.status)):
            self._start = event.time
        if of_root:
            self._was_at_rest = is_at_rest(event.status)


def heartbeat(progress: Progress) -> str:
    """Return one line with the elapsed time and the resources that the operation is waiting for."""
    running = [(stack, resource) for stack in progress.stacks for resource in stack.resources if resource.running]
    waiting_for = "; ".join(
        f"{resource_name(resource.logical_id)}: {_state(resource)}" for _, resource in running[:MAX_RUNNING_SHOWN]
    )
    hidden_count = f"; and {len(running) - MAX_RUNNING_SHOWN} more" if len(running) > MAX_RUNNING_SHOWN else ""
    poll_error = f" ({progress.poll_error})" if progress.poll_error else ""
    status = f"{progress.stack} {progress.status} after {_elapsed(progress)}"
    return f"{status}{': ' if waiting_for else ''}{waiting_for}{hidden_count}{poll_error}"


def tree_lines(progress: Progress, width: int, spinner: str = "|") -> list[Line]:
    """Return the tree of an operation.

    Args:
        progress: the progress of the operation.
        width: width of the terminal in columns.
        spinner: the current character of the spinner.
    """
    return list(_tree(progress, width, spinner))


def fitted(lines: Sequence[Line], height: int) -> list[Line]:
    """Return as many lines as fit; if some are dropped, the last line says how many."""
    if len(lines) <= height:
        return list(lines)
    # The highest ranks are dropped first; among lines of one rank, the lowest on the screen.
    droppable_numbers = sorted(
        (number for number, line in enumerate(lines) if line.rank), key=lambda number: (-lines[number].rank, -number)
    )
    dropped_numbers = set(droppable_numbers[: len(lines) - height + 1])
    kept_lines = [line for number, line in enumerate(lines) if number not in dropped_numbers][: height - 1]
    return [*kept_lines, Line(((f"  … and {len(lines) - len(kept_lines)} more", {"dim": True}),))]


def _tree(progress: Progress, width: int, spinner: str) -> Iterator[Line]:
    """Yield the lines of the tree, from the root stack to the resources."""
    activity = VERBS.get("rollback" if "ROLLBACK" in progress.status else progress.action, "watching")
    yield Line(
        (
            (f"{spinner} ", {"fg": "cyan"}),
            (f"{activity} {progress.stack}", {"bold": True}),
            (f"  {progress.status}  ", _style(progress.status)),
            (_elapsed(progress), {}),
        )
    )
    if progress.poll_error:
        yield Line(((f"  {progress.poll_error}", {"fg": "yellow"}),))
    titles = {stack.path: stack_title(stack.path[-1:], stack.name) for stack in progress.stacks}
    title_width = max((2 * len(path) + len(title) for path, title in titles.items() if path), default=0)
    can_roll_back = progress.action not in ("delete", "rollback")
    for stack in progress.stacks:
        if stack.path:
            indent = "  " * len(stack.path)
            yield _stack(
                stack, f"{indent}", titles[stack.path].ljust(title_width - len(indent)), can_roll_back=can_roll_back
            )
        yield from _resources(stack, "  " * (len(stack.path) + 2), width)


def _stack(stack: StackProgress, indent: str, title: str, *, can_roll_back: bool) -> Line:
    """Return the line of a nested stack."""
    is_undone = can_roll_back and ("ROLLBACK" in stack.status or stack.status.startswith("DELETE"))
    if not stack.status:
        return Line(((f"{indent}· {title}  {_resource_count(stack)}", {"dim": True}),), rank=4)
    mark, rank = "✓", 5
    if stack.running:
        mark, rank = "●", 2
    elif stack.status.endswith("_FAILED"):
        mark, rank = "✗", 2
    style = _style(stack.status)
    count = _resource_count(stack) + (" undone" if is_undone else "")
    return Line(((f"{indent}{mark} ", style), (f"{title}  ", {}), (f"{count}  {duration(stack.seconds)}", {})), rank)


def _resources(stack: StackProgress, indent: str, width: int) -> Iterator[Line]:
    """Yield lines for the failed and the running resources of a stack."""
    for resource in stack.resources:
        if resource.reason:
            name = resource_name(resource.logical_id)
            yield Line(((f"{indent}✗ {name} failed ({resource.logical_id})", {"fg": "red"}),), rank=1)
            yield from (
                Line(((text, {"fg": "red"}),), rank=1) for text in _reason_lines(resource.reason, indent + "  ", width)
            )
    running = [resource for resource in stack.resources if resource.running]
    for resource in running[:MAX_RUNNING_SHOWN]:
        is_late = bool(resource.expected) and resource.seconds > 2 * resource.expected
        style: Style = {"fg": "yellow"} if is_late else {}
        yield Line(((f"{indent}{resource_name(resource.logical_id)}: ", {}), (_state(resource), style)), rank=3)
    if len(running) > MAX_RUNNING_SHOWN:
        yield Line(((f"{indent}… and {len(running) - MAX_RUNNING_SHOWN} more", {"dim": True}),), rank=3)


def _reason_lines(reason: str, indent: str, width: int) -> list[str]:
    """Return a reason as wrapped lines, cut after MAX_REASON_LINES."""
    import textwrap

    options = {
        "initial_indent": indent,
        "subsequent_indent": indent,
        "max_lines": MAX_REASON_LINES,
        "placeholder": " …",
    }
    return textwrap.wrap(reason, max(width, len(indent) + 20), **options)  # type: ignore[arg-type]


def _state(resource: ResourceProgress) -> str:
    """Return what CloudFormation does with a resource or waits for, the elapsed time, and the usual time."""
    elapsed = duration(resource.seconds)
    if resource.expected:
        elapsed += f" of about {duration(resource.expected)}"
    # CREATE_IN_PROGRESS becomes `creating`.
    activity = resource.status.partition("_")[0].lower().removesuffix("e") + "ing"
    if resource.type == AUTO_SCALING_GROUP and not resource.status.startswith("DELETE"):
        if resource.signals_expected:
            return f"{resource.signals} of {resource.signals_expected} signals, {elapsed}"
        return f"waiting for signals, {resource.signals} so far, {elapsed}"
    if resource.type == CONDITION and not resource.status.startswith("DELETE"):
        return f"waiting for its signal, {elapsed}"
    return f"{activity}, {elapsed}"


def _resource_count(stack: StackProgress) -> str:
    """Return how many resources of a stack are done, and of how many if the total is known."""
    return f"{stack.done:>2} of {stack.total}" if stack.total else f"{stack.done:>2} done"


def _elapsed(progress: Progress) -> str:
    """Return the elapsed time of an operation, and the usual time; there is no usual time for a rollback."""
    elapsed = duration(progress.seconds)
    if progress.expected and "ROLLBACK" not in progress.status:
        return f"{elapsed} of about {duration(progress.expected)}"
    return elapsed


def _style(status: str) -> Style:
    if status.endswith("_FAILED"):
        return {"fg": "red"}
    if "ROLLBACK" in status:
        return {"fg": "yellow"}
    return {"fg": "green" if status.endswith("_COMPLETE") else "cyan"}
