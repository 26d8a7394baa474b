"""Commands of cfngen that an output advises, of all that exist."""

from __future__ import annotations

import re

import click
from shell import COMMANDS

NOT_FOLLOWED = {
    "rehearse": "makes stacks of its own, and removes them",
    **{name: "is about another account, on this machine" for name in COMMANDS if name.startswith("sandbox ")},
}
"""Advice that is not followed, and why."""
LOOKING = (
    "check network", "completion", "config", "etcd list", "events", "graph", "init", "kubeconfig", "lint",
    "permissions", "plan", "schema", "status", "templates", "userdata", "validate", "version",
)  # fmt: skip
"""Commands that lead from no status to another; every other one may."""
_PLACEHOLDER = re.compile(r"[A-Z]{3,}")  # a word for what only the operator knows, such as the key of a snapshot
_VALUE = r"""(?:'[^']*'|[^\s`'"-](?:[^\s`'";&|(),]*[^\s`'";&|(),.:])?)"""


def _with_arguments(name: str) -> str:
    takes_argument = any(isinstance(parameter, click.Argument) for parameter in COMMANDS[name].params)
    return rf"{name}\b(?: {_VALUE})?" if takes_argument else rf"{name}\b"


_SUGGESTED = re.compile(
    rf"\bcfngen ((?:{'|'.join(map(_with_arguments, COMMANDS))})(?: --?[a-z][a-z-]*(?:[ =]{_VALUE})?)*)"
)
"""A command that the output suggests, as an operator finds it there: any that exists."""


def advised(text: str) -> tuple[str, ...]:
    """The commands in a text, in order and each once, without `cfngen`."""
    return tuple(dict.fromkeys(match[1] for match in _SUGGESTED.finditer(text)))


def is_followed(step: str) -> bool:
    """Whether somebody who knows only the output can and should run a command that it advises."""
    return name_of(step) not in NOT_FOLLOWED and not any(map(_PLACEHOLDER.fullmatch, step.split()))


def name_of(line: str) -> str:
    """The command that is typed, without its arguments and options."""
    words = line.split()
    return next(name for count in (2, 1) if (name := " ".join(words[:count])) in COMMANDS)


def leads(step: str) -> bool:
    """Whether a command may lead from one status to another."""
    return name_of(step) not in LOOKING
