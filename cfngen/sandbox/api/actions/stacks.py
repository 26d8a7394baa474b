"""Actions on stacks: create, update, delete, describe."""

from __future__ import annotations

from cfngen.sandbox.api.actions.request import ActionRequest, Result
from cfngen.sandbox.api.actions.views import (
    FORCED_DELETION,
    describe_stack,
    find_stack,
    is_visible,
    stack_identifiers,
    status_and_reason,
    summarize_stack,
)
from cfngen.sandbox.cloudformation import ValidationError
from cfngen.sandbox.cloudformation.admission import fetch_from_s3
from cfngen.sandbox.cloudformation.scopes import importing_stacks


def create_stack(request: ActionRequest) -> Result:
    """CreateStack: start to create a stack."""
    submission = request.submission()
    on_failure = request.text("OnFailure") or ("DO_NOTHING" if request.flag("DisableRollback") else "ROLLBACK")
    if request.text("OnFailure") and "DisableRollback" in request.params:
        raise ValidationError("You can specify either DisableRollback or OnFailure, but not both.")
    stack = request.emulator.create_stack(
        request.text("StackName"),
        on_failure=on_failure,
        protected=request.flag("EnableTerminationProtection"),
        policy=_stack_policy(request, "StackPolicy"),
        token=request.token(),
        **submission,
    )
    return stack_identifiers(stack)


def update_stack(request: ActionRequest) -> Result:
    """UpdateStack: start to update a stack."""
    stack = request.emulator.update_stack(
        request.text("StackName"),
        **request.submission(),
        disable_rollback=request.flag("DisableRollback"),
        policy_during_update=_stack_policy(request, "StackPolicyDuringUpdate"),
        policy=_stack_policy(request, "StackPolicy"),
        token=request.token(),
    )
    return stack_identifiers(stack)


def delete_stack(request: ActionRequest) -> Result:
    """DeleteStack: start to delete a stack; also succeeds if there is no such stack, as the API reference says."""
    name = request.text("StackName")
    try:
        stack = request.emulator.stack(name)
    except ValidationError:
        return {}
    if stack.status == "DELETE_COMPLETE":
        return {}
    force = request.text("DeletionMode") == FORCED_DELETION
    request.emulator.delete_stack(name, retain=request.values("RetainResources"), force=force, token=request.token())
    return {}


def describe_stacks(request: ActionRequest) -> Result:
    """DescribeStacks: return one stack, or all stacks that are not deleted, newest first."""
    if request.text("StackName"):
        return {"Stacks": [describe_stack(request, find_stack(request))]}
    existing = [
        stack
        for stack in request.emulator.stacks()
        if status_and_reason(request, stack)[0] not in ("", "DELETE_COMPLETE")
    ]
    newest_first = existing[::-1]
    return request.page(
        "Stacks", newest_first, key_of=lambda stack: stack.id, describe=lambda stack: describe_stack(request, stack)
    )


def list_stacks(request: ActionRequest) -> Result:
    """ListStacks: return the stacks with the requested statuses, including deleted ones."""
    statuses = request.values("StackStatusFilter")
    stacks = [
        stack
        for stack in request.emulator.stacks()
        if is_visible(request, stack) and (not statuses or status_and_reason(request, stack)[0] in statuses)
    ]
    newest_first = stacks[::-1]
    return request.page(
        "StackSummaries",
        newest_first,
        key_of=lambda stack: stack.id,
        describe=lambda stack: summarize_stack(request, stack),
    )


def cancel_update_stack(request: ActionRequest) -> Result:
    """CancelUpdateStack: roll back an update that is in progress."""
    request.emulator.cancel_update(request.text("StackName"), token=request.token())
    return {}


def rollback_stack(request: ActionRequest) -> Result:
    """RollbackStack: roll back a stack that failed with rollback disabled to its last stable state."""
    return stack_identifiers(request.emulator.rollback_stack(request.text("StackName"), token=request.token()))


def continue_update_rollback(request: ActionRequest) -> Result:
    """ContinueUpdateRollback: continue a rollback that has failed."""
    skip, force = request.values("ResourcesToSkip"), request.flag("ForceRollback")
    if skip and force:
        raise ValidationError("You cannot specify both ResourcesToSkip and ForceRollback.")
    request.emulator.continue_rollback(request.text("StackName"), skip, force, token=request.token())
    return {}


def signal_resource(request: ActionRequest) -> Result:
    """SignalResource: record an instance's signal."""
    request.emulator.signal_resource(
        request.text("StackName"), request.text("LogicalResourceId"), request.text("UniqueId"), request.text("Status")
    )
    return {}


def set_stack_policy(request: ActionRequest) -> Result:
    """SetStackPolicy: set the stack policy."""
    request.emulator.set_stack_policy(request.text("StackName"), _stack_policy(request, "StackPolicy"))
    return {}


def get_stack_policy(request: ActionRequest) -> Result:
    """GetStackPolicy: return the stack policy."""
    return {"StackPolicyBody": request.emulator.stack(request.text("StackName")).policy or None}


def update_termination_protection(request: ActionRequest) -> Result:
    """UpdateTerminationProtection: enable or disable termination protection."""
    enabled = request.flag("EnableTerminationProtection")
    return {"StackId": request.emulator.set_termination_protection(request.text("StackName"), enabled).id}


def list_exports(request: ActionRequest) -> Result:
    """ListExports: return the exported outputs of all stacks."""

    def describe_export(export: tuple[str, str, str]) -> Result:
        stack_id, name, value = export
        return {"ExportingStackId": stack_id, "Name": name, "Value": value}

    return request.page(
        "Exports", request.emulator.exports(), key_of=lambda export: export[1], describe=describe_export
    )


def list_imports(request: ActionRequest) -> Result:
    """ListImports: return the stacks that import an export."""
    name = request.text("ExportName")
    importers = importing_stacks(request.emulator, name)
    if not importers:
        raise ValidationError(f"Export '{name}' is not imported by any stack.")
    return request.page("Imports", importers, key_of=str, describe=str)


def _stack_policy(request: ActionRequest, parameter: str) -> str:
    """Return the stack policy of a call: its body, or the document at its URL.

    Args:
        parameter: the parameters' name without `Body` or `URL`, e.g. `StackPolicy`.
    """
    url, body = request.text(f"{parameter}URL"), request.text(f"{parameter}Body")
    if url and body:
        raise ValidationError(f"You cannot specify both {parameter}URL and {parameter}Body")
    return fetch_from_s3(request.emulator, url) if url else body
