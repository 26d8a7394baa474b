"""The calls that CloudFormation refuses because of a stack's status, policy or termination protection."""

from __future__ import annotations

import json

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.stack import STABLE_STATUSES, Resource, Stack

FAILED_WITHOUT_ROLLBACK = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})
UPDATABLE_STATUSES = STABLE_STATUSES | FAILED_WITHOUT_ROLLBACK
MAX_STACK_POLICY_BYTES = 16_384  # API: SetStackPolicy
DELETION_STATUSES = frozenset({"DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED"})


def check_update_is_allowed(stack: Stack) -> None:
    """Refuse an update, or a change set for an update, of a nested stack or in a status that allows none."""
    if stack.parent:
        raise ValidationError(f"Stack {stack.name} is a nested stack; update its root {stack.root.name}")
    if stack.status not in UPDATABLE_STATUSES:
        raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")


def check_rollback_stays_disabled(stack: Stack, *, disable_rollback: bool) -> None:
    """Refuse to update a stack that failed with rollback disabled, unless rollback is disabled again."""
    if stack.status in FAILED_WITHOUT_ROLLBACK and not disable_rollback:
        raise ValidationError(
            f"This stack is currently in a non-terminal [{stack.status}] state. To update the stack from this state, "
            "please use the disable-rollback parameter with update-stack API. To rollback to the last known good "
            "state, use the rollback-stack API"
        )


def check_update_can_be_cancelled(stack: Stack) -> None:
    """Refuse to cancel an update of a nested stack, or if none is in progress."""
    if stack.parent or stack.status != "UPDATE_IN_PROGRESS":
        raise ValidationError(f"CancelUpdateStack cannot be called from current stack status ({stack.status})")


def check_rollback_can_be_started(stack: Stack) -> None:
    """Refuse to roll back a nested stack, or one that has not failed with rollback disabled.

    A stack that was never stable (its creation failed) has no state to return to, so the call deletes it (API:
    RollbackStack). Whether termination protection prevents this deletion is not documented; here it does.
    """
    if stack.parent or stack.status not in FAILED_WITHOUT_ROLLBACK:
        raise ValidationError(f"RollbackStack cannot be called from current stack status ({stack.status})")
    was_ever_stable = stack.stable_state is not None
    if not was_ever_stable:
        _check_termination_protection_disabled(stack)


def check_rollback_can_be_continued(stack: Stack) -> None:
    """Refuse to continue the rollback of a nested stack, or a rollback that has not failed."""
    if stack.parent:
        raise ValidationError(
            f"Stack {stack.name} is nested; ContinueUpdateRollback goes to its root {stack.root.name}"
        )
    if stack.status != "UPDATE_ROLLBACK_FAILED":
        raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be continued rollback from.")


def check_resource_can_be_skipped(name: str, resource: Resource) -> None:
    """Refuse to skip a resource whose rollback has not failed (API: ContinueUpdateRollback, ResourcesToSkip).

    Args:
        name: the resource as the call names it
    """
    if resource.child is not None and resource.child.status not in DELETION_STATUSES:
        raise ValidationError(
            f"Resource [{name}] cannot be skipped: its embedded stack is in {resource.child.status}, and must be in "
            f"one of the following states: {', '.join(sorted(DELETION_STATUSES))}"
        )
    if resource.status != "UPDATE_FAILED" or not resource.rollback_failed:
        raise ValidationError(
            f"Resource [{name}] cannot be skipped: you can specify only resources that are in the UPDATE_FAILED state "
            "because a rollback failed. You can't specify resources that are in the UPDATE_FAILED state for other "
            "reasons, for example, because an update was canceled"
        )


def check_stack_policy_can_be_set(stack: Stack) -> None:
    """Refuse a stack policy while an operation is in progress (seen on AWS: envato/stack_master#178)."""
    if stack.status.endswith("_IN_PROGRESS"):
        raise ValidationError(f"Stack [{stack.id}] is in {stack.status} state: its stack policy cannot be set")


def check_termination_protection_can_be_set(stack: Stack) -> None:
    """Refuse to change the termination protection of a nested stack, or of one that is deleted.

    User guide: "any status except DELETE_IN_PROGRESS or DELETE_COMPLETE" allows it.
    """
    if stack.parent:
        raise ValidationError(f"TerminationProtection cannot be updated on the nested stack [{stack.name}]")
    if stack.status in ("DELETE_IN_PROGRESS", "DELETE_COMPLETE"):
        raise ValidationError(f"TerminationProtection cannot be updated while stack [{stack.name}] is {stack.status}")


def check_deletion_is_allowed(stack: Stack, *, retaining: bool) -> None:
    """Refuse to delete a stack that is nested, protected or in a status that does not allow it.

    Args:
        retaining: whether the call asks to retain resources, which only the status DELETE_FAILED allows
    """
    if stack.parent:
        raise ValidationError(f"Stack {stack.name} is nested; delete its root {stack.root.name}")
    _check_termination_protection_disabled(stack)
    if not stack.finished and stack.status not in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS"):
        raise ValidationError(f"Stack [{stack.id}] cannot be deleted while in status {stack.status}")
    if retaining and stack.status != "DELETE_FAILED":
        raise ValidationError(
            f"Invalid operation on stack [{stack.id}]. When a stack's status is {stack.status}, no resources can be "
            "retained: specify them only when the stack is in the DELETE_FAILED state"
        )


def _check_termination_protection_disabled(stack: Stack) -> None:
    if stack.protected:
        raise ValidationError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")


def check_stack_policy_body(body: str) -> None:
    """Refuse a stack policy that is invalid or too long (API: SetStackPolicy)."""
    if len(body.encode()) > MAX_STACK_POLICY_BYTES:
        raise ValidationError(
            "1 validation error detected: Value at 'stackPolicyBody' failed to satisfy constraint: Member must have "
            f"length less than or equal to {MAX_STACK_POLICY_BYTES}"
        )
    try:
        statements = json.loads(body)["Statement"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValidationError(f"Error validating stack policy: Invalid stack policy ({error})") from error
    if not isinstance(statements, list) or not all(
        isinstance(statement, dict) and statement.get("Effect") in ("Allow", "Deny") for statement in statements
    ):
        raise ValidationError("Error validating stack policy: Invalid stack policy")
