"""Actions on the events of stacks."""

from __future__ import annotations

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import find_stack
from cfngen.sandbox.cloudformation import Stack, StackEvent, ValidationError
from cfngen.sandbox.cloudformation.change_sets import ChangeSet, FailedValidation
from cfngen.sandbox.cloudformation.properties import PROPERTY_VALIDATION
from cfngen.sandbox.untyped import JsonDict

FAILED_SUFFIX = "_FAILED"  # of the statuses of stacks and resources after a failure


def describe_stack_events(request: ActionRequest) -> Result:
    """DescribeStackEvents: return the events of one stack, newest first."""
    stack = find_stack(request, "Stack [{}] does not exist")
    events = [event for event in reversed(stack.events) if request.has_happened(event.time)]
    return request.page(
        "StackEvents", events, key_of=lambda event: event.id, describe=lambda event: _stack_event(stack, event)
    )


def describe_events(request: ActionRequest) -> Result:
    """DescribeEvents: return events, newest first as in DescribeStackEvents (the API reference does not say)."""
    events = [event for event in _select_events(request) if request.has_happened(event["Timestamp"])]
    if str((request.params.get("Filters") or {}).get("FailedEvents", "")).lower() == "true":
        events = [event for event in events if _has_failed(event)]
    events.sort(key=lambda event: event["Timestamp"])
    newest_first = events[::-1]
    return request.page("OperationEvents", newest_first, key_of=lambda event: str(event["EventId"]), describe=dict)


def _select_events(request: ActionRequest) -> list[Result]:
    change_set_name, stack_name = request.text("ChangeSetName"), request.text("StackName")
    operation_id = request.text("OperationId")
    # A change set's name without a stack is not accepted (aws-cloudformation/cloudformation-cli#1116).
    if change_set_name.startswith("arn:") or (change_set_name and stack_name):
        return _validation_events(_failed_validation(request.emulator.change_set(change_set_name, stack_name)))
    if stack_name:
        return [event for event in _all_events(request) if event["StackId"] == find_stack(request).id]
    if operation_id:
        return [event for event in _all_events(request) if event["OperationId"] == operation_id]
    raise ValidationError("One of ChangeSetName, OperationId or StackName must be specified")


def _all_events(request: ActionRequest) -> list[Result]:
    events = [_operation_event(stack, event) for stack in request.emulator.stacks() for event in stack.events]
    validations = [*map(_failed_validation, request.emulator.all_change_sets()), *request.emulator.failed_validations]
    return events + [event for validation in validations for event in _validation_events(validation)]


def _failed_validation(change_set: ChangeSet) -> FailedValidation:
    return FailedValidation(
        change_set.stack,
        change_set.revision,
        change_set.operation_id,
        "CREATE_CHANGESET",
        change_set.created,
        change_set.token,
    )


def _validation_events(validation: FailedValidation) -> list[Result]:
    """Return what early validation found, as events."""
    return [
        {
            "EventId": f"{validation.operation_id}-{number}",
            "StackId": validation.stack.id,
            "OperationId": validation.operation_id,
            "OperationType": validation.operation_type,
            "OperationStatus": "FAILED",
            "EventType": "VALIDATION_ERROR",
            "LogicalResourceId": logical_id,
            "ResourceType": validation.revision.template.resources[logical_id].type,
            "Timestamp": validation.time,
            "ClientRequestToken": validation.token or None,
            "ValidationFailureMode": "FAIL",
            "ValidationName": PROPERTY_VALIDATION,
            "ValidationStatus": "FAILED",
            "ValidationStatusReason": error.message,
            "ValidationPath": f"/Resources/{logical_id}/Properties{error.path.removeprefix('#')}",
        }
        for number, (logical_id, error) in enumerate(validation.revision.invalid_properties.items())
    ]


def _has_failed(event: Result) -> bool:
    return event.get("ValidationStatus") == "FAILED" or str(event.get("ResourceStatus", "")).endswith(FAILED_SUFFIX)


def _stack_event(stack: Stack, event: StackEvent) -> Result:
    return {
        "StackId": stack.id,
        "EventId": event.id,
        "StackName": stack.name,
        "OperationId": event.operation_id or None,
        **_resource_fields(event),
    }


def _operation_event(stack: Stack, event: StackEvent) -> Result:
    operation_types = dict(stack.operations)
    is_about_stack_itself = event.physical_id == stack.id  # the other events are about resources
    return {
        "EventId": event.id,
        "StackId": stack.id,
        "OperationId": event.operation_id or None,
        "OperationType": operation_types.get(event.operation_id),
        "OperationStatus": _operation_status(event.status) if is_about_stack_itself else None,
        "EventType": "STACK_EVENT",
        **_resource_fields(event),
    }


def _resource_fields(event: StackEvent) -> JsonDict:
    """Return the fields that both forms of an event share."""
    return {
        "LogicalResourceId": event.logical_id,
        "PhysicalResourceId": event.physical_id,
        "ResourceType": event.type,
        "Timestamp": event.time,
        "ResourceStatus": event.status,
        "ResourceStatusReason": event.reason or None,
        "ResourceProperties": event.properties or None,
        "ClientRequestToken": event.token or None,
    }


def _operation_status(status: str) -> str:
    """Return the status of an operation, from the status of its stack."""
    if status.endswith("_IN_PROGRESS"):
        return "IN_PROGRESS"
    return "FAILED" if status.endswith(FAILED_SUFFIX) or "ROLLBACK" in status else "SUCCEEDED"
