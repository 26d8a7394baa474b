"""Formats short messages: steps of a command's work, what the user should know, policies, clusters."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import click

from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import table
from cfngen.hints import CommandText, Line
from cfngen.text import join_and, pluralize

if TYPE_CHECKING:
    from cfngen.cli.commands.lint import Linted
    from cfngen.cli.commands.version import Versions
    from cfngen.cli.several_clusters.outcomes import ClusterOutcomes
    from cfngen.deploy.access.kubeconfig import KubeconfigChange, KubeconfigDocument
    from cfngen.deploy.aws.kept_file import FileDifference
    from cfngen.deploy.messages.message import Notice, Step
    from cfngen.deploy.status.cluster_list import ClusterList
    from cfngen.permissions.grants import Policy
    from cfngen.sandbox.process.status import SandboxFault, SandboxStack, SandboxStatus


def step_lines(message: Step) -> list[str]:
    """Return the line that announces a step which takes some time."""
    return [click.style("• ", fg="cyan") + message.text]


def notice_lines(message: Notice) -> list[Line]:
    """Return a notice as a warning, with its hint."""
    lines: list[Line] = [click.style("warning: ", fg="yellow", bold=True) + message.text]
    return [*lines, CommandText(click.style("hint: ", bold=True), message.hint)] if message.hint else lines


def version_lines(message: Versions) -> list[str]:
    """Return a line for each version."""
    default = message.default_kubernetes_version
    others = [version for version in reversed(message.kubernetes_versions) if version != default]
    rows = [
        ("cfngen", message.cfngen),
        ("Kubernetes", f"{default} by default; also {', '.join(others)}"),
        ("Python", message.python),
        *message.packages.items(),
    ]
    return table((), rows, indent="")


def lint_lines(message: Linted) -> list[str]:
    """Return how many templates were linted without a finding; findings are errors, which are shown elsewhere."""
    regions = ", ".join(message.regions)
    return [f"{pluralize(message.templates, 'template')} linted for {regions}: nothing found."]


def kubeconfig_change_lines(message: KubeconfigChange) -> list[str]:
    """Return which entries were written to the file, or removed from it."""
    names = ", ".join(message.names)
    if message.action == "removed":
        return [f"Removed {names} from {message.path}."]
    if message.action == "none":
        return [f"{message.path} has no entries of the stack {message.stack} in {message.region}."]
    switch_note = ", and made it the current one" if message.current else ""
    groups = f" (groups: {', '.join(message.groups)})" if message.groups else ""
    return [
        f"Wrote the context {names} to {message.path}{switch_note}.",
        f"You can access {message.server} as {message.user}{groups} until {message.expires:%Y-%m-%d %H:%M} UTC.",
    ]


def kubeconfig_lines(message: KubeconfigDocument) -> list[str]:
    """Return a kubeconfig as YAML."""
    from cfngen.deploy.access.kubeconfig import to_yaml

    return to_yaml(message.kubeconfig).removesuffix("\n").split("\n")


def file_difference_lines(message: FileDifference) -> list[str]:
    """Return a unified diff from the deployed cluster file, or that there is no difference."""
    return list(message.diff) or ["The cluster file is the deployed one, byte for byte."]


def policy_lines(policy: Policy) -> list[str]:
    """Return the lines of the policy document, as `aws iam create-policy` takes it."""
    return json.dumps(policy.document, indent=2, ensure_ascii=False).split("\n")


def sandbox_lines(status: SandboxStatus, now: datetime | None = None) -> Iterator[str]:
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


def outcome_lines(message: ClusterOutcomes) -> list[str]:
    """Return a table of the clusters, and how a deployment that has stopped continues."""
    header = ("CLUSTER", "REGION", "FILE", "RESULT", "STACK")
    rows = [(run.cluster, run.region, run.file, run.outcome, run.status) for run in message.clusters]
    columns = len(header) if any(run.status for run in message.clusters) else len(header) - 1
    lines = table(header[:columns], [row[:columns] for row in rows])
    if message.command == "deploy" and message.exit_code:
        lines += [
            "",
            click.style("hint: ", bold=True)
            + "what is done stays; run the same command again when the cause is mended, and it continues.",
        ]
    return lines


def cluster_list_lines(message: ClusterList) -> list[str]:
    """Return a table of the clusters of an account."""
    rows = [
        (root.cluster, root.region, root.stack, root.status, f"{root.updated or root.created:%Y-%m-%d %H:%M} UTC")
        for root in message.clusters
    ]
    where = f"in {join_and(list(message.regions))} of account {message.account}"
    if not rows:
        return [f"There are no clusters {where}; --regions names other regions."]
    header = ("CLUSTER", "REGION", "STACK", "STATUS", "LAST DEPLOYMENT")
    return [*table(header, rows), "", f"{pluralize(len(rows), 'cluster')} {where}."]
