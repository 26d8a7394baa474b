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

_OTHER_NAMES = {"--cluster": "-f"}
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
    completed: _Thing = _text(thing, options) if isinstance(thing, str) else _inside(thing, options)
    return completed


def suggested(text: str) -> tuple[str, ...]:
    """Return the commands that a text suggests, in its order."""
    return tuple(match[0] for match in _COMMAND.finditer(text))


def _text(text: Any, options: Options) -> Any:
    def completed(match: re.Match[str]) -> str:
        given = {_OTHER_NAMES.get(each, each) for each in _OPTION.findall(match["given"])}
        missing = (shlex.join(option) for option in options if option[0] not in given)
        return " ".join((match[0], *missing))

    return _COMMAND.sub(completed, text)


def _inside(thing: Any, options: Options) -> Any:
    """Return a value of a message; the same object if there is nothing to suggest in it."""
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        changed: dict[str, Any] = {}
        for field in dataclasses.fields(thing):
            before = getattr(thing, field.name)
            holds = field.name in ATTRIBUTES and isinstance(before, str)
            after = _text(before, options) if holds else _inside(before, options)
            if field.init and after is not before and after != before:
                changed[field.name] = after
        return dataclasses.replace(thing, **changed) if changed else thing
    if type(thing) is tuple:
        items = tuple(_inside(each, options) for each in thing)
        return items if any(new is not old for new, old in zip(items, thing, strict=True)) else thing
    return thing
