"""Actions on the resources of a stack."""

from __future__ import annotations

import json
from typing import Any

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import found, resource_status
from cfngen.sandbox.cloudformation import Resource, Stack, ValidationError

AT_ONCE = 100  # API: DescribeStackResources returns at most so many, and has no pages


def describe_stack_resources(asked: ActionRequest) -> Result:
    """Show resources of a stack, or of the stack that has a physical id."""
    if physical := asked.text("PhysicalResourceId"):
        owners = [
            each
            for each in asked.cloud.stacks()
            if any(resource.physical_id == physical for resource in each.resources.values())
        ]
        if not owners:
            raise ValidationError(f"Stack for {physical} does not exist")
        stack = owners[-1]
    else:
        stack = found(asked)
    seen = _seen(asked, stack)
    if logical := asked.text("LogicalResourceId"):
        seen = [each for each in seen if each.logical_id == logical]
    return {"StackResources": [_resource(asked, stack, each) for each in seen[:AT_ONCE]]}


def describe_stack_resource(asked: ActionRequest) -> Result:
    """Show one resource."""
    stack, logical = found(asked, "Stack '{}' does not exist"), asked.text("LogicalResourceId")
    for each in _seen(asked, stack):
        if each.logical_id == logical:
            metadata = json.dumps(each.definition.body.get("Metadata", {}))
            return {"StackResourceDetail": {**_named(stack), **_summary(asked, stack, each), "Metadata": metadata}}
    raise ValidationError(f"Resource {logical} does not exist for stack {asked.text('StackName')}")


def list_stack_resources(asked: ActionRequest) -> Result:
    """Show every resource of a stack."""
    stack = found(asked)
    return asked.page(
        "StackResourceSummaries",
        _seen(asked, stack),
        lambda each: each.logical_id,
        lambda each: _summary(asked, stack, each),
    )


def _seen(asked: ActionRequest, stack: Stack) -> list[Resource]:
    return [resource for resource in stack.resources.values() if resource_status(asked, stack, resource)[0]]


def _named(stack: Stack) -> dict[str, Any]:
    return {"StackName": stack.name, "StackId": stack.id}


def _summary(asked: ActionRequest, stack: Stack, resource: Resource) -> dict[str, Any]:
    status, reason, since = resource_status(asked, stack, resource)
    return {
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id or None,
        "ResourceType": resource.type,
        "LastUpdatedTimestamp": since,
        "ResourceStatus": status,
        "ResourceStatusReason": reason or None,
        "DriftInformation": {"StackResourceDriftStatus": resource.drift},
    }


def _resource(asked: ActionRequest, stack: Stack, resource: Resource) -> Result:
    summary = _summary(asked, stack, resource)
    return {**_named(stack), "Timestamp": summary.pop("LastUpdatedTimestamp"), **summary}
