"""Options that several commands share, each declared once, and groups of options that become one argument."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import wraps
from typing import Any, TypeVar

import click

from cfngen.cli.render.durations import format_duration

_Command = TypeVar("_Command", bound=Callable[..., object])


class Option:
    """An option that several commands share, declared like `click.option`; used as a decorator, it adds the option."""

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


# By the letter of each unit: the argument of `timedelta`.
_TIMEDELTA_ARGUMENTS = {"d": "days", "h": "hours", "m": "minutes", "s": "seconds"}
_DURATION_PATTERN = re.compile(
    "".join(rf"(?:(?P<{word}>\d{{1,6}}){letter})?" for letter, word in _TIMEDELTA_ARGUMENTS.items())
)


def parse_duration(text: str) -> timedelta | None:
    """Return a duration such as `1h30m`; None if the text is none."""
    match = _DURATION_PATTERN.fullmatch(text.strip())
    numbers = {key: int(number) for key, number in match.groupdict().items() if number} if match else {}
    return timedelta(**numbers) if numbers else None


class Duration(click.ParamType):  # type: ignore[type-arg]  # generic since click 8.3
    """A click parameter type for durations that are at least as long as `minimum`."""

    name = "duration"

    def __init__(self, minimum: timedelta = timedelta(0)) -> None:
        self._minimum = minimum

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> timedelta:
        """Parse a duration such as `1h30m`; click shows the error if it is wrong or too short."""
        if isinstance(value, timedelta):
            return value
        duration = parse_duration(str(value))
        if duration is None:
            self.fail(f"{value!r} is not a duration, such as 45s, 10m, 12h, 1h30m or 2d.", parameter, context)
        if duration < self._minimum:
            self.fail(f"{value} is too short; the minimum is {format_duration(self._minimum)}.", parameter, context)
        return duration


class FileFormat(click.Choice):  # type: ignore[type-arg]  # generic since click 8.2
    """A click parameter type for the format of a file; the error for another value names the option for the file.

    Other tools use -o for a file or directory, so a user may mean that.
    """

    def __init__(self, formats: Sequence[str], file_option: str) -> None:
        super().__init__(formats)
        self._file_option = file_option

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Convert as click does, but name the option for the file in the error."""
        if value not in self.choices:
            self.fail(f"{value!r} is not one of {', '.join(self.choices)}; {self._file_option}.", param, ctx)
        return str(super().convert(value, param, ctx))


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


def parse_key_values(context: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> Mapping[str, str]:
    """Return the values of a repeatable option KEY=VALUE by their keys; a click callback."""
    values_by_key: dict[str, str] = {}
    for text in values:
        key, separator, value = text.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{text!r} is not of the form KEY=VALUE.")
        if key in values_by_key:
            raise click.BadParameter(f"{key} is specified twice.")
        values_by_key[key] = value
    return values_by_key
