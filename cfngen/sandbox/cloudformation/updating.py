"""How stacks change: what an update creates, modifies and replaces, and what it removes when all of it is done.

An update begins with each resource of the new template as soon as all it depends on is settled, changed or not. What
is replaced is created first; the old resource goes in the cleanup, together with what the template no longer has. A
nested stack waits with its cleanup for that of its root, since the root may still return to what was before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from cfngen.sandbox.cloudformation import creation, properties, property_schemas, removing, rollback, rolling
from cfngen.sandbox.cloudformation.admission import NESTED
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.creation import FAULTS
from cfngen.sandbox.cloudformation.differences import differing
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.properties import GROUP
from cfngen.sandbox.cloudformation.stack import STABLE, Memory, Resource, Revision, Stack
from cfngen.sandbox.cloudformation.stack_policies import denial

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

CLEANUP = "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS"
REPLACING = "Requested update requires the creation of a new physical resource; hence creating one."
LEFT_BEHIND = "One or more resources could not be deleted."


def begin(service: Region, stack: Stack, revision: Revision, token: str = "") -> None:
    """Begin to update a stack, remembering the state to return to if it is a stable one."""
    if stack.memory is None and stack.status in STABLE:
        resources = {key: dataclasses.replace(each) for key, each in stack.resources.items() if each.exists}
        stack.memory = Memory(stack.revision, resources, dict(stack.outputs), dict(stack.exports))
        for resource in stack.resources.values():
            resource.touched = resource.fresh = False
    stack.revision, stack.updated = revision, service.clock.time
    service.begin(stack, "UPDATE_STACK", token)
    service.simulation.start(update(service, stack))


def update(service: Region, stack: Stack) -> Operation:
    """Bring a stack to its revision, whose update has begun."""
    turn = stack.turn
    service.record(stack, None, "UPDATE_IN_PROGRESS", "User Initiated" if stack.parent is None else "")
    for resource in stack.resources.values():
        resource.progress = ""
    keys = properties.wanted(service.scope(stack), stack.template.resources)
    complaint = stack.revision.complaint or _forbidden_removal(service, stack, keys)
    if not complaint:
        yield from creation.settle(stack, keys, lambda key: service.simulation.start(_change(service, stack, key)))
    if stack.turn != turn:
        return
    failed = any(resource.progress == "failed" for resource in stack.resources.values())
    if not complaint and not failed:
        try:
            stack.outputs, stack.exports = properties.outputs(service, stack)
        except ResourceError as error:
            complaint = str(error)
    if complaint or failed:
        yield from _give_up(service, stack, complaint)
        return
    for key in [resource for resource in stack.resources if resource not in keys]:
        removed = stack.resources.pop(key)
        policy = removed.definition.deletion_policy
        stack.obsolete.append((removed, "Retain" if policy == "RetainExceptOnCreate" else policy))
    service.record(stack, None, CLEANUP)
    if stack.parent is None:
        yield from clean_up(service, stack, "UPDATE_COMPLETE")


def _give_up(service: Region, stack: Stack, complaint: str) -> Operation:
    creation.cancel_resources(service, stack)
    reason = complaint
    for verb in () if complaint else ("create", "update"):
        status = f"{verb.upper()}_FAILED"
        if keys := [key for key, each in stack.resources.items() if each.status == status and each.progress]:
            reason += removing.failed_to(verb, keys)
    if stack.root.disable_rollback or stack.memory is None:
        service.record(stack, None, "UPDATE_FAILED", reason)
        for child in stack.children.values():
            if child.status == CLEANUP:
                service.record(child, None, "UPDATE_COMPLETE")
        return
    yield from rollback.roll_back(service, stack, reason)


def clean_up(service: Region, stack: Stack, done: str) -> Operation:
    """Remove what a stack no longer needs, and let its nested stacks do the same; the update is complete then."""
    left = yield from removing.remove_obsolete(service, stack)
    nested = {key: each for key, each in stack.resources.items() if each.child and _waits(each.child)}
    for resource in removing.dependents_first(service, nested):
        if resource.child is not None:
            service.simulation.start(clean_up(service, resource.child, done))
            yield resource.child.has_finished
            service.record(stack, resource, "UPDATE_COMPLETE")
    stack.memory, stack.policy_during_update = None, ""
    prefix = "Update successful. " if done == "UPDATE_COMPLETE" else ""
    service.record(stack, None, done, prefix + LEFT_BEHIND if left else "")


def _waits(child: Stack) -> bool:
    """Whether a nested stack has taken part in the update of its parent."""
    return child.memory is not None or child.status == CLEANUP


def _forbidden_removal(service: Region, stack: Stack, keys: list[str]) -> str:
    for key, each in stack.resources.items():
        if key not in keys and each.exists and (reason := denial(stack, each, "Update:Delete")):
            each.touched, each.progress = True, "failed"
            service.record(stack, each, "UPDATE_FAILED", reason)
            return removing.failed_to("update", [key])
    return ""


def _change(service: Region, stack: Stack, key: str) -> Operation:
    definition = stack.template.resources[key]
    resource = stack.resources.get(key)
    if resource is not None and resource.exists and resource.status == "CREATE_FAILED" and resource.child is None:
        yield from removing.remove_resource(service, stack, resource, "Delete")
    if resource is None or not resource.exists:
        fresh = stack.resources[key] = Resource(key, definition)
        yield from creation.create_resource(service, stack, fresh)
        return
    resource.turn += 1
    turn, resource.progress = resource.turn, "working"
    try:
        after = properties.resolved(service, stack, definition)
        plan = _plan(service, stack, resource, definition.type, after)
        if not plan:
            resource.definition, resource.progress = definition, "settled"
            return
        resource.touched = True
        if denied := denial(stack, resource, f"Update:{'Replace' if plan == 'replace' else 'Modify'}"):
            raise ResourceError(denied)
        if plan == "replace":
            resource = _replacement(stack, resource, after)
            turn = resource.turn
            service.record(stack, resource, "UPDATE_IN_PROGRESS", REPLACING)
            service.failures.strike(stack.name, key, "UPDATE")
            yield from creation.bring_into_being(service, stack, resource, "UPDATE_IN_PROGRESS")
        else:
            before, resource.attempted = resource.properties, None
            resource.definition, resource.properties = definition, after
            service.record(stack, resource, "UPDATE_IN_PROGRESS")
            try:
                yield from modify(service, stack, resource, before, known=plan == "metadata")
            except FAULTS:
                resource.attempted = after if resource.attempted is None else resource.attempted
                resource.properties = before
                raise
    except FAULTS as error:
        if resource.turn == turn:
            resource.touched, resource.progress = True, "failed"
            if resource.status != "UPDATE_IN_PROGRESS":
                service.record(stack, resource, "UPDATE_IN_PROGRESS")
            service.record(stack, resource, "UPDATE_FAILED", str(error))
    else:
        if resource.turn == turn:
            resource.progress = "settled"
            service.record(stack, resource, "UPDATE_COMPLETE")


def _plan(service: Region, stack: Stack, resource: Resource, new_type: str, after: Mapping[str, Any]) -> str:
    """What must be done to a resource: replace it, modify it, note its metadata or nothing."""
    if new_type != resource.type:
        raise ResourceError(f"Update of resource type is not permitted: {resource.type} to {new_type}")
    paths = [path for path, _, _ in differing(resource.properties, after)]
    needs = {property_schemas.recreation(service.region, resource.type, each) for each in paths}
    replaced = "Always" in needs
    if "Conditionally" in needs and not replaced:
        policy = service.scope(stack).resolve(
            stack.template.resources[resource.logical_id].body.get("UpdatePolicy", {})
        )
        told = dataclasses.replace(properties.call(service, stack, resource), update_policy=policy)
        replaced = HANDLERS[resource.type].replaces(told)
    if replaced:
        _check_replacement(service, stack, resource, after)
        return "replace"
    if paths or resource.status in ("UPDATE_FAILED", "CREATE_FAILED"):
        return "modify"
    if resource.type == NESTED and _nested_changes(service, stack, resource, after):
        return "modify"
    old, new = (
        each.body.get("Metadata") for each in (resource.definition, stack.template.resources[resource.logical_id])
    )
    return "" if old == new else "metadata"


def _check_replacement(service: Region, stack: Stack, resource: Resource, after: Mapping[str, Any]) -> None:
    if stack.root.disable_rollback:
        raise ResourceError("Replacement type updates not supported on stack with disable-rollback.")
    identifiers = property_schemas.schema(service.region, resource.type).get("primaryIdentifier", [])
    names = [identifier.removeprefix("/properties/") for identifier in identifiers]
    if any(name in after and after[name] == resource.properties.get(name) == resource.physical_id for name in names):
        raise ResourceError(
            "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename "
            f"{resource.physical_id} and update the stack again."
        )


def _replacement(stack: Stack, resource: Resource, after: dict[str, Any]) -> Resource:
    """The resource that takes the place of another, which becomes obsolete."""
    key = resource.logical_id
    definition = stack.template.resources[key]
    stack.obsolete.append((dataclasses.replace(resource), definition.replace_policy))
    fresh = Resource(key, definition, physical_id=resource.physical_id, properties=after, progress="working")
    fresh.touched = fresh.fresh = True
    stack.resources[key] = fresh
    return fresh


def _nested_changes(service: Region, stack: Stack, resource: Resource, after: Mapping[str, Any]) -> bool:
    child = resource.child
    if child is None:
        return True
    asked = dataclasses.replace(resource, properties=dict(after))
    revision = creation.nested_revision(service, stack, asked, child.name)
    return child.status not in STABLE or not child.revision.stays(revision)


def modify(
    service: Region, stack: Stack, resource: Resource, before: Mapping[str, Any], *, known: bool = False
) -> Operation:
    """Change a resource in place to its properties; on return it is complete, or was cancelled.

    Args:
        service: the region
        stack: of the resource
        resource: with the properties it is to have
        before: the properties it has had
        known: only CloudFormation has something to note, its service has nothing to do

    Raises:
        ResourceError: it could not be changed
    """
    turn = resource.turn
    try:
        service.failures.strike(stack.name, resource.logical_id, "UPDATE")
    except ResourceError:
        resource.attempted = dict(before)
        raise
    yield from service.take_time(resource.type, "update")
    if resource.turn != turn or known:
        return
    if resource.type == NESTED:
        yield from _update_nested(service, stack, resource)
    elif resource.type == GROUP:
        yield from rolling.change(service, stack, resource, before)
    else:
        try:
            changed = HANDLERS[resource.type].update(properties.call(service, stack, resource), before)
        except ResourceError:
            resource.attempted = dict(before)  # refused, so that there is nothing to undo
            raise
        resource.attributes = {**resource.attributes, **changed}


def _update_nested(service: Region, stack: Stack, resource: Resource) -> Operation:
    turn, child = resource.turn, resource.child
    if child is None:
        raise ResourceError(f"{resource.logical_id} has no stack")
    revision = creation.nested_revision(service, stack, resource, child.name)
    if child.status in STABLE and child.revision.stays(revision):
        return
    begin(service, child, revision)
    yield lambda: child.status != "UPDATE_IN_PROGRESS" or resource.turn != turn
    if resource.turn != turn:
        return
    if child.status != CLEANUP:
        raise ResourceError(rollback.blaming(child))
    resource.attributes = {f"Outputs.{key}": value for key, value in child.outputs.items()}
