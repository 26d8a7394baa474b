"""Judges Kubernetes' configuration documents by tables of their fields: an unknown field or another kind is a fault.

A table has for each type its fields by kind, names separated by white space. Kinds: `text`, `number`, `flag`,
`duration`, `any`, another type of the table, `[kind]` for a list and `{kind}` for a mapping of any keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

Table = Mapping[str, Mapping[str, str]]
# What time.ParseDuration takes; zero needs no unit.
_DURATION = re.compile(r"([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+|0")


def faults(document: Mapping[str, Any], table: Table) -> list[str]:
    """Return what is wrong with a document, each with its path."""
    fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    return list(_typed(fields, str(document["kind"]), table, ""))


def _typed(value: Any, kind: str, table: Table, path: str) -> Iterator[str]:
    if not isinstance(value, Mapping):
        yield f"{path} is no {kind}"
        return
    known = {name: each for each, names in table[kind].items() for name in names.split()}
    for key, item in value.items():
        if key not in known:
            yield f"{path}.{key} is no field of {kind}"
        else:
            yield from _kind(item, known[key], table, f"{path}.{key}")


def _kind(value: Any, kind: str, table: Table, path: str) -> Iterator[str]:
    if kind in table:
        yield from _typed(value, kind, table, path)
    elif kind[0] == "[":
        if not isinstance(value, list):
            yield f"{path} is no list"
            return
        for index, item in enumerate(value):
            yield from _kind(item, kind[1:-1], table, f"{path}[{index}]")
    elif kind[0] == "{":
        if not isinstance(value, Mapping):
            yield f"{path} is no mapping"
            return
        for key, item in value.items():
            yield from _kind(item, kind[1:-1], table, f"{path}[{key}]")
    elif not _scalar(value, kind):
        yield f"{path} is no {kind}: {value!r}"


def _scalar(value: Any, kind: str) -> bool:
    if kind == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind == "flag":
        return isinstance(value, bool)
    if kind == "duration":
        return isinstance(value, str) and bool(_DURATION.fullmatch(value))
    return kind == "any" or isinstance(value, str)
