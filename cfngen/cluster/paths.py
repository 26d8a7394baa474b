"""Paths of keys in a cluster file, as tuples and as text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TypeAlias

Path: TypeAlias = tuple[str | int, ...]
"""Keys and list positions from the top, e.g. `("network", "subnets", 0, "cidr")`."""

EVERY_ITEM = "*"
"""In a path: every item of a list."""

# Free-form sections of `controlPlane` and of each node group, by path in these.
_FREE_FORM_OF_INSTANCES: tuple[Path, ...] = (
    ("kubeletConfiguration",),
    ("containerd", "configuration"),
    ("cloudConfig",),
    ("policyStatements", EVERY_ITEM, "conditions"),
)
FREE_FORM_SECTIONS: tuple[Path, ...] = (
    ("kubernetes", "clusterConfiguration"),
    ("kubernetes", "kubeletConfiguration"),
    *(("controlPlane", *path) for path in _FREE_FORM_OF_INSTANCES),
    *(("nodeGroups", EVERY_ITEM, *path) for path in _FREE_FORM_OF_INSTANCES),
    ("controlPlane", "auditLog", "policy"),
    ("network", "pluginValues"),
    ("addons", EVERY_ITEM, "values"),
    ("addons", "charts", EVERY_ITEM, "values"),
)
"""Paths of the sections of free form: they hold configuration of other programs and are not validated."""

# One part of a path as text: a key, a key in double quotes, or a list position such as `[0]`.
_PART = re.compile(r'\.?(?:"(?P<quoted>[^"]+)"|(?P<key>[^.\[\]"=]+))|\[(?P<index>[0-9]+)\]')


def dotted(path: Path) -> str:
    """Return a path as messages and `cfngen config` show it, e.g. `network.subnets[0].cidr`.

    Invisible characters of a key are escaped.
    """
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            key = part if part.isprintable() else part.encode("unicode_escape").decode()
            text += f".{key}" if text else key
    return text


def parse_path(text: str) -> Path:
    """Return the path that a text such as `nodeGroups[0].maxSize` stands for; a key with a dot is in double quotes.

    Raises:
        ValueError: `text` is not a key path such as `nodeGroups[0].maxSize`.
    """
    path: list[str | int] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise ValueError(text)
        is_first = position == 0
        if match["index"]:
            if is_first:
                raise ValueError(text)
            path.append(int(match["index"]))
        else:
            # A dot separates a key from what is before it.
            has_dot = match.group().startswith(".")
            if has_dot == is_first:
                raise ValueError(text)
            path.append(match["quoted"] or match["key"].strip())
        position = match.end()
    if not path:
        raise ValueError(text)
    return tuple(path)


def within(path: Path, ancestor: Path) -> bool:
    """Return whether `path` is `ancestor` or below it."""
    return path[: len(ancestor)] == ancestor


def is_free_form(path: Path) -> bool:
    """Return whether a path leads to a section of `FREE_FORM_SECTIONS`, or into one."""
    for section_path in FREE_FORM_SECTIONS:
        beginning = path[: len(section_path)]
        if len(beginning) == len(section_path) and all(
            expected in (EVERY_ITEM, part) for part, expected in zip(beginning, section_path, strict=True)
        ):
            return True
    return False


def lookup(data: object, path: Path) -> object:
    """Return the value at `path`, or None if there is none or a value on the way has another type."""
    for part in path:
        if isinstance(part, str) and isinstance(data, Mapping):
            data = data.get(part)
        elif isinstance(part, int) and isinstance(data, (list, tuple)) and part < len(data):
            data = data[part]
        else:
            return None
    return data


def leaves(data: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Yield the path and the value of every scalar, empty list and empty mapping in `data`.

    The paths begin with `path`, the path of `data` itself.
    """
    if isinstance(data, Mapping) and data:
        for key, value in data.items():
            yield from leaves(value, (*path, key))
    elif isinstance(data, (list, tuple)) and data:
        for index, value in enumerate(data):
            yield from leaves(value, (*path, index))
    else:
        yield path, data
