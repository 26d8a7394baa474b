"""JSON output of the commands: dataclasses as JSON objects.

Keys are the attribute names in camelCase; `type` is the kind of a message; times
are ISO 8601 in UTC. docs/json.md describes each object.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from cfngen.cli.typography import verbatim
from cfngen.hints import CommandText, SuggestedCommand

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


def emit(thing: object) -> None:
    """Print a dataclass as one line of JSON on standard output."""
    verbatim(json.dumps(plain(thing), ensure_ascii=False))


def plain(thing: object) -> Json:
    """Return a dataclass, and everything in it, as dicts, lists and scalars for JSON."""
    if isinstance(thing, (Path, SuggestedCommand, CommandText)):
        return str(thing)
    if dataclasses.is_dataclass(thing) and not isinstance(thing, type):
        json_keys = keys(type(thing))
        attributes = {key: plain(getattr(thing, name)) for name, key in json_keys.items()}
        return {**kind_of(type(thing)), **attributes}
    if isinstance(thing, Mapping):
        return {str(key): plain(value) for key, value in thing.items()}
    if isinstance(thing, (list, tuple)):
        return [plain(item) for item in thing]
    if isinstance(thing, (set, frozenset)):
        return sorted((plain(item) for item in thing), key=str)
    if isinstance(thing, Enum):
        return plain(thing.value)
    if isinstance(thing, datetime):
        return thing.isoformat().replace("+00:00", "Z")
    if isinstance(thing, (str, int, float, bool)) or thing is None:
        return thing
    raise TypeError(f"{type(thing).__name__} has no form in JSON")


def kind_of(class_: type) -> dict[str, str]:
    """Return the key `type` of a message; empty for a class that is only part of a message."""
    kind = getattr(class_, "kind", None)
    return {"type": kind} if isinstance(kind, str) else {}


def keys(class_: type) -> dict[str, str]:
    """Return the JSON key of each attribute of a dataclass.

    In a message, `type` is the kind; an attribute called `type` is therefore output as `resourceType`.
    """
    names = (field.name for field in dataclasses.fields(class_) if not field.name.startswith("_"))
    return {name: "resourceType" if name == "type" and kind_of(class_) else camel(name) for name in names}


def camel(name: str) -> str:
    """Return `stack_name` as `stackName`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
