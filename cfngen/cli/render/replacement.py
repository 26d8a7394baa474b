"""Formats the replacement of an instance as text: what it will do, how far it is, and what it did."""

from __future__ import annotations

import click

from cfngen.cli.display.suggested_commands import next_line
from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.operations import operation_plan_lines
from cfngen.deploy.operations.replacing.messages import READY, Replaced, ReplacementPlan, ReplacementProgress
from cfngen.hints import CommandText, Line, suggest


def plan_lines(message: ReplacementPlan, width: int | None = None) -> list[str]:
    """Return what a replacement will do: the cluster, the instance and the consequences."""
    subject = {
        "master": f"master {message.group}",
        "node": f"{message.instance} of node group {message.group}",
        "bastion": "the bastion",
    }[message.role]
    place = f" in {message.zone}" if message.zone else ""
    verb = "is being replaced already by" if message.pending else "will be replaced by"
    sentence = f"{subject} {verb} {_with_article(message.instance_type)}{place}"
    return operation_plan_lines(message, [sentence], consequences=message.consequences, width=width)


def progress_lines(message: ReplacementProgress) -> list[str]:
    """Return how far the replacement is, on one line."""
    state = click.style(message.state, fg="green" if message.state == READY else None)
    instance = f" ({message.instance})" if message.instance else ""
    detail = f": {message.detail}" if message.detail else ""
    return [f"  {message.title}{instance}: {state}{detail}"]


def result_lines(message: Replaced) -> list[Line]:
    """Return what was done and how long it took; if the type is not the stack's, how long that lasts."""
    replaced_instance = f", in place of {message.old_instance}" if message.old_instance else ""
    text = (
        f"{message.title} is {message.instance} ({message.instance_type} in {message.zone}){replaced_instance}, after "
        f"{duration_text(message.seconds)}."
    )
    lines: list[Line] = [click.style(text[0].upper() + text[1:], fg="green", bold=True), ""]
    if message.stack_type:
        limit = f"The next deployment that changes this master goes back to {message.stack_type}."
        lines += [
            f"{limit} To keep {message.instance_type}, write it into the cluster file:",
            "",
            "  controlPlane:",
            f"    instanceType: {message.instance_type}",
            "",
            CommandText("then ", suggest("plan"), " shows what a deployment does with the other masters."),
            "",
        ]
    return [*lines, next_line(suggest("validate cluster"), "   checks that the whole cluster works.")]


def _with_article(instance_type: str) -> str:
    """Return an instance type with its article, e.g. `an m5.large`, or `a new instance` if it is not known."""
    if not instance_type:
        return "a new instance"
    # Letters whose names begin with a vowel: `an m5.large`, `a c5.large`.
    return f"{'an' if instance_type[0] in 'afhilmnorsx' else 'a'} {instance_type}"
