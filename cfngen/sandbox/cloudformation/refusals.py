"""What CloudFormation refuses because of the status a stack is in."""

from __future__ import annotations

import json

from cfngen.sandbox.cloudformation.errors import ValidationError
from cfngen.sandbox.cloudformation.stack import STABLE, Stack

PAUSED = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})
UPDATABLE = STABLE | PAUSED


def check_update(stack: Stack) -> None:
    """Refuse an update, or a change set for one."""
    if stack.parent:
        raise ValidationError(f"Stack {stack.name} is a nested stack; update its root {stack.root.name}")
    if stack.status not in UPDATABLE:
        raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be updated.")


def check_going_on(stack: Stack, *, disable_rollback: bool) -> None:
    """Refuse to go on from a failure that was kept, unless the next one will be kept too."""
    if stack.status in PAUSED and not disable_rollback:
        raise ValidationError(
            f"This stack is currently in a non-terminal [{stack.status}] state. To update the stack from this state, "
            "please use the disable-rollback parameter with update-stack API. To rollback to the last known good "
            "state, use the rollback-stack API"
        )


def check_cancel(stack: Stack) -> None:
    """Refuse to cancel what is no update under way."""
    if stack.parent or stack.status != "UPDATE_IN_PROGRESS":
        raise ValidationError(f"CancelUpdateStack cannot be called from current stack status ({stack.status})")


def check_rollback(stack: Stack) -> None:
    """Refuse to roll back what has not failed with rollback turned off."""
    if stack.parent or stack.status not in ("CREATE_FAILED", "UPDATE_FAILED"):
        raise ValidationError(f"RollbackStack cannot be called from current stack status ({stack.status})")


def check_continue(stack: Stack) -> None:
    """Refuse to continue a rollback that has not failed."""
    if stack.parent:
        raise ValidationError(
            f"Stack {stack.name} is nested; ContinueUpdateRollback goes to its root {stack.root.name}"
        )
    if stack.status != "UPDATE_ROLLBACK_FAILED":
        raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be continued rollback from.")


def check_delete(stack: Stack, *, retaining: bool) -> None:
    """Refuse a deletion."""
    if stack.parent:
        raise ValidationError(f"Stack {stack.name} is nested; delete its root {stack.root.name}")
    if stack.protected:
        raise ValidationError(f"Stack [{stack.name}] cannot be deleted while TerminationProtection is enabled")
    if not stack.finished and stack.status not in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS"):
        raise ValidationError(f"Stack [{stack.id}] cannot be deleted while in status {stack.status}")
    if retaining and stack.status != "DELETE_FAILED":
        raise ValidationError(
            f"Invalid operation on stack [{stack.id}]. When a stack's status is {stack.status}, no resources can be "
            "retained: specify them only when the stack is in the DELETE_FAILED state"
        )


def check_policy(body: str) -> None:
    """Refuse a stack policy that is none."""
    try:
        statements = json.loads(body)["Statement"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValidationError(f"Error validating stack policy: Invalid stack policy ({error})") from error
    if not isinstance(statements, list) or not all(
        isinstance(each, dict) and each.get("Effect") in ("Allow", "Deny") for each in statements
    ):
        raise ValidationError("Error validating stack policy: Invalid stack policy")
