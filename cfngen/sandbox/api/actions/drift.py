"""Actions on drift."""

from __future__ import annotations

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.cloudformation.drift import ResourceDrift


def detect_stack_drift(asked: ActionRequest) -> Result:
    """Compare a stack with what is there."""
    return {"StackDriftDetectionId": asked.cloud.detect_drift(asked.text("StackName"))}


def describe_stack_drift_detection_status(asked: ActionRequest) -> Result:
    """Show how far a comparison is."""
    found = asked.cloud.drift(asked.text("StackDriftDetectionId"))
    return {
        "StackId": found.stack_id,
        "StackDriftDetectionId": asked.text("StackDriftDetectionId"),
        "StackDriftStatus": found.drift,
        "DetectionStatus": found.status,
        "DriftedStackResourceCount": found.drifted,
        "Timestamp": found.time,
    }


def describe_stack_resource_drifts(asked: ActionRequest) -> Result:
    """Show what a comparison found."""
    wanted = asked.values("StackResourceDriftStatusFilters")
    stack = asked.cloud.stack(asked.text("StackName"))
    found = [
        resource_drift
        for resource_drift in asked.cloud.resource_drifts(stack.id)
        if not wanted or resource_drift.status in wanted
    ]

    def show(drift: ResourceDrift) -> Result:
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

    return asked.page("StackResourceDrifts", found, lambda each: each.logical_id, show)
