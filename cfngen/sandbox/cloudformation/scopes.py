"""The scopes of a stack: the values of Ref, GetAtt, GetAZs, ImportValue and GetStackOutput in its template."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import NoReturn

from cfngen.sandbox.cloudformation.errors import ResourceError, ValidationError
from cfngen.sandbox.cloudformation.handlers import client
from cfngen.sandbox.cloudformation.intrinsics import Scope
from cfngen.sandbox.cloudformation.region import ACCOUNT_ID, Region
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack
from cfngen.sandbox.cloudformation.template import import_value_arguments
from cfngen.sandbox.services.policy_documents import partition
from cfngen.sandbox.untyped import Expression, JsonDict


def scope_of_stack(cloud: Region, stack: Stack) -> Scope:
    """The scope of a stack during an operation: parameters, and those resources that are complete by now."""
    physical_ids = {
        logical_id: resource.physical_id
        for logical_id, resource in stack.resources.items()
        if resource.progress == "complete"
    }
    return scope_of_revision(
        cloud,
        stack.revision,
        stack.name,
        stack.id,
        physical_ids=physical_ids,
        attribute=lambda logical_id, name: _attribute_of_complete_resource(stack, logical_id, name),
    )


def scope_of_revision(
    cloud: Region,
    revision: Revision,
    name: str,
    stack_id: str = "",
    *,
    physical_ids: Mapping[str, str] | None = None,
    attribute: Callable[[str, str], Expression] | None = None,
    imported: Callable[[str], str] | None = None,
    scope_class: type[Scope] = Scope,
) -> Scope:
    """The scope in which a revision's expressions are resolved.

    Args:
        physical_ids: physical ids of resources by logical id; without them, Ref works for parameters only
        attribute: returns the value of GetAtt for a logical id and an attribute name; without it, GetAtt fails
        imported: returns the value of an export; without it, the account's exports count
    """
    ref_values: JsonDict = {
        "AWS::AccountId": ACCOUNT_ID,
        "AWS::NotificationARNs": list(revision.notification_arns),
        "AWS::Partition": partition(cloud.region),
        "AWS::Region": cloud.region,
        "AWS::StackId": stack_id,
        "AWS::StackName": name,
        "AWS::URLSuffix": "amazonaws.com.cn" if cloud.region.startswith("cn-") else "amazonaws.com",
        **revision.parameters,
        **(physical_ids or {}),
    }
    return scope_class(
        revision.template.body,
        ref_values,
        attribute=attribute or _refuse_attribute,
        zones=_zone_names,
        imported=imported or functools.partial(exported_value, cloud),
        output_of=functools.partial(_output_value, cloud),
    )


def attribute_of_existing(resource: Resource, name: str) -> Expression:
    """The value of GetAtt for a resource that exists."""
    if name not in resource.attributes:
        raise ResourceError(f"Requested attribute {name} does not exist in schema for {resource.type}")
    return resource.attributes[name]


def _attribute_of_complete_resource(stack: Stack, logical_id: str, name: str) -> Expression:
    """The value of GetAtt for a resource that is complete in the current operation."""
    resource = stack.resources.get(logical_id)
    if resource is None or resource.progress != "complete":
        _refuse_attribute(logical_id, name)
    return attribute_of_existing(resource, name)


def _refuse_attribute(logical_id: str, name: str) -> NoReturn:
    """Refuse GetAtt of a resource that is not complete yet, or in a scope without resources."""
    raise ResourceError(f"Template error: {logical_id} is not complete, so that it has no {name} yet")


def _zone_names(region: str) -> list[str]:
    zones = client("ec2", region).describe_availability_zones()["AvailabilityZones"]
    return [zone["ZoneName"] for zone in zones]


def exported_value(cloud: Region, export_name: str) -> str:
    """The value of an export; ResourceError if no stack has it."""
    for _, name, value in cloud.exports():
        if name == export_name:
            return value
    raise ResourceError(f"No export named {export_name} found.")


def _output_value(cloud: Region, stack_name: str, output: str) -> str:
    """The value of an output of another stack, for Fn::GetStackOutput, which calls DescribeStacks.

    The reference of the function names no error messages. For a missing stack, DescribeStacks' own is assumed.
    """
    try:
        stack = cloud.stack(stack_name)
    except ValidationError as error:
        raise ResourceError(f"Fn::GetStackOutput failed: {error}") from error
    if output not in stack.outputs:
        raise ResourceError(f"Fn::GetStackOutput failed: Output {output} does not exist in stack {stack_name}")
    return stack.outputs[output]


def importing_stacks(cloud: Region, export_name: str) -> list[str]:
    """Names of the stacks that import an export."""
    return [
        stack.name
        for stack in cloud.stacks()
        if stack.status not in ("DELETE_COMPLETE", "REVIEW_IN_PROGRESS")
        and export_name in _imported_names(cloud, stack)
    ]


def _imported_names(cloud: Region, stack: Stack) -> set[str]:
    scope = scope_of_revision(cloud, stack.revision, stack.name, stack.id)
    return {str(scope.resolve(argument)) for argument in import_value_arguments(stack.template.body)}
