"""The cleanup phase at the end of an update or of its rollback: resources that the stack no longer needs are deleted.

A nested stack is cleaned up only together with its root, because the root may still roll back.
"""

from __future__ import annotations

from cfngen.sandbox.cloudformation import deletion
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.stack import Stack

UPDATE_CLEANUP_STATUS = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
ROLLBACK_CLEANUP_STATUS = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
NOT_DELETED = "One or more resources could not be deleted."


def clean_up(cloud: Region, stack: Stack, final_status: str) -> Operation:
    """Delete a stack's obsolete resources, then clean up its nested stacks; this completes the update.

    Args:
        final_status: the status after the cleanup: UPDATE_COMPLETE or UPDATE_ROLLBACK_COMPLETE
    """
    any_not_deleted = yield from deletion.remove_obsolete(cloud, stack)
    resources_of_nested_stacks = {
        logical_id: resource
        for logical_id, resource in stack.resources.items()
        if resource.child and _awaits_cleanup(resource.child)
    }
    for resource in deletion.dependents_first(cloud, resources_of_nested_stacks):
        nested_stack = resource.child
        if nested_stack is not None:
            cloud.simulation.start(clean_up(cloud, nested_stack, final_status))
            yield nested_stack.has_finished
            cloud.record_event(stack, resource, "UPDATE_COMPLETE")
    stack.stable_state, stack.policy_during_update = None, ""
    reason = ""
    if any_not_deleted:
        reason = f"Update successful. {NOT_DELETED}" if final_status == "UPDATE_COMPLETE" else NOT_DELETED
    cloud.record_event(stack, None, final_status, reason)


def _awaits_cleanup(child: Stack) -> bool:
    """Whether a nested stack took part in the update of its parent, and waits for its cleanup."""
    return child.stable_state is not None or child.status == UPDATE_CLEANUP_STATUS
