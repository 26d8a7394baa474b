"""Executes change sets: the checks of ExecuteChangeSet, and the creation or update that it starts."""

from __future__ import annotations

from cfngen.sandbox.cloudformation import creation, existing_change_sets, status_checks, updating
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.errors import InvalidChangeSetStatusError, NotModelledError, ValidationError
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import Revision, Stack


def execute(cloud: Region, change_set: ChangeSet, *, disable_rollback: bool, token: str) -> Stack:
    """Start to execute a change set, and delete the stack's other change sets.

    Raises:
        ApiError: the call is refused
    """
    stack, revision = change_set.stack, _executable_revision(change_set, disable_rollback=disable_rollback)
    on_failure = "DO_NOTHING" if disable_rollback else change_set.on_failure
    if change_set.kind == "UPDATE":
        status_checks.check_update_is_allowed(stack)
        status_checks.check_rollback_stays_disabled(stack, disable_rollback=on_failure == "DO_NOTHING")
    for other in cloud.all_change_sets():
        if other.stack is stack and other is not change_set:
            existing_change_sets.delete_without_checks(cloud, other)
    stack.change_set_id = change_set.id
    _mark_executing(change_set)
    if change_set.kind == "CREATE":
        stack.revision, stack.updated = revision, cloud.clock.time
        creation.start(cloud, stack, on_failure=on_failure, token=token, express=change_set.express)
    else:
        disabled, express = on_failure == "DO_NOTHING", change_set.express
        updating.start_root(cloud, stack, revision, token=token, disable_rollback=disabled, express=express)
    return stack


def _executable_revision(change_set: ChangeSet, *, disable_rollback: bool) -> Revision:
    """The revision that a change set makes the stack's.

    Raises:
        ApiError: the change set cannot be executed
    """
    if change_set.parent:
        raise ValidationError(f"ChangeSet [{change_set.id}] is nested; execute its root [{change_set.root.id}]")
    if change_set.status != "CREATE_COMPLETE":
        raise InvalidChangeSetStatusError(
            f"ChangeSet [{change_set.id}] cannot be executed in its current status of [{change_set.status}]"
        )
    if change_set.execution_status != "AVAILABLE":
        raise InvalidChangeSetStatusError(
            f"ChangeSet [{change_set.id}] cannot be executed in its current execution status of "
            f"[{change_set.execution_status}]"
        )
    if disable_rollback and change_set.on_failure:
        raise ValidationError("DisableRollback cannot be given for a change set that has OnStackFailure")
    if change_set.revision is None:
        raise NotModelledError("a change set without a template")
    return change_set.revision


def _mark_executing(change_set: ChangeSet) -> None:
    change_set.execution_status = "EXECUTE_IN_PROGRESS"
    for change in change_set.changes:
        nested_change_set = change.child
        if nested_change_set:
            nested_change_set.stack.change_set_id = nested_change_set.id
            change_set.stack.stacks_in_review[change.logical_id] = nested_change_set.stack
            _mark_executing(nested_change_set)
