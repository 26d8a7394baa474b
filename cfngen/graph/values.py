"""Values in templates as a picture shows them: short text, also of a template that was edited by hand."""

from __future__ import annotations

from collections.abc import Mapping

from cfngen.templates.expressions import function_call, reference, sub_parts

_ABBREVIATIONS = {"api": "API", "ca": "CA", "vpc": "VPC"}
_NO_VALUES: Mapping[str, str] = {}


def mapping(value: object) -> Mapping[str, object]:
    """Return a value if it is a mapping, else an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def items(value: object) -> list[object]:
    """Return a value as a list: itself, a single value as the only item, and none for a missing one."""
    if value is None:
        return []
    return value if isinstance(value, list) else [value]


def text(value: object, known_values: Mapping[str, str] = _NO_VALUES) -> str:
    """Return a value as text.

    Args:
        value: a literal or a function call; of a reference, the text is the known value or else the name.
        known_values: values of parameters and pseudo parameters, by name.
    """
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return ", ".join(text(item, known_values) for item in value)
    referenced = reference(value)
    if referenced:
        if not referenced.attribute and referenced.name in known_values:
            return known_values[referenced.name]
        return f"${{{referenced.name}}}" if referenced.name.startswith("AWS::") else referenced.name
    function, argument = function_call(value)
    if function == "Fn::Sub":
        return "".join(text(part, known_values) for part in sub_parts(argument))
    if function == "Fn::Join" and isinstance(argument, list) and len(argument) == 2:
        return text(argument[0]).join(text(item, known_values) for item in items(argument[1]))
    if function:
        return "…"
    return str(value) if not isinstance(value, Mapping) else "…"


def words(logical_id: str) -> str:
    """Return a logical id in words, e.g. `backup bucket`, `CA secret`."""
    text_in_words = "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in logical_id).strip()
    return " ".join(_ABBREVIATIONS.get(word, word) for word in text_in_words.split(" "))
