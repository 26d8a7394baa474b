"""A kube-up environment variable, and the conversions of its value into settings of the cluster file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from cfngen.cluster.file.layers import ItemNamed
from cfngen.cluster.paths import EVERY_ITEM, parse_path


class Setting(NamedTuple):
    """One value for the cluster file.

    Attributes:
        path: path of the key to set; may contain `EVERY_ITEM` (all items of a list) and `ItemNamed` (the item with a
            name).
        is_default: whether a value in the cluster file goes before it.
    """

    path: tuple[str | int | ItemNamed, ...]
    value: object
    is_default: bool = False


Conversion = Callable[[str], Sequence[Setting]]
"""Turns the value of an environment variable into settings; raises ValueError if the value is wrong."""

Handling = Literal["honoured", "accepted", "refused"]
"""What cfngen does with a variable, in the words of docs/reference/kube-up.md; `Variable` explains them."""


@dataclass(frozen=True)
class Variable:
    """One environment variable that `kube-up.sh` read.

    Attributes:
        name: the variable's name in Kubernetes 1.2 to 1.5.
        handling: what cfngen does with the variable. `honoured`: its value is translated into keys of the cluster file.
            `accepted`: some values are allowed, since they describe what cfngen does anyway; they have no effect.
            `refused`: the variable is an error with any value.
        explanation: what the variable does in cfngen, or what to use instead.
        keys: the keys of the cluster file that it sets, as the documentation shows them.
        convert: returns the settings for the variable's value; raises ValueError if the value is wrong.
        accepted_values: values that are allowed without effect; `*` stands for any value.
        old_names: the variable's names in Kubernetes 1.0 and 1.1.
        patterns: names of further variables that are handled alike; an asterisk stands for any text.
    """

    name: str
    handling: Handling
    explanation: str
    keys: tuple[str, ...] = ()
    convert: Conversion | None = None
    accepted_values: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()

    def settings(self, value: str) -> Sequence[Setting]:
        """Return the settings for a value of the variable.

        Raises:
            ValueError: the value, or the variable itself, is refused; the message says why and what to do.
        """
        if self.convert:
            return self.convert(value)
        # Without a conversion the variable sets nothing; its value is only allowed or refused.
        if "*" in self.accepted_values or value in self.accepted_values:
            return ()
        if self.accepted_values:
            raise ValueError(f"{value!r} is not accepted, only {' or '.join(self.accepted_values)}; {self.explanation}")
        raise ValueError(self.explanation)


def path_of(key: str) -> tuple[str | int | ItemNamed, ...]:
    """Return the path of a key such as `nodeGroups[].labels`, where `[]` stands for every item of a list.

    `nodeGroups[].labels` gives `("nodeGroups", EVERY_ITEM, "labels")`.
    """
    path: list[str | int | ItemNamed] = []
    for part in key.split("[]"):
        if part:
            path += [*parse_path(part.removeprefix(".")), EVERY_ITEM]
    # The last part is followed by the end of the key, not by `[]`.
    return tuple(path[:-1])


def boolean(value: str) -> bool:
    """Return the truth of a variable's value.

    Raises:
        ValueError: it is neither true nor false.
    """
    if value not in ("true", "false"):
        raise ValueError(f"must be true or false, not {value!r}")
    return value == "true"


def set_true_for(key: str, *, values: Sequence[str]) -> Conversion:
    """Return a conversion that sets a key to true if the variable has one of `values`.

    The values `false` and `none` set nothing; other values are refused.
    """

    def convert(value: str) -> Sequence[Setting]:
        if value in ("false", "none"):
            return []
        if value not in values:
            raise ValueError(f"must be {', '.join(values)}, or false or none; not {value!r}")
        return [Setting(path_of(key), True)]

    return convert


def whole_number(value: str) -> int:
    """Return a variable's value as a whole number.

    Raises:
        ValueError: it is not a whole number.
    """
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ValueError(f"must be a whole number, not {value!r}")
    return int(value)


def flag_setting(component: str, name: str, value: str) -> Setting:
    """Return the setting that gives a control plane component a command-line flag (an item of its `extraArgs`).

    Args:
        component: key of the component in kubeadm's ClusterConfiguration, e.g. `apiServer`.
    """
    path = ("kubernetes", "clusterConfiguration", component, "extraArgs", ItemNamed(name), "value")
    return Setting(path, value)


def variable_for_keys(
    name: str,
    keys: str | Sequence[str],
    *,
    convert: Conversion | None = None,
    parse: Callable[[str], object] = str,
    explanation: str = "",
    old_names: Sequence[str] = (),
) -> Variable:
    """Return a kube-up variable that sets keys of the cluster file.

    Without `convert`, each key gets what `parse` makes of the variable's value, by default the text.
    """
    all_keys = (keys,) if isinstance(keys, str) else tuple(keys)
    return Variable(
        name,
        handling="honoured",
        explanation=explanation,
        keys=all_keys,
        convert=convert or (lambda value: [Setting(path_of(key), parse(value)) for key in all_keys]),
        old_names=tuple(old_names),
    )


def variable_without_effect(name: str, allowed_values: str | Sequence[str], explanation: str) -> Variable:
    """Return a kube-up variable that sets nothing: its allowed values describe what cfngen does anyway.

    Any other value is refused; `*` allows every value.
    """
    accepted_values = (allowed_values,) if isinstance(allowed_values, str) else tuple(allowed_values)
    return Variable(name, handling="accepted", explanation=explanation, accepted_values=accepted_values)


def unsupported_variable(name: str, explanation: str, *, patterns: Sequence[str] = ()) -> Variable:
    """Return a kube-up variable that no longer has a meaning: cfngen refuses it, whatever its value."""
    return Variable(name, handling="refused", explanation=explanation, patterns=tuple(patterns))
