"""Formats the end of an operation as text: its result, and the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cfngen.cli.render.durations import duration_text
from cfngen.cli.suggested_commands import next_line
from cfngen.hints import Line, suggest

if TYPE_CHECKING:
    from cfngen.deploy.messages.message import Finished


def result_lines(finished: Finished) -> list[Line]:
    """Return how the operation ended, and what to do next."""
    name = finished.stack
    if finished.in_progress:
        result = f"{name}: {finished.status}; it continues without cfngen."
        return [result, "", next_line(suggest("watch", stack=name), "   attaches again.")]
    if finished.action == "none":
        return [click.style(f"{name} is up to date: nothing was changed.", fg="green")]
    if finished.action == "tag":
        return [click.style(f"{name} is up to date, and existing subnets have got their tags.", fg="green")]
    elapsed = duration_text(finished.seconds)
    if not finished.succeeded:
        return [click.style(f"{name}: {finished.status or 'deleted'} after {elapsed}.", fg="red", bold=True)]
    lines: list[Line] = [click.style(f"{name}: {finished.status} after {elapsed}.", fg="green", bold=True)]
    if finished.action == "delete":
        purpose = "   deletes what Kubernetes created, and lists what is kept."
        return [*lines, "", next_line(suggest("delete", stack=name), purpose)]
    if finished.action == "rollback" and finished.outputs:
        lines += ["", next_line(suggest("validate cluster", stack=name), "   checks that everything runs.")]
    elif endpoint := finished.outputs.get("ApiEndpoint"):
        lines += [
            f"Kubernetes API: {endpoint}",
            "",
            next_line(suggest("kubeconfig"), " && kubectl get nodes"),
            "",
        ]
    return lines
