"""Merges settings of the cluster file over cfngen's own, field by field at any depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject


def merge(base: Mapping[str, object], override: Mapping[str, object]) -> JsonObject:
    """Return `base` with the fields of `override` merged over it, at any depth.

    Lists of objects with a `name` (arguments, variables, volumes) are merged by name; other lists are replaced.
    """
    merged = dict(base)
    for key, value in override.items():
        base_value = merged.get(key)
        if isinstance(base_value, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(base_value, value)
            continue
        base_items, override_items = _by_name(base_value), _by_name(value)
        if base_items and override_items is not None:
            merged[key] = list(merge(base_items, override_items).values())
        else:
            merged[key] = value
    return merged


def _by_name(value: object) -> JsonObject | None:
    """Return the objects of a list by their `name`; None if `value` is no list, or an item has no `name`."""
    if isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value):
        return {item["name"]: item for item in value}
    return None
