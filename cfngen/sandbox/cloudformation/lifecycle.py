"""The calls that begin an operation of a stack: what each refuses, and what it starts."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from cfngen.sandbox.cloudformation import admission, creation, planning, refusals, removing, rollback, updating
from cfngen.sandbox.cloudformation.admission import Submission
from cfngen.sandbox.cloudformation.errors import AlreadyExistsError, ValidationError
from cfngen.sandbox.cloudformation.stack import STABLE, Resource, Revision, Stack

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region


def create_stack(
    service: Region,
    name: str,
    submission: Submission,
    on_failure: str,
    protected: bool,
    policy: str,
    token: str,
) -> Stack:
    """Begin to create a stack.

    Raises:
        ApiError: refused
    """
    admission.check_name("stackName", name)
    if any(each.name == name and each.status != "DELETE_COMPLETE" for each in service.stacks()):
        raise AlreadyExistsError(f"Stack [{name}] already exists")
    if policy:
        refusals.check_policy(policy)
    stack = service.new_stack(name, admission.admit(service, submission, None, name))
    stack.protection, stack.policy = protected, policy
    start_creation(service, stack, on_failure, token)
    return stack


def start_creation(service: Region, stack: Stack, on_failure: str, token: str, *, express: bool = False) -> None:
    """Begin to create a stack that has been accepted."""
    service.begin(stack, "CREATE_STACK", token)
    stack.disable_rollback, stack.express = on_failure == "DO_NOTHING", express
    service.simulation.start(creation.create(service, stack, on_failure or "ROLLBACK"))


def start_update(
    service: Region,
    stack: Stack,
    revision: Revision,
    token: str,
    *,
    disable_rollback: bool,
    express: bool = False,
) -> None:
    """Begin to update a stack to a revision that has been accepted."""
    stack.disable_rollback, stack.express, stack.forced = disable_rollback, express, False
    updating.begin(service, stack, revision, token)


def update_stack(
    service: Region,
    name: str,
    submission: Submission,
    disable_rollback: bool,
    policy_during_update: str,
    policy: str,
    token: str,
) -> Stack:
    """Begin to update a stack.

    Raises:
        ApiError: refused
    """
    stack = service.stack(name)
    refusals.check_update(stack)
    refusals.check_going_on(stack, disable_rollback=disable_rollback)
    for each in (policy_during_update, policy):
        if each:
            refusals.check_policy(each)
    revision = admission.admit(service, submission, stack)
    if stack.status in STABLE and (empty := planning.nothing_to_do(service, stack, revision)):
        raise ValidationError(empty)
    stack.policy_during_update, stack.policy = policy_during_update, policy or stack.policy
    for change_set in service.all_change_sets():
        if change_set.stack is stack and change_set.execution_status == "AVAILABLE":
            change_set.execution_status = "OBSOLETE"
    start_update(service, stack, revision, token, disable_rollback=disable_rollback)
    return stack


def cancel_update(service: Region, stack: Stack, token: str) -> None:
    """Stop an update and undo it.

    Raises:
        ValidationError: there is none
    """
    refusals.check_cancel(stack)
    stack.token = token or stack.token
    rollback.cancel(service, stack, "User Initiated")


def rollback_stack(service: Region, stack: Stack, token: str) -> Stack:
    """Return to the last stable state what failed with rollback turned off; without such a state the stack goes.

    Raises:
        ValidationError: it has not failed so
    """
    refusals.check_rollback(stack)
    stack.disable_rollback, stack.token = False, token
    if stack.memory is None:
        service.begin(stack, "ROLLBACK", token)
        service.simulation.start(removing.delete(service, stack, "User Initiated"))
    else:
        service.simulation.start(rollback.roll_back(service, stack, "User Initiated"))
    return stack


def continue_rollback(service: Region, stack: Stack, skip: Collection[str], force: bool, token: str) -> Stack:
    """Try again to undo an update.

    Raises:
        ValidationError: there is nothing to continue, or what is to be skipped has not failed
    """
    refusals.check_continue(stack)
    if skip and force:
        raise ValidationError("ResourcesToSkip and ForceRollback cannot be given together")
    skipped = [_skipped(service, stack, each) for each in skip]
    for owner, resource in skipped:
        rollback.skip(service, owner, resource)
    stack.forced = force
    rollback.again(service, stack, token)
    return stack


def _skipped(service: Region, root: Stack, name: str) -> tuple[Stack, Resource]:
    """A resource named by its logical id, or by its nested stack's name and its logical id."""
    stack_name, _, logical_id = name.rpartition(".")
    owner = service.stack(stack_name) if stack_name else root
    resource = owner.resources.get(logical_id)
    if owner.root is not root or resource is None:
        raise ValidationError(f"Resource [{name}] does not exist in stack [{root.name}] or one that it nests")
    refusals.check_skip(name, resource)
    return owner, resource


def delete_stack(service: Region, stack: Stack, retain: Collection[str], force: bool, token: str) -> Stack:
    """Begin to delete a stack.

    Raises:
        ValidationError: refused
    """
    refusals.check_delete(stack, retaining=bool(retain) or force)
    if unknown := sorted(set(retain) - set(stack.resources)):
        raise ValidationError(f"The specified resources to retain {unknown} are not resources of the stack")
    was = stack.status
    service.begin(stack, "DELETE_STACK", token)
    for change_set in [change_set for change_set in service.all_change_sets() if change_set.stack is stack]:
        planning.drop(service, change_set)
    if was == "CREATE_IN_PROGRESS":
        creation.cancel_resources(service, stack)
    service.simulation.start(removing.delete(service, stack, "User Initiated", retain=retain, force=force))
    return stack
