"""A kube-up environment variable, and the conversions of its value into settings of the cluster file."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from cfngen.cluster.layers import Named
from cfngen.cluster.paths import EVERY, parse_path

Setting = tuple[tuple[str | int | Named, ...], object]
Conversion = Callable[[str], Sequence[Setting]]
Handling = Literal["honoured", "accepted", "refused"]


@dataclass(frozen=True)
class Variable:
    """One environment variable that `kube-up.sh` read.

    Attributes:
        name: the variable's name in Kubernetes 1.2 to 1.5.
        handling: what cfngen does with the variable. `honoured`: its value is translated into keys of the cluster file.
            `accepted`: some values are allowed, since they describe what cfngen does anyway; they have no effect.
            `refused`: every value is an error.
        explanation: what the variable does in cfngen, or what to use instead.
        keys: the keys of the cluster file that it sets, as the documentation shows them.
        convert: returns the settings for the variable's value; raises ValueError if the value is wrong.
        accepted_values: values that are allowed without effect; `*` stands for any value.
        old_names: the variable's names in Kubernetes 1.0 and 1.1.
    """

    name: str
    handling: Handling
    explanation: str
    keys: tuple[str, ...] = ()
    convert: Conversion | None = None
    accepted_values: tuple[str, ...] = ()
    old_names: tuple[str, ...] = ()

    def settings(self, value: str) -> Sequence[Setting]:
        """Return the settings for a value of the variable.

        Raises:
            ValueError: the value, or the variable itself, is refused; the message says why and what to do.
        """
        if self.convert:
            return self.convert(value)
        if "*" in self.accepted_values or value in self.accepted_values:
            return ()
        if self.accepted_values:
            raise ValueError(f"{value!r} is not accepted, only {' or '.join(self.accepted_values)}; {self.explanation}")
        raise ValueError(self.explanation)


def path_of(key: str) -> tuple[str | int | Named, ...]:
    """Return the path of a key such as `nodeGroups[].labels`; `[]` stands for every item of a list."""
    parts: list[str | int | Named] = []
    for part in key.split("[]"):
        parts += [*parse_path(part.removeprefix(".")), EVERY] if part else []
    return tuple(parts[:-1])


def as_text(*keys: str) -> Conversion:
    """Return a conversion that sets keys to the variable's value as text."""
    return lambda value: [(path_of(key), value) for key in keys]


def as_list(*keys: str) -> Conversion:
    """Return a conversion that sets keys to a list with the variable's value as its only item."""
    return lambda value: [(path_of(key), [value]) for key in keys]


def as_number(*keys: str) -> Conversion:
    """Return a conversion that sets keys to the variable's value as a whole number."""
    return lambda value: [(path_of(key), whole_number(value)) for key in keys]


def as_boolean(*keys: str) -> Conversion:
    """Return a conversion that sets keys to true or false."""

    def convert(value: str) -> Sequence[Setting]:
        if value not in ("true", "false"):
            raise ValueError(f"must be true or false, not {value!r}")
        return [(path_of(key), value == "true") for key in keys]

    return convert


def true_if(key: str, *values: str) -> Conversion:
    """Return a conversion that sets a key to true for the given values; `false` and `none` set nothing."""

    def convert(value: str) -> Sequence[Setting]:
        if value in ("false", "none"):
            return []
        if value not in values:
            raise ValueError(f"must be {', '.join(values)}, or false or none; not {value!r}")
        return [(path_of(key), True)]

    return convert


def whole_number(value: str) -> int:
    """Return a variable's value as a whole number.

    Raises:
        ValueError: it is not a whole number.
    """
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ValueError(f"must be a whole number, not {value!r}")
    return int(value)


def flag(component: str, name: str, value: str) -> Setting:
    """Return the setting of a command-line flag of a control plane component (in its `extraArgs`)."""
    path = ("kubernetes", "clusterConfiguration", component, "extraArgs", Named(name), "value")
    return path, value


def sets_keys(
    name: str,
    keys: str | Sequence[str],
    convert: Conversion | None = None,
    explanation: str = "",
    old_names: Sequence[str] = (),
) -> Variable:
    """Return a variable that sets keys of the cluster file, by default to the variable's value as text."""
    all_keys = (keys,) if isinstance(keys, str) else tuple(keys)
    return Variable(
        name,
        handling="honoured",
        explanation=explanation,
        keys=all_keys,
        convert=convert or as_text(*all_keys),
        old_names=tuple(old_names),
    )


def accepted_only(name: str, values: str | Sequence[str], explanation: str) -> Variable:
    """Return a variable that may only have the given values, which describe what cfngen does anyway."""
    accepted_values = (values,) if isinstance(values, str) else tuple(values)
    return Variable(name, handling="accepted", explanation=explanation, accepted_values=accepted_values)


def refused(name: str, explanation: str) -> Variable:
    """Return a variable that is an error with any value, since it has no meaning any more."""
    return Variable(name, handling="refused", explanation=explanation)
