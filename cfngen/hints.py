"""Hints: what the user can do next, with the commands of cfngen in them as data.

The code below the command line knows neither the cluster file nor the credentials, so it suggests just `cfngen watch
--stack-name k8s`. Run like that after a command with --sandbox, it would use a real account: the command line adds the
options for the same cluster, stack and account before it shows a hint.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

Option: TypeAlias = tuple[str, ...]
"""A command line option: its name, and its value if it takes one."""

_LONG_TO_SHORT = {"--cluster": "-f"}


@dataclass(frozen=True)
class SuggestedCommand:
    """A command of cfngen that the user can run next.

    Attributes:
        name: name of the command, e.g. `etcd restore`.
        options: its options, in order.
    """

    name: str
    options: tuple[Option, ...] = ()

    def with_options(self, options: Sequence[Option]) -> SuggestedCommand:
        """Return the command with these options added; options that it has already keep their values."""
        present = {_LONG_TO_SHORT.get(option[0], option[0]) for option in self.options}
        missing = tuple(option for option in options if option[0] not in present)
        return replace(self, options=self.options + missing)

    def __str__(self) -> str:
        return " ".join(("cfngen", self.name, *(shlex.join(option) for option in self.options)))


@dataclass(frozen=True, init=False)
class CommandText:
    """A text that contains suggested commands.

    Attributes:
        parts: the text and the commands, in order.
        quote: what stands before and after each command.
    """

    parts: tuple[str | SuggestedCommand, ...]
    quote: str

    def __init__(self, *parts: str | SuggestedCommand | CommandText, quote: str = "`") -> None:
        flat = (inner for part in parts for inner in (part.parts if isinstance(part, CommandText) else (part,)))
        object.__setattr__(self, "parts", tuple(flat))
        object.__setattr__(self, "quote", quote)

    @property
    def commands(self) -> tuple[SuggestedCommand, ...]:
        """The commands in it, in order."""
        return tuple(part for part in self.parts if isinstance(part, SuggestedCommand))

    def with_options(self, options: Sequence[Option]) -> CommandText:
        """Return the text with options added to each command, as `SuggestedCommand.with_options` does."""
        completed = (part.with_options(options) if isinstance(part, SuggestedCommand) else part for part in self.parts)
        return CommandText(*completed, quote=self.quote)

    def map_text(self, function: Callable[[str], str]) -> CommandText:
        """Return the text with the function applied to everything but the commands."""
        mapped = (part if isinstance(part, SuggestedCommand) else function(part) for part in self.parts)
        return CommandText(*mapped, quote=self.quote)

    def __str__(self) -> str:
        return "".join(part if isinstance(part, str) else f"{self.quote}{part}{self.quote}" for part in self.parts)


Hint: TypeAlias = str | CommandText
"""What to do next: a text, with commands of cfngen in it or not. An empty text if there is nothing to do."""

Line: TypeAlias = str | CommandText
"""A line on the screen, with commands of cfngen in it or not."""


def suggest(name: str, *flags: str, stack: str = "") -> SuggestedCommand:
    """Return a command to suggest.

    Args:
        name: name of the command, e.g. `etcd restore`.
        flags: options without a value, e.g. `--force`.
        stack: value of the option --stack-name; empty leaves the option out.
    """
    stack_option = (("--stack-name", stack),) if stack else ()
    return SuggestedCommand(name, (*((flag,) for flag in flags), *stack_option))
