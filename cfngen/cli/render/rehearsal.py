"""Formats a rehearsal as text: its steps, its result, and where its report is."""

from __future__ import annotations

from collections.abc import Iterator

import click

from cfngen.cli.render.layout import bullets, line_width, paragraph, table
from cfngen.rehearse.report import ProposedFacts, Rehearsal, RehearsalSteps, RehearsalWritten, RehearsedStep
from cfngen.text import pluralize

_COLOUR_BY_RESULT = {"as expected": "green", "surprise": "red", "refused": "red", "interrupted": "yellow"}


def step_lines(outline: RehearsalSteps) -> list[str]:
    """Return the table of steps, and a note on how long they take and what AWS bills."""
    rows = [
        (str(step.number), step.name, f"{step.minutes} min", step.title, "; ".join(step.units) or "nothing")
        for step in outline.steps
    ]
    total_minutes = sum(step.minutes for step in outline.steps)
    note = (
        f"About {total_minutes} minutes in total. AWS bills the listed resources for these minutes at the region's "
        "prices, a key and secrets for this part of a month. Each step is cleaned up before the next one starts, "
        "unless the next one continues with its stack. `--up-to NAME` stops after a step."
    )
    return [*table(("STEP", "NAME", "TIME", "WHAT", "BILLED"), rows), "", *paragraph(note, line_width())]


def result_lines(rehearsal: Rehearsal) -> list[str]:
    """Return the result of each step, the differences from the emulator, and the result of the rehearsal."""
    lines = list(table(("STEP", "RESULT", "MINUTES", "WHAT"), [_result_row(step) for step in rehearsal.steps]))
    for step in rehearsal.steps:
        lines += _difference_lines(step)
    assumptions = [f"assumption {judged.verdict}: {judged.fact}" for judged in rehearsal.assumptions]
    lines += ["", *bullets(assumptions, line_width())]
    for resource in rehearsal.left:
        lines += ["", *paragraph(f"left behind: {resource}", line_width(), 0, 2)]
    return [*lines, "", *_verdict_lines(rehearsal)]


def written_lines(message: RehearsalWritten) -> list[str]:
    """Return the names of the report's files, and what to do with the report."""
    files = " and ".join(message.files)
    text = (
        f"The report is in {files}. Account numbers, ids, ARNs, addresses and names are masked in it. Read it, and "
        "send it to the project: it shows how AWS behaves, which no test can."
    )
    return list(paragraph(text, line_width()))


def fact_lines(message: ProposedFacts) -> list[str]:
    """Return the facts as YAML, as a part of the file that the tests of the emulator read."""
    import yaml

    facts = [
        {
            "fact": f"{'not so: ' * (judged.verdict == 'refuted')}{judged.fact}",
            "recorded": message.began.date(),
            **judged.shown,
        }
        for judged in message.facts
    ]
    part = {"repository": "cfngen", "file": message.source, "facts": facts}
    return yaml.safe_dump([part], sort_keys=False, width=120).splitlines()


def _result_row(step: RehearsedStep) -> tuple[str, str, str, str]:
    seconds = sum(compared.operation.seconds for compared in step.operations)
    minutes = f"{seconds / 60:.0f}" if step.operations else ""
    return str(step.number), step.result, minutes, step.title


def _difference_lines(step: RehearsedStep) -> Iterator[str]:
    # Each with the name of the operation that differed.
    surprises = [(compared.operation.name, surprise) for compared in step.operations for surprise in compared.surprises]
    remark_count = sum(len(compared.remarks) for compared in step.operations)
    if step.result == "as expected" and not surprises and not remark_count:
        return
    yield ""
    yield click.style(f"{step.number}. {step.title}", bold=True)
    if step.error and not surprises:
        yield from paragraph(step.error, line_width(), 2)
    yield from bullets((f"{operation}: {surprise}" for operation, surprise in surprises), line_width())
    if remark_count:
        yield f"  {pluralize(remark_count, 'remark')} in the report"


def _verdict_lines(rehearsal: Rehearsal) -> list[str]:
    if rehearsal.result == "as expected":
        text = "AWS behaved like the emulator."
    elif rehearsal.result == "surprise":
        text = f"AWS differed from the emulator: {pluralize(len(rehearsal.surprises), 'surprise')}."
    else:
        text = f"The rehearsal was {rehearsal.result}."
    if rehearsal.result != "as expected" and not rehearsal.left:
        text += " Nothing is left in the account."
    return [click.style(text, fg=_COLOUR_BY_RESULT[rehearsal.result], bold=True)]
