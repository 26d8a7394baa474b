"""Messages for pydantic's validation errors, in terms of the cluster file."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping

from pydantic_core import ErrorDetails

from cfngen.cluster.keys import fields, section_at, sections_with
from cfngen.cluster.paths import Path, dotted

# Keys of earlier versions, and what to write instead.
_REMOVED_KEYS: Mapping[Path, str] = {
    (
        "addons",
        "kubernetesDashboard",
    ): "Kubernetes Dashboard has ended (its repository is archived since January 2026); "
    "use addons.headlamp, its successor, and remove this key",
}


def message(error: ErrorDetails) -> str:
    """Return the message for one of pydantic's errors: what is wrong, and what to do.

    Args:
        error: an item of `ValidationError.errors()`.
    """
    kind = error["type"]
    if kind == "cfngen":
        return str(error["msg"])
    if kind == "extra_forbidden":
        return unknown_key(error["loc"])
    write = _MESSAGES.get(kind)
    return write(error["input"], error.get("ctx", {})) if write else str(error["msg"])


def described(value: object) -> str:
    """Return how a message names a value, e.g. `the text "20"` or `a list`."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (int, float)):
        return f"the number {value}"
    if isinstance(value, str):
        return f"the text {json.dumps(value, ensure_ascii=False)}"
    return "a list" if isinstance(value, (list, tuple)) else "a mapping of keys"


def unknown_key(path: Path) -> str:
    """Return the message for an unknown key, with the key that was probably meant."""
    if path in _REMOVED_KEYS:
        return _REMOVED_KEYS[path]
    key = str(path[-1])
    section = section_at(path[:-1])
    known_keys = list(fields(section)) if section else []
    by_lower = {name.lower(): name for name in known_keys}
    close_matches = difflib.get_close_matches(key.replace("_", "").replace("-", "").lower(), by_lower, n=1, cutoff=0.65)
    if close_matches:
        return f"there is no such key; did you mean {by_lower[close_matches[0]]}?"
    paths_elsewhere = [dotted(path_elsewhere) for path_elsewhere in sections_with(key)]
    if len(paths_elsewhere) == 1:
        section_name = paths_elsewhere[0].rpartition(".")[0] or "the top level"
        return f"there is no such key here; it belongs under {section_name}"
    return f"there is no such key; the keys here are {', '.join(known_keys)}"


def _whole_number(value: object, context: Mapping[str, object]) -> str:
    advice = "remove the quotes" if isinstance(value, str) and value.strip().isdigit() else "write digits only"
    return f"must be a whole number, not {described(value)}; {advice}"


def _boolean(value: object, context: Mapping[str, object]) -> str:
    intended = {"yes": "true", "on": "true", "no": "false", "off": "false"}.get(str(value).lower())
    return f"must be true or false, not {described(value)}" + (f"; write {intended}" if intended else "")


def _text(value: object, context: Mapping[str, object]) -> str:
    quoted = isinstance(value, (int, float, bool))
    return f"must be text, not {described(value)}" + ("; put it in quotes" if quoted else "")


def _list(value: object, context: Mapping[str, object]) -> str:
    return f"must be a list, not {described(value)}; write each item on a line of its own that begins with -"


def _mapping(value: object, context: Mapping[str, object]) -> str:
    return f"must be keys with values, not {described(value)}"


def _choice(value: object, context: Mapping[str, object]) -> str:
    choices = str(context["expected"]).replace("'", "").replace(" or ", ", ").split(", ")
    close_matches = difflib.get_close_matches(str(value).lower(), choices, n=1, cutoff=0.7)
    allowed = f"must be {choices[0]}" if len(choices) == 1 else f"must be one of {', '.join(choices)}"
    return f"{allowed}, not {described(value)}" + (f"; did you mean {close_matches[0]}?" if close_matches else "")


def _bound(words: str, *, key: str) -> Callable[[object, Mapping[str, object]], str]:
    def write(value: object, context: Mapping[str, object]) -> str:
        return f"must be {words} {context[key]}, not {value}"

    return write


def _items(words: str, *, key: str) -> Callable[[object, Mapping[str, object]], str]:
    def write(value: object, context: Mapping[str, object]) -> str:
        limit = context[key]
        return f"must hold {words} {limit} item{'s' if limit != 1 else ''}, not {context['actual_length']}"

    return write


def _length(words: str, *, key: str) -> Callable[[object, Mapping[str, object]], str]:
    def write(value: object, context: Mapping[str, object]) -> str:
        limit = context[key]
        return f"must have {words} {limit} character{'s' if limit != 1 else ''}, not {len(str(value))}"

    return write


# By type of pydantic's error; each function gets the invalid value and the `ctx` of the error.
_MESSAGES: dict[str, Callable[[object, Mapping[str, object]], str]] = {
    "missing": lambda value, context: "is missing; give it a value",
    "int_type": _whole_number,
    "bool_type": _boolean,
    "string_type": _text,
    "tuple_type": _list,
    "list_type": _list,
    "model_type": _mapping,
    "model_attributes_type": _mapping,
    "dict_type": _mapping,
    "literal_error": _choice,
    "greater_than_equal": _bound("at least", key="ge"),
    "less_than_equal": _bound("at most", key="le"),
    "too_short": _items("at least", key="min_length"),
    "too_long": _items("at most", key="max_length"),
    "string_too_short": _length("at least", key="min_length"),
    "string_too_long": _length("at most", key="max_length"),
}
