"""Messages for usage errors, such as an unknown option, with the nearest known name.

click's own messages differ from version to version, so they are worded here.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

import click


class ForeignOptionAdvice(NamedTuple):
    """What a user should do who used an option of another tool.

    Attributes:
        required_option: the cfngen option that a command must have for the advice to make sense.
    """

    required_option: str
    text: str


OPTIONS_OF_OTHER_TOOLS = {
    "--region": ForeignOptionAdvice(
        required_option="--set", text="the region is `region` in the cluster file; `--set region=REGION` overrides it."
    ),
    "--name": ForeignOptionAdvice(
        required_option="--set", text="the name is `name` in the cluster file; `--set name=NAME` overrides it."
    ),
    "--kubernetes-version": ForeignOptionAdvice(
        required_option="--set",
        text="the version is `kubernetesVersion` in the cluster file; `--set kubernetesVersion=VERSION` overrides it.",
    ),
    "--dry-run": ForeignOptionAdvice(
        required_option="--parameter", text="`cfngen plan` shows what a deployment would change, and changes nothing."
    ),
    "--config": ForeignOptionAdvice(
        required_option="--cluster", text="use --cluster FILE or -f FILE for the cluster file."
    ),
    "--file": ForeignOptionAdvice(
        required_option="--cluster", text="use --cluster FILE or -f FILE for the cluster file."
    ),
}
"""The advice for each option of another tool, by the option's name."""
_ADVICE_BY_COMMANDS = {
    ("apply", "up", "install", "launch"): "`cfngen deploy` creates the cluster or updates it to what its file says.",
    ("backup", "restore", "snapshot"): "`cfngen etcd` lists, takes and restores snapshots of etcd.",
    ("connect", "exec", "shell", "ssh"): "`cfngen status` shows the ids of instances, and `aws ssm start-session "
    "--target ID` opens a shell on one; docs/deploy/deploy.md has SSH.",
    ("create", "new"): "`cfngen init` writes a cluster file, and `cfngen deploy` creates the cluster.",
    ("describe", "get", "info", "list", "ls", "show"): "`cfngen status` shows a cluster, `cfngen config` the values of "
    "its file, and `kubectl get` what is in it, after `cfngen kubeconfig`.",
    ("destroy", "down", "remove", "rm", "terminate", "uninstall"): "`cfngen delete` deletes the cluster, with what "
    "Kubernetes made for it.",
    ("diff", "preview"): "`cfngen plan` shows what `cfngen deploy` would change.",
    ("edit", "set"): "change the cluster file, and run `cfngen deploy`; `--set KEY=VALUE` changes a value for one run.",
    ("export", "login"): "`cfngen kubeconfig` gives kubectl access; `cfngen templates` writes the templates, and "
    "`cfngen config --output yaml` the complete cluster file.",
    ("generate", "render", "synth"): "`cfngen templates` writes the templates.",
    ("log", "logs"): "`cfngen events` shows the stacks' events; an instance's boot log is in `aws ec2 "
    "get-console-output --latest --output text --instance-id ID`, and `cfngen status` shows the ids.",
    ("nodegroup", "nodegroups", "scale"): "change minSize and maxSize of the node group in the cluster file, and run "
    "`cfngen deploy`.",
    ("reboot", "restart", "rolling-update"): "`cfngen deploy` replaces the instances that a change concerns, and "
    "`cfngen replace INSTANCE` replaces one.",
    ("start",): "`cfngen resume` starts a cluster that `cfngen pause` has stopped.",
    ("stop",): "`cfngen pause` stops a cluster's instances until `cfngen resume`.",
    ("update",): "`cfngen deploy` updates the cluster to what its file says; `cfngen plan` shows it beforehand.",
    ("upgrade",): "change kubernetesVersion in the cluster file, see what follows with `cfngen plan`, and run `cfngen "
    "deploy`; docs/operate/upgrade.md has the order.",
}
COMMANDS_OF_OTHER_TOOLS = {name: text for names, text in _ADVICE_BY_COMMANDS.items() for name in names}
"""The advice for each command that other tools have, by the command's name."""
_EXTRA_ARGUMENTS_PATTERN = re.compile(r"Got unexpected extra arguments? \((?P<words>.*)\)")


class SuggestingGroup(click.Group):
    """A click group that suggests a command for an unknown one: what does the same here, or has a similar name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, but suggest the nearest one if it is unknown."""
        name, names = args[0], self.list_commands(ctx)
        if not name.startswith("-") and name not in names:
            advice = COMMANDS_OF_OTHER_TOOLS.get(name) if ctx.parent is None else None
            suggestion = advice or did_you_mean(name, names) or f"the commands are {', '.join(names)}."
            ctx.fail(f"no such command {name!r}; {suggestion}")
        return super().resolve_command(ctx, args)


def message_and_hint(failure: click.ClickException) -> tuple[str, str]:
    """Return the message and the hint for an error that click has found; the hint may be empty."""
    context = failure.ctx if isinstance(failure, click.UsageError) else None
    if isinstance(failure, click.NoSuchOption) and context is not None:
        return _unknown_option_message(failure.option_name, context)
    message = failure.format_message()
    extra_arguments = _EXTRA_ARGUMENTS_PATTERN.fullmatch(message)
    if extra_arguments and context is not None:
        return f"{context.command_path} takes no argument {extra_arguments['words']!r}", ""
    return message[:1].lower() + message[1:], ""


def _unknown_option_message(name: str, context: click.Context) -> tuple[str, str]:
    """Return the message and the hint for an unknown option.

    The hint is advice for an option of another tool, or the place of a global option before the command; otherwise the
    message suggests options with a similar name.
    """
    options = _visible_options(context.command)
    message = f"no such option {name!r}"
    advice = OPTIONS_OF_OTHER_TOOLS.get(name)
    if advice and advice.required_option in options:
        return message, advice.text
    root_context = context.find_root()
    if name in _visible_options(root_context.command) and root_context is not context:
        subcommand_path = context.command_path.removeprefix(f"{root_context.command_path} ")
        return message, f"put it before the command: `{root_context.command_path} {name} {subcommand_path} …`"
    suggestion = did_you_mean(name, options)
    if suggestion:
        message += f"; {suggestion}"
    return message, ""


def _visible_options(command: click.Command) -> list[str]:
    return [
        name
        for parameter in command.params
        if isinstance(parameter, click.Option) and not parameter.hidden
        for name in (*parameter.opts, *parameter.secondary_opts)
    ]


def did_you_mean(name: str, names: Sequence[str]) -> str:
    """Return the question `did you mean …?` with up to three names that are similar or begin so, else an empty text."""
    beginning_with = [candidate for candidate in names if candidate.startswith(name)]
    matches = [repr(match) for match in get_close_matches(name, names, n=3) or beginning_with[:3]]
    if not matches:
        return ""
    *other_matches, last_match = matches
    alternatives = f"{', '.join(other_matches)} or {last_match}" if other_matches else last_match
    return f"did you mean {alternatives}?"
