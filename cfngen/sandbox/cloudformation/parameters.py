"""Parameters: their types, constraints and values from Parameter Store.

Types and constraints follow the CloudFormation user guide, "Parameters", "AWS-specific parameter types" and "SSM
parameter types". For a parameter that is looked up in Parameter Store, constraints apply to the name of the stored
parameter, not to its value.

In a nested change set, outputs of stacks that do not exist yet are passed as a placeholder. The placeholder is
validated like any other value, so a type, pattern or list of allowed values can refuse it. (The CDK declares such
parameters as `String`.)
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from typing import NamedTuple

from botocore.exceptions import ClientError

from cfngen.sandbox.cloudformation.errors import NotModelledError, ValidationError
from cfngen.sandbox.cloudformation.handlers import client
from cfngen.sandbox.cloudformation.intrinsics import as_text
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.template import Template
from cfngen.sandbox.untyped import JsonDict, JsonObject

PARAMETER_STORE_TYPE = re.compile(r"AWS::SSM::Parameter::Value<(.+)>")
LIST_TYPE = re.compile(r"CommaDelimitedList|List<(.+)>")
ALLOWED_ATTRIBUTES = {
    "Type", "Default", "Description", "ConstraintDescription", "NoEcho", "AllowedPattern", "AllowedValues", "MinValue",
    "MaxValue", "MinLength", "MaxLength",
}  # fmt: skip
MAX_VALUE_LENGTH = 4096  # characters
_OBJECT_TYPES = ("AWS::EC2::", "AWS::Route53::")  # the beginnings of AWS-specific types


def resolve_values(cloud: Region, template: Template, parameter_values: Mapping[str, str]) -> tuple[JsonDict, str]:
    """Resolve the values of a template's parameters.

    Args:
        parameter_values: the values in the request by parameter name, all of them strings

    Returns:
        the value of Ref for each parameter, and the reason why the stack must fail although the call succeeds, or ""

    Raises:
        ValidationError: a value is missing, unknown or invalid; nothing is created
    """
    _check_names(template, parameter_values)
    ref_values: JsonDict = {}
    failure_reason = ""
    for name, definition in template.parameters.items():
        text = parameter_values.get(name, as_text(definition.get("Default")))
        _check_constraints(name, definition, text)
        if default_problem := _constraint_violation(name, definition, as_text(definition.get("Default", text))):
            # Words: bonusbits/cloudformation_templates#10.
            raise ValidationError(f"Template validation error: {default_problem}")
        parameter_type = definition["Type"]
        if match := PARAMETER_STORE_TYPE.fullmatch(parameter_type):
            stored = cloud.stored_value(text)
            if stored is None:
                raise ValidationError(f"Unable to fetch parameters [{text}] from parameter store for this account.")
            parameter_type, text = match.group(1), stored
        ref_values[name] = _convert(name, parameter_type, text)
        if parameter_type.startswith(_OBJECT_TYPES) and not _exists(cloud.region, parameter_type, text):
            failure_reason = (
                f"Parameter validation failed: parameter value {text} for parameter name {name} does not exist"
            )
    return ref_values, failure_reason


def _check_names(template: Template, parameter_values: Mapping[str, str]) -> None:
    definitions = template.parameters
    if unknown := sorted(set(parameter_values) - set(definitions)):
        raise ValidationError(f"Parameters: [{', '.join(unknown)}] do not exist in the template")
    missing = [
        key for key, declared in definitions.items() if "Default" not in declared and key not in parameter_values
    ]
    if missing:
        raise ValidationError(f"Parameters: [{', '.join(missing)}] must have values")


def value_strings(template: Template, parameter_values: Mapping[str, str]) -> dict[str, str]:
    """The value of each parameter as a string: the one in the request, or the default."""
    return {
        name: parameter_values.get(name, as_text(definition.get("Default")))
        for name, definition in template.parameters.items()
    }


def _convert(name: str, parameter_type: str, text: str) -> str | int | float | list[str]:
    """A parameter's value as Ref returns it: a list, a number or a text, depending on the parameter's type."""
    if LIST_TYPE.fullmatch(parameter_type):
        return [item.strip() for item in text.split(",")] if text else []
    if parameter_type == "Number":
        return _number(name, text)
    if parameter_type == "String" or parameter_type.startswith(_OBJECT_TYPES):
        return text
    raise NotModelledError(f"parameter type {parameter_type}")


def _number(name: str, text: str) -> int | float:
    """A parameter's value as a number.

    Raises:
        ValidationError: the value is no number
    """
    for number_type in (int, float):
        with contextlib.suppress(ValueError):
            return number_type(text)
    raise ValidationError(f"Parameter '{name}' must be a number.")


def _check_constraints(name: str, definition: JsonObject, text: str) -> None:
    """Refuse a value that violates a constraint of the parameter, and unknown attributes of the parameter."""
    if unknown := sorted(set(definition) - ALLOWED_ATTRIBUTES):
        raise ValidationError(f"Template format error: Unrecognized parameter attribute {unknown} ({name})")
    problem = _constraint_violation(name, definition, text)
    if problem and (description := definition.get("ConstraintDescription")):
        problem = f"Parameter {name} failed to satisfy constraint: {description}"
    if problem:
        raise ValidationError(problem)


def _constraint_violation(name: str, definition: JsonObject, text: str) -> str:
    """The error message for the first constraint that a value violates; "" if it violates none."""
    max_length = definition.get("MaxLength", MAX_VALUE_LENGTH)
    if len(text) > min(int(max_length), MAX_VALUE_LENGTH):
        return f"Parameter '{name}' must contain at most {max_length} characters"
    if len(text) < int(definition.get("MinLength", 0)):
        return f"Parameter '{name}' must contain at least {definition['MinLength']} characters"
    if "AllowedPattern" in definition and not re.fullmatch(definition["AllowedPattern"], text):
        return f"Parameter '{name}' must match pattern {definition['AllowedPattern']}"
    if "AllowedValues" in definition and text not in map(as_text, definition["AllowedValues"]):
        return f"Parameter '{name}' must be one of AllowedValues"
    if "MinValue" in definition and _number(name, text) < float(definition["MinValue"]):
        return f"Parameter '{name}' must be a number not less than {definition['MinValue']}"
    if "MaxValue" in definition and _number(name, text) > float(definition["MaxValue"]):
        return f"Parameter '{name}' must be a number not greater than {definition['MaxValue']}"
    return ""


class DescribeCall(NamedTuple):
    """A call of EC2 that finds objects by their ids or names."""

    method: str
    filter_argument: str
    result_key: str


DESCRIBE_CALLS_BY_PARAMETER_TYPE: Mapping[str, DescribeCall] = {
    "AWS::EC2::AvailabilityZone::Name": DescribeCall("describe_availability_zones", "ZoneNames", "AvailabilityZones"),
    "AWS::EC2::Image::Id": DescribeCall("describe_images", "ImageIds", "Images"),
    "AWS::EC2::KeyPair::KeyName": DescribeCall("describe_key_pairs", "KeyNames", "KeyPairs"),
    "AWS::EC2::SecurityGroup::Id": DescribeCall("describe_security_groups", "GroupIds", "SecurityGroups"),
    "AWS::EC2::Subnet::Id": DescribeCall("describe_subnets", "SubnetIds", "Subnets"),
    "AWS::EC2::VPC::Id": DescribeCall("describe_vpcs", "VpcIds", "Vpcs"),
}


def _exists(region: str, parameter_type: str, value: str) -> bool:
    """Whether a parameter's value, such as a VPC id for the type AWS::EC2::VPC::Id, exists in the account.

    Raises:
        NotModelledError: the emulator does not support the parameter type
    """
    if parameter_type == "AWS::Route53::HostedZone::Id":
        return _hosted_zone_exists(region, value)
    if parameter_type not in DESCRIBE_CALLS_BY_PARAMETER_TYPE:
        raise NotModelledError(f"parameter type {parameter_type}")
    describe_call = DESCRIBE_CALLS_BY_PARAMETER_TYPE[parameter_type]
    describe = getattr(client("ec2", region), describe_call.method)
    try:
        response = describe(**{describe_call.filter_argument: [value]})
    except ClientError:  # EC2 refuses ids and names that do not exist
        return False
    return bool(response[describe_call.result_key])


def _hosted_zone_exists(region: str, zone_id: str) -> bool:
    try:
        client("route53", region).get_hosted_zone(Id=zone_id)
    except ClientError:
        return False
    return True
