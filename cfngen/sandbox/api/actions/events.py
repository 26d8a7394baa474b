"""Actions on what has happened to a stack."""

from __future__ import annotations

from typing import Any

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import found
from cfngen.sandbox.cloudformation import Event, Stack, ValidationError
from cfngen.sandbox.cloudformation.change_sets import ChangeSet

FAILED = "_FAILED"


def describe_stack_events(asked: ActionRequest) -> Result:
    """Show what happened to one stack, the newest first."""
    stack = found(asked, "Stack [{}] does not exist")
    events = [event for event in reversed(stack.events) if asked.now(event.time)]
    return asked.page("StackEvents", events, lambda each: each.id, lambda each: _stack_event(stack, each))


def describe_events(asked: ActionRequest) -> Result:
    """Newest first, like DescribeStackEvents; the API's reference says nothing of the order."""
    wanted = [each for each in _wanted(asked) if asked.now(each["Timestamp"])]
    if str((asked.given.get("Filters") or {}).get("FailedEvents", "")).lower() == "true":
        wanted = [each for each in wanted if _failed(each)]
    wanted.sort(key=lambda each: each["Timestamp"])
    return asked.page("OperationEvents", wanted[::-1], lambda each: str(each["EventId"]), dict)


def _wanted(asked: ActionRequest) -> list[Result]:
    name, stack_name, operation = (asked.text(each) for each in ("ChangeSetName", "StackName", "OperationId"))
    # A change set's bare name is not understood (aws-cloudformation/cloudformation-cli#1116).
    if name.startswith("arn:") or (name and stack_name):
        return _findings(asked.cloud.change_set(name, stack_name))
    if stack_name:
        return [each for each in _all(asked) if each["StackId"] == found(asked).id]
    if operation:
        return [each for each in _all(asked) if each["OperationId"] == operation]
    raise ValidationError("One of ChangeSetName, OperationId or StackName must be specified")


def _all(asked: ActionRequest) -> list[Result]:
    events = [_operation_event(stack, event) for stack in asked.cloud.stacks() for event in stack.events]
    return events + [finding for change_set in asked.cloud.all_change_sets() for finding in _findings(change_set)]


def _findings(change_set: ChangeSet) -> list[Result]:
    """Return what early validation has against a change set."""
    return [
        {
            "EventId": f"{change_set.operation_id}-{number}",
            "StackId": change_set.stack.id,
            "OperationId": change_set.operation_id,
            "OperationType": "CREATE_CHANGESET",
            "OperationStatus": "FAILED" if change_set.status == "FAILED" else "SUCCEEDED",
            "EventType": "VALIDATION_ERROR",
            "LogicalResourceId": each.logical_id,
            "ResourceType": each.type,
            "Timestamp": change_set.created,
            "ClientRequestToken": change_set.token or None,
            "ValidationFailureMode": each.failure_mode,
            "ValidationName": each.validation_name,
            "ValidationStatus": each.status,
            "ValidationStatusReason": each.reason,
            "ValidationPath": each.path,
        }
        for number, each in enumerate(change_set.findings)
    ]


def _failed(event: Result) -> bool:
    return event.get("ValidationStatus") == "FAILED" or str(event.get("ResourceStatus", "")).endswith(FAILED)


def _stack_event(stack: Stack, event: Event) -> Result:
    return {
        "StackId": stack.id,
        "EventId": event.id,
        "StackName": stack.name,
        "OperationId": event.operation_id or None,
        **_what(event),
    }


def _operation_event(stack: Stack, event: Event) -> Result:
    kinds = dict(stack.operations)
    own = event.physical_id == stack.id
    return {
        "EventId": event.id,
        "StackId": stack.id,
        "OperationId": event.operation_id or None,
        "OperationType": kinds.get(event.operation_id),
        "OperationStatus": _outcome(event.status) if own else None,
        "EventType": "STACK_EVENT",
        **_what(event),
    }


def _what(event: Event) -> dict[str, Any]:
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


def _outcome(status: str) -> str:
    if status.endswith("_IN_PROGRESS"):
        return "IN_PROGRESS"
    return "FAILED" if status.endswith(FAILED) or "ROLLBACK" in status else "SUCCEEDED"
