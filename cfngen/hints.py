"""Hints: what the user can do next, with the commands of cfngen in them as data.

Packages below `cfngen.cli` do not know the command's options, so they suggest only `cfngen watch --stack-name k8s`.
After a command with --sandbox, this would act on a real account. Therefore the command line adds the options for the
same cluster, stack and account before it shows a hint.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

SuggestedOption: TypeAlias = tuple[str, ...]
"""A command line option: its name, and its value if it takes one."""

_SHORT_NAMES = {"--cluster": "-f"}
"""The short name of each option that suggested commands can have under either name, by its long name."""
_MISSING_OPTIONS = {
    "templates": ("--sandbox", "--profile", "--account", "--stack-name"),
    "permissions": ("--sandbox", "--profile"),
}
"""Options for account and stack that a command lacks, since it calls no AWS, by its name."""


@dataclass(frozen=True)
class SuggestedCommand:
    """A command of cfngen that the user can run next.

    Attributes:
        name: name of the command, e.g. `etcd restore`.
        options: its options, in order.
    """

    name: str
    options: tuple[SuggestedOption, ...] = ()

    def with_options(self, options: Sequence[SuggestedOption]) -> SuggestedCommand:
        """Return the command with these options added; options that it has already keep their values."""
        present_names = {_SHORT_NAMES.get(option[0], option[0]) for option in self.options}
        unwanted_names = present_names.union(_MISSING_OPTIONS.get(self.name.split()[0], ()))
        missing_options = tuple(option for option in options if option[0] not in unwanted_names)
        return replace(self, options=self.options + missing_options)

    def __str__(self) -> str:
        return " ".join(("cfngen", self.name, *(shlex.join(option) for option in self.options)))


@dataclass(frozen=True, init=False)
class CommandText:
    """A text that contains suggested commands.

    Attributes:
        parts: the text and the commands, in order.
        quote: the character around each command; empty for none.
    """

    parts: tuple[str | SuggestedCommand, ...]
    quote: str

    def __init__(self, *parts: str | SuggestedCommand | CommandText, quote: str = "`") -> None:
        flat_parts: list[str | SuggestedCommand] = []
        for part in parts:
            if isinstance(part, CommandText):
                flat_parts += part.parts
            else:
                flat_parts.append(part)
        # The attributes of a frozen dataclass can only be set like this.
        object.__setattr__(self, "parts", tuple(flat_parts))
        object.__setattr__(self, "quote", quote)

    @property
    def commands(self) -> tuple[SuggestedCommand, ...]:
        """The suggested commands in the text, in order."""
        return tuple(part for part in self.parts if isinstance(part, SuggestedCommand))

    def with_options(self, options: Sequence[SuggestedOption]) -> CommandText:
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
"""What to do next; it may contain commands of cfngen. Empty if there is nothing to do."""

Line: TypeAlias = str | CommandText
"""A line on the screen; it may contain commands of cfngen."""


def suggest(name: str, *flags: str, stack: str = "") -> SuggestedCommand:
    """Return a command to suggest.

    Args:
        name: name of the command, e.g. `etcd restore`.
        flags: options without a value, e.g. `--force`.
        stack: value of the option --stack-name; empty means without this option.
    """
    options: list[SuggestedOption] = [(flag,) for flag in flags]
    if stack:
        options.append(("--stack-name", stack))
    return SuggestedCommand(name, tuple(options))
