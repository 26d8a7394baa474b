"""How a suggested command reaches the same cluster, stack and account as the command that suggests it.

What is below the command line knows neither the cluster file nor the credentials, and hints only at `cfngen watch
--stack-name k8s`. Typed like that after a command with --sandbox, it would go to a real account.
"""

from __future__ import annotations

import dataclasses
import re
import shlex
from collections.abc import Sequence
from typing import Any, TypeVar

Options = Sequence[tuple[str, ...]]
"""Options as they are typed: each its name, and its value if it takes one."""

ATTRIBUTES = frozenset({"hint", "command", "next_command"})
"""Attributes of messages that hold commands to type."""

_LONG_TO_SHORT = {"--cluster": "-f"}
_VALUE = r"""(?:'[^']*'|[^\s`'"-](?:[^\s`'";&|(),]*[^\s`'";&|(),.:])?)"""
_COMMAND = re.compile(
    r"\bcfngen (?:plan|deploy|watch|events|status|validate(?: cluster)?|kubeconfig|etcd (?:list|backup|restore)|"
    r"rollback|delete)\b"
    rf"(?P<given>(?: --?[a-z][a-z-]*(?:[ =]{_VALUE})?)*)"
)
_OPTION = re.compile(r" (--?[a-z][a-z-]*)")
_Thing = TypeVar("_Thing")


def again(thing: _Thing, options: Options) -> _Thing:
    """Return a text, or a message with everything in it, in which each suggested command has the options.

    An option that a command has already stays as it is there.

    Args:
        thing: a text of hints, or a dataclass, whose attributes in `ATTRIBUTES` are such texts.
        options: those that chose the cluster, the stack and the account.
    """
    if not options:
        return thing
    completed: _Thing = _complete_text(thing, options) if isinstance(thing, str) else _complete_value(thing, options)
    return completed


def suggested(text: str) -> tuple[str, ...]:
    """Return the commands that a text suggests, in its order."""
    return tuple(match[0] for match in _COMMAND.finditer(text))


def _complete_text(text: Any, options: Options) -> Any:
    def completed(match: re.Match[str]) -> str:
        present = {_LONG_TO_SHORT.get(name, name) for name in _OPTION.findall(match["given"])}
        missing = (shlex.join(option) for option in options if option[0] not in present)
        return " ".join((match[0], *missing))

    return _COMMAND.sub(completed, text)


def _complete_value(thing: Any, options: Options) -> Any:
    """Return a value of a message; the same object if there is nothing to suggest in it."""
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
