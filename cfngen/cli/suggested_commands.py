"""Adding the options for the same cluster, stack and account to the commands that messages suggest."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import click

from cfngen.hints import CommandText, Option, SuggestedCommand

_Thing = TypeVar("_Thing")


def complete_commands(thing: _Thing, options: Sequence[Option]) -> _Thing:
    """Return a hint, a command or a message in which each suggested command has the options.

    Options that a command has already are kept.

    Args:
        thing: a hint or a command, or a dataclass or tuple with such in it, at any depth. Anything else is returned
            as it is.
        options: the options that choose the cluster, the stack and the account.
    """
    if not options:
        return thing
    completed: object = thing
    if isinstance(thing, (SuggestedCommand, CommandText)):
        completed = thing.with_options(options)
    elif isinstance(thing, tuple):
        completed = _complete_tuple(thing, options)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        changes = {
            field.name: value
            for field in dataclasses.fields(thing)
            if field.init
            and (value := complete_commands(getattr(thing, field.name), options)) is not getattr(thing, field.name)
        }
        completed = dataclasses.replace(thing, **changes) if changes else thing
    return completed  # type: ignore[return-value]  # a value of the same type


def next_line(command: SuggestedCommand, text: str) -> CommandText:
    """Return the line `Next: COMMAND`, followed by a text, with which the output of a command ends."""
    return CommandText("Next: ", command, text, quote="")


def colored(text: CommandText, color: str) -> CommandText:
    """Return the text in a colour, whatever options its commands get later."""
    return CommandText(click.style("", fg=color, reset=False), text, click.style(""), quote=text.quote)


def _complete_tuple(values: tuple[object, ...], options: Sequence[Option]) -> tuple[object, ...]:
    """Return the tuple with its values completed; the same object if none has a command."""
    completed = tuple(complete_commands(value, options) for value in values)
    return completed if any(new is not old for new, old in zip(completed, values, strict=True)) else values
