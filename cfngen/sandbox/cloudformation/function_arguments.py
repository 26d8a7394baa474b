"""Arguments of intrinsic functions: their forms, and what they refer to, checked before any function is resolved.

Functions follow the template reference, "Intrinsic functions" and "Condition functions". Arguments are checked where
CloudFormation is known to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.untyped import Expression, TemplateBody

PSEUDO_PARAMETERS = frozenset(
    f"AWS::{name}"
    for name in ("AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix")
)
# Fn::Cidr: the number of ranges to return, and their size as a number of host bits.
ALLOWED_CIDR_COUNTS = range(1, 257)
ALLOWED_CIDR_BITS = range(1, 129)
DEFAULT_CIDR_BITS = 8
# In texts of Fn::Sub: `${Name}`, but not `${!Name}`, which stands for the literal text `${Name}`.
PLACEHOLDER_PATTERN = re.compile(r"\$\{(?!!)([^}]*)\}")
VARIABLE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_.:]+")


def _is_list(value: object, *lengths: int) -> bool:
    return isinstance(value, list) and len(value) in lengths


def _is_get_stack_output(value: Expression) -> bool:
    required, optional = {"StackName", "OutputName"}, {"Region", "RoleArn"}
    return isinstance(value, dict) and required <= value.keys() <= required | optional


class _Form(NamedTuple):
    """The form that the argument of a function must have: whether a value has it, and the error if it has not."""

    fits: Callable[[Expression], bool]
    error: str


FORMS: Mapping[str, _Form] = {
    **{
        name: _Form(
            lambda value: _is_list(value, *range(2, 11)),
            f"every {name} object requires a list of at least 2 and at most 10 boolean parameters.",
        )
        for name in ("Fn::And", "Fn::Or")
    },
    "Fn::Base64": _Form(
        lambda value: isinstance(value, (str, dict)), "every Fn::Base64 object must have a String-typed value."
    ),
    "Fn::Cidr": _Form(
        lambda value: _is_list(value, 2, 3),
        "every Fn::Cidr object requires two parameters, (1) ipBlock and (2) count, and may have a third one, "
        "(3) cidrBits",
    ),
    "Fn::Equals": _Form(
        lambda value: _is_list(value, 2), "every Fn::Equals object requires a list of 2 string parameters."
    ),
    "Fn::FindInMap": _Form(
        lambda value: _is_list(value, 3),
        "every Fn::FindInMap object requires three parameters, the map name, map key and the attribute for return "
        "value",
    ),
    # The words are assumed.
    "Fn::GetStackOutput": _Form(
        _is_get_stack_output, "every Fn::GetStackOutput object requires StackName and OutputName"
    ),
    "Fn::If": _Form(
        lambda value: _is_list(value, 3) and isinstance(value[0], str),
        "Fn::If requires a list argument with three elements: a condition and two values",
    ),
    "Fn::Join": _Form(
        lambda value: _is_list(value, 2) and isinstance(value[0], str) and isinstance(value[1], (list, dict)),
        "every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of strings to be joined "
        "or a function that returns a list of strings (such as Fn::GetAZs) to be joined.",
    ),
    "Fn::Not": _Form(lambda value: _is_list(value, 1), "every Fn::Not object requires one boolean parameter."),
    "Fn::Select": _Form(
        lambda value: _is_list(value, 2) and isinstance(value[1], (list, dict)),
        "Fn::Select requires a list argument with two elements: an integer index and a list",
    ),
    "Fn::Split": _Form(
        lambda value: _is_list(value, 2) and isinstance(value[0], str),
        "every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string to be split or a "
        "function that returns a string to be split.",
    ),
}


def check_argument(body: TemplateBody, section: str, function: str, argument: Expression) -> None:
    """Check the argument of a function in a section of the template, such as `Resources`.

    Raises:
        ValidationError: it has not the form that it must have, or refers to what the template does not have
    """
    form = FORMS.get(function)
    if form and not form.fits(argument):
        raise ValidationError(f"Template error: {form.error}")
    if function == "Fn::Cidr":
        _check_cidr(argument)
    elif function == "Fn::FindInMap":
        _check_find_in_map(body, argument)
    elif function == "Fn::GetAtt":
        logical_id = logical_id_of_get_att(argument)
        if logical_id not in body["Resources"]:
            raise ValidationError(f"Template error: instance of Fn::GetAtt references undefined resource {logical_id}")
    elif function == "Fn::If":
        check_condition_is_declared(body, argument[0], section)
    elif function == "Fn::Select":
        _check_select(argument)
    elif function == "Fn::Sub":
        _check_sub(section, argument)


def refuse_unresolved(names: Collection[str], section: str) -> None:
    """Raise the error for references in a section to what does not exist, or what a condition leaves out."""
    raise ValidationError(
        f"Template format error: Unresolved resource dependencies [{', '.join(sorted(names))}] in the {section} block "
        "of the template"
    )


def logical_id_of_get_att(argument: Expression) -> str:
    """The logical id in an argument of Fn::GetAtt: `LogicalId.Attribute`, or a list of both.

    Raises:
        ValidationError: the argument is malformed
    """
    parts = argument.split(".", 1) if isinstance(argument, str) else argument
    if not isinstance(parts, list) or len(parts) != 2 or not isinstance(parts[0], str) or not all(parts):
        raise ValidationError(
            "Template error: every Fn::GetAtt object requires two non-empty parameters, the resource name and the "
            "resource attribute"
        )
    return parts[0]


def check_condition_is_declared(body: TemplateBody, name: object, section: str) -> None:
    """Refuse the name of a condition that the template does not declare; None stands for no condition."""
    if name is not None and name not in body.get("Conditions", {}):
        raise ValidationError(
            f"Template format error: Unresolved condition dependency {name} in the {section} block of the template"
        )


def _check_select(argument: Expression) -> None:
    index, items = argument
    is_literal_index = isinstance(index, (int, str))  # otherwise a function, which is not resolved yet
    if is_literal_index and not re.fullmatch(r"\d+", str(index)):
        raise ValidationError(
            "Template error: Fn::Select requires a list argument with a valid index value as its first element"
        )
    if is_literal_index and isinstance(items, list) and int(index) >= len(items):
        raise ValidationError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")


def _check_sub(section: str, argument: Expression) -> None:
    text, local_values = argument if _is_list(argument, 2) else (argument, {})
    if not isinstance(text, str) or not isinstance(local_values, dict):
        raise ValidationError(
            "Template error: One or more Fn::Sub intrinsic functions don't specify expected arguments. Specify a "
            "string as first argument, and an optional second argument to specify a mapping of values to replace in "
            "the string"
        )
    for name in PLACEHOLDER_PATTERN.findall(text):
        if not VARIABLE_NAME_PATTERN.fullmatch(name):
            raise ValidationError(
                "Template error: variable names in Fn::Sub syntax must contain only alphanumeric characters, "
                "underscores, periods, and colons"
            )
        if name.startswith("AWS::") and name not in local_values and name not in PSEUDO_PARAMETERS:
            refuse_unresolved([name], section)


def _check_find_in_map(body: TemplateBody, argument: Expression) -> None:
    mapping_name, top_level_key, second_level_key = argument
    mappings = body.get("Mappings", {})
    if isinstance(mapping_name, str) and mapping_name not in mappings:
        raise ValidationError(
            f"Template error: Mapping named '{mapping_name}' is not present in the 'Mappings' section of template."
        )
    if not all(isinstance(part, str) for part in argument):
        return  # a part is a function, which is not resolved yet
    if second_level_key not in mappings[mapping_name].get(top_level_key, {}):
        raise ValidationError(
            f"Template error: Unable to get mapping for {mapping_name}::{top_level_key}::{second_level_key}"
        )


def _check_cidr(argument: Expression) -> None:
    count = argument[1]
    bits = argument[2] if len(argument) == 3 else DEFAULT_CIDR_BITS
    for value, allowed in ((count, ALLOWED_CIDR_COUNTS), (bits, ALLOWED_CIDR_BITS)):
        is_literal = isinstance(value, (int, str))  # otherwise a function, which is not resolved yet
        if is_literal and not (str(value).isdigit() and int(value) in allowed):
            raise ValidationError(f"Template error: Fn::Cidr: {value} is not between {allowed[0]} and {allowed[-1]}")
