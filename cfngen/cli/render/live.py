"""An operation as it goes on: on a terminal a tree that is drawn again in place, elsewhere a line for each event.

The tree is made of the latest message of progress alone, so that it can be left, for a question, and drawn anew below.
Of control sequences it takes only those that move the cursor up, erase, and hide the cursor: every terminal has them.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.render.events import event_lines
from cfngen.cli.render.resource_names import resource_name, stack_title
from cfngen.cli.render.verbs import VERBS
from cfngen.deploy.clock import Clock
from cfngen.deploy.messages import Event, Message
from cfngen.deploy.stacks import GROUP
from cfngen.deploy.watching.event_scope import at_rest
from cfngen.deploy.watching.events import interesting
from cfngen.deploy.watching.progress import Progress, ResourceProgress, StackProgress

CONDITION = "AWS::CloudFormation::WaitCondition"
HEARTBEAT = 60
"""Seconds without an event after which a log is told what is waited for; some CI systems end a job that is silent."""
MOST_RUNNING = 5
REASON_LINES = 3

_HIDE, _SHOW = "\x1b[?25l", "\x1b[?25h"
_ERASE_LINE, _ERASE_BELOW = "\x1b[K", "\x1b[J"
_TURNING = "|/-\\"

Span = tuple[str, dict[str, Any]]


@dataclass(frozen=True)
class Line:
    """A line of the tree.

    Attributes:
        spans: pieces of text, each with its style.
        rank: how soon it is left out where there is no room; 0 never is.
    """

    spans: tuple[Span, ...]
    rank: int = 0

    @property
    def text(self) -> str:
        """The text alone."""
        return "".join(text for text, _ in self.spans)

    def styled(self, width: int) -> str:
        """Return the line with its colours, cut to so many columns."""
        left, parts = width, []
        for text, style in self.spans:
            shown = text[:left]
            left -= len(shown)
            parts.append(click.style(shown, **style) if style and shown else shown)
        return "".join(parts)


class LiveScreen:
    """Shows the messages of an operation; `close` gives the terminal back.

    Args:
        write: writes text as it is.
        size: returns the size of the terminal; None where there is none, or one that cannot move its cursor.
        clock: the time.
    """

    def __init__(
        self, write: Callable[[str], object], *, size: Callable[[], os.terminal_size] | None, clock: Clock
    ) -> None:
        self._write = write
        self._size = size
        self._clock = clock
        self._drawn: list[int] = []  # the width of each line on the screen
        self._hidden = False
        self._began: datetime | None = None
        self._rested = False
        self._spoke = clock.now()

    def show(self, message: Message) -> None:
        """Show an event or how far the operation has come; other messages are not shown."""
        if self._size is None:
            self._tell(message)
        elif isinstance(message, Progress):
            self._draw(message, self._size())

    def close(self) -> None:
        """Leave what is drawn where it is, and the cursor below it."""
        if self._hidden:
            self._write(_SHOW)
        self._hidden, self._drawn = False, []

    def _draw(self, progress: Progress, size: os.terminal_size) -> None:
        turn = int(self._clock.now().timestamp()) % len(_TURNING)
        # The last column and the last row stay free: writing there makes terminals wrap and scroll.
        width, height = max(20, size.columns - 1), max(3, size.lines - 1)
        lines = fitted(tree_lines(progress, width, _TURNING[turn]), height)
        # A terminal that has become narrower has wrapped what was drawn.
        rows = sum(max(1, -(-drawn // size.columns)) for drawn in self._drawn)
        up = f"\x1b[{rows}F" if rows else ""
        body = "".join(f"{line.styled(width)}{_ERASE_LINE}\n" for line in lines)
        self._write(("" if self._hidden else _HIDE) + up + body + _ERASE_BELOW)
        self._hidden = True
        self._drawn = [min(width, len(line.text)) for line in lines]

    def _tell(self, message: Message) -> None:
        now = self._clock.now()
        if isinstance(message, Event):
            self._count(message)
            if interesting(message):
                self._spoke = now
                self._write("\n".join(event_lines(message, self._began)) + "\n")
        elif isinstance(message, Progress) and (now - self._spoke).total_seconds() >= HEARTBEAT:
            self._spoke = now
            self._write(heartbeat(message) + "\n")

    def _count(self, event: Event) -> None:
        """Note when the operation began: with the first event, and anew once the root has been at rest."""
        of_root = event.of_stack and not event.path
        if self._began is None or (of_root and self._rested and not at_rest(event.status)):
            self._began = event.time
        if of_root:
            self._rested = at_rest(event.status)


def heartbeat(progress: Progress) -> str:
    """Return one line that says how long the operation has taken and what it is waiting for."""
    running = [(stack, resource) for stack in progress.stacks for resource in stack.resources if resource.running]
    what = "; ".join(f"{resource_name(each.logical_id)}: {_state(each)}" for _, each in running[:MOST_RUNNING])
    more = f"; and {len(running) - MOST_RUNNING} more" if len(running) > MOST_RUNNING else ""
    trouble = f" ({progress.trouble})" if progress.trouble else ""
    return f"{progress.stack} {progress.status} after {_took(progress)}{': ' if what else ''}{what}{more}{trouble}"


def tree_lines(progress: Progress, width: int, turning: str = "|") -> list[Line]:
    """Return the tree of an operation.

    Args:
        progress: how far it has come.
        width: columns there are.
        turning: what shows that the program is alive.
    """
    return list(_tree(progress, width, turning))


def fitted(lines: Sequence[Line], height: int) -> list[Line]:
    """Return as many lines as there is room for, those that tell most."""
    if len(lines) <= height:
        return list(lines)
    # The least telling go first, and of those the last; one row says how many.
    expendable = sorted(
        (number for number, line in enumerate(lines) if line.rank), key=lambda number: (-lines[number].rank, -number)
    )
    gone = set(expendable[: len(lines) - height + 1])
    kept = [line for number, line in enumerate(lines) if number not in gone][: height - 1]
    return [*kept, Line(((f"  … and {len(lines) - len(kept)} more", {"dim": True}),))]


def _tree(progress: Progress, width: int, turning: str) -> Iterator[Line]:
    verb = VERBS.get("rollback" if "ROLLBACK" in progress.status else progress.action, "watching")
    yield Line(
        (
            (f"{turning} ", {"fg": "cyan"}),
            (f"{verb} {progress.stack}", {"bold": True}),
            (f"  {progress.status}  ", _style(progress.status)),
            (_took(progress), {}),
        )
    )
    if progress.trouble:
        yield Line(((f"  {progress.trouble}", {"fg": "yellow"}),))
    titles = {stack.path: stack_title(stack.path[-1:], stack.name) for stack in progress.stacks}
    wide = max((2 * len(path) + len(title) for path, title in titles.items() if path), default=0)
    undoes = progress.action not in ("delete", "rollback")
    for stack in progress.stacks:
        if stack.path:
            indent = "  " * len(stack.path)
            yield _stack(stack, f"{indent}", titles[stack.path].ljust(wide - len(indent)), undoes=undoes)
        yield from _resources(stack, "  " * (len(stack.path) + 2), width)


def _stack(stack: StackProgress, indent: str, title: str, *, undoes: bool) -> Line:
    back = undoes and ("ROLLBACK" in stack.status or stack.status.startswith("DELETE"))
    if not stack.status:
        return Line(((f"{indent}· {title}  {_count(stack)}", {"dim": True}),), rank=4)
    mark, rank = ("●", 2) if stack.running else ("✗", 2) if stack.status.endswith("_FAILED") else ("✓", 5)
    style = _style(stack.status)
    count = _count(stack) + (" undone" if back else "")
    return Line(((f"{indent}{mark} ", style), (f"{title}  ", {}), (f"{count}  {duration(stack.seconds)}", {})), rank)


def _resources(stack: StackProgress, indent: str, width: int) -> Iterator[Line]:
    for resource in stack.resources:
        if resource.reason:
            name = resource_name(resource.logical_id)
            yield Line(((f"{indent}✗ {name} failed ({resource.logical_id})", {"fg": "red"}),), rank=1)
            yield from (
                Line(((text, {"fg": "red"}),), rank=1) for text in _reason(resource.reason, indent + "  ", width)
            )
    running = [resource for resource in stack.resources if resource.running]
    for each in running[:MOST_RUNNING]:
        late = bool(each.expected) and each.seconds > 2 * each.expected
        style = {"fg": "yellow"} if late else {}
        yield Line(((f"{indent}{resource_name(each.logical_id)}: ", {}), (_state(each), style)), rank=3)
    if len(running) > MOST_RUNNING:
        yield Line(((f"{indent}… and {len(running) - MOST_RUNNING} more", {"dim": True}),), rank=3)


def _reason(reason: str, indent: str, width: int) -> list[str]:
    import textwrap

    options = {"initial_indent": indent, "subsequent_indent": indent, "max_lines": REASON_LINES, "placeholder": " …"}
    return textwrap.wrap(reason, max(width, len(indent) + 20), **options)  # type: ignore[arg-type]


def _state(each: ResourceProgress) -> str:
    """Return what is being done to a resource, for how long already and how long that takes as a rule."""
    took = duration(each.seconds) + (f" of about {duration(each.expected)}" if each.expected else "")
    doing = each.status.partition("_")[0].lower().removesuffix("e") + "ing"
    if each.type == GROUP and not each.status.startswith("DELETE"):
        if each.signals_wanted:
            return f"{each.signals} of {each.signals_wanted} signals, {took}"
        return f"waiting for signals, {each.signals} so far, {took}"
    if each.type == CONDITION and not each.status.startswith("DELETE"):
        return f"waiting for its signal, {took}"
    return f"{doing}, {took}"


def _count(stack: StackProgress) -> str:
    return f"{stack.done:>2} of {stack.total}" if stack.total else f"{stack.done:>2} done"


def _took(progress: Progress) -> str:
    forward = progress.expected and "ROLLBACK" not in progress.status
    usually = f" of about {duration(progress.expected)}" if forward else ""
    return duration(progress.seconds) + usually


def _style(status: str) -> dict[str, Any]:
    if status.endswith("_FAILED"):
        return {"fg": "red"}
    if "ROLLBACK" in status:
        return {"fg": "yellow"}
    return {"fg": "green" if status.endswith("_COMPLETE") else "cyan"}
