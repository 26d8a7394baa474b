"""Deletes stacks and resources: deletions, rollbacks of failed creations, and the cleanup after updates."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping

from botocore.exceptions import ClientError
from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.cloudformation.clock import Operation, ResumeCondition
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.properties import handler_call
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.resource_types import AUTO_SCALING_GROUP
from cfngen.sandbox.cloudformation.scopes import importing_stacks
from cfngen.sandbox.cloudformation.stack import Resource, Stack


def delete(
    cloud: Region,
    stack: Stack,
    reason: str = "",
    *,
    retain: Collection[str] = (),
    force: bool = False,
) -> Operation:
    """Delete a stack and its resources, dependents first.

    Args:
        cloud: the emulated CloudFormation of the region
        stack: the stack to delete
        reason: the status reason of the first event
        retain: logical ids of resources to retain
        force: retain all resources that cannot be deleted
    """
    previous_status = stack.status
    cloud.record_event(stack, None, "DELETE_IN_PROGRESS", reason)
    for name in stack.exports:
        if importers := importing_stacks(cloud, name):
            # The stack returns to its previous status (rlister/stax#40, aws/aws-cdk#604, boto/botocore#2590).
            text = f"Export {name} cannot be deleted as it is in use by {' and '.join(importers)}"
            cloud.record_event(stack, None, previous_status, text)
            return
    for logical_id in retain:
        cloud.record_event(stack, stack.resources[logical_id], "DELETE_SKIPPED")
    failed = yield from remove_resources(cloud, stack, force=force)
    if failed:
        cloud.record_event(stack, None, "DELETE_FAILED", failure_message("delete", failed))
        return
    stack.deleted = cloud.clock.time
    cloud.record_event(stack, None, "DELETE_COMPLETE")


def failure_message(verb: str, logical_ids: Collection[str]) -> str:
    """The status reason of a stack whose resources failed."""
    return f"The following resource(s) failed to {verb}: [{', '.join(logical_ids)}]. "


def remove_resources(
    cloud: Region, stack: Stack, *, force: bool = False
) -> Generator[ResumeCondition, None, list[str]]:
    """Delete all resources of a stack, obsolete ones included; returns the logical ids that could not be deleted."""
    yield from remove_obsolete(cloud, stack)
    remaining = {logical_id: existing for logical_id, existing in stack.resources.items() if existing.exists}
    failed: list[str] = []
    while removable := _without_dependents(remaining, failed):
        for logical_id in cloud.order.choose_next(reversed(removable)):
            resource = remaining[logical_id]
            yield from remove_resource(cloud, stack, resource, resource.definition.deletion_policy, force=force)
            if resource.exists:
                failed.append(logical_id)
            else:
                del remaining[logical_id]
    return failed


def remove_obsolete(cloud: Region, stack: Stack) -> Generator[ResumeCondition, None, bool]:
    """Delete the resources that an update made obsolete; returns whether any of them could not be deleted."""
    any_not_deleted = False
    while stack.obsolete_resources:
        latest = {obsolete.logical_id: (obsolete, policy) for obsolete, policy in stack.obsolete_resources}
        stack.obsolete_resources = [
            entry for entry in stack.obsolete_resources if entry not in latest.values()
        ]  # earlier ones with the same logical id
        for resource in dependents_first(
            cloud, {logical_id: obsolete for logical_id, (obsolete, _) in latest.items() if obsolete.exists}
        ):
            yield from remove_resource(cloud, stack, resource, latest[resource.logical_id][1])
            any_not_deleted = any_not_deleted or resource.exists
    return any_not_deleted


def dependents_first(cloud: Region, resources: Mapping[str, Resource]) -> list[Resource]:
    """Sort resources so that each comes before the ones that it depends on."""
    remaining, ordered = dict(resources), []
    while removable := _without_dependents(remaining, []):
        ordered += [remaining.pop(logical_id) for logical_id in cloud.order.choose_next(reversed(removable))]
    return ordered


def _without_dependents(remaining: dict[str, Resource], failed: list[str]) -> list[str]:
    """The resources that no remaining resource depends on, and whose deletion has not failed."""
    needed = {need for resource in remaining.values() for need in resource.definition.dependencies}
    return [logical_id for logical_id in remaining if logical_id not in needed and logical_id not in failed]


def remove_resource(cloud: Region, stack: Stack, resource: Resource, policy: str, *, force: bool = False) -> Operation:
    """Delete or retain one resource by its policy: Delete, Retain, RetainExceptOnCreate or Snapshot."""
    if policy == "Retain" or (policy == "RetainExceptOnCreate" and "ROLLBACK" not in stack.root.status):
        cloud.record_event(stack, resource, "DELETE_SKIPPED")
        return
    cloud.record_event(stack, resource, "DELETE_IN_PROGRESS")
    try:
        cloud.failures.raise_injected(stack.name, resource.logical_id, "DELETE")
        if resource.child:
            yield from _remove_child(cloud, resource.child, force=force)
        else:
            yield from cloud.wait_for_duration(resource.type, "delete")
            request = handler_call(cloud, stack, resource)
            if resource.type == AUTO_SCALING_GROUP:
                yield from _empty_group(cloud, resource.physical_id)
            if policy == "Snapshot":
                HANDLERS[resource.type].snapshot(request)
            try:
                HANDLERS[resource.type].delete(request)
            except ClientError as error:
                if not _is_gone(error):
                    raise
    except (ResourceError, ClientError) as error:
        cloud.record_event(stack, resource, "DELETE_FAILED", str(error))
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


def _is_gone(error: ClientError) -> bool:
    """Whether the resource to delete does not exist any more, for example because someone else deleted it."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code.endswith("NotFound") or code in ("NoSuchEntity", "NotFoundException", "ResourceNotFoundException")


def _remove_child(cloud: Region, child: Stack, *, force: bool) -> Operation:
    """Delete a nested stack and wait for it."""
    if child.status == "DELETE_COMPLETE":
        return
    cloud.start_operation(child, "DELETE_STACK")
    cloud.simulation.start(delete(cloud, child, force=force))
    yield lambda: child.finished
    if child.status != "DELETE_COMPLETE":
        raise ResourceError(f"Embedded stack {child.id} was not successfully deleted: {child.reason}")
