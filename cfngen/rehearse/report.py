"""What a rehearsal reports, and the report as files that can be sent to anybody."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal

from cfngen.deploy.messages import Message
from cfngen.errors import CfngenError
from cfngen.rehearse.comparison import Surprise
from cfngen.rehearse.operations import Operation
from cfngen.rehearse.outlines import Outline
from cfngen.text import pluralize

Result = Literal["as expected", "surprise", "refused", "interrupted", "not reached"]
SHOWN = 400
"""Most events of an operation that the page has; the JSON has all."""


class ReportError(CfngenError):
    """The report cannot be written."""


@dataclass(frozen=True)
class RehearsalSteps(Message):
    """The steps of the rehearsal, before anything is done.

    Attributes:
        steps: the steps, cheapest first.
    """

    kind: ClassVar[str] = "rehearsalSteps"
    steps: tuple[Outline, ...]


@dataclass(frozen=True)
class RehearsedOperation:
    """An operation, and what differed.

    Attributes:
        operation: what was seen, masked.
        surprises: what AWS did otherwise than the emulator.
        remarks: what differs without weight.
    """

    operation: Operation
    surprises: tuple[Surprise, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RehearsedStep:
    """How a step went.

    Attributes:
        number: its place among the steps, from 1.
        name: its name.
        title: what is done in it.
        result: `as expected`, `surprise`, `refused` where it could not begin or go on for a reason of the account's,
            `interrupted` or `not reached`.
        operations: what was done, in order.
        error: the message that ended it; empty if none did.
    """

    number: int
    name: str
    title: str
    result: Result
    operations: tuple[RehearsedOperation, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Rehearsal(Message):
    """How a rehearsal went; masked throughout, so that it can be sent to anybody.

    Attributes:
        version: version of cfngen.
        boto3: version of boto3.
        began: when it began.
        region: the region.
        partition: partition of AWS.
        default_vpc: whether the region has a default VPC.
        result: that of the step that ended it, or `as expected`.
        steps: the steps that were asked for.
        left: what could not be removed, in words; empty if nothing is left.
    """

    kind: ClassVar[str] = "rehearsal"
    version: str
    boto3: str
    began: datetime
    region: str
    partition: str
    default_vpc: bool
    result: Result
    steps: tuple[RehearsedStep, ...]
    left: tuple[str, ...] = ()

    @property
    def surprises(self) -> tuple[Surprise, ...]:
        """What AWS did otherwise than the emulator."""
        return tuple(surprise for step in self.steps for one in step.operations for surprise in one.surprises)


@dataclass(frozen=True)
class RehearsalWritten(Message):
    """The report has been written.

    Attributes:
        files: the files, first the one for programs.
    """

    kind: ClassVar[str] = "rehearsalWritten"
    files: tuple[str, ...]


def page(rehearsal: Rehearsal) -> str:
    """Return the report as a page in Markdown."""
    vpc = "with" if rehearsal.default_vpc else "without"
    lines = [
        f"# Rehearsal of cfngen {rehearsal.version} with boto3 {rehearsal.boto3}, {rehearsal.began:%Y-%m-%d %H:%M} UTC",
        "",
        f"Result: **{rehearsal.result}**. Region {rehearsal.region} ({rehearsal.partition}), {vpc} a default VPC.",
        "",
        "Account numbers, ids, ARNs, addresses and names are masked; the same mask stands for the same thing.",
        "",
        "| step | result | minutes |",
        "|---|---|---|",
    ]
    for step in rehearsal.steps:
        minutes = sum(operation.operation.seconds for operation in step.operations) / 60
        lines.append(f"| {step.number}. {_cell(step.title)} | {step.result} | {minutes:.0f} |")
    for step in rehearsal.steps:
        if step.operations or step.error:
            lines += ["", f"## {step.number}. {step.title}", "", *_step(step)]
    if rehearsal.left:
        lines += ["", "## Left behind", "", *(f"- {each}" for each in rehearsal.left)]
    return "\n".join(lines) + "\n"


def write(path: Path, document: str, text: str) -> tuple[Path, ...]:
    """Write a report and its page beside each other, each whole or not at all; return both files.

    Args:
        path: the file for programs.
        document: what goes into it.
        text: what goes into the page, whose name is the file's with another suffix.

    Raises:
        ReportError: one cannot be written.
    """
    return (_write(path, document), _write(path.with_name(f"{path.stem}.md"), text))


def writable(path: Path) -> None:
    """Make sure, before anything is made in AWS, that a report can be written.

    Raises:
        ReportError: it cannot.
    """
    folder = path.absolute().parent
    if path.suffix == ".md":
        raise ReportError(f"{path} is the page's name", hint="name the report .json; the page is written beside it.")
    if not folder.is_dir() or not os.access(folder, os.W_OK) or path.is_dir():
        raise ReportError(f"the report cannot be written to {path}", hint="name another file with --report.")


def _write(path: Path, text: str) -> Path:
    temporary = ""
    try:
        descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.absolute().parent)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        with suppress(OSError):
            Path(temporary).unlink()
        hint = "the result is on the screen; name another file with --report the next time."
        raise ReportError(f"the report cannot be written to {path}: {error.strerror or error}", hint=hint) from error
    return path


def _step(step: RehearsedStep) -> list[str]:
    lines = [f"{step.result.capitalize()}. {step.error}".strip()]
    for each in step.operations:
        operation = each.operation
        took = f"{operation.seconds / 60:.1f} minutes"
        lines += ["", f"### {operation.name}: {operation.status or 'no status'}, {took}", ""]
        lines += [f"- **surprise**: {_line(str(one))}" for one in each.surprises]
        lines += [f"- remark: {_line(one)}" for one in each.remarks]
        lines += [f"- {name}: {value}" for name, value in operation.facts.items()]
        if operation.changes:
            lines += [f"- {pluralize(len(operation.changes), 'change')} in the change set"]
        if operation.events:
            lines += ["", "| seconds | resource | status | reason |", "|---|---|---|---|"]
            lines += [
                f"| {event.seconds:.0f} | {_cell(event.resource)} | {event.status} | {_cell(event.reason)} |"
                for event in operation.events[:SHOWN]
            ]
        if len(operation.events) > SHOWN:
            lines += ["", f"{pluralize(len(operation.events) - SHOWN, 'event')} more in the JSON."]
    return lines


def _line(text: str) -> str:
    return " ".join(text.split())


def _cell(text: str) -> str:
    return _line(text).replace("|", "\\|")
