"""Deep-merges settings of the cluster file into cfngen's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the fields of `override` merged over it, at any depth.

    Lists of objects with a `name` (arguments, variables, volumes) are merged by name; other lists are replaced.
    """
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(old, value)
        elif old and _is_named_list(old) and _is_named_list(value):
            by_name = merge({item["name"]: item for item in old}, {item["name"]: item for item in value})
            merged[key] = list(by_name.values())
        else:
            merged[key] = value
    return merged


def _is_named_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)
