"""Whether a value is one that a template's parameter allows, told before CloudFormation is asked.

Source: "Parameters", CloudFormation User Guide, properties of a parameter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from ipaddress import IPv4Network
from typing import Any

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def broken_rule(name: str, definition: Mapping[str, Any], value: str) -> str:
    """Say which rule a value breaks, as the rest of a sentence; empty if it is allowed.

    Args:
        name: the parameter's name; one that ends in `Cidr` takes an address range.
        definition: the parameter in the template.
        value: the value as text.
    """
    kind = str(definition.get("Type", ""))
    is_list = kind.startswith(("List<", "AWS::SSM::Parameter::Value<List<")) or "CommaDelimitedList" in kind
    # Of a parameter that names one of Parameter Store, the rules are about the name.
    for item in [part.strip() for part in value.split(",")] if is_list else [value]:
        description = str(definition.get("ConstraintDescription", ""))
        if reason := _broken(definition, item, numeric=kind in ("Number", "List<Number>")):
            return f"{description} ({reason})" if description else reason
        if not _fits_pattern(definition, item):
            # A description says in words what the pattern is for.
            return description or f"does not match {definition['AllowedPattern']}"
        if name.endswith("Cidr") and (reason := _no_range(item)):
            return f"{description} ({reason})" if description else reason
    return ""


def _broken(definition: Mapping[str, Any], item: str, *, numeric: bool) -> str:
    allowed = [str(allowed_value) for allowed_value in definition.get("AllowedValues", ())]
    if allowed and item not in allowed:
        return f"is not one of {', '.join(allowed)}"
    if numeric and not _NUMBER.fullmatch(item):
        return "is not a number"
    for bound, word, is_beyond in (("MinValue", "least", float.__lt__), ("MaxValue", "most", float.__gt__)):
        if numeric and bound in definition and is_beyond(float(item), float(definition[bound])):
            return f"must be at {word} {definition[bound]}"
    for bound, word, breaks_rule in (("MinLength", "least", int.__lt__), ("MaxLength", "most", int.__gt__)):
        if bound in definition and breaks_rule(len(item), int(definition[bound])):
            return f"must have at {word} {definition[bound]} characters"
    return ""


def _no_range(item: str) -> str:
    """Say why a text is no IPv4 address range, which a pattern does not tell; empty if it is one."""
    try:
        IPv4Network(item, strict=False)
    except ValueError as error:
        # Python's words, as far as they are about the value alone.
        return str(error).partition(" in ")[0][:1].lower() + str(error).partition(" in ")[0][1:]
    return ""


def _fits_pattern(definition: Mapping[str, Any], value: str) -> bool:
    pattern = definition.get("AllowedPattern")
    if not pattern:
        return True
    try:
        return bool(re.fullmatch(str(pattern), value))
    except re.error:
        # CloudFormation's patterns are Java's, of which Python does not know all; it will decide itself.
        return True
