"""Executes and deletes change sets, and keeps their execution status in step with the stack."""

from __future__ import annotations

from cfngen.sandbox.cloudformation import creation, stack_checks, updating
from cfngen.sandbox.cloudformation.change_sets import ChangeSet
from cfngen.sandbox.cloudformation.errors import (
    InvalidChangeSetStatusError,
    ValidationError,
)
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import Revision, Stack


def delete(cloud: Region, change_set: ChangeSet) -> None:
    """Delete a change set, as DeleteChangeSet does.

    Raises:
        ApiError: the change set is nested, or is being created or executed
    """
    if change_set.parent:
        raise ValidationError(f"ChangeSet [{change_set.id}] is nested; delete its root [{change_set.root.id}]")
    if change_set.status == "CREATE_IN_PROGRESS" or change_set.execution_status == "EXECUTE_IN_PROGRESS":
        raise InvalidChangeSetStatusError(
            f"ChangeSet [{change_set.id}] cannot be deleted in its current status of [{change_set.status}]"
        )
    delete_without_checks(cloud, change_set)


def delete_without_checks(cloud: Region, change_set: ChangeSet) -> None:
    """Delete a change set whatever its status is, and the nested stacks that were created only for it."""
    change_set.status = "DELETE_COMPLETE"
    cloud.remove_change_set(change_set)
    _remove_nested_stacks(cloud, change_set)


def _remove_nested_stacks(cloud: Region, change_set: ChangeSet) -> None:
    """Delete the nested stacks that were created only for a change set."""
    for child in change_set.children:
        _remove_nested_stacks(cloud, child)
        _remove_stack_in_review(cloud, child.stack)


def _remove_stack_in_review(cloud: Region, stack: Stack) -> None:
    """Delete a stack that a change set created for review, unless its creation has been executed."""
    if stack.status == "REVIEW_IN_PROGRESS":
        cloud.start_operation(stack, "DELETE_STACK")
        stack.deleted = cloud.clock.time
        cloud.record_event(stack, None, "DELETE_COMPLETE")


def update_execution_status(cloud: Region, stack: Stack) -> None:
    """Update the execution status of the change set that a stack executes, from the stack's new status.

    When the operation ends or rolls back, nested stacks that were created for the change set but not used are deleted.
    """
    if stack.finished or "ROLLBACK" in stack.status:
        unused_stacks = list(stack.stacks_in_review.values())
        stack.stacks_in_review.clear()
        for unused_stack in unused_stacks:
            _remove_stack_in_review(cloud, unused_stack)
    has_failed = any(word in stack.status for word in ("FAILED", "ROLLBACK", "DELETE"))
    for change_set in cloud.all_change_sets():
        if change_set.stack is stack and change_set.execution_status == "EXECUTE_IN_PROGRESS":
            if stack.status in ("CREATE_COMPLETE", "UPDATE_COMPLETE"):
                change_set.execution_status = "EXECUTE_COMPLETE"
            elif has_failed:
                change_set.execution_status = "EXECUTE_FAILED"


def execute(cloud: Region, change_set: ChangeSet, *, disable_rollback: bool, token: str) -> Stack:
    """Start to execute a change set, and delete the stack's other change sets.

    Raises:
        ApiError: the call is refused
    """
    stack, revision = change_set.stack, _executable_revision(change_set, disable_rollback=disable_rollback)
    on_failure = "DO_NOTHING" if disable_rollback else change_set.on_failure
    if change_set.kind == "UPDATE":
        stack_checks.check_update_is_allowed(stack)
        stack_checks.check_rollback_stays_disabled(stack, disable_rollback=on_failure == "DO_NOTHING")
    for other in cloud.all_change_sets():
        if other.stack is stack and other is not change_set:
            delete_without_checks(cloud, other)
    stack.change_set_id = change_set.id
    _mark_executing(change_set)
    if change_set.kind == "CREATE":
        stack.revision, stack.updated = revision, cloud.clock.time
        creation.start(cloud, stack, on_failure=on_failure, token=token, express=change_set.express)
    else:
        disabled, express = on_failure == "DO_NOTHING", change_set.express
        updating.start_alone(cloud, stack, revision, token=token, disable_rollback=disabled, express=express)
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
    return change_set.revision


def _mark_executing(change_set: ChangeSet) -> None:
    change_set.execution_status = "EXECUTE_IN_PROGRESS"
    for change in change_set.changes:
        nested_change_set = change.child
        if nested_change_set:
            nested_change_set.stack.change_set_id = nested_change_set.id
            change_set.stack.stacks_in_review[change.logical_id] = nested_change_set.stack
            _mark_executing(nested_change_set)
