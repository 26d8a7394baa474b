"""How a failed or cancelled update is undone: what was changed is put back, what is new goes in the cleanup."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from cfngen.sandbox.cloudformation import creation, properties, removing, updating
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.creation import FAULTS
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.stack import Memory, Resource, Stack

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

CLEANUP = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"


def roll_back(service: Region, stack: Stack, reason: str) -> Operation:
    """Return a stack to the last stable state."""
    service.begin(stack, "ROLLBACK", stack.token)
    service.record(stack, None, "UPDATE_ROLLBACK_IN_PROGRESS", reason)
    memory = _remembered(stack)
    stack.revision = memory.revision
    # What one attempt has made and the next has given up is in neither of the two states; it goes all the same.
    remembered = {resource.physical_id for resource in memory.resources.values()}
    stack.obsolete = [(each, policy) for each, policy in stack.obsolete if each.physical_id not in remembered]
    for key, each in list(stack.resources.items()):
        old = memory.resources.get(key)
        if old is None or (each.physical_id != old.physical_id and each.exists):  # new, or in the place of another
            policy = each.definition.deletion_policy if old is None else "Delete"
            stack.obsolete.append((each, "Delete" if policy == "RetainExceptOnCreate" else policy))
        if old is None:
            del stack.resources[key]
    for key, old in memory.resources.items():
        current = stack.resources.get(key)
        if current is None or current.physical_id != old.physical_id or current.fresh:
            status = current.status if current else old.status
            stack.resources[key] = dataclasses.replace(old, touched=current is not None, status=status)
    yield from restore(service, stack)


def _remembered(stack: Stack) -> Memory:
    if stack.memory is None:
        raise ResourceError(f"{stack.name} has no stable state to return to")
    return stack.memory


def restore(service: Region, stack: Stack) -> Operation:
    """Put back what is not yet as it was."""
    turn = stack.turn
    for resource in stack.resources.values():
        resource.progress, resource.unrestored = "", False
    keys = list(_remembered(stack).resources)
    yield from creation.settle(
        stack, keys, lambda key: service.simulation.start(_undo(service, stack, stack.resources[key])), stubborn=True
    )
    if stack.turn != turn:
        return
    if failed := [key for key, each in stack.resources.items() if each.progress != "settled"]:
        blamed = [key for key in failed if stack.resources[key].progress == "failed"]
        service.record(stack, None, "UPDATE_ROLLBACK_FAILED", removing.failed_to("update", blamed))
        return
    memory = _remembered(stack)
    stack.outputs, stack.exports = dict(memory.outputs), dict(memory.exports)
    service.record(stack, None, CLEANUP)
    if stack.parent is None:
        yield from updating.clean_up(service, stack, "UPDATE_ROLLBACK_COMPLETE")


def _undo(service: Region, stack: Stack, resource: Resource) -> Operation:
    old = _remembered(stack).resources[resource.logical_id]
    resource.turn += 1
    turn, resource.progress = resource.turn, "working"
    resource.definition = old.definition
    if not resource.touched:
        resource.progress = "settled"
        return
    before = resource.properties if resource.attempted is None else resource.attempted
    resource.attempted = None
    service.record(stack, resource, "UPDATE_IN_PROGRESS")
    try:
        if resource.child is not None:
            resource.properties = dict(old.properties)
            service.failures.strike(stack.name, resource.logical_id, "UPDATE")
            yield from _undo_nested(service, resource, resource.child)
        else:
            resource.properties = properties.resolved(service, stack, resource.definition)
            yield from updating.modify(service, stack, resource, before)
    except FAULTS as error:
        resource.attempted = dict(before)
        if resource.turn == turn:
            service.record(stack, resource, "UPDATE_FAILED", str(error))
            if stack.root.forced:
                skip(service, stack, resource)
            else:
                resource.progress, resource.unrestored = "failed", True
    else:
        if resource.turn == turn:
            resource.progress, resource.touched = "settled", False
            service.record(stack, resource, "UPDATE_COMPLETE")


def skip(service: Region, stack: Stack, resource: Resource) -> None:
    """Take a resource as it is for rolled back, as the caller asked."""
    resource.progress, resource.touched, resource.attempted, resource.unrestored = "settled", False, None, False
    service.record(stack, resource, "UPDATE_COMPLETE", "Resource update skipped.")


def _undo_nested(service: Region, resource: Resource, child: Stack) -> Operation:
    turn = resource.turn
    if child.memory is not None:
        if child.status == "UPDATE_ROLLBACK_FAILED":
            if child.root.operations[-1][1] == "CONTINUE_ROLLBACK":
                again(service, child)
        elif child.status not in ("UPDATE_ROLLBACK_IN_PROGRESS", CLEANUP):
            service.simulation.start(roll_back(service, child, ""))
        yield lambda: child.status != "UPDATE_ROLLBACK_IN_PROGRESS" or resource.turn != turn
        if resource.turn != turn:
            return
        if child.status != CLEANUP:
            raise ResourceError(blaming(child))
    resource.attributes = {f"Outputs.{key}": value for key, value in child.outputs.items()}


def blaming(child: Stack) -> str:
    """Why the resource of a nested stack has failed: as soon as the stack rolls back, and with the reason for that."""
    status, reason = child.status, child.reason
    if "ROLLBACK" in status and status != "UPDATE_ROLLBACK_FAILED":
        status = "UPDATE_ROLLBACK_IN_PROGRESS"
        own = [event for event in child.events if event.physical_id == child.id and event.status == status]
        reason = own[-1].reason
    return f"Embedded stack {child.id} was not successfully updated. Currently in {status} with reason: {reason}"


def again(service: Region, stack: Stack, token: str = "") -> None:
    """Begin to put back what a failed rollback has left."""
    service.begin(stack, "CONTINUE_ROLLBACK", token)
    service.record(stack, None, "UPDATE_ROLLBACK_IN_PROGRESS", "User Initiated" if stack.parent is None else "")
    service.simulation.start(restore(service, stack))


def cancel(service: Region, stack: Stack, reason: str) -> None:
    """Stop an update and undo it, if there is a state to return to."""
    stack.turn += 1
    creation.cancel_resources(service, stack)
    if stack.memory is None or (stack.root.disable_rollback and stack.parent is not None):
        service.record(stack, None, "UPDATE_FAILED", reason)
    else:
        service.simulation.start(roll_back(service, stack, reason))
