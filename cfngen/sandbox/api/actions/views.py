"""Stacks as the API's answers show them.

What a stack shows in which status, and how each action words that there is no such stack, is as LocalStack's tests have
recorded it of AWS (localstack/localstack, tests/aws/services/cloudformation/api, *.snapshot.json).
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.cloudformation import Event, Resource, Stack, ValidationError


def identified(stack: Stack) -> Result:
    """Return what creation, update and rollback answer."""
    operations = stack.operations
    return {"StackId": stack.id, **({"OperationId": operations[-1][0]} if operations else {})}


def own_events(stack: Stack) -> list[Event]:
    """Return the events of the stack itself, without those of its resources."""
    return [event for event in stack.events if event.physical_id == stack.id]


def found(asked: ActionRequest, wording: str = "Stack with id {} does not exist") -> Stack:
    """Return the stack that a read names; a stale read may find one that is gone, and miss one that is new.

    Args:
        asked: the call.
        wording: of the error; actions differ in it.

    Raises:
        ValidationError: there is none
    """
    name = asked.text("StackName")
    for stack in reversed(asked.cloud.stacks()):
        then, _ = status(asked, stack)
        if then and (name == stack.id or (name == stack.name and then != "DELETE_COMPLETE")):
            return stack
    raise ValidationError(wording.format(name))


def known(asked: ActionRequest, stack: Stack) -> bool:
    """Return whether a read sees the stack at all; it may be too new for a stale one."""
    return any(asked.now(own_event.time) for own_event in own_events(stack))


def status(asked: ActionRequest, stack: Stack) -> tuple[str, str]:
    """Return a stack's status and the reason of it, as of the time that a read answers."""
    if asked.as_of is None:
        return stack.status, stack.reason
    seen = [own_event for own_event in own_events(stack) if asked.now(own_event.time)]
    return (seen[-1].status, seen[-1].reason) if seen else ("", "")


def resource_status(
    asked: ActionRequest, stack: Stack, resource: Resource
) -> tuple[str, str, datetime.datetime | None]:
    """Return a resource's status, the reason of it, and since when."""
    if asked.as_of is None:
        return resource.status, resource.reason, resource.time
    mine = [
        event for event in stack.events if event.logical_id == resource.logical_id and event.physical_id != stack.id
    ]
    seen = [each for each in mine if asked.now(each.time)]
    return (seen[-1].status, seen[-1].reason, seen[-1].time) if seen else ("", "", None)


def shown(asked: ActionRequest, stack: Stack) -> Result:
    """Return a stack as DescribeStacks shows it.

    While it is under review it shows nothing of what its change set will make of it: neither tags, parameters nor
    description.
    """
    current, _ = status(asked, stack)
    reviewed = current == "REVIEW_IN_PROGRESS"
    deleted = current == "DELETE_COMPLETE"
    outputs = {} if current in ("REVIEW_IN_PROGRESS", "CREATE_IN_PROGRESS") else stack.outputs
    declared: Mapping[str, Any] = stack.template.body.get("Outputs", {})
    return {
        **_common(asked, stack),
        "ChangeSetId": None if reviewed or deleted else stack.change_set_id or None,
        "Description": None if reviewed else stack.description or None,
        "Parameters": None if reviewed else _parameters(stack) or None,
        "RollbackConfiguration": {},
        "DisableRollback": stack.disable_rollback,
        "NotificationARNs": list(stack.notification_arns),
        "Capabilities": None if reviewed else list(stack.capabilities) or None,
        "Outputs": [_output(key, value, declared.get(key, {}), asked, stack) for key, value in outputs.items()] or None,
        "RoleARN": stack.role_arn or None,
        "Tags": [] if reviewed else tags(stack.tags),
        "EnableTerminationProtection": None if deleted else stack.protected,
    }


def parameters(values: Mapping[str, str]) -> list[Result]:
    """Return parameters as the API shows them."""
    return [{"ParameterKey": key, "ParameterValue": value} for key, value in values.items()]


def tags(values: Mapping[str, str]) -> list[Result]:
    """Return tags as the API shows them."""
    return [{"Key": key, "Value": value} for key, value in values.items()]


def _common(asked: ActionRequest, stack: Stack) -> dict[str, Any]:
    current, reason = status(asked, stack)
    updated = _updated(stack)
    return {
        "StackId": stack.id,
        "StackName": stack.name,
        "StackStatus": current,
        "StackStatusReason": reason or None,
        "CreationTime": stack.created,
        "LastUpdatedTime": updated if updated and asked.now(updated) else None,
        "DeletionTime": stack.deleted if stack.deleted and asked.now(stack.deleted) else None,
        "ParentId": stack.parent.id if stack.parent else None,
        "RootId": stack.root.id if stack.parent else None,
        "DriftInformation": {"StackDriftStatus": stack.drift, "LastCheckTimestamp": stack.drift_checked},
        "LastOperations": [
            {"OperationId": number, "OperationType": kind} for number, kind in reversed(stack.operations[-2:])
        ],
    }


def _updated(stack: Stack) -> datetime.datetime | None:
    """Return the time of the last update; a stack that a change set made has one from its creation on."""
    events = own_events(stack)
    if stack.updated or not events or events[0].status != "REVIEW_IN_PROGRESS":
        return stack.updated
    return next((event.time for event in events if event.status == "CREATE_IN_PROGRESS"), None)


def _parameters(stack: Stack) -> list[Result]:
    """Parameters of Parameter Store are shown with the value found there."""
    texts = []
    for parameter in parameters(stack.shown_parameters()):
        key = parameter["ParameterKey"]
        stored = str(stack.template.parameters[key]["Type"]).startswith("AWS::SSM::")
        value = stack.parameters.get(key, "")
        resolved = ",".join(value) if isinstance(value, list) else str(value)
        texts.append({**parameter, "ResolvedValue": resolved} if stored else parameter)
    return texts


def summary(asked: ActionRequest, stack: Stack) -> Result:
    """Return a stack as ListStacks shows it."""
    return {**_common(asked, stack), "TemplateDescription": stack.description or None}


def _output(key: str, value: str, declared: Mapping[str, Any], asked: ActionRequest, stack: Stack) -> Result:
    export = asked.cloud.scope(stack).resolve(declared["Export"]["Name"]) if "Export" in declared else None
    return {"OutputKey": key, "OutputValue": value, "Description": declared.get("Description"), "ExportName": export}
