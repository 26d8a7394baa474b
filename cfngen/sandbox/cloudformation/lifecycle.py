"""The calls that start an operation of a stack: each checks whether the operation is allowed, and then starts it."""

from __future__ import annotations

from collections.abc import Collection

from cfngen.sandbox.cloudformation import (
    admission,
    change_set_creation,
    creation,
    deletion,
    existing_change_sets,
    rollback,
    status_checks,
    updating,
)
from cfngen.sandbox.cloudformation.admission import Submission
from cfngen.sandbox.cloudformation.errors import AlreadyExistsError, ValidationError
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import STABLE_STATUSES, Resource, Revision, Stack


def create_stack(
    cloud: Region,
    name: str,
    submission: Submission,
    *,
    on_failure: str,
    protected: bool,
    policy: str,
    token: str,
) -> Stack:
    """Start to create a stack.

    Raises:
        ApiError: the call is refused
    """
    admission.check_name("stackName", name)
    if any(other.name == name and other.status != "DELETE_COMPLETE" for other in cloud.stacks()):
        raise AlreadyExistsError(f"Stack [{name}] already exists")
    if policy:
        status_checks.check_stack_policy_body(policy)
    stack = cloud.new_stack(name, admission.admit(cloud, submission, None, name))
    stack.own_termination_protection, stack.policy = protected, policy
    start_creation(cloud, stack, on_failure=on_failure, token=token)
    return stack


def start_creation(cloud: Region, stack: Stack, *, on_failure: str, token: str, express: bool = False) -> None:
    """Start to create a stack whose template has been accepted.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: the new stack
        on_failure: ROLLBACK (also ""), DELETE or DO_NOTHING
        token: the ClientRequestToken
        express: whether to skip waiting until resources are ready
    """
    cloud.start_operation(stack, "CREATE_STACK", token)
    stack.disable_rollback, stack.express = on_failure == "DO_NOTHING", express
    cloud.simulation.start(creation.create(cloud, stack, on_failure or "ROLLBACK"))


def start_update(
    cloud: Region,
    stack: Stack,
    revision: Revision,
    *,
    token: str,
    disable_rollback: bool,
    express: bool = False,
) -> None:
    """Start to update a stack to a revision that has been accepted."""
    stack.disable_rollback, stack.express, stack.force_rollback = disable_rollback, express, False
    updating.start(cloud, stack, revision, token)


def update_stack(
    cloud: Region,
    name: str,
    submission: Submission,
    *,
    disable_rollback: bool,
    policy_during_update: str,
    policy: str,
    token: str,
) -> Stack:
    """Start to update a stack.

    Raises:
        ApiError: the call is refused
    """
    stack = cloud.stack(name)
    status_checks.check_update_is_allowed(stack)
    status_checks.check_rollback_stays_disabled(stack, disable_rollback=disable_rollback)
    for policy_body in (policy_during_update, policy):
        if policy_body:
            status_checks.check_stack_policy_body(policy_body)
    revision = admission.admit(cloud, submission, stack)
    if stack.status in STABLE_STATUSES and (refusal := change_set_creation.no_updates_message(cloud, stack, revision)):
        raise ValidationError(refusal)
    stack.policy_during_update, stack.policy = policy_during_update, policy or stack.policy
    for change_set in cloud.all_change_sets():
        if change_set.stack is stack and change_set.execution_status == "AVAILABLE":
            change_set.execution_status = "OBSOLETE"
    start_update(cloud, stack, revision, token=token, disable_rollback=disable_rollback)
    return stack


def cancel_update(cloud: Region, stack: Stack, *, token: str) -> None:
    """Cancel an update, and roll it back.

    Raises:
        ValidationError: no update is in progress
    """
    status_checks.check_update_can_be_cancelled(stack)
    stack.token = token or stack.token
    rollback.cancel(cloud, stack, "User Initiated")


def rollback_stack(cloud: Region, stack: Stack, *, token: str) -> Stack:
    """Roll back a stack that failed with rollback disabled; a stack that was never stable is deleted.

    Raises:
        ValidationError: the stack has not failed with rollback disabled, or is protected and would be deleted
    """
    status_checks.check_rollback_can_be_started(stack)
    stack.disable_rollback, stack.token = False, token
    if stack.stable_state is None:
        cloud.start_operation(stack, "ROLLBACK", token)
        cloud.simulation.start(deletion.delete(cloud, stack, "User Initiated"))
    else:
        cloud.simulation.start(rollback.roll_back(cloud, stack, "User Initiated"))
    return stack


def continue_rollback(cloud: Region, stack: Stack, *, skip: Collection[str], force: bool, token: str) -> Stack:
    """Continue a failed rollback of an update.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: a root stack in UPDATE_ROLLBACK_FAILED
        skip: resources to leave as they are: `LogicalId`, or `NestedStackName.LogicalId`
        force: whether to skip all resources that fail
        token: the ClientRequestToken

    Raises:
        ValidationError: no rollback has failed, or a resource to skip has not failed
    """
    status_checks.check_rollback_can_be_continued(stack)
    if skip and force:
        raise ValidationError("ResourcesToSkip and ForceRollback cannot be given together")
    resources_to_skip = [_find_resource_to_skip(cloud, stack, name) for name in skip]
    for owner, resource in resources_to_skip:
        rollback.skip(cloud, owner, resource)
    stack.force_rollback = force
    rollback.continue_rollback(cloud, stack, token)
    return stack


def _find_resource_to_skip(cloud: Region, root: Stack, name: str) -> tuple[Stack, Resource]:
    """Return the stack and the resource that `LogicalId` or `NestedStackName.LogicalId` in ResourcesToSkip names.

    Raises:
        ValidationError: there is no such resource, or its rollback has not failed
    """
    stack_name, _, logical_id = name.rpartition(".")
    owner = cloud.stack(stack_name) if stack_name else root
    resource = owner.resources.get(logical_id)
    if owner.root is not root or resource is None:
        raise ValidationError(f"Resource [{name}] does not exist in stack [{root.name}] or one that it nests")
    status_checks.check_resource_can_be_skipped(name, resource)
    return owner, resource


def delete_stack(cloud: Region, stack: Stack, *, retain: Collection[str], force: bool, token: str) -> Stack:
    """Start to delete a stack, after its change sets.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: a root stack
        retain: logical ids of resources to retain
        force: whether to retain all resources that cannot be deleted
        token: the ClientRequestToken

    Raises:
        ValidationError: the call is refused
    """
    status_checks.check_deletion_is_allowed(stack, retaining=bool(retain) or force)
    if unknown := sorted(set(retain) - set(stack.resources)):
        raise ValidationError(f"The specified resources to retain {unknown} are not resources of the stack")
    status_before = stack.status
    cloud.start_operation(stack, "DELETE_STACK", token)
    for change_set in cloud.all_change_sets():
        if change_set.stack is stack:
            existing_change_sets.delete_without_checks(cloud, change_set)
    if status_before == "CREATE_IN_PROGRESS":
        creation.cancel_resources(cloud, stack)
    cloud.simulation.start(deletion.delete(cloud, stack, "User Initiated", retain=retain, force=force))
    return stack


def cancel_nested(cloud: Region, child: Stack) -> None:
    """Cancel the creation of a nested stack, or its update, which starts to roll back."""
    if child.status == "CREATE_IN_PROGRESS":
        creation.cancel(cloud, child)
    elif child.status == "UPDATE_IN_PROGRESS":
        rollback.cancel(cloud, child, "Resource update cancelled")
