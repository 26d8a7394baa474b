"""The calls that a stack refuses because of its status or protection, and the updates that its policy denies."""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Collection

from cfngen.sandbox.cloudformation.errors import NotModelledError, ValidationError
from cfngen.sandbox.cloudformation.stack import STABLE_STATUSES, Resource, Stack
from cfngen.sandbox.untyped import JsonObject

FAILED_WITHOUT_ROLLBACK = frozenset({"CREATE_FAILED", "UPDATE_FAILED"})
UPDATABLE_STATUSES = STABLE_STATUSES | FAILED_WITHOUT_ROLLBACK
TARGET_PREFIX = "LogicalResourceId/"  # of a resource's logical id in a policy
MAX_STACK_POLICY_BYTES = 16_384  # API: SetStackPolicy
DELETION_STATUSES = frozenset({"DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED"})


def check_update_is_allowed(stack: Stack) -> None:
    """Refuse an update, or a change set for an update, in a status that allows none.

    A nested stack may be updated for itself: "We strongly recommend that updates to nested stacks are run from the
    parent stack" (template reference, AWS::CloudFormation::Stack).
    """
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
    """Refuse to cancel an update that a parent leads, or if none is in progress."""
    if stack.led_by or stack.status != "UPDATE_IN_PROGRESS":
        raise ValidationError(f"CancelUpdateStack cannot be called from current stack status ({stack.status})")


def check_rollback_can_be_started(stack: Stack) -> None:
    """Refuse to roll back a stack without the parent that led it, or one that has not failed with rollback disabled.

    A stack that was never stable (its creation failed) has no state to return to, so the call deletes it (API:
    RollbackStack). Whether termination protection prevents this deletion is not documented; here it does.
    """
    if stack.led_by or stack.status not in FAILED_WITHOUT_ROLLBACK:
        raise ValidationError(f"RollbackStack cannot be called from current stack status ({stack.status})")
    was_ever_stable = stack.stable_state is not None
    if not was_ever_stable:
        _check_termination_protection_disabled(stack)


def check_rollback_can_be_continued(stack: Stack) -> None:
    """Refuse to continue a rollback without the parent that led it, or a rollback that has not failed."""
    if stack.led_by:
        raise ValidationError(
            f"Stack {stack.name} is nested; ContinueUpdateRollback goes to its root {stack.root.name}"
        )
    if stack.status != "UPDATE_ROLLBACK_FAILED":
        raise ValidationError(f"Stack:{stack.id} is in {stack.status} state and can not be continued rollback from.")


def check_resource_can_be_skipped(name: str, resource: Resource) -> None:
    """Refuse to skip a resource whose rollback has not failed (API: ContinueUpdateRollback, ResourcesToSkip)."""
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
    """Refuse to delete a stack that is protected or in a status that does not allow it.

    A nested stack may be deleted for itself: "It's strongly recommended that you don't delete nested stacks directly"
    (CloudFormation User Guide, "Troubleshooting").

    Args:
        retaining: whether the call asks to retain resources, which only the status DELETE_FAILED allows
    """
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


def check_stack_policy_body(body: str, logical_ids: Collection[str]) -> None:
    """Refuse a stack policy that is invalid, too long, or about resources that are not there (API: SetStackPolicy).

    Args:
        logical_ids: the resources of the template, but for those that a condition leaves out.
    """
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
    for statement in statements:
        _check_stack_policy_resources(statement, logical_ids)


def _check_stack_policy_resources(statement: JsonObject, logical_ids: Collection[str]) -> None:
    """Refuse a statement about what is no resource of the stack; with a wildcard, it may be about none."""
    for key in ("Resource", "NotResource"):
        targets = statement.get(key, [])
        for target in [targets] if isinstance(targets, str) else targets:
            if "*" not in target and target.removeprefix(TARGET_PREFIX) not in logical_ids:
                # Words: sparkleformation/sfn#238.
                raise ValidationError(
                    f"Error validating stack policy: Unknown logical id '{target}' in statement {{}} - stack policies "
                    "can only be applied to logical ids referenced in the template"
                )


STATEMENT_KEYS = {"Effect", "Action", "NotAction", "Principal", "Resource", "NotResource", "Condition", "Sid"}


def denial_reason(stack: Stack, resource: Resource, action: str) -> str:
    """Why the stack policy denies an action on a resource; "" if it allows the action.

    CloudFormation user guide, "Prevent updates to stack resources": a stack without a policy allows all updates. With a
    policy, updates are denied unless a statement allows them, and Deny overrides Allow.

    Args:
        action: Update:Modify, Update:Replace or Update:Delete
    """
    policy_body = stack.policy_during_update or stack.policy
    if not policy_body:
        return ""
    target = f"{TARGET_PREFIX}{resource.logical_id}"
    allowed = False
    for number, statement in enumerate(json.loads(policy_body)["Statement"], start=1):
        if _applies_to(statement, action, target, resource.type):
            if statement["Effect"] == "Deny":
                return (
                    f"Action denied by stack policy: Statement [#{number}] does not allow [{action}] for resource "
                    f"[{target}]"
                )
            allowed = True
    return "" if allowed else f"Action not allowed by stack policy: no statement allows [{action}] for [{target}]"


def _applies_to(statement: JsonObject, action: str, target: str, resource_type: str) -> bool:
    """Whether a statement of a policy is about an action on a resource.

    Args:
        target: the resource as policies name it: `LogicalResourceId/<logical id>`
    """
    if unknown := sorted(set(statement) - STATEMENT_KEYS):
        raise NotModelledError(f"stack policies with {unknown}")
    return (
        _matches_element(statement, "Action", action)
        and _matches_element(statement, "Resource", target)
        and all(
            _condition_is_met(key, condition, resource_type)
            for key, condition in statement.get("Condition", {}).items()
        )
    )


def _matches_element(statement: JsonObject, key: str, value: str) -> bool:
    """Whether an element such as Action, or its opposite NotAction, makes a statement apply to a value."""
    opposite_key = f"Not{key}"
    if opposite_key in statement:
        return not _matches_any(statement[opposite_key], value)
    return _matches_any(statement[key], value)


def _matches_any(patterns: str | list[str], value: str) -> bool:
    """Whether a value matches one of the patterns, in which `*` stands for any text; a single pattern needs no list."""
    patterns = [patterns] if isinstance(patterns, str) else patterns
    return any(fnmatch.fnmatchcase(value, pattern) for pattern in patterns)


def _condition_is_met(operator: str, condition: JsonObject, resource_type: str) -> bool:
    """Whether the resource type meets a condition of a statement."""
    if operator not in ("StringEquals", "StringLike") or set(condition) != {"ResourceType"}:
        raise NotModelledError(f"stack policies with the condition {operator} {condition}")
    wanted_types = condition["ResourceType"]
    if operator == "StringLike":
        return _matches_any(wanted_types, resource_type)
    return resource_type in ([wanted_types] if isinstance(wanted_types, str) else wanted_types)
