"""Formats the status of the sandbox as text."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cfngen.cli.render.durations import duration_text
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.sandbox.process.status import SandboxFault, SandboxStack, SandboxStatus


def status_lines(status: SandboxStatus, now: datetime | None = None) -> Iterator[str]:
    """Yield the status of the sandbox, or that none is running.

    Args:
        now: the time; None means the time of this machine.
    """
    if not status.running or status.started is None or status.time is None:
        yield "No sandbox is running; `cfngen sandbox start` starts one."
        if status.lost:
            yield f"{status.ended[:1].upper()}{status.ended[1:]}; its stacks are lost: {', '.join(status.lost)}."
        return
    real_duration = duration_text(((now or datetime.now(UTC)) - status.started).total_seconds())
    emulated_duration = duration_text(status.age)
    yield f"The sandbox listens on {status.endpoint}, as process {status.process}."
    yield f"It has been running for {real_duration}; its clock is {status.speed:g} times as fast: {emulated_duration}."
    yield f"Its clock shows {status.time:%Y-%m-%d %H:%M:%S} UTC."
    if not status.stacks:
        yield "It contains no stacks."
    for stack in status.stacks:
        yield from _stack_lines(stack)
    for fault in status.faults:
        yield _fault_sentence(fault)
    if status.defect:
        yield f"The sandbox itself has failed: {status.defect}"


def _stack_lines(stack: SandboxStack) -> Iterator[str]:
    yield f"Stack {stack.name} in {stack.region}: {stack.status}"
    if stack.api:
        yield f"  Kubernetes API: {stack.api}"
    if stack.groups:
        yield f"  Groups: {', '.join(sorted(stack.groups))}"


def _fault_sentence(fault: SandboxFault) -> str:
    subject = f"the next {pluralize(fault.times, 'instance')}" if fault.times else "instances"
    verb_ending = "s" if fault.times == 1 else ""
    failure = f"fail{verb_ending} with {fault.message!r}" if fault.message else f"hang{verb_ending}"
    return f"Injected failure in {fault.region}: {subject} of {fault.group} {failure} at the step {fault.step!r}."
