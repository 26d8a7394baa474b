"""JSON output of the commands: dataclasses as JSON objects.

Keys are the attribute names in camelCase; `type` is the kind of a message; times are ISO 8601 in UTC.
docs/reference/json.md describes each object.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Mapping
from datetime import datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import TypeAlias

from cfngen.cli.display.terminal import INVISIBLE
from cfngen.cli.display.typography import print_verbatim
from cfngen.hints import CommandText, SuggestedCommand

Json: TypeAlias = "str | int | float | bool | list[Json] | dict[str, Json] | None"


def print_json(value: object) -> None:
    """Print a dataclass as one line of JSON on standard output."""
    text = json.dumps(to_json_value(value), ensure_ascii=False)
    print_verbatim(INVISIBLE.sub(lambda match: json.dumps(match[0])[1:-1], text))


def to_json_value(value: object) -> Json:
    """Return a value, such as a dataclass and everything in it, as dicts, lists and scalars for JSON."""
    if isinstance(value, (Path, SuggestedCommand, CommandText)):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        json_object: dict[str, Json] = {**type_entry(type(value))}
        for attribute, json_key in json_keys_by_attribute(type(value)).items():
            json_object[json_key] = to_json_value(getattr(value, attribute))
        return json_object
    if isinstance(value, Mapping):
        return {str(key): to_json_value(item_value) for key, item_value in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_json_value(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((to_json_value(item) for item in value), key=str)
    if isinstance(value, Enum):
        return to_json_value(value.value)
    if isinstance(value, datetime):
        return value.isoformat().replace("+00:00", "Z")
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    raise TypeError(f"{type(value).__name__} cannot be converted to JSON")


def type_entry(class_: type) -> dict[str, str]:
    """Return `{"type": kind}` for a class of messages; an empty dict for a class that is only part of a message."""
    kind = getattr(class_, "kind", None)
    return {"type": kind} if isinstance(kind, str) else {}


def json_keys_by_attribute(class_: type) -> dict[str, str]:
    """Return the JSON key of each public attribute of a dataclass.

    In the JSON of a message, the key `type` contains the kind; an attribute called `type` gets the key `resourceType`.
    """
    names = [field.name for field in dataclasses.fields(class_) if not field.name.startswith("_")]
    json_keys = {name: camel_case(name) for name in names}
    if "type" in json_keys and type_entry(class_):
        json_keys["type"] = "resourceType"
    return json_keys


def camel_case(name: str) -> str:
    """Return a name of Python as a key of JSON: `stackName` for `stack_name`."""
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
