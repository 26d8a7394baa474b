"""Actions on the resources of stacks, and on their drift."""

from __future__ import annotations

import json

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import find_stack, resource_status
from cfngen.sandbox.cloudformation import Resource, Stack, ValidationError
from cfngen.sandbox.cloudformation.stack import ResourceDrift
from cfngen.sandbox.untyped import JsonDict

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


def detect_stack_drift(request: ActionRequest) -> Result:
    """DetectStackDrift: start to compare a stack's template with its actual resources."""
    return {"StackDriftDetectionId": request.emulator.detect_drift(request.text("StackName"))}


def describe_stack_drift_detection_status(request: ActionRequest) -> Result:
    """DescribeStackDriftDetectionStatus: return the progress and the outcome of a drift detection."""
    detection = request.emulator.drift_detection(request.text("StackDriftDetectionId"))
    return {
        "StackId": detection.stack_id,
        "StackDriftDetectionId": request.text("StackDriftDetectionId"),
        "StackDriftStatus": detection.drift,
        "DetectionStatus": "DETECTION_COMPLETE",
        "DriftedStackResourceCount": detection.drifted_resource_count,
        "Timestamp": detection.time,
    }


def describe_stack_resource_drifts(request: ActionRequest) -> Result:
    """DescribeStackResourceDrifts: return the drift of a stack's resources."""
    statuses = request.values("StackResourceDriftStatusFilters")
    stack = request.emulator.stack(request.text("StackName"))
    drifts = [
        resource_drift
        for resource_drift in request.emulator.resource_drifts(stack.id)
        if not statuses or resource_drift.status in statuses
    ]

    def describe_drift(drift: ResourceDrift) -> Result:
        return {
            "StackId": stack.id,
            "LogicalResourceId": drift.logical_id,
            "PhysicalResourceId": drift.physical_id or None,
            "ResourceType": drift.type,
            "ExpectedProperties": drift.expected or None,
            "ActualProperties": drift.actual or None,
            "PropertyDifferences": [
                {
                    "PropertyPath": difference.path,
                    "ExpectedValue": difference.expected,
                    "ActualValue": difference.actual,
                    "DifferenceType": difference.kind,
                }
                for difference in drift.differences
            ],
            "StackResourceDriftStatus": drift.status,
            "Timestamp": drift.time,
        }

    return request.page("StackResourceDrifts", drifts, key_of=lambda drift: drift.logical_id, describe=describe_drift)
