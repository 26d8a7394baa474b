"""Checks the syntax of a template's sections and intrinsic functions, before any function is resolved.

Sections follow the CloudFormation user guide, functions the template reference, "Intrinsic functions" and "Condition
functions". Arguments of functions are checked where CloudFormation is known to refuse them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.json_types import Expression, TemplateBody

# Checks the argument of a function. It is called with the template, the section that contains the function (such as
# "Resources") and the argument.
ArgumentCheck = Callable[[TemplateBody, str, Expression], None]

FORMAT_VERSION = "2010-09-09"
PSEUDO_PARAMETERS = frozenset(
    f"AWS::{name}"
    for name in ("AccountId", "NotificationARNs", "NoValue", "Partition", "Region", "StackId", "StackName", "URLSuffix")
)
PARAMETER_TYPE_PATTERN = re.compile(
    r"String|Number|List<Number>|CommaDelimitedList|AWS::[A-Za-z0-9]+::[A-Za-z0-9:]+|List<(String|AWS::[A-Za-z0-9:]+)>"
    r"|AWS::SSM::Parameter::Value<(String|CommaDelimitedList|List<String>|AWS::[A-Za-z0-9:]+|List<AWS::[A-Za-z0-9:]+>)>"
)
CONDITION_FUNCTIONS = frozenset({"Fn::And", "Fn::Equals", "Fn::Not", "Fn::Or"})
RULE_FUNCTIONS = frozenset(
    {"Fn::Contains", "Fn::EachMemberEquals", "Fn::EachMemberIn", "Fn::RefAll", "Fn::ValueOf", "Fn::ValueOfAll"}
)
FUNCTIONS = CONDITION_FUNCTIONS | RULE_FUNCTIONS | {
    "Fn::Base64", "Fn::Cidr", "Fn::FindInMap", "Fn::ForEach", "Fn::GetAZs", "Fn::GetAtt", "Fn::GetStackOutput",
    "Fn::If", "Fn::ImportValue", "Fn::Join", "Fn::Length", "Fn::Select", "Fn::Split", "Fn::Sub", "Fn::ToJsonString",
    "Fn::Transform",
}  # fmt: skip
MAX_MAPPING_KEYS = 200
# Fn::Cidr: the number of ranges to return, and their size as a number of host bits.
ALLOWED_CIDR_COUNTS = range(1, 257)
ALLOWED_CIDR_BITS = range(1, 129)
DEFAULT_CIDR_BITS = 8
# In texts of Fn::Sub: `${Name}`, but not `${!Name}`, which stands for the literal text `${Name}`.
PLACEHOLDER_PATTERN = re.compile(r"\$\{(?!!)([^}]*)\}")
VARIABLE_NAME_PATTERN = re.compile(r"[A-Za-z0-9_.:]+")


class FunctionCall(NamedTuple):
    """An intrinsic function in a template.

    Attributes:
        owner: the name of the resource, output, condition or rule that contains the function.
        function: Ref, Condition, or a name that begins with "Fn::".
        argument: the function's argument.
    """

    owner: str
    function: str
    argument: Expression


def check_sections_and_functions(body: TemplateBody) -> None:
    """Check that a template's sections and intrinsic functions are well-formed.

    Raises:
        ValidationError: CreateStack would refuse the template
    """
    if body.get("AWSTemplateFormatVersion", FORMAT_VERSION) != FORMAT_VERSION:
        raise ValidationError("Template format error: unsupported value for AWSTemplateFormatVersion.")
    for path in _paths_of_nulls(body, ""):
        raise ValidationError(f"Template format error: [{path}] 'null' values are not allowed in templates")
    _check_parameters(body)
    _check_resources(body)
    _check_outputs(body)
    _check_mappings(body)
    _check_conditions(body)
    for section in ("Resources", "Outputs", "Conditions", "Rules"):
        for call in _function_calls(body.get(section, {})):
            _check_function(body, section, call)


def _paths_of_nulls(value: object, path: str) -> Iterator[str]:
    """Yield the path of each null in a value; `path` is the path of the value itself."""
    if value is None:
        yield path
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _paths_of_nulls(item, f"{path}/{key}")
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _paths_of_nulls(item, f"{path}/{index}")


def _check_parameters(body: TemplateBody) -> None:
    """Check the declarations of parameters."""
    for name, parameter in body.get("Parameters", {}).items():
        if not isinstance(parameter, dict) or "Type" not in parameter:
            raise ValidationError("Template format error: Every Parameters object must contain a Type member.")
        if not PARAMETER_TYPE_PATTERN.fullmatch(str(parameter["Type"])):
            raise ValidationError(f"Template format error: Unrecognized parameter type: {parameter['Type']}")
        if isinstance(parameter.get("Default"), (dict, list)):
            raise ValidationError("Template format error: Every Default member must be a string.")
        if name in body.get("Resources", {}):
            raise ValidationError(f"Template format error: Duplicate logical id {name} in Parameters and Resources")


def _check_resources(body: TemplateBody) -> None:
    """Check the attributes of resources that every resource type has."""
    for name, resource in body["Resources"].items():
        prefix = f"Template format error: [/Resources/{name}]"
        if not isinstance(resource, dict) or "Type" not in resource:
            raise ValidationError(f"{prefix} Every Resources object must contain a Type member.")
        if not isinstance(resource["Type"], str):
            raise ValidationError(f"{prefix} Every Type member must be a string.")
        for attribute in ("DeletionPolicy", "UpdateReplacePolicy"):
            if not isinstance(resource.get(attribute, ""), str):
                raise ValidationError(f"{prefix} Every {attribute} member must be a string.")
        if not isinstance(resource.get("Properties", {}), dict):
            raise ValidationError(f"{prefix} 'Properties' must be an object")
        depends_on = resource.get("DependsOn", [])
        dependencies = depends_on if isinstance(depends_on, list) else [depends_on]
        if not all(isinstance(dependency, str) for dependency in dependencies):
            raise ValidationError(f"{prefix} DependsOn must be a string or list of strings.")
        _check_condition_is_declared(body, resource.get("Condition"), "Resources")


def _check_outputs(body: TemplateBody) -> None:
    """Check the values and exports of outputs."""
    export_names: list[str] = []
    for name, output in body.get("Outputs", {}).items():
        if not isinstance(output, dict) or "Value" not in output:
            raise ValidationError("Template format error: Every Outputs member must contain a Value object")
        _check_condition_is_declared(body, output.get("Condition"), "Outputs")
        if "Export" in output:
            if not isinstance(output["Export"], dict) or set(output["Export"]) != {"Name"}:
                raise ValidationError(f"Template format error: Output {name} is malformed. The Export needs a Name")
            export_names.append(str(output["Export"]["Name"]))
    if len(set(export_names)) < len(export_names):
        raise ValidationError("Template format error: Export names must be unique within a template")


def _check_mappings(body: TemplateBody) -> None:
    """Check that mappings have two levels of keys, and texts or lists below them."""
    for name, mapping in body.get("Mappings", {}).items():
        if not isinstance(mapping, dict) or not all(
            isinstance(second_level, dict) for second_level in mapping.values()
        ):
            raise ValidationError(f"Template format error: Mapping {name} needs two levels of keys")
        if len(mapping) > MAX_MAPPING_KEYS:
            raise ValidationError(
                f"Template format error: Number of mapping attributes, {len(mapping)}, is greater than maximum "
                f"allowed, {MAX_MAPPING_KEYS}"
            )
        values = [value for second_level in mapping.values() for value in second_level.values()]
        if any(isinstance(value, dict) for value in values):
            raise ValidationError(
                f"Template format error: Every Mappings attribute must be a String or a List. ({name})"
            )


def _check_conditions(body: TemplateBody) -> None:
    """Check that conditions are made of condition functions, parameters and other conditions, without circles."""
    conditions = body.get("Conditions", {})
    dependencies: dict[str, set[str]] = {}  # by the name of a condition: the conditions that it refers to
    for name, condition in conditions.items():
        is_single_function = isinstance(condition, dict) and len(condition) == 1
        if not is_single_function or not set(condition) <= CONDITION_FUNCTIONS | {"Condition"}:
            raise ValidationError(
                "Template format error: Conditions can only be boolean operations on parameters and other conditions "
                f"({name})"
            )
        dependencies[name] = {call.argument for call in _function_calls(condition) if call.function == "Condition"}
        for dependency in dependencies[name]:
            _check_condition_is_declared(body, dependency, "Conditions")
    used_resources: set[str] = set()
    for call in _function_calls(conditions):
        if call.function == "Ref" and call.argument in body["Resources"]:
            used_resources.add(call.argument)
        elif call.function == "Fn::GetAtt":
            used_resources.add(_logical_id_of_get_att(call.argument))
    if used_resources:
        raise ValidationError(
            f"Template format error: Unresolved dependencies [{', '.join(sorted(used_resources))}]. Cannot reference "
            "resources in the Conditions block of the template"
        )
    # Remove conditions without dependencies until none is left, or only those that depend on each other in a circle.
    remaining = dict(dependencies)
    while resolvable := [name for name, needed in remaining.items() if not needed & set(remaining)]:
        for name in resolvable:
            del remaining[name]
    if remaining:
        raise ValidationError(
            f"Template error: Found circular condition dependency with {', '.join(sorted(remaining))}"
        )


def _check_condition_is_declared(body: TemplateBody, name: object, section: str) -> None:
    """Refuse the name of a condition that the template does not declare; None stands for no condition."""
    if name is not None and name not in body.get("Conditions", {}):
        raise ValidationError(
            f"Template format error: Unresolved condition dependency {name} in the {section} block of the template"
        )


def _function_calls(value: Expression, owner: str = "") -> Iterator[FunctionCall]:
    """Yield all functions in a section, or in another value.

    Args:
        value: the section, or a value in it
        owner: the top-level key of the section that contains the value; "" if the value is the section itself
    """
    if isinstance(value, list):
        for item in value:
            yield from _function_calls(item, owner)
    elif isinstance(value, dict):
        for key, item in value.items():
            is_ref = key == "Ref" and len(value) == 1
            is_condition = key == "Condition" and len(value) == 1 and isinstance(item, str)
            if key.startswith("Fn::") or is_ref or is_condition:
                yield FunctionCall(owner, key, item)
            yield from _function_calls(item, owner or key)


def _check_function(body: TemplateBody, section: str, call: FunctionCall) -> None:
    """Check that a function exists, may be used in this section, and has well-formed arguments."""
    owner, function, argument = call
    location = f"[/{section}/{owner}]"
    if function.startswith("Fn::") and function not in FUNCTIONS:
        raise ValidationError(
            f"Template error: {location} Encountered unsupported function: {function} Supported functions are: "
            f"[{', '.join(sorted(FUNCTIONS))}]"
        )
    if function in CONDITION_FUNCTIONS and section not in ("Conditions", "Rules"):
        raise ValidationError(f"Template error: {location} {function} is only supported in conditions and rules")
    if function == "Ref" and (not isinstance(argument, str) or not argument):
        raise ValidationError("Template format error: All Ref references must be of type String")
    if function == "Ref" and argument.startswith("AWS::") and argument not in PSEUDO_PARAMETERS:
        _refuse_unknown_pseudo_parameter(argument, section)
    if function in _ARGUMENT_CHECKS:
        check_argument = _ARGUMENT_CHECKS[function]
        check_argument(body, section, argument)


def _refuse_unknown_pseudo_parameter(name: str, section: str) -> None:
    """Refuse a pseudo parameter that does not exist, such as AWS::Nothing."""
    raise ValidationError(
        f"Template format error: Unresolved resource dependencies [{name}] in the {section} block of the template"
    )


def _logical_id_of_get_att(argument: Expression) -> str:
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


def _check_get_att(body: TemplateBody, section: str, argument: Expression) -> None:
    """Refuse Fn::GetAtt of a resource that the template does not declare."""
    logical_id = _logical_id_of_get_att(argument)
    if logical_id not in body["Resources"]:
        raise ValidationError(f"Template error: instance of Fn::GetAtt references undefined resource {logical_id}")


def _is_list_of_length(value: object, *lengths: int) -> bool:
    """Whether a value is a list of one of these lengths."""
    return isinstance(value, list) and len(value) in lengths


def _check_join(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the delimiter and the list of Fn::Join."""
    if (
        not _is_list_of_length(argument, 2)
        or not isinstance(argument[0], str)
        or not isinstance(argument[1], (list, dict))
    ):
        raise ValidationError(
            "Template error: every Fn::Join object requires two parameters, (1) a string delimiter and (2) a list of "
            "strings to be joined or a function that returns a list of strings (such as Fn::GetAZs) to be joined."
        )


def _check_split(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the delimiter of Fn::Split."""
    if not _is_list_of_length(argument, 2) or not isinstance(argument[0], str):
        raise ValidationError(
            "Template error: every Fn::Split object requires two parameters, (1) a string delimiter and (2) a string "
            "to be split or a function that returns a string to be split."
        )


def _check_select(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the index and the list of Fn::Select."""
    if not _is_list_of_length(argument, 2) or not isinstance(argument[1], (list, dict)):
        raise ValidationError(
            "Template error: Fn::Select requires a list argument with two elements: an integer index and a list"
        )
    index, items = argument
    is_literal_index = isinstance(index, (int, str))  # otherwise a function, which is not resolved yet
    if is_literal_index and not re.fullmatch(r"\d+", str(index)):
        raise ValidationError(
            "Template error: Fn::Select requires a list argument with a valid index value as its first element"
        )
    if is_literal_index and isinstance(items, list) and int(index) >= len(items):
        raise ValidationError(f"Template error: Fn::Select cannot select nonexistent value at index {index}")


def _check_sub(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the text, the local values and the placeholders of Fn::Sub."""
    text: Expression = argument
    local_values: Expression = {}
    if _is_list_of_length(argument, 2):
        text, local_values = argument
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
            _refuse_unknown_pseudo_parameter(name, section)


def _check_if(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the condition of Fn::If."""
    if not _is_list_of_length(argument, 3) or not isinstance(argument[0], str):
        raise ValidationError(
            "Template error: Fn::If requires a list argument with three elements: a condition and two values"
        )
    _check_condition_is_declared(body, argument[0], section)


def _check_find_in_map(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check that Fn::FindInMap names a mapping and keys that exist."""
    if not _is_list_of_length(argument, 3):
        raise ValidationError(
            "Template error: every Fn::FindInMap object requires three parameters, the map name, map key and the "
            "attribute for return value"
        )
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


def _check_equals(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the number of arguments of Fn::Equals."""
    if not _is_list_of_length(argument, 2):
        raise ValidationError("Template error: every Fn::Equals object requires a list of 2 string parameters.")


def _list_of_2_to_10_check(function: str) -> ArgumentCheck:
    """Return a check that the argument of a function such as Fn::And is a list of 2 to 10 items."""

    def check_argument(body: TemplateBody, section: str, argument: Expression) -> None:
        if not _is_list_of_length(argument, *range(2, 11)):
            raise ValidationError(
                f"Template error: every {function} object requires a list of at least 2 and at most 10 boolean "
                "parameters."
            )

    return check_argument


def _check_not(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the number of arguments of Fn::Not."""
    if not _is_list_of_length(argument, 1):
        raise ValidationError("Template error: every Fn::Not object requires one boolean parameter.")


def _check_cidr(body: TemplateBody, section: str, argument: Expression) -> None:
    """Check the count and the bits of Fn::Cidr."""
    if not _is_list_of_length(argument, 2, 3):
        raise ValidationError(
            "Template error: every Fn::Cidr object requires two parameters, (1) ipBlock and (2) count, and may have a "
            "third one, (3) cidrBits"
        )
    count = argument[1]
    bits = argument[2] if len(argument) == 3 else DEFAULT_CIDR_BITS
    for value, allowed in ((count, ALLOWED_CIDR_COUNTS), (bits, ALLOWED_CIDR_BITS)):
        is_literal = isinstance(value, (int, str))  # otherwise a function, which is not resolved yet
        if is_literal and not (str(value).isdigit() and int(value) in allowed):
            raise ValidationError(f"Template error: Fn::Cidr: {value} is not between {allowed[0]} and {allowed[-1]}")


# By the name of a function: the check of its argument.
_ARGUMENT_CHECKS: Mapping[str, ArgumentCheck] = {
    "Fn::And": _list_of_2_to_10_check("Fn::And"),
    "Fn::Cidr": _check_cidr,
    "Fn::Equals": _check_equals,
    "Fn::FindInMap": _check_find_in_map,
    "Fn::GetAtt": _check_get_att,
    "Fn::If": _check_if,
    "Fn::Join": _check_join,
    "Fn::Not": _check_not,
    "Fn::Or": _list_of_2_to_10_check("Fn::Or"),
    "Fn::Select": _check_select,
    "Fn::Split": _check_split,
    "Fn::Sub": _check_sub,
}
