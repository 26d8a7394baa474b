"""Rolls back failed or cancelled updates: restores modified resources, and deletes new ones in the cleanup phase."""

from __future__ import annotations

import dataclasses

from cfngen.sandbox.cloudformation import creation, deletion, modification, properties
from cfngen.sandbox.cloudformation.deletion import ROLLBACK_CLEANUP_STATUS, clean_up
from cfngen.sandbox.cloudformation.errors import ResourceError, status_reason
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.simulation import Operation
from cfngen.sandbox.cloudformation.stack import Resource, StableState, Stack


def roll_back(cloud: Region, stack: Stack, reason: str) -> Operation:
    """Roll a stack back to its last stable state; `reason` is the status reason of the first event."""
    cloud.start_operation(stack, "ROLLBACK", stack.token)
    cloud.record_event(stack, None, "UPDATE_ROLLBACK_IN_PROGRESS", reason)
    stable_state = _require_stable_state(stack)
    stack.revision = stable_state.revision
    # Resources that one update created and a retry abandoned belong to neither state; they are deleted as well.
    stable_ids = {resource.physical_id for resource in stable_state.resources.values()}
    stack.obsolete_resources = [
        (resource, policy) for resource, policy in stack.obsolete_resources if resource.physical_id not in stable_ids
    ]
    for logical_id, resource in list(stack.resources.items()):
        stable_resource = stable_state.resources.get(logical_id)
        if stable_resource is None:
            policy = resource.definition.deletion_policy
            stack.obsolete_resources.append((resource, "Delete" if policy == "RetainExceptOnCreate" else policy))
            del stack.resources[logical_id]
        elif resource.physical_id != stable_resource.physical_id and resource.exists:
            stack.obsolete_resources.append((resource, "Delete"))
    for logical_id, stable_resource in stable_state.resources.items():
        current = stack.resources.get(logical_id)
        if current is None:
            stack.resources[logical_id] = dataclasses.replace(stable_resource, was_updated=False)
        elif current.physical_id != stable_resource.physical_id or current.is_replacement:
            stack.resources[logical_id] = dataclasses.replace(stable_resource, was_updated=True, status=current.status)
    yield from restore_resources(cloud, stack)


def _require_stable_state(stack: Stack) -> StableState:
    """The stack's last stable state, to which it rolls back."""
    if stack.stable_state is None:
        raise ResourceError(f"stack {stack.name} has no stable state to roll back to")
    return stack.stable_state


def restore_resources(cloud: Region, stack: Stack) -> Operation:
    """Restore all resources that differ from the last stable state, then start the cleanup of a root stack."""
    generation = stack.generation
    for resource in stack.resources.values():
        resource.progress, resource.rollback_failed = "", False
    logical_ids = list(_require_stable_state(stack).resources)
    yield from creation.start_in_order(
        cloud,
        stack,
        logical_ids,
        start=lambda logical_id: cloud.simulation.start(_restore_resource(cloud, stack, stack.resources[logical_id])),
        continue_after_failure=True,
    )
    if stack.is_superseded(generation):
        return
    if any(resource.progress != "complete" for resource in stack.resources.values()):
        failed_ids = [logical_id for logical_id, resource in stack.resources.items() if resource.progress == "failed"]
        cloud.record_event(stack, None, "UPDATE_ROLLBACK_FAILED", deletion.failure_message("update", failed_ids))
        return
    stable_state = _require_stable_state(stack)
    stack.outputs, stack.exports = dict(stable_state.outputs), dict(stable_state.exports)
    cloud.record_event(stack, None, ROLLBACK_CLEANUP_STATUS)
    if stack.led_by is None:
        yield from clean_up(cloud, stack, "UPDATE_ROLLBACK_COMPLETE")


def _restore_resource(cloud: Region, stack: Stack, resource: Resource) -> Operation:
    """Restore a resource to its state before the update, if the update has touched it."""
    stable_resource = _require_stable_state(stack).resources[resource.logical_id]
    resource.generation += 1
    # While this operation waits, another one may take over the resource, and only that one then records what becomes of
    # it. So the generation is compared after each wait, whether the restoration succeeded or failed.
    generation = resource.generation
    resource.progress = "in_progress"
    resource.definition = stable_resource.definition
    if not resource.was_updated:
        resource.progress = "complete"
        return
    # The properties that the actual resource has, or may have in part after a failed update.
    current_properties = resource.properties
    if resource.attempted_properties is not None:
        current_properties = resource.attempted_properties
    resource.attempted_properties = None
    cloud.record_event(stack, resource, "UPDATE_IN_PROGRESS")
    try:
        if resource.child is not None:
            resource.properties = dict(stable_resource.properties)
            cloud.failures.raise_injected(stack.name, resource.logical_id, "UPDATE")
            yield from _roll_back_nested(cloud, resource, resource.child)
        else:
            resource.properties = properties.resolve_properties(cloud, stack, resource.definition)
            yield from modification.modify(cloud, stack, resource, current_properties)
    except cloud.resource_errors as error:
        resource.attempted_properties = dict(current_properties)
        if resource.is_superseded(generation):
            return
        cloud.record_event(stack, resource, "UPDATE_FAILED", status_reason(error))
        if stack.leader.force_rollback:
            skip(cloud, stack, resource)
        else:
            resource.progress, resource.rollback_failed = "failed", True
    else:
        if not resource.is_superseded(generation):
            resource.progress, resource.was_updated = "complete", False
            cloud.record_event(stack, resource, "UPDATE_COMPLETE")


def skip(cloud: Region, stack: Stack, resource: Resource) -> None:
    """Skip a resource in a rollback: leave it unchanged, and record it as UPDATE_COMPLETE."""
    resource.progress = "complete"
    resource.was_updated = resource.rollback_failed = False
    resource.attempted_properties = None
    cloud.record_event(stack, resource, "UPDATE_COMPLETE", "Resource update skipped.")


def _roll_back_nested(cloud: Region, resource: Resource, nested_stack: Stack) -> Operation:
    """Roll back a nested stack, or wait for its rollback if that has started already.

    Raises:
        ResourceError: the rollback of the nested stack failed
    """
    generation = resource.generation
    if nested_stack.stable_state is not None:
        if nested_stack.status == "UPDATE_ROLLBACK_FAILED":
            _, operation_type = nested_stack.leader.operations[-1]
            if operation_type == "CONTINUE_ROLLBACK":
                continue_rollback(cloud, nested_stack)
        elif nested_stack.status not in ("UPDATE_ROLLBACK_IN_PROGRESS", ROLLBACK_CLEANUP_STATUS):
            cloud.simulation.start(roll_back(cloud, nested_stack, reason=""))
        yield lambda: nested_stack.status != "UPDATE_ROLLBACK_IN_PROGRESS" or resource.is_superseded(generation)
        if resource.is_superseded(generation):
            return
        if nested_stack.status != ROLLBACK_CLEANUP_STATUS:
            raise ResourceError(nested_failure(nested_stack))
    resource.attributes = {f"Outputs.{name}": value for name, value in nested_stack.outputs.items()}


def nested_failure(nested_stack: Stack) -> str:
    """The reason why a nested stack's resource failed: the nested stack's status, and why it rolls back."""
    status, reason = nested_stack.status, nested_stack.reason
    if "ROLLBACK" in status and status != "UPDATE_ROLLBACK_FAILED":
        # The failure is reported with the reason that the rollback began with, also if the rollback is over by now.
        status = "UPDATE_ROLLBACK_IN_PROGRESS"
        rollback_events = [
            event for event in nested_stack.events if event.physical_id == nested_stack.id and event.status == status
        ]
        reason = rollback_events[-1].reason
    return f"Embedded stack {nested_stack.id} was not successfully updated. Currently in {status} with reason: {reason}"


def continue_rollback(cloud: Region, stack: Stack, token: str = "") -> None:
    """Continue the failed rollback of a stack or, as a part of that, of one that it nests."""
    cloud.start_operation(stack, "CONTINUE_ROLLBACK", token)
    cloud.record_event(stack, None, "UPDATE_ROLLBACK_IN_PROGRESS", "" if stack.led_by else "User Initiated")
    cloud.simulation.start(restore_resources(cloud, stack))


def cancel(cloud: Region, stack: Stack, reason: str) -> None:
    """Cancel an update, and roll it back.

    The stack ends in UPDATE_FAILED instead if it was never stable, or is nested in one with rollback disabled.
    """
    stack.generation += 1
    creation.cancel_resources(cloud, stack)
    if stack.stable_state is None or (stack.leader.disable_rollback and stack.led_by is not None):
        cloud.record_event(stack, None, "UPDATE_FAILED", reason)
    else:
        cloud.simulation.start(roll_back(cloud, stack, reason))
