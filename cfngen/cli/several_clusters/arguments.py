"""The arguments of a command as they were typed, and as the words of another command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import click

ARGUMENTS = "cfngen.arguments"
"""Where a context's `meta` has the words that were typed."""


def typed_values(context: click.Context) -> Mapping[str, object]:
    """Return what was typed for each parameter of a command, by its name: text, several texts, or a flag's truth."""
    values, _, order = context.command.make_parser(context).parse_args(args=list(context.meta[ARGUMENTS]))
    typed = {parameter.name or "": values[parameter.name or ""] for parameter in order}
    # An argument that was left out has None, or a mark of click's own.
    return {name: value for name, value in typed.items() if isinstance(value, (str, bool, Sequence))}


def words(command: click.Command, values: Mapping[str, object]) -> list[str]:
    """Return the words of a command line that gives a command these values; it ignores those that it does not take."""
    result: list[str] = []
    for parameter in command.params:
        value = values.get(parameter.name or "")
        flag = max(parameter.opts, key=len)
        if isinstance(value, bool):
            result.append(flag if value else max(parameter.secondary_opts, key=len))
        elif value is not None:
            texts = [value] if isinstance(value, str) or not isinstance(value, Sequence) else value
            result += [str(text) if isinstance(parameter, click.Argument) else f"{flag}={text}" for text in texts]
    return result
