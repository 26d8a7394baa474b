"""Checks values against the rules of a template's parameter, before CloudFormation is called.

Source: "Parameters", CloudFormation User Guide, properties of a parameter.
"""

from __future__ import annotations

import re
from ipaddress import IPv4Network

from cfngen.deploy.aws_types import TemplatePart

_NUMBER = re.compile(r"[-+]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][-+]?[0-9]+)?")


def broken_rule(name: str, definition: TemplatePart, value: str) -> str:
    """Return which rule a value breaks, as the rest of a sentence; an empty text if the value is allowed.

    Args:
        name: the parameter's name; one that ends in `Cidr` takes an address range.
        definition: the parameter in the template.
        value: the value as text.
    """
    parameter_type = str(definition.get("Type", ""))
    is_list = (
        parameter_type.startswith(("List<", "AWS::SSM::Parameter::Value<List<"))
        or "CommaDelimitedList" in parameter_type
    )
    # The rules apply to each item of a list. If the value is the name of an SSM parameter, they apply to the name.
    items = [item.strip() for item in value.split(",")] if is_list else [value]
    description = str(definition.get("ConstraintDescription", ""))
    for item in items:
        if reason := _broken_bound(definition, item, is_numeric=parameter_type in ("Number", "List<Number>")):
            return f"{description} ({reason})" if description else reason
        if not _fits_pattern(definition, item):
            # The constraint description explains the pattern.
            return description or f"does not match {definition['AllowedPattern']}"
        if name.endswith("Cidr") and (reason := _cidr_problem(item)):
            return f"{description} ({reason})" if description else reason
    return ""


def _broken_bound(definition: TemplatePart, item: str, *, is_numeric: bool) -> str:
    """Return which bound a value breaks (allowed values, minimum, maximum, or length), or an empty text.

    Args:
        definition: the parameter in the template.
        item: the value, or one item of a list.
        is_numeric: whether the value must be a number.
    """
    allowed = [str(allowed_value) for allowed_value in definition.get("AllowedValues", ())]
    if allowed and item not in allowed:
        return f"is not one of {', '.join(allowed)}"
    if is_numeric and not _NUMBER.fullmatch(item):
        return "is not a number"
    if is_numeric and "MinValue" in definition and float(item) < float(definition["MinValue"]):
        return f"must be at least {definition['MinValue']}"
    if is_numeric and "MaxValue" in definition and float(item) > float(definition["MaxValue"]):
        return f"must be at most {definition['MaxValue']}"
    if "MinLength" in definition and len(item) < int(definition["MinLength"]):
        return f"must have at least {definition['MinLength']} characters"
    if "MaxLength" in definition and len(item) > int(definition["MaxLength"]):
        return f"must have at most {definition['MaxLength']} characters"
    return ""


def _cidr_problem(item: str) -> str:
    """Return why a text is no IPv4 address range, which a pattern cannot check; an empty text if it is one."""
    try:
        IPv4Network(item, strict=False)
    except ValueError as error:
        # Python's messages end with "in" and the value, which the caller's message contains already.
        reason, _, _ = str(error).partition(" in ")
        return reason[:1].lower() + reason[1:]
    return ""


def _fits_pattern(definition: TemplatePart, value: str) -> bool:
    """Return whether a value matches the parameter's `AllowedPattern`, if there is one."""
    pattern = definition.get("AllowedPattern")
    if not pattern:
        return True
    try:
        return bool(re.fullmatch(str(pattern), value))
    except re.error:
        # Java's regular expressions, which CloudFormation uses, have features that Python lacks; CloudFormation checks.
        return True
