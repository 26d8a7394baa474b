"""Adding the options for the same cluster, stack and account to the commands that messages suggest.

The code below the command line knows neither the cluster file nor the credentials, and suggests just `cfngen watch
--stack-name k8s`. Run like that after a command with --sandbox, it would use a real account.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from typing import Any, TypeVar

Options = Sequence[tuple[str, ...]]
"""Command line options: each its name, and its value if it takes one."""

ATTRIBUTES = frozenset({"hint", "command", "next_command"})
"""Attributes of messages whose text contains commands."""

_LONG_TO_SHORT = {"--cluster": "-f"}
_VALUE = r"""(?:'[^']*'|[^\s`'"-](?:[^\s`'";&|(),]*[^\s`'";&|(),.:])?)"""
_COMMAND = re.compile(
    r"\bcfngen (?:plan|deploy|watch|events|status|validate(?: cluster)?|kubeconfig|etcd (?:list|backup|restore)|"
    r"rollback|delete)\b"
    rf"(?P<options>(?: --?[a-z][a-z-]*(?:[ =]{_VALUE})?)*)"
)
_OPTION = re.compile(r" (--?[a-z][a-z-]*)")
_Thing = TypeVar("_Thing")


def complete_commands(thing: _Thing, options: Options) -> _Thing:
    """Return a text or message in which each suggested command has the options.

    Options that a command has already are kept.

    Args:
        thing: a text, or a dataclass whose attributes in `ATTRIBUTES` are texts.
        options: the options that choose the cluster, the stack and the account.
    """
    if not options:
        return thing
    completed: _Thing = _complete_text(thing, options) if isinstance(thing, str) else _complete_value(thing, options)
    return completed


def suggested(text: str) -> tuple[str, ...]:
    """Return the commands in a text, in order."""
    return tuple(match[0] for match in _COMMAND.finditer(text))


def _complete_text(text: Any, options: Options) -> Any:
    def completed(match: re.Match[str]) -> str:
        present = {_LONG_TO_SHORT.get(name, name) for name in _OPTION.findall(match["options"])}
        missing = (shlex.join(option) for option in options if option[0] not in present)
        return " ".join((match[0], *missing))

    return _COMMAND.sub(completed, text)


def _complete_value(thing: Any, options: Options) -> Any:
    """Return a value of a message with completed commands; the same object if it contains none."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(thing):
            old_value = getattr(thing, field.name)
            is_suggestion = field.name in ATTRIBUTES and isinstance(old_value, str)
            new_value = _complete_text(old_value, options) if is_suggestion else _complete_value(old_value, options)
            if field.init and new_value is not old_value and new_value != old_value:
                changed[field.name] = new_value
        return dataclasses.replace(thing, **changed) if changed else thing
    if type(thing) is tuple:
        items = tuple(_complete_value(element, options) for element in thing)
        return items if any(new is not old for new, old in zip(items, thing, strict=True)) else thing
    return thing
