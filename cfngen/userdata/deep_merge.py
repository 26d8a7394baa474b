"""Merges settings of the cluster file over cfngen's own, field by field at any depth."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject


def merge(base: Mapping[str, object], override: Mapping[str, object]) -> JsonObject:
    """Return `base` with the fields of `override` merged over it, at any depth.

    Lists of objects with a `name` (arguments, variables, volumes) are merged by name; other lists are replaced. Several
    objects of one name, e.g. a flag that is given twice, stay several: `override`'s replace `base`'s.
    """
    merged = dict(base)
    for key, value in override.items():
        base_value = merged.get(key)
        if isinstance(base_value, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(base_value, value)
            continue
        base_items, override_items = _by_name(base_value), _by_name(value)
        if base_items and override_items is not None:
            merged[key] = _merge_named(base_items, override_items)
        else:
            merged[key] = value
    return merged


def _merge_named(base: dict[str, list[JsonObject]], override: dict[str, list[JsonObject]]) -> list[JsonObject]:
    """Return the objects of two lists, merged by name: first `base`'s, then the ones that only `override` has."""
    merged = {**base, **override}
    for name in base.keys() & override.keys():
        if len(base[name]) == len(override[name]) == 1:
            merged[name] = [merge(base[name][0], override[name][0])]
    return [item for items in merged.values() for item in items]


def _by_name(value: object) -> dict[str, list[JsonObject]] | None:
    """Return the objects of a list by their `name`; None if `value` is not a list, or an item has no `name`."""
    if not isinstance(value, list) or not all(isinstance(item, Mapping) and "name" in item for item in value):
        return None
    items_by_name: dict[str, list[JsonObject]] = {}
    for item in value:
        items_by_name.setdefault(item["name"], []).append(item)
    return items_by_name
