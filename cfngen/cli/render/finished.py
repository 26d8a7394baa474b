"""Formats the end of an operation as text: its result, and the next command."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cfngen.cli.render.durations import duration

if TYPE_CHECKING:
    from cfngen.deploy.messages import Finished


def result_lines(finished: Finished) -> list[str]:
    """Return how the operation ended, and what to do next."""
    name = finished.stack
    if finished.goes_on:
        text = f"{name}: {finished.status}; it goes on without cfngen."
        return [text, "", f"Next: cfngen watch --stack-name {name}   attaches again."]
    if finished.action == "none":
        return [click.style(f"{name} is up to date: nothing was changed.", fg="green")]
    elapsed = duration(finished.seconds)
    if not finished.succeeded:
        return [click.style(f"{name}: {finished.status or 'deleted'} after {elapsed}.", fg="red", bold=True)]
    lines = [click.style(f"{name}: {finished.status} after {elapsed}.", fg="green", bold=True)]
    if finished.action == "delete":
        step = f"Next: cfngen delete --stack-name {name}"
        return [*lines, "", f"{step}   removes what Kubernetes has made and left, and lists what stays."]
    if finished.action == "rollback" and finished.outputs:
        lines += ["", f"Next: cfngen validate cluster --stack-name {name}   looks whether everything runs."]
    elif endpoint := finished.outputs.get("ApiEndpoint"):
        lines += [
            f"Kubernetes API: {endpoint}",
            "",
            "Next: cfngen kubeconfig && kubectl get nodes",
            "",
        ]
    return lines
