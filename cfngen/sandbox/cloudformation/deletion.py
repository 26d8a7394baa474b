"""Deletes stacks and resources: deletions, rollbacks of failed creations, and the cleanup after updates."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Mapping

from botocore.exceptions import ClientError
from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.cloudformation.errors import ResourceError, status_reason
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.properties import handler_call
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import importing_stacks
from cfngen.sandbox.cloudformation.simulation import Operation, ResumeCondition
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP


def delete(
    cloud: Region, stack: Stack, reason: str = "", *, retain: Collection[str] = (), force: bool = False
) -> Operation:
    """Delete a stack and its resources, dependents first.

    Args:
        retain: logical ids of resources to retain
        force: retain all resources that cannot be deleted
    """
    previous_status = stack.status
    stack.force_deletion = force
    cloud.record_event(stack, None, "DELETE_IN_PROGRESS", reason)
    for export_name in stack.exports:
        if importers := importing_stacks(cloud, export_name):
            # The stack returns to its previous status (rlister/stax#40, aws/aws-cdk#604, boto/botocore#2590).
            text = f"Export {export_name} cannot be deleted as it is in use by {' and '.join(importers)}"
            cloud.record_event(stack, None, previous_status, text)
            return
    for logical_id in retain:
        cloud.record_event(stack, stack.resources[logical_id], "DELETE_SKIPPED")
    not_deleted = yield from remove_resources(cloud, stack, force=force)
    if not_deleted:
        cloud.record_event(stack, None, "DELETE_FAILED", failure_message("delete", not_deleted))
        return
    stack.deleted = cloud.clock.time
    cloud.record_event(stack, None, "DELETE_COMPLETE")


def failure_message(verb: str, logical_ids: Collection[str]) -> str:
    """The status reason of a stack with resources that failed; `verb` is create, update or delete."""
    return f"The following resource(s) failed to {verb}: [{', '.join(logical_ids)}]. "


def remove_resources(
    cloud: Region, stack: Stack, *, force: bool = False
) -> Generator[ResumeCondition, None, list[str]]:
    """Delete all resources of a stack, obsolete ones included; returns the logical ids that could not be deleted."""
    yield from remove_obsolete(cloud, stack)
    existing = {logical_id: resource for logical_id, resource in stack.resources.items() if resource.exists}

    def remove(resource: Resource) -> Operation:
        return remove_resource(cloud, stack, resource, resource.definition.deletion_policy, force=force)

    yield from dependents_first(cloud, existing, remove, may_follow=lambda resource: not resource.exists)
    return [logical_id for logical_id, resource in existing.items() if resource.status == "DELETE_FAILED"]


def remove_obsolete(cloud: Region, stack: Stack) -> Generator[ResumeCondition, None, bool]:
    """Delete the resources that an update made obsolete; returns whether any of them could not be deleted.

    If several of them have the same logical id, because one update after the other replaced the resource, each round
    deletes the latest one.
    """
    any_not_deleted = False
    while stack.obsolete_resources:
        latest_by_logical_id = {entry[0].logical_id: entry for entry in stack.obsolete_resources}
        earlier_ones = [entry for entry in stack.obsolete_resources if entry not in latest_by_logical_id.values()]
        stack.obsolete_resources = earlier_ones
        existing_resources = {
            logical_id: resource for logical_id, (resource, _) in latest_by_logical_id.items() if resource.exists
        }
        policies = dict(latest_by_logical_id.values())

        def remove(resource: Resource, policies: Mapping[Resource, str] = policies) -> Operation:
            return remove_resource(cloud, stack, resource, policies[resource])

        yield from dependents_first(cloud, existing_resources, remove)
        any_not_deleted = any_not_deleted or any(resource.exists for resource in existing_resources.values())
    return any_not_deleted


def dependents_first(
    cloud: Region,
    resources: Mapping[str, Resource],
    operate: Callable[[Resource], Operation],
    may_follow: Callable[[Resource], bool] = lambda resource: True,
) -> Operation:
    """Operate on resources, which are given by logical id: on each as soon as that is over for all that depend on it.

    Operations on resources that do not depend on each other overlap.

    Args:
        may_follow: whether what a resource depends on is operated on, once the operation on it is over
    """
    dependents = {
        needed: [logical_id for logical_id, resource in resources.items() if needed in resource.definition.dependencies]
        for needed in resources
    }
    started: set[str] = set()
    over: set[str] = set()

    def operate_on(logical_id: str) -> Operation:
        yield from operate(resources[logical_id])
        over.add(logical_id)

    def can_start(logical_id: str) -> bool:
        return logical_id not in started and all(
            dependent in over and may_follow(resources[dependent]) for dependent in dependents[logical_id]
        )

    while True:
        for logical_id in filter(can_start, cloud.order.shuffled(resources)):
            started.add(logical_id)
            cloud.simulation.start(operate_on(logical_id))
        if any(map(can_start, resources)):
            continue
        if started == over:
            return
        yield lambda: started == over or any(map(can_start, resources))


def remove_resource(cloud: Region, stack: Stack, resource: Resource, policy: str, *, force: bool = False) -> Operation:
    """Delete or retain one resource.

    Args:
        policy: its deletion policy: Delete, Retain, RetainExceptOnCreate or Snapshot
        force: whether to retain the resource if it cannot be deleted
    """
    if policy == "Retain" or (policy == "RetainExceptOnCreate" and "ROLLBACK" not in stack.root.status):
        cloud.record_event(stack, resource, "DELETE_SKIPPED")
        return
    cloud.record_event(stack, resource, "DELETE_IN_PROGRESS")
    try:
        cloud.failures.raise_injected(stack.name, resource.logical_id, "DELETE")
        if resource.child:
            yield from _remove_nested_stack(cloud, resource.child, force=force)
        else:
            yield from cloud.wait_for_duration(resource.type, "delete")
            call = handler_call(cloud, stack, resource)
            if resource.type == AUTO_SCALING_GROUP:
                yield from _empty_group(cloud, resource.physical_id)
            if policy == "Snapshot":
                HANDLERS[resource.type].snapshot(call)
            try:
                HANDLERS[resource.type].delete(call)
            except ClientError as error:
                if not _is_not_found(error):
                    raise
    except cloud.resource_errors as error:
        cloud.record_event(stack, resource, "DELETE_FAILED", status_reason(error))
        if force:
            cloud.record_event(stack, resource, "DELETE_SKIPPED")
    else:
        cloud.record_event(stack, resource, "DELETE_COMPLETE")


def _empty_group(cloud: Region, group: str) -> Operation:
    """Scale a group down to zero, and wait until its instances are terminated.

    Terminating lifecycle hooks can delay that (EC2 Auto Scaling user guide, "How lifecycle hooks work"). With
    ForceDelete a group would not wait for them (API, DeleteAutoScalingGroup); CloudFormation does wait, as stacks show
    whose deletion takes as long as their instances are busy (buildkite/elastic-ci-stack-for-aws#1457).
    """
    scaling = autoscaling_backends[DEFAULT_ACCOUNT_ID][cloud.region]
    if group not in scaling.autoscaling_groups:
        return
    client("autoscaling", cloud.region).update_auto_scaling_group(
        AutoScalingGroupName=group, MinSize=0, MaxSize=0, DesiredCapacity=0
    )
    yield lambda: group not in scaling.autoscaling_groups or not scaling.autoscaling_groups[group].instance_states


def _is_not_found(error: ClientError) -> bool:
    """Whether an error says that the resource to delete does not exist, for example because someone else deleted it."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code.endswith(("NotFound", "NotFoundException")) or code.startswith("NoSuch")


def _remove_nested_stack(cloud: Region, nested_stack: Stack, *, force: bool) -> Operation:
    """Delete a nested stack, and wait until it is deleted.

    Raises:
        ResourceError: the nested stack could not be deleted
    """
    if nested_stack.status == "DELETE_COMPLETE":
        return
    cloud.start_operation(nested_stack, "DELETE_STACK")
    cloud.simulation.start(delete(cloud, nested_stack, force=force))
    yield lambda: nested_stack.finished
    if nested_stack.status != "DELETE_COMPLETE":
        raise ResourceError(f"Embedded stack {nested_stack.id} was not successfully deleted: {nested_stack.reason}")


UPDATE_CLEANUP_STATUS = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
ROLLBACK_CLEANUP_STATUS = "UPDATE_ROLLBACK_COMPLETE_CLEANUP_IN_PROGRESS"
NOT_DELETED = "One or more resources could not be deleted."


def clean_up(cloud: Region, stack: Stack, final_status: str) -> Operation:
    """Delete a stack's obsolete resources, then clean up its nested stacks; this completes the update.

    A nested stack is cleaned up only together with its root, because the root may still roll back.

    Args:
        final_status: the status after the cleanup: UPDATE_COMPLETE or UPDATE_ROLLBACK_COMPLETE
    """
    any_not_deleted = yield from remove_obsolete(cloud, stack)
    resources_of_nested_stacks = {
        logical_id: resource
        for logical_id, resource in stack.resources.items()
        if resource.child and _awaits_cleanup(resource.child)
    }

    def clean_up_nested(resource: Resource) -> Operation:
        if resource.child is not None:
            yield from clean_up(cloud, resource.child, final_status)
            cloud.record_event(stack, resource, "UPDATE_COMPLETE")

    yield from dependents_first(cloud, resources_of_nested_stacks, clean_up_nested)
    stack.stable_state, stack.policy_during_update = None, ""
    reason = ""
    if any_not_deleted:
        reason = f"Update successful. {NOT_DELETED}" if final_status == "UPDATE_COMPLETE" else NOT_DELETED
    cloud.record_event(stack, None, final_status, reason)


def _awaits_cleanup(child: Stack) -> bool:
    """Whether a nested stack took part in the update of its parent, and waits for its cleanup."""
    has_changed = child.stable_state is not None or child.status == UPDATE_CLEANUP_STATUS
    return child.led_by is not None and has_changed
