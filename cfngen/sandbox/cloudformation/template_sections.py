"""Sections of a template: their form, and which intrinsic functions may be used in each.

The checks are made before any function is resolved. Sections follow the CloudFormation user guide, functions the
template reference, "Intrinsic functions" and "Condition functions". `function_arguments` checks their arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Set
from typing import NamedTuple

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.function_arguments import (
    PSEUDO_PARAMETERS,
    check_argument,
    check_condition_is_declared,
    logical_id_of_get_att,
    refuse_unresolved,
)
from cfngen.sandbox.untyped import Expression, TemplateBody

FORMAT_VERSION = "2010-09-09"
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


class FunctionCall(NamedTuple):
    """An intrinsic function in a template.

    Attributes:
        container: the name of the resource, output, condition or rule that contains the function.
        function: Ref, Condition, or a name that begins with "Fn::".
    """

    container: str
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
        check_condition_is_declared(body, resource.get("Condition"), "Resources")


def _check_outputs(body: TemplateBody) -> None:
    export_names: list[str] = []
    for name, output in body.get("Outputs", {}).items():
        if not isinstance(output, dict) or "Value" not in output:
            raise ValidationError("Template format error: Every Outputs member must contain a Value object")
        check_condition_is_declared(body, output.get("Condition"), "Outputs")
        if "Export" in output:
            if not isinstance(output["Export"], dict) or set(output["Export"]) != {"Name"}:
                raise ValidationError(f"Template format error: Output {name} is malformed. The Export needs a Name")
            export_names.append(str(output["Export"]["Name"]))
    if len(set(export_names)) < len(export_names):
        raise ValidationError("Template format error: Export names must be unique within a template")


def _check_mappings(body: TemplateBody) -> None:
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
            check_condition_is_declared(body, dependency, "Conditions")
    used_resources: set[str] = set()
    for call in _function_calls(conditions):
        if call.function == "Ref" and call.argument in body["Resources"]:
            used_resources.add(call.argument)
        elif call.function == "Fn::GetAtt":
            used_resources.add(logical_id_of_get_att(call.argument))
    if used_resources:
        raise ValidationError(
            f"Template format error: Unresolved dependencies [{', '.join(sorted(used_resources))}]. Cannot reference "
            "resources in the Conditions block of the template"
        )
    if circular := names_in_circles(dependencies):
        raise ValidationError(f"Template error: Found circular condition dependency with {', '.join(circular)}")


def names_in_circles(dependencies: Mapping[str, Set[str]]) -> list[str]:
    """Return the names that depend on each other in a circle, and those that depend on such names; sorted."""
    remaining = dict(dependencies)
    while resolvable := [name for name, needed in remaining.items() if not needed & set(remaining)]:
        for name in resolvable:
            del remaining[name]
    return sorted(remaining)


def _function_calls(value: Expression, container: str = "") -> Iterator[FunctionCall]:
    """Yield all functions in a section, or in a value in it.

    Args:
        container: the top-level key of the section that contains the value; "" if the value is the section itself
    """
    if isinstance(value, list):
        for item in value:
            yield from _function_calls(item, container)
    elif isinstance(value, dict):
        for key, item in value.items():
            is_ref = key == "Ref" and len(value) == 1
            is_condition = key == "Condition" and len(value) == 1 and isinstance(item, str)
            if key.startswith("Fn::") or is_ref or is_condition:
                yield FunctionCall(container, key, item)
            yield from _function_calls(item, container or key)


def _check_function(body: TemplateBody, section: str, call: FunctionCall) -> None:
    container, function, argument = call
    location = f"[/{section}/{container}]"
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
        refuse_unresolved([argument], section)
    check_argument(body, section, function, argument)
