"""Parameters: their types, constraints and values from Parameter Store.

Types and constraints are those of the CloudFormation user guide, "Parameters", "AWS-specific parameter types" and "SSM
parameter types". The constraints of a parameter that is looked up in Parameter Store apply to the name that is looked
up, not to the value that is found.

In the change set of a nested stack the outputs of stacks that do not exist yet are a placeholder. It is a value like
any other: types, patterns and lists that it does not fit refuse it. (The CDK declares such parameters `String`.)
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from cfngen.sandbox.cloudformation.errors import NotModelledError, ValidationError
from cfngen.sandbox.cloudformation.template import Template

STORED = re.compile(r"AWS::SSM::Parameter::Value<(.+)>")
LISTS = re.compile(r"CommaDelimitedList|List<(.+)>")
KEYS = {"Type", "Default", "Description", "ConstraintDescription", "NoEcho", "AllowedPattern", "AllowedValues",
        "MinValue", "MaxValue", "MinLength", "MaxLength"}  # fmt: skip
MAXIMUM_LENGTH = 4096

Exists = Callable[[str, str], bool]


def values(
    template: Template, given: Mapping[str, str], stored: Mapping[str, str], exists: Exists
) -> tuple[dict[str, Any], str]:
    """What Ref gives for each parameter, and why the stack must fail although the call is accepted (or nothing).

    Args:
        template: the template
        given: what the caller gave, all of them strings as in the API
        stored: Parameter Store: values by name
        exists: whether the account has an object of an AWS-specific type (type, value)

    Raises:
        ValidationError: missing, unknown or refused values; nothing is created then
    """
    definitions = template.parameters
    if unknown := sorted(set(given) - set(definitions)):
        raise ValidationError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    missing = [key for key, each in definitions.items() if "Default" not in each and key not in given]
    if missing:
        raise ValidationError(f"Parameters: [{', '.join(missing)}] must have values")
    result: dict[str, Any] = {}
    complaint = ""
    for name, definition in definitions.items():
        text = given.get(name, _text(definition.get("Default")))
        _check(name, definition, text)
        declared = definition["Type"]
        if match := STORED.fullmatch(declared):
            if text not in stored:
                raise ValidationError(f"Unable to fetch parameters [{text}] from parameter store for this account.")
            declared, text = match.group(1), stored[text]
        result[name] = _typed(name, declared, text)
        if declared.startswith("AWS::EC2::") and not exists(declared, text):
            complaint = f"Parameter validation failed: parameter value {text} for parameter name {name} does not exist"
    return result, complaint


def texts(template: Template, given: Mapping[str, str]) -> dict[str, str]:
    """What each parameter was given, or its default."""
    return {name: given.get(name, _text(each.get("Default"))) for name, each in template.parameters.items()}


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _typed(name: str, declared: str, text: str) -> Any:
    if LISTS.fullmatch(declared):
        return [item.strip() for item in text.split(",")] if text else []
    if declared == "Number":
        return _number(name, text)
    if declared == "String" or declared.startswith("AWS::EC2::"):
        return text
    raise NotModelledError(f"parameter type {declared}")


def _number(name: str, text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        try:
            return float(text)
        except ValueError:
            raise ValidationError(f"Parameter '{name}' must be a number.") from None


def _check(name: str, definition: Mapping[str, Any], text: str) -> None:
    if unknown := sorted(set(definition) - KEYS):
        raise ValidationError(f"Template format error: Unrecognized parameter attribute {unknown} ({name})")
    problem = _problem(name, definition, text)
    if problem and (description := definition.get("ConstraintDescription")):
        problem = f"Parameter {name} failed to satisfy constraint: {description}"
    if problem:
        raise ValidationError(problem)


def _problem(name: str, definition: Mapping[str, Any], text: str) -> str:
    if len(text) > min(int(definition.get("MaxLength", MAXIMUM_LENGTH)), MAXIMUM_LENGTH):
        return f"Parameter '{name}' must contain at most {definition.get('MaxLength', MAXIMUM_LENGTH)} characters"
    if len(text) < int(definition.get("MinLength", 0)):
        return f"Parameter '{name}' must contain at least {definition['MinLength']} characters"
    if "AllowedPattern" in definition and not re.fullmatch(definition["AllowedPattern"], text):
        return f"Parameter '{name}' must match pattern {definition['AllowedPattern']}"
    if "AllowedValues" in definition and text not in map(_text, definition["AllowedValues"]):
        return f"Parameter '{name}' must be one of AllowedValues"
    if "MinValue" in definition and _number(name, text) < float(definition["MinValue"]):
        return f"Parameter '{name}' must be a number not less than {definition['MinValue']}"
    if "MaxValue" in definition and _number(name, text) > float(definition["MaxValue"]):
        return f"Parameter '{name}' must be a number not greater than {definition['MaxValue']}"
    return ""
