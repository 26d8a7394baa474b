"""Actions on drift."""

from __future__ import annotations

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.cloudformation.drift_results import ResourceDrift


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
        "DetectionStatus": detection.status,
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
