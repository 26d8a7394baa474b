"""Options that several commands share, each declared once, and groups of options that become one argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

import click

from cfngen.cli.duration import Duration

_Command = TypeVar("_Command", bound=Callable[..., object])


class Option:
    """An option that several commands share, declared like `click.option`; used as a decorator, it adds the option.

    Attributes:
        name: name of the command's argument.
    """

    def __init__(self, *names: str, **settings: Any) -> None:
        self.name = str(click.Option(names, **settings).name)
        self._add = click.option(*names, **settings)

    def __call__(self, command: _Command) -> _Command:
        """Add the option to a command."""
        return self._add(command)


class OptionGroup:
    """Options that a command receives as one argument; as a decorator it adds them to a command.

    Args:
        build: builds the argument; it receives the value of each option as a keyword argument, and for a group among
            the members the argument that the group builds.
        members: the options, and groups of options.
    """

    def __init__(self, name: str, build: Callable[..., object], *members: Option | OptionGroup) -> None:
        self.name = name
        self._build = build
        self._members = members

    def __call__(self, command: Callable[..., object]) -> Callable[..., object]:
        """Add the options to a command."""

        @wraps(command)
        def wrapper(*args: object, **values: object) -> object:
            argument = self.pop_argument(values)
            return command(*args, **values, **{self.name: argument})

        # The option that is added last comes first in click's --help.
        for option in reversed(list(self.options())):
            option(wrapper)
        return wrapper

    def options(self) -> Iterator[Option]:
        """Yield the options of the group and of groups in it."""
        for member in self._members:
            if isinstance(member, Option):
                yield member
            else:
                yield from member.options()

    def pop_argument(self, values: dict[str, object]) -> object:
        """Return the group's argument, built from the options' values, which are removed from `values`."""
        arguments: dict[str, object] = {}
        for member in self._members:
            if isinstance(member, OptionGroup):
                arguments[member.name] = member.pop_argument(values)
            else:
                arguments[member.name] = values.pop(member.name)
        return self._build(**arguments)


def yes_option(help_text: str) -> Option:
    """Return the option --yes."""
    return Option("--yes", "-y", is_flag=True, help=help_text)


def wait_option(help_text: str, *, default: str | None = None, minimum: timedelta = timedelta(0)) -> Option:
    """Return the option --wait, which a command receives as the argument `timeout`.

    Args:
        default: how long is waited without the option; None leaves that to the command.
    """
    return Option(
        "--wait", "timeout", metavar="DURATION", type=Duration(minimum), default=default,
        show_default=default is not None, help=help_text,
    )  # fmt: skip


allow_danger_option = Option(
    "--allow-danger", is_flag=True, help="With --yes: do not ask even if something may be lost."
)
