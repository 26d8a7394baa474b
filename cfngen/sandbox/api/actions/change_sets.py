"""Actions on change sets."""

from __future__ import annotations

from typing import Any

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import found, parameters, tags
from cfngen.sandbox.cloudformation import ValidationError
from cfngen.sandbox.cloudformation.change_sets import Change, ChangeSet, Detail
from cfngen.sandbox.cloudformation.errors import ChangeSetNotFoundError


def create_change_set(asked: ActionRequest) -> Result:
    """Begin to work out changes."""
    asked.check_template()
    values, kept = asked.parameters()
    kind = asked.text("ChangeSetType") or "UPDATE"
    if kind == "IMPORT" or asked.text("DeploymentMode"):
        raise ValidationError(f"Change sets of type {kind} {asked.text('DeploymentMode')} are not part of this double")
    deployment = asked.given.get("DeploymentConfig") or {}
    express = deployment.get("Mode") == "EXPRESS"
    # API reference, DeploymentConfig: in this mode rollback is off unless it is asked for.
    keep = express and str(deployment.get("DisableRollback", True)).lower() == "true"
    change_set = asked.cloud.create_change_set(
        asked.text("StackName"),
        asked.text("ChangeSetName"),
        body=asked.text("TemplateBody"),
        url=asked.text("TemplateURL"),
        previous_template=asked.flag("UsePreviousTemplate"),
        parameters=values,
        previous_parameters=kept,
        tags=asked.tags(),
        capabilities=asked.values("Capabilities"),
        kind=kind,
        on_failure="DO_NOTHING" if keep else asked.text("OnStackFailure"),
        nested=asked.flag("IncludeNestedStacks"),
        role_arn=asked.text("RoleARN"),
        notification_arns=asked.topics(),
        description=asked.text("Description"),
        express=express,
        token=asked.token(),
    )
    return {"Id": change_set.id, "StackId": change_set.stack.id}


def describe_change_set(asked: ActionRequest) -> Result:
    """Show changes."""
    change_set = _found(asked)
    values = asked.flag("IncludePropertyValues")
    page = asked.page(
        "Changes", list(change_set.changes), lambda each: each.logical_id, lambda each: _change(each, values=values)
    )
    return {
        **_summary(change_set),
        **page,
        "Parameters": parameters(change_set.parameters) or None,
        "NotificationARNs": list(change_set.notification_arns),
        "RollbackConfiguration": {},
        "Capabilities": list(change_set.capabilities),
        "Tags": tags(change_set.tags) or None,
        "OnStackFailure": None if change_set.express else change_set.on_failure or None,
    }


def list_change_sets(asked: ActionRequest) -> Result:
    """Show the change sets of a stack that can still become of use: an executed one is described, but not listed.

    So LocalStack's tests have recorded it of AWS (test_create_change_set_update_without_parameters).
    """
    stack = found(asked, "Stack [{}] does not exist")
    active = [
        change_set
        for change_set in asked.cloud.change_sets(stack.id)
        if change_set.execution_status != "EXECUTE_COMPLETE"
    ]
    return asked.page("Summaries", active, lambda each: each.id, _summary)


def delete_change_set(asked: ActionRequest) -> Result:
    """Forget a change set; one that its stack does not have is forgotten with success.

    Seen on AWS by the authors of ministack (ministackorg/ministack#1625).
    """
    try:
        change_set = _found(asked)
    except ChangeSetNotFoundError:
        return {}
    asked.cloud.delete_change_set(change_set.id)
    return {}


def execute_change_set(asked: ActionRequest) -> Result:
    """Begin to make the changes."""
    change_set = _found(asked)
    if change_set.on_failure and "DisableRollback" in asked.given:
        raise ValidationError("You cannot specify DisableRollback for a change set that has OnStackFailure")
    asked.cloud.execute_change_set(change_set.id, disable_rollback=asked.flag("DisableRollback"), token=asked.token())
    return {}


def _found(asked: ActionRequest) -> ChangeSet:
    if not asked.text("ChangeSetName").startswith("arn:"):
        if not asked.text("StackName"):
            raise ValidationError("StackName must be specified if ChangeSetName is not specified as an ARN.")
        found(asked, "Stack [{}] does not exist")
    return asked.cloud.change_set(asked.text("ChangeSetName"), asked.text("StackName"))


def _summary(change_set: ChangeSet) -> dict[str, Any]:
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


def _change(change: Change, *, values: bool) -> Result:
    contexts = {"BeforeContext": change.before_context or None, "AfterContext": change.after_context or None}
    return {
        "Type": "Resource",
        "ResourceChange": {
            "PolicyAction": change.policy_action or None,
            "Action": change.action,
            "LogicalResourceId": change.logical_id,
            "PhysicalResourceId": change.physical_id or None,
            "ResourceType": change.type,
            "Replacement": change.replacement or None,
            "Scope": list(change.scope),
            "Details": [_detail(detail, values=values) for detail in change.details],
            "ChangeSetId": change.child.id if change.child else None,
            **(contexts if values else {}),
        },
    }


def _detail(detail: Detail, *, values: bool) -> Result:
    """Show one reason for a change; the fields of `IncludePropertyValues` only where they are asked for."""
    target = {
        "Attribute": detail.attribute,
        "Name": detail.name or None,
        "RequiresRecreation": detail.requires_recreation,
    }
    if values:
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
