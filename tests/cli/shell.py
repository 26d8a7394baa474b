"""The commands, and what a command line leaves behind; by a name of its own, since every directory of tests has a
`conftest`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import click

from cfngen.cli.application import application


@dataclass(frozen=True)
class Ran:
    """What a command line left behind."""

    code: int
    out: str
    err: str


Shell = Callable[..., Ran]


def _commands(group: click.Group, context: click.Context, name: str = "") -> Iterator[tuple[str, click.Command]]:
    """Every command that is no group, by its name."""
    for part in group.list_commands(context):
        command = group.get_command(context, part)
        assert command
        if isinstance(command, click.Group):
            yield from _commands(command, context, f"{name}{part} ")
        else:
            yield name + part, command


COMMANDS = dict(_commands(application, click.Context(application)))
