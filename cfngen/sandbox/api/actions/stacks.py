"""Actions on stacks: create, update, delete, describe."""

from __future__ import annotations

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import found, identified, known, shown, status, summary
from cfngen.sandbox.cloudformation import ValidationError


def create_stack(asked: ActionRequest) -> Result:
    """Begin to create a stack."""
    asked.check_template()
    values, _ = asked.parameters()
    on_failure = asked.text("OnFailure") or ("DO_NOTHING" if asked.flag("DisableRollback") else "ROLLBACK")
    if asked.text("OnFailure") and "DisableRollback" in asked.given:
        raise ValidationError("You can specify either DisableRollback or OnFailure, but not both.")
    stack = asked.cloud.create_stack(
        asked.text("StackName"),
        body=asked.text("TemplateBody"),
        url=asked.text("TemplateURL"),
        parameters=values,
        tags=asked.tags(),
        capabilities=asked.values("Capabilities"),
        on_failure=on_failure,
        protected=asked.flag("EnableTerminationProtection"),
        policy=_policy(asked, "StackPolicy"),
        notification_arns=asked.topics() or (),
        role_arn=asked.text("RoleARN"),
        token=asked.token(),
    )
    return identified(stack)


def update_stack(asked: ActionRequest) -> Result:
    """Begin to update a stack."""
    asked.check_template()
    values, kept = asked.parameters()
    stack = asked.cloud.update_stack(
        asked.text("StackName"),
        body=asked.text("TemplateBody"),
        url=asked.text("TemplateURL"),
        previous_template=asked.flag("UsePreviousTemplate"),
        parameters=values,
        previous_parameters=kept,
        tags=asked.tags(),
        capabilities=asked.values("Capabilities"),
        disable_rollback=asked.flag("DisableRollback"),
        policy_during_update=_policy(asked, "StackPolicyDuringUpdate"),
        policy=_policy(asked, "StackPolicy"),
        notification_arns=asked.topics(),
        role_arn=asked.text("RoleARN"),
        token=asked.token(),
    )
    return identified(stack)


def delete_stack(asked: ActionRequest) -> Result:
    """Begin to delete a stack; one that is not there is deleted with success, as the API says."""
    name = asked.text("StackName")
    try:
        stack = asked.cloud.stack(name)
    except ValidationError:
        return {}
    if stack.status == "DELETE_COMPLETE":
        return {}
    force = asked.text("DeletionMode") == "FORCE_DELETE_STACK"
    asked.cloud.delete_stack(name, retain=asked.values("RetainResources"), force=force, token=asked.token())
    return {}


def describe_stacks(asked: ActionRequest) -> Result:
    """Show one stack, or all that are not deleted; the newest first."""
    if asked.text("StackName"):
        return {"Stacks": [shown(asked, found(asked))]}
    alive = [stack for stack in asked.cloud.stacks() if status(asked, stack)[0] not in ("", "DELETE_COMPLETE")]
    return asked.page("Stacks", alive[::-1], lambda each: each.id, lambda each: shown(asked, each))


def list_stacks(asked: ActionRequest) -> Result:
    """Show stacks of some statuses, deleted ones too."""
    wanted = asked.values("StackStatusFilter")
    stacks = [
        stack
        for stack in asked.cloud.stacks()
        if known(asked, stack) and (not wanted or status(asked, stack)[0] in wanted)
    ]
    return asked.page("StackSummaries", stacks[::-1], lambda each: each.id, lambda each: summary(asked, each))


def cancel_update_stack(asked: ActionRequest) -> Result:
    """Undo an update under way."""
    asked.cloud.cancel_update(asked.text("StackName"), token=asked.token())
    return {}


def rollback_stack(asked: ActionRequest) -> Result:
    """Return what failed with rollback off to its last stable state."""
    return identified(asked.cloud.rollback_stack(asked.text("StackName"), token=asked.token()))


def continue_update_rollback(asked: ActionRequest) -> Result:
    """Try once more to undo an update."""
    skip, force = asked.values("ResourcesToSkip"), asked.flag("ForceRollback")
    if skip and force:
        raise ValidationError("You cannot specify both ResourcesToSkip and ForceRollback.")
    asked.cloud.continue_rollback(asked.text("StackName"), skip, force, token=asked.token())
    return {}


def signal_resource(asked: ActionRequest) -> Result:
    """Count a signal of an instance."""
    asked.cloud.signal_resource(
        asked.text("StackName"), asked.text("LogicalResourceId"), asked.text("UniqueId"), asked.text("Status")
    )
    return {}


def set_stack_policy(asked: ActionRequest) -> Result:
    """Set what updates may touch."""
    asked.cloud.set_stack_policy(asked.text("StackName"), _policy(asked, "StackPolicy"))
    return {}


def get_stack_policy(asked: ActionRequest) -> Result:
    """Show what updates may touch."""
    return {"StackPolicyBody": asked.cloud.stack_policy(asked.text("StackName")) or None}


def update_termination_protection(asked: ActionRequest) -> Result:
    """Say whether a stack may be deleted."""
    enabled = asked.flag("EnableTerminationProtection")
    return {"StackId": asked.cloud.set_termination_protection(asked.text("StackName"), enabled).id}


def list_exports(asked: ActionRequest) -> Result:
    """Show what stacks export."""

    def show(export: tuple[str, str, str]) -> Result:
        stack_id, name, value = export
        return {"ExportingStackId": stack_id, "Name": name, "Value": value}

    return asked.page("Exports", asked.cloud.exports(), lambda each: each[1], show)


def list_imports(asked: ActionRequest) -> Result:
    """Show who imports an export."""
    name = asked.text("ExportName")
    importers = asked.cloud.imports(name)
    if not importers:
        raise ValidationError(f"Export '{name}' is not imported by any stack.")
    return asked.page("Imports", importers, str, str)


def _policy(asked: ActionRequest, name: str) -> str:
    url, body = asked.text(f"{name}URL"), asked.text(f"{name}Body")
    if url and body:
        raise ValidationError(f"You cannot specify both {name}URL and {name}Body")
    return asked.cloud.fetch(url) if url else body
