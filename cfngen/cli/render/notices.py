"""Formats short messages: steps of a command's work, what the user should know, kubeconfigs, policies, versions."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from cfngen.cli.render.layout import table
from cfngen.hints import CommandText, Line
from cfngen.text import pluralize

if TYPE_CHECKING:
    from cfngen.cli.commands.lint import Linted
    from cfngen.cli.commands.version import Versions
    from cfngen.deploy.access.kubeconfig import KubeconfigChange, KubeconfigDocument
    from cfngen.deploy.aws.kept_file import FileDifference
    from cfngen.deploy.messages.message import Notice, Step
    from cfngen.permissions.grants import Policy


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
