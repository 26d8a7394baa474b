"""Actions on the resources of a stack."""

from __future__ import annotations

import json

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import find_stack, resource_status
from cfngen.sandbox.cloudformation import Resource, Stack, ValidationError
from cfngen.sandbox.json_types import JsonDict

MAX_RESOURCES = 100  # API reference: the limit of DescribeStackResources, which has no pages


def describe_stack_resources(request: ActionRequest) -> Result:
    """DescribeStackResources: return the resources of a stack, named directly or by a resource's physical id."""
    if physical_id := request.text("PhysicalResourceId"):
        owning_stacks = [
            candidate
            for candidate in request.emulator.stacks()
            if any(resource.physical_id == physical_id for resource in candidate.resources.values())
        ]
        if not owning_stacks:
            raise ValidationError(f"Stack for {physical_id} does not exist")
        stack = owning_stacks[-1]
    else:
        stack = find_stack(request)
    resources = _visible_resources(request, stack)
    if logical_id := request.text("LogicalResourceId"):
        resources = [resource for resource in resources if resource.logical_id == logical_id]
    return {"StackResources": [_describe_resource(request, stack, resource) for resource in resources[:MAX_RESOURCES]]}


def describe_stack_resource(request: ActionRequest) -> Result:
    """DescribeStackResource: return one resource."""
    stack, logical_id = find_stack(request, "Stack '{}' does not exist"), request.text("LogicalResourceId")
    for resource in _visible_resources(request, stack):
        if resource.logical_id == logical_id:
            metadata = json.dumps(resource.definition.body.get("Metadata", {}))
            return {
                "StackResourceDetail": {
                    **_stack_fields(stack),
                    **_summarize(request, stack, resource),
                    "Metadata": metadata,
                }
            }
    raise ValidationError(f"Resource {logical_id} does not exist for stack {request.text('StackName')}")


def list_stack_resources(request: ActionRequest) -> Result:
    """ListStackResources: return all resources of a stack."""
    stack = find_stack(request)
    return request.page(
        "StackResourceSummaries",
        _visible_resources(request, stack),
        key_of=lambda resource: resource.logical_id,
        describe=lambda resource: _summarize(request, stack, resource),
    )


def _visible_resources(request: ActionRequest, stack: Stack) -> list[Resource]:
    """Return the resources that exist, or have existed, at the time that a read shows."""
    return [resource for resource in stack.resources.values() if resource_status(request, stack, resource)[0]]


def _stack_fields(stack: Stack) -> JsonDict:
    return {"StackName": stack.name, "StackId": stack.id}


def _summarize(request: ActionRequest, stack: Stack, resource: Resource) -> JsonDict:
    """Return a resource in the form of ListStackResources."""
    status, reason, since = resource_status(request, stack, resource)
    return {
        "LogicalResourceId": resource.logical_id,
        "PhysicalResourceId": resource.physical_id or None,
        "ResourceType": resource.type,
        "LastUpdatedTimestamp": since,
        "ResourceStatus": status,
        "ResourceStatusReason": reason or None,
        "DriftInformation": {"StackResourceDriftStatus": resource.drift},
    }


def _describe_resource(request: ActionRequest, stack: Stack, resource: Resource) -> Result:
    """Return a resource in the form of DescribeStackResources, whose timestamp has another name."""
    summary = _summarize(request, stack, resource)
    return {**_stack_fields(stack), "Timestamp": summary.pop("LastUpdatedTimestamp"), **summary}
