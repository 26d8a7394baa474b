"""Options that several commands share, each declared once, and groups of options that become one argument."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any, TypeVar

import click

_Command = TypeVar("_Command", bound=Callable[..., Any])


class Option:
    """An option of several commands, declared like `click.option`; as a decorator it adds itself to a command.

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
        name: name of the command's argument.
        make: makes the argument from the values of the options, each under its name.
        members: the options, and groups whose argument `make` receives.
    """

    def __init__(self, name: str, make: Callable[..., object], *members: Option | OptionGroup) -> None:
        self.name = name
        self._make = make
        self._members = members

    def __call__(self, command: Callable[..., object]) -> Callable[..., object]:
        """Add the options to a command."""

        @wraps(command)
        def with_group(*args: object, **values: object) -> object:
            argument = self.take(values)
            return command(*args, **values, **{self.name: argument})

        # click shows the option that is added last first.
        for option in reversed(list(self.options())):
            option(with_group)
        return with_group

    def options(self) -> Iterator[Option]:
        """Yield the options of the group and of groups in it."""
        for member in self._members:
            yield from (member,) if isinstance(member, Option) else member.options()

    def take(self, values: dict[str, object]) -> object:
        """Return the argument, and remove the values of its options from those of the command line."""
        return self._make(
            **{
                member.name: values.pop(member.name) if isinstance(member, Option) else member.take(values)
                for member in self._members
            }
        )


def yes_option(help_text: str) -> Option:
    """Return the option --yes.

    Args:
        help_text: what is not asked.
    """
    return Option("--yes", "-y", is_flag=True, help=help_text)


allow_danger_option = Option(
    "--allow-danger", is_flag=True, help="With --yes: do not ask even if something may be lost."
)
