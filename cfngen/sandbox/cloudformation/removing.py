"""How resources go: the deletion of stacks, what a failed creation leaves, and what an update no longer needs."""

from __future__ import annotations

from collections.abc import Collection, Generator, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError
from moto.autoscaling.models import autoscaling_backends
from moto.core.models import DEFAULT_ACCOUNT_ID

from cfngen.sandbox.cloudformation.clock import Condition, Operation
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS, client
from cfngen.sandbox.cloudformation.properties import GROUP, call
from cfngen.sandbox.cloudformation.stack import Resource, Stack

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region


def delete(
    service: Region,
    stack: Stack,
    reason: str = "",
    *,
    retain: Collection[str] = (),
    force: bool = False,
) -> Operation:
    """Remove a stack's resources, dependents first.

    Args:
        service: the region
        stack: what is deleted
        reason: of the first event
        retain: logical ids of what is left behind
        force: leave behind whatever cannot be removed
    """
    before = stack.status
    service.record(stack, None, "DELETE_IN_PROGRESS", reason)
    for name in stack.exports:
        if users := service.imports(name):
            # The stack has its former status again (rlister/stax#40, aws/aws-cdk#604, boto/botocore#2590).
            text = f"Export {name} cannot be deleted as it is in use by {' and '.join(users)}"
            service.record(stack, None, before, text)
            return
    for key in retain:
        service.record(stack, stack.resources[key], "DELETE_SKIPPED")
    problems = yield from remove_resources(service, stack, force=force)
    if problems:
        service.record(stack, None, "DELETE_FAILED", failed_to("delete", problems))
        return
    stack.deleted = service.clock.time
    service.record(stack, None, "DELETE_COMPLETE")


def failed_to(verb: str, keys: Collection[str]) -> str:
    """The reason of a stack that has resources to blame."""
    return f"The following resource(s) failed to {verb}: [{', '.join(keys)}]. "


def remove_resources(service: Region, stack: Stack, *, force: bool = False) -> Generator[Condition, None, list[str]]:
    """Remove every resource of a stack, and what updates have left; returns the logical ids of what is still there."""
    yield from remove_obsolete(service, stack)
    remaining = {key: each for key, each in stack.resources.items() if each.exists}
    problems: list[str] = []
    while free := _unneeded(remaining, problems):
        for key in service.order.next_of(reversed(free)):
            resource = remaining[key]
            yield from remove_resource(service, stack, resource, resource.definition.deletion_policy, force=force)
            if resource.exists:
                problems.append(key)
            else:
                del remaining[key]
    return problems


def remove_obsolete(service: Region, stack: Stack) -> Generator[Condition, None, bool]:
    """Remove what an update no longer needs; returns whether something is left behind."""
    left = False
    while stack.obsolete:
        latest = {each.logical_id: (each, policy) for each, policy in stack.obsolete}
        stack.obsolete = [each for each in stack.obsolete if each not in latest.values()]  # earlier ones of the same id
        for resource in dependents_first(service, {key: each for key, (each, _) in latest.items() if each.exists}):
            yield from remove_resource(service, stack, resource, latest[resource.logical_id][1])
            left = left or resource.exists
    return left


def dependents_first(service: Region, resources: Mapping[str, Resource]) -> list[Resource]:
    """Resources in an order in which none is needed by a later one."""
    remaining, ordered = dict(resources), []
    while free := _unneeded(remaining, []):
        ordered += [remaining.pop(key) for key in service.order.next_of(reversed(free))]
    return ordered


def _unneeded(remaining: dict[str, Resource], problems: list[str]) -> list[str]:
    needed = {need for each in remaining.values() for need in each.definition.needs}
    return [key for key in remaining if key not in needed and key not in problems]


def remove_resource(
    service: Region, stack: Stack, resource: Resource, policy: str, *, force: bool = False
) -> Operation:
    """Remove one resource as its policy says: Delete, Retain, RetainExceptOnCreate or Snapshot."""
    if policy == "Retain" or (policy == "RetainExceptOnCreate" and "ROLLBACK" not in stack.root.status):
        service.record(stack, resource, "DELETE_SKIPPED")
        return
    service.record(stack, resource, "DELETE_IN_PROGRESS")
    try:
        service.failures.strike(stack.name, resource.logical_id, "DELETE")
        if resource.child:
            yield from _remove_child(service, resource.child, force=force)
        else:
            yield from service.take_time(resource.type, "delete")
            told = call(service, stack, resource)
            if resource.type == GROUP:
                yield from _emptied(service, resource.physical_id)
            if policy == "Snapshot":
                HANDLERS[resource.type].snapshot(told)
            try:
                HANDLERS[resource.type].delete(told)
            except ClientError as error:
                if not _is_gone(error):
                    raise
    except (ResourceError, ClientError) as error:
        service.record(stack, resource, "DELETE_FAILED", str(error))
        if force:
            service.record(stack, resource, "DELETE_SKIPPED")
    else:
        service.record(stack, resource, "DELETE_COMPLETE")


def _emptied(service: Region, group: str) -> Operation:
    """Let a group have no instances, and wait until they are gone.

    A hook holds them before: EC2 Auto Scaling user guide, "How lifecycle hooks work"; deleted by force, a group would
    not wait (API, DeleteAutoScalingGroup). That CloudFormation does not use force is seen in stacks whose deletion
    takes as long as their instances work (buildkite/elastic-ci-stack-for-aws#1457).
    """
    scaling = autoscaling_backends[DEFAULT_ACCOUNT_ID][service.region]
    if group not in scaling.autoscaling_groups:
        return
    client("autoscaling", service.region).update_auto_scaling_group(
        AutoScalingGroupName=group, MinSize=0, MaxSize=0, DesiredCapacity=0
    )
    yield lambda: group not in scaling.autoscaling_groups or not scaling.autoscaling_groups[group].instance_states


def _is_gone(error: ClientError) -> bool:
    """Whether there was nothing to delete: what somebody else has deleted is deleted."""
    code = str(error.response.get("Error", {}).get("Code", ""))
    return code.endswith("NotFound") or code in ("NoSuchEntity", "NotFoundException", "ResourceNotFoundException")


def _remove_child(service: Region, child: Stack, *, force: bool) -> Operation:
    if child.status == "DELETE_COMPLETE":
        return
    service.begin(child, "DELETE_STACK")
    service.simulation.start(delete(service, child, force=force))
    yield lambda: child.finished
    if child.status != "DELETE_COMPLETE":
        raise ResourceError(f"Embedded stack {child.id} was not successfully deleted: {child.reason}")
