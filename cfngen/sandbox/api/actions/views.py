"""Converts stacks to the form of the API's responses.

The fields in each status, and each action's error for a missing stack, were recorded from AWS by LocalStack's tests
(localstack/localstack, tests/aws/services/cloudformation/api, *.snapshot.json).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.cloudformation import Resource, Stack, StackEvent, ValidationError
from cfngen.sandbox.cloudformation.scopes import scope_of_stack
from cfngen.sandbox.cloudformation.stack import Revision, masked_parameters
from cfngen.sandbox.untyped import JsonDict, JsonObject

FORCED_DELETION = "FORCE_DELETE_STACK"  # the deletion mode; assumed: the other one, STANDARD, is not shown


def stack_identifiers(stack: Stack) -> Result:
    """Return the response to a creation, an update or a rollback: the ids of the stack and of the operation."""
    identifiers = {"StackId": stack.id}
    if stack.operations:
        identifiers["OperationId"] = stack.operations[-1][0]
    return identifiers


def events_of_stack_itself(stack: Stack) -> list[StackEvent]:
    """Return the events of the stack itself, without those of its resources."""
    return [event for event in stack.events if event.physical_id == stack.id]


def find_stack(request: ActionRequest, missing_message: str = "Stack with id {} does not exist") -> Stack:
    """Return the stack that a read names. A stale read may still find a deleted stack, or not yet find a new one.

    Args:
        missing_message: text of the error, which differs from action to action; `{}` stands for the stack's name.

    Raises:
        ValidationError: there is no such stack
    """
    name = request.text("StackName")
    for stack in reversed(request.emulator.stacks()):
        stack_status, _ = status_and_reason(request, stack)
        exists_by_name = name == stack.name and stack_status != "DELETE_COMPLETE"
        if stack_status and (name == stack.id or exists_by_name):  # a deleted stack is found by its id only
            return stack
    raise ValidationError(missing_message.format(name))


def is_visible(request: ActionRequest, stack: Stack) -> bool:
    """Return whether a read shows the stack: a stale read does not show a stack that was created later."""
    return any(request.has_happened(event.time) for event in events_of_stack_itself(stack))


def status_and_reason(request: ActionRequest, stack: Stack) -> tuple[str, str]:
    """Return a stack's status and status reason at the time that a read shows; empty if it did not exist then."""
    if request.stale_at is None:
        return stack.status, stack.reason
    events = [event for event in events_of_stack_itself(stack) if request.has_happened(event.time)]
    return (events[-1].status, events[-1].reason) if events else ("", "")


def resource_status(
    request: ActionRequest, stack: Stack, resource: Resource
) -> tuple[str, str, datetime.datetime | None]:
    """Return a resource's status, its status reason and the time of its last event, at the time that a read shows.

    The texts are empty and the time is None if the resource did not exist then.
    """
    if request.stale_at is None:
        return resource.status, resource.reason, resource.last_event_time
    resource_events = [
        event for event in stack.events if event.logical_id == resource.logical_id and event.physical_id != stack.id
    ]
    visible_events = [event for event in resource_events if request.has_happened(event.time)]
    if not visible_events:
        return "", "", None
    last_event = visible_events[-1]
    return last_event.status, last_event.reason, last_event.time


def describe_stack(request: ActionRequest, stack: Stack) -> Result:
    """Return a stack in the form of DescribeStacks.

    In REVIEW_IN_PROGRESS it has no tags, parameters or description yet: those belong to its change set.
    """
    stack_status, _ = status_and_reason(request, stack)
    is_in_review = stack_status == "REVIEW_IN_PROGRESS"
    is_deleted = stack_status == "DELETE_COMPLETE"
    outputs = {} if stack_status in ("REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS") else stack.outputs
    output_definitions: JsonObject = stack.template.body.get("Outputs", {})
    output_descriptions = [
        _describe_output(key, value, output_definitions.get(key, {}), request, stack) for key, value in outputs.items()
    ]
    return {
        **_common_fields(request, stack),
        "ChangeSetId": None if is_in_review or is_deleted else stack.change_set_id or None,
        "Description": None if is_in_review else stack.description or None,
        "Parameters": None if is_in_review else describe_parameters(stack.revision) or None,
        "RollbackConfiguration": {},
        "DisableRollback": stack.disable_rollback,
        "NotificationARNs": list(stack.revision.notification_arns),
        "Capabilities": None if is_in_review else list(stack.revision.capabilities) or None,
        "Outputs": output_descriptions or None,
        "RoleARN": stack.revision.role_arn or None,
        "Tags": [] if is_in_review else tags(stack.tags),
        "DeletionMode": FORCED_DELETION if stack.force_deletion else None,
        "EnableTerminationProtection": None if is_deleted else stack.protected,
    }


def tags(values: Mapping[str, str]) -> list[Result]:
    """Return tags in the form of the API."""
    return [{"Key": key, "Value": value} for key, value in values.items()]


def _common_fields(request: ActionRequest, stack: Stack) -> JsonDict:
    """Return the fields that DescribeStacks and ListStacks share."""
    stack_status, reason = status_and_reason(request, stack)
    updated = _last_update_time(stack)
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "StackStatus": stack_status,
        "StackStatusReason": reason or None,
        "CreationTime": stack.created,
        "LastUpdatedTime": updated if updated and request.has_happened(updated) else None,
        "DeletionTime": stack.deleted if stack.deleted and request.has_happened(stack.deleted) else None,
        "ParentId": stack.parent.id if stack.parent else None,
        "RootId": stack.root.id if stack.parent else None,
        "DriftInformation": {"StackDriftStatus": stack.drift, "LastCheckTimestamp": stack.drift_checked},
        "LastOperations": [
            {"OperationId": operation_id, "OperationType": operation_type}
            for operation_id, operation_type in reversed(stack.operations[-2:])
        ],
    }


def _last_update_time(stack: Stack) -> datetime.datetime | None:
    """Return the time of the last update; a stack created by a change set has one from its creation on."""
    events = events_of_stack_itself(stack)
    if stack.updated or not events or events[0].status != "REVIEW_IN_PROGRESS":
        return stack.updated
    return next((event.time for event in events if event.status == "CREATE_IN_PROGRESS"), None)


def describe_parameters(revision: Revision) -> list[Result]:
    """Return the parameters of a revision; those of an `AWS::SSM::` type also have the value from Parameter Store."""
    descriptions: list[Result] = []
    for key, shown_value in masked_parameters(revision).items():
        description = {"ParameterKey": key, "ParameterValue": shown_value}
        if str(revision.template.parameters[key]["Type"]).startswith("AWS::SSM::"):
            value = revision.parameters.get(key, "")
            description["ResolvedValue"] = ",".join(value) if isinstance(value, list) else str(value)
        descriptions.append(description)
    return descriptions


def summarize_stack(request: ActionRequest, stack: Stack) -> Result:
    """Return a stack in the form of ListStacks."""
    return {**_common_fields(request, stack), "TemplateDescription": stack.description or None}


def _describe_output(key: str, value: str, definition: JsonObject, request: ActionRequest, stack: Stack) -> Result:
    export_name = None
    if "Export" in definition:
        export_name = scope_of_stack(request.emulator, stack).resolve(definition["Export"]["Name"])
    return {
        "OutputKey": key,
        "OutputValue": value,
        "Description": definition.get("Description"),
        "ExportName": export_name,
    }
