"""Label selectors and field selectors of requests for lists of objects."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from cfngen.sandbox.kubernetes.state import Object

SELECTOR_TERM = re.compile(r"\s*([^=!\s]+)\s*(==|=|!=)\s*([^=!\s]*)\s*")


def matches_selector(selector: str, item: Object, value_of: Callable[[Object, str], str | None]) -> bool:
    """Return whether an item meets all requirements of a selector: `key=value`, `key!=value`, `key` or `!key`.

    Args:
        selector: the requirements, separated by commas.
        item: the labels of an object, or the object itself for a field selector.
        value_of: returns the value of a label or a field of the item; None if it is missing.
    """
    for requirement in filter(None, selector.split(",")):
        if match := SELECTOR_TERM.fullmatch(requirement):
            key, operator, wanted_value = match.groups()
            has_value = value_of(item, key) == wanted_value
            is_met = not has_value if operator == "!=" else has_value
        else:
            is_present = value_of(item, requirement.lstrip("!")) is not None
            is_met = not is_present if requirement.startswith("!") else is_present
        if not is_met:
            return False
    return True


def field_value(item: object, path: str) -> str | None:
    """Return the value of a field for a field selector; empty if it is missing.

    Args:
        path: the keys that lead to the field, separated by dots, e.g. `spec.nodeName`.
    """
    value = item
    for key in path.split("."):
        value = value.get(key, "") if isinstance(value, Mapping) else ""
    return str(value)
