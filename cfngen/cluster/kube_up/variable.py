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
Fate = Literal["honoured", "accepted", "refused"]


@dataclass(frozen=True)
class Variable:
    """One environment variable that `kube-up.sh` read.

    Attributes:
        name: its name in Kubernetes 1.2 to 1.5.
        fate: `honoured` (it sets keys), `accepted` (some values, which change nothing) or `refused`.
        sentence: what it does here, or what replaced it.
        keys: the keys it sets, as the documentation shows them.
        convert: returns the settings for its value; raises ValueError if the value is wrong.
        accepts: values that are accepted without effect; `*` stands for any.
        old: its names in Kubernetes 1.0 and 1.1.
    """

    name: str
    fate: Fate
    sentence: str
    keys: tuple[str, ...] = ()
    convert: Conversion | None = None
    accepts: tuple[str, ...] = ()
    old: tuple[str, ...] = ()

    def settings(self, value: str) -> Sequence[Setting]:
        """Return the settings for a value of the variable.

        Raises:
            ValueError: the value, or the variable itself, is refused; the message says why and what to do.
        """
        if self.convert:
            return self.convert(value)
        if "*" in self.accepts or value in self.accepts:
            return ()
        if self.accepts:
            raise ValueError(f"{value!r} is not accepted, only {' or '.join(self.accepts)}; {self.sentence}")
        raise ValueError(self.sentence)


def path_of(key: str) -> tuple[str | int | Named, ...]:
    """Return the path of a key; `[]` in it stands for every item of the list."""
    parts: list[str | int | Named] = []
    for part in key.split("[]"):
        parts += [*parse_path(part.removeprefix(".")), EVERY] if part else []
    return tuple(parts[:-1])


def sets(*keys: str) -> Conversion:
    """Set keys to the text of the variable."""
    return lambda value: [(path_of(key), value) for key in keys]


def sets_list(*keys: str) -> Conversion:
    """Set keys to a list of the one text."""
    return lambda value: [(path_of(key), [value]) for key in keys]


def sets_number(*keys: str) -> Conversion:
    """Set keys to a whole number."""
    return lambda value: [(path_of(key), whole_number(value)) for key in keys]


def sets_truth(*keys: str) -> Conversion:
    """Set keys to true or false."""

    def convert(value: str) -> Sequence[Setting]:
        if value not in ("true", "false"):
            raise ValueError(f"must be true or false, not {value!r}")
        return [(path_of(key), value == "true") for key in keys]

    return convert


def switches_on(key: str, *values: str) -> Conversion:
    """Set a key to true for some values of the variable, and nothing for `false` and `none`."""

    def convert(value: str) -> Sequence[Setting]:
        if value in ("false", "none"):
            return []
        if value not in values:
            raise ValueError(f"must be {', '.join(values)}, or false or none; not {value!r}")
        return [(path_of(key), True)]

    return convert


def whole_number(value: str) -> int:
    """Return a text as a whole number.

    Raises:
        ValueError: it is not a whole number.
    """
    if not re.fullmatch(r"[0-9]{1,9}", value):
        raise ValueError(f"must be a whole number, not {value!r}")
    return int(value)


def flag(component: str, name: str, value: str) -> Setting:
    """Return the setting of a command-line flag of a control-plane component."""
    path = ("kubernetes", "clusterConfiguration", component, "extraArgs", Named(name), "value")
    return path, value


def honoured(
    name: str, keys: str | Sequence[str], convert: Conversion | None = None, sentence: str = "", old: Sequence[str] = ()
) -> Variable:
    """Return a variable that sets keys; without a conversion, to its text."""
    named = (keys,) if isinstance(keys, str) else tuple(keys)
    return Variable(name, "honoured", sentence, named, convert or sets(*named), old=tuple(old))


def accepted(name: str, values: str | Sequence[str], sentence: str) -> Variable:
    """Return a variable some of whose values describe what cfngen does anyway."""
    return Variable(name, "accepted", sentence, accepts=(values,) if isinstance(values, str) else tuple(values))


def refused(name: str, sentence: str) -> Variable:
    """Return a variable that has no meaning any more."""
    return Variable(name, "refused", sentence)
