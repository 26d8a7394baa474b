"""Adding the options for the same cluster, stack and account to the commands that messages suggest."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TypeVar

import click

from cfngen.hints import CommandText, SuggestedCommand, SuggestedOption

_HintOrMessage = TypeVar("_HintOrMessage")


def complete_commands(thing: _HintOrMessage, options: Sequence[SuggestedOption]) -> _HintOrMessage:
    """Return a hint or message in which each suggested command has these options.

    A command keeps the options that it already has.

    Args:
        thing: a hint or a command, or a dataclass or tuple that contains hints or commands at any depth. Any other
            value is returned unchanged.
    """
    if not options:
        return thing
    result: object = thing
    if isinstance(thing, (SuggestedCommand, CommandText)):
        result = thing.with_options(options)
    elif isinstance(thing, tuple):
        result = _complete_tuple(thing, options)
    elif dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        changed_attributes: dict[str, object] = {}
        for field in dataclasses.fields(thing):
            attribute = getattr(thing, field.name)
            completed_attribute = complete_commands(attribute, options)
            if field.init and completed_attribute is not attribute:
                changed_attributes[field.name] = completed_attribute
        result = dataclasses.replace(thing, **changed_attributes) if changed_attributes else thing
    return result  # type: ignore[return-value]  # a value of the same type


def next_line(command: SuggestedCommand, text: str) -> CommandText:
    """Return the line `Next: COMMAND`, followed by a text; the output of a command ends with it."""
    return CommandText("Next: ", command, text, quote="")


def colored(text: CommandText, color: str) -> CommandText:
    """Return a coloured text; options can still be added to its commands."""
    # The styled empty texts are control sequences: the first turns the colour on, the last one resets it.
    return CommandText(click.style("", fg=color, reset=False), text, click.style(""), quote=text.quote)


def _complete_tuple(values: tuple[object, ...], options: Sequence[SuggestedOption]) -> tuple[object, ...]:
    """Return the tuple with options added to the commands in its values; `values` itself if nothing has changed."""
    completed_values = tuple(complete_commands(value, options) for value in values)
    if all(completed is original for completed, original in zip(completed_values, values, strict=True)):
        return values
    return completed_values
