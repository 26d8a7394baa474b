"""Actions on change sets."""

from __future__ import annotations

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import describe_parameters, find_stack, tags
from cfngen.sandbox.cloudformation import ValidationError
from cfngen.sandbox.cloudformation.change_sets import ChangeSet, ResourceChange, ResourceChangeDetail
from cfngen.sandbox.cloudformation.errors import ChangeSetNotFoundError
from cfngen.sandbox.untyped import JsonDict

INCOMPLETE = "[WARN] --include-property-values option can return incomplete ChangeSet data because: "


def create_change_set(request: ActionRequest) -> Result:
    """CreateChangeSet: start to create a change set."""
    submission = request.submission()
    change_set_type = request.text("ChangeSetType") or "UPDATE"
    if change_set_type == "IMPORT" or request.text("DeploymentMode"):
        raise ValidationError(
            f"Change sets of type {change_set_type} {request.text('DeploymentMode')} are not supported by this emulator"
        )
    deployment_config = request.params.get("DeploymentConfig") or {}
    is_express = deployment_config.get("Mode") == "EXPRESS"
    # API reference, DeploymentConfig: in this mode rollback is disabled by default.
    rollback_disabled = is_express and str(deployment_config.get("DisableRollback", True)).lower() == "true"
    change_set = request.emulator.create_change_set(
        request.text("StackName"),
        request.text("ChangeSetName"),
        kind=change_set_type,
        on_failure="DO_NOTHING" if rollback_disabled else request.text("OnStackFailure"),
        nested=request.flag("IncludeNestedStacks"),
        description=request.text("Description"),
        express=is_express,
        token=request.token(),
        **submission,
    )
    return {"Id": change_set.id, "StackId": change_set.stack.id}


def describe_change_set(request: ActionRequest) -> Result:
    """DescribeChangeSet: return the change set and a page of its changes."""
    change_set = _find_change_set(request)
    include_values = request.flag("IncludePropertyValues")
    page = request.page(
        "Changes",
        request.emulator.answers.describe(change_set.changes, with_values=include_values),
        key_of=lambda change: change.logical_id,
        describe=lambda change: _describe_change(change, include_values=include_values),
    )
    warning = INCOMPLETE + ", ".join(change_set.warnings) if include_values and change_set.warnings else ""
    return {
        **_summarize(change_set),
        "StatusReason": change_set.reason or warning or None,
        **page,
        "Parameters": describe_parameters(change_set.revision) or None,
        "NotificationARNs": list(change_set.revision.notification_arns),
        "RollbackConfiguration": {},
        "Capabilities": list(change_set.revision.capabilities),
        "Tags": tags(change_set.revision.tags) or None,
        "OnStackFailure": None if change_set.express else change_set.on_failure or None,
    }


def list_change_sets(request: ActionRequest) -> Result:
    """ListChangeSets: return a stack's change sets except executed ones, which can only be described.

    Recorded from AWS by LocalStack's tests (test_create_change_set_update_without_parameters).
    """
    stack = find_stack(request, "Stack [{}] does not exist")
    not_executed = [
        change_set
        for change_set in request.emulator.change_sets(stack.id)
        if change_set.execution_status != "EXECUTE_COMPLETE"
    ]
    return request.page("Summaries", not_executed, key_of=lambda change_set: change_set.id, describe=_summarize)


def delete_change_set(request: ActionRequest) -> Result:
    """DeleteChangeSet: delete a change set; also succeeds if the stack has no such change set.

    Observed on AWS by the authors of ministack (ministackorg/ministack#1625).
    """
    try:
        change_set = _find_change_set(request)
    except ChangeSetNotFoundError:
        return {}
    request.emulator.delete_change_set(change_set.id)
    return {}


def execute_change_set(request: ActionRequest) -> Result:
    """ExecuteChangeSet: start to apply the changes."""
    change_set = _find_change_set(request)
    if change_set.on_failure and "DisableRollback" in request.params:
        raise ValidationError("You cannot specify DisableRollback for a change set that has OnStackFailure")
    request.emulator.execute_change_set(
        change_set.id, disable_rollback=request.flag("DisableRollback"), token=request.token()
    )
    return {}


def _find_change_set(request: ActionRequest) -> ChangeSet:
    """Return the change set that a call names: by its ARN, or by its name and its stack."""
    if not request.text("ChangeSetName").startswith("arn:"):
        if not request.text("StackName"):
            raise ValidationError("StackName must be specified if ChangeSetName is not specified as an ARN.")
        find_stack(request, "Stack [{}] does not exist")
    return request.emulator.change_set(request.text("ChangeSetName"), request.text("StackName"))


def _summarize(change_set: ChangeSet) -> JsonDict:
    """Return the fields that DescribeChangeSet and ListChangeSets share."""
    root = change_set.root
    return {
        "StackId": change_set.stack.id,
        "StackName": change_set.stack.name,
        "ChangeSetId": change_set.id,
        "ChangeSetName": change_set.name,
        "ExecutionStatus": change_set.execution_status,
        "Status": change_set.status,
        "StatusReason": change_set.reason or None,
        "CreationTime": change_set.created,
        "Description": change_set.description or None,
        "IncludeNestedStacks": change_set.nested,
        "ParentChangeSetId": change_set.parent.id if change_set.parent else None,
        "RootChangeSetId": root.id if root is not change_set else None,
    }


def _describe_change(change: ResourceChange, *, include_values: bool) -> Result:
    """Return one change of a resource; with the resource before and after only for `IncludePropertyValues`."""
    resource_change = {
        "PolicyAction": change.policy_action or None,
        "Action": change.action,
        "LogicalResourceId": change.logical_id,
        "PhysicalResourceId": change.physical_id or None,
        "ResourceType": change.type,
        "Replacement": change.replacement or None,
        "Scope": list(change.scope),
        "Details": [_describe_detail(detail, include_values=include_values) for detail in change.details],
        "ChangeSetId": change.child.id if change.child else None,
    }
    if include_values:
        resource_change["BeforeContext"] = change.before_context or None
        resource_change["AfterContext"] = change.after_context or None
    return {"Type": "Resource", "ResourceChange": resource_change}


def _describe_detail(detail: ResourceChangeDetail, *, include_values: bool) -> Result:
    """Return one detail of a change; with the values before and after only for `IncludePropertyValues`."""
    target = {
        "Attribute": detail.attribute,
        "Name": detail.name or None,
        "RequiresRecreation": detail.requires_recreation,
    }
    if include_values:
        target |= {
            "Path": detail.path or None,
            "BeforeValue": detail.before,
            "AfterValue": detail.after,
            "AttributeChangeType": detail.change_type,
        }
    return {
        "Target": target,
        "Evaluation": detail.evaluation,
        "ChangeSource": detail.change_source or None,
        "CausingEntity": detail.causing_entity or None,
    }
