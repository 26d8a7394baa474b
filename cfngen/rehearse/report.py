"""The report of a rehearsal: its messages, and a page in Markdown. It is masked, so that it can be published."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import ClassVar, Literal

from cfngen.atomic_files import replace_file
from cfngen.bounded_files import parse_json, read_text
from cfngen.deploy.messages.message import Message
from cfngen.errors import CfngenError
from cfngen.rehearse.assumptions import JudgedAssumption
from cfngen.rehearse.comparison import Surprise
from cfngen.rehearse.operations import Operation
from cfngen.rehearse.outlines import Outline
from cfngen.text import pluralize

StepResult = Literal["as expected", "surprise", "refused", "interrupted", "not reached"]
MAX_SHOWN_EVENTS = 400
"""Maximum number of events of an operation on the page; the JSON file has all events."""


class ReportError(CfngenError):
    """The report cannot be written."""

    code = "report-not-written"


class UnreadableReportError(CfngenError):
    """A file is not the report of a rehearsal."""

    code = "report-not-read"


@dataclass(frozen=True)
class RehearsalSteps(Message):
    """The steps of the rehearsal, reported before it begins.

    Attributes:
        steps: the steps, cheapest first.
    """

    kind: ClassVar[str] = "rehearsalSteps"
    steps: tuple[Outline, ...]


@dataclass(frozen=True)
class RehearsedOperation:
    """An operation, compared with the same operation in the emulator.

    Attributes:
        operation: the operation, masked.
        surprises: differences that end the rehearsal.
        remarks: differences that do not matter.
    """

    operation: Operation
    surprises: tuple[Surprise, ...] = ()
    remarks: tuple[str, ...] = ()


@dataclass(frozen=True)
class RehearsedStep:
    """The result of a step.

    Attributes:
        number: its number, from 1.
        name: its name.
        title: what it does.
        result: `as expected`, `surprise`, `refused` (the account or its permissions did not allow it), `interrupted`
            or `not reached`.
        operations: its operations, in order.
        error: the error that ended it; empty if none did.
    """

    number: int
    name: str
    title: str
    result: StepResult
    operations: tuple[RehearsedOperation, ...] = ()
    error: str = ""


@dataclass(frozen=True)
class Rehearsal(Message):
    """The result of a rehearsal; masked throughout, so that it can be published.

    Attributes:
        version: version of cfngen.
        boto3: version of boto3.
        began: when it began.
        region: the region.
        partition: the AWS partition.
        default_vpc: whether the region has a default VPC.
        result: the result of the step that ended it, or `as expected`.
        steps: the steps that were requested.
        left: descriptions of what could not be removed; empty if everything was.
        assumptions: what cfngen assumes about CloudFormation, and what the rehearsal says about it.
    """

    kind: ClassVar[str] = "rehearsal"
    version: str
    boto3: str
    began: datetime
    region: str
    partition: str
    default_vpc: bool
    result: StepResult
    steps: tuple[RehearsedStep, ...]
    left: tuple[str, ...] = ()
    assumptions: tuple[JudgedAssumption, ...] = ()

    @property
    def surprises(self) -> tuple[Surprise, ...]:
        """The differences between AWS and the emulator that ended the rehearsal."""
        operations = (operation for step in self.steps for operation in step.operations)
        return tuple(surprise for operation in operations for surprise in operation.surprises)


@dataclass(frozen=True)
class RehearsalWritten(Message):
    """The report has been written.

    Attributes:
        files: the files; the JSON file first.
    """

    kind: ClassVar[str] = "rehearsalWritten"
    files: tuple[str, ...]


@dataclass(frozen=True)
class ProposedFacts(Message):
    """What a rehearsal settles about AWS, to be added to the facts in the tests of the emulator.

    Attributes:
        source: the rehearsal.
        began: when it began.
        facts: the assumptions that it confirms or refutes.
    """

    kind: ClassVar[str] = "proposedFacts"
    source: str
    began: datetime
    facts: tuple[JudgedAssumption, ...]


def propose_facts(file: Path) -> ProposedFacts:
    """Return what the rehearsal with this report in JSON settles.

    Raises:
        UnreadableReportError: the file cannot be read, or is no such report.
    """
    try:
        report = parse_json(read_text(file))
        judged = [JudgedAssumption(**assumption) for assumption in report["assumptions"]]
        source = f"cfngen rehearse {report['version']} in {report['region']}"
        settled = tuple(assumption for assumption in judged if assumption.shown)
        return ProposedFacts(source, datetime.fromisoformat(report["began"]), settled)
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = getattr(error, "strerror", None) or "it is no report in JSON by this version of `cfngen rehearse`"
        raise UnreadableReportError(f"{file}: the report cannot be read: {reason}") from error


def markdown_page(rehearsal: Rehearsal) -> str:
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
        lines.append(f"| {step.number}. {_table_cell(step.title)} | {step.result} | {minutes:.0f} |")
    for step in rehearsal.steps:
        if step.operations or step.error:
            lines += ["", f"## {step.number}. {step.title}", "", *_step_lines(step)]
    lines += ["", "## Assumptions", ""]
    lines += [f"- **{judged.verdict}**: {judged.fact}" for judged in rehearsal.assumptions]
    if rehearsal.left:
        lines += ["", "## Left behind", "", *(f"- {leftover}" for leftover in rehearsal.left)]
    return "\n".join(lines) + "\n"


def write_report(path: Path, document: str, page: str) -> tuple[Path, ...]:
    """Write the JSON file and the page next to it, each atomically; return both paths.

    Args:
        path: path of the JSON file; the page has the same name with the suffix `.md`.

    Raises:
        ReportError: a file cannot be written.
    """
    return (_write(path, document), _write(path.with_name(f"{path.stem}.md"), page))


def require_writable(path: Path) -> None:
    """Check, before anything is created in AWS, that the report can be written.

    Raises:
        ReportError: it cannot be written.
    """
    folder = path.absolute().parent
    if path.suffix == ".md":
        raise ReportError(
            f"{path} is the name of the Markdown page",
            hint="choose a name ending in .json; the page is written next to it.",
        )
    if not folder.is_dir() or not os.access(folder, os.W_OK) or path.is_dir():
        raise ReportError(f"the report cannot be written to {path}", hint="choose another file with --report.")


def _write(path: Path, text: str) -> Path:
    try:
        replace_file(path, text, private=True)
    except OSError as error:
        hint = "the result is on the screen; choose another file with --report the next time."
        raise ReportError(f"the report cannot be written to {path}: {error.strerror or error}", hint=hint) from error
    return path


def _step_lines(step: RehearsedStep) -> list[str]:
    lines = [f"{step.result.capitalize()}. {step.error}".strip()]
    for rehearsed in step.operations:
        operation = rehearsed.operation
        duration = f"{operation.seconds / 60:.1f} minutes"
        lines += ["", f"### {operation.name}: {operation.status or 'no status'}, {duration}", ""]
        lines += [f"- **surprise**: {_on_one_line(str(surprise))}" for surprise in rehearsed.surprises]
        lines += [f"- remark: {_on_one_line(remark)}" for remark in rehearsed.remarks]
        lines += [f"- {name}: {value}" for name, value in operation.facts.items()]
        if operation.changes:
            lines += [f"- {pluralize(len(operation.changes), 'change')} in the change set"]
        if operation.events:
            lines += ["", "| seconds | resource | status | reason |", "|---|---|---|---|"]
            lines += [
                f"| {event.seconds:.0f} | {_table_cell(event.resource)} | {event.status} | "
                f"{_table_cell(event.reason)} |"
                for event in operation.events[:MAX_SHOWN_EVENTS]
            ]
        if len(operation.events) > MAX_SHOWN_EVENTS:
            lines += ["", f"{pluralize(len(operation.events) - MAX_SHOWN_EVENTS, 'event')} more in the JSON."]
    return lines


def _on_one_line(text: str) -> str:
    return " ".join(text.split())


def _table_cell(text: str) -> str:
    return _on_one_line(text).replace("|", "\\|")
