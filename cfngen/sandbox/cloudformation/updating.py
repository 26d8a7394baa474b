"""Updates stacks: creates, modifies and replaces resources, and then starts the cleanup of those no longer needed.

The update of a resource starts as soon as all its dependencies are complete, whether they changed or not. To replace a
resource, the new one is created first; the old one is deleted in the cleanup phase, together with resources that the
new template no longer has.
"""

from __future__ import annotations

import dataclasses

from cfngen.sandbox.cloudformation import creation, deletion, modification, properties, property_schemas, rollback
from cfngen.sandbox.cloudformation.change_set_diff import find_differences
from cfngen.sandbox.cloudformation.deletion import UPDATE_CLEANUP_STATUS, clean_up
from cfngen.sandbox.cloudformation.errors import ResourceError, status_reason
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_stack
from cfngen.sandbox.cloudformation.simulation import Operation
from cfngen.sandbox.cloudformation.stack import STABLE_STATUSES, Resource, Revision, StableState, Stack
from cfngen.sandbox.cloudformation.stack_checks import denial_reason
from cfngen.sandbox.cloudformation.template import NESTED_STACK
from cfngen.sandbox.untyped import JsonDict, Properties

REPLACEMENT_REASON = "Requested update requires the creation of a new physical resource; hence creating one."


def start_alone(
    cloud: Region, stack: Stack, revision: Revision, *, token: str, disable_rollback: bool, express: bool = False
) -> None:
    """Start to update a stack for itself, not with its parent, to a revision that has been accepted."""
    stack.led_by = None
    stack.disable_rollback, stack.express, stack.force_rollback = disable_rollback, express, False
    start(cloud, stack, revision, token)


def start(cloud: Region, stack: Stack, revision: Revision, token: str = "") -> None:
    """Start to update a stack; if it is stable now, keep its current state for a rollback."""
    if stack.stable_state is None and stack.status in STABLE_STATUSES:
        stack.stable_state = StableState(
            revision=stack.revision,
            resources={
                logical_id: dataclasses.replace(resource)  # a copy
                for logical_id, resource in stack.resources.items()
                if resource.exists
            },
            outputs=dict(stack.outputs),
            exports=dict(stack.exports),
        )
        for resource in stack.resources.values():
            resource.was_updated = resource.is_replacement = False
    stack.revision, stack.updated = revision, cloud.clock.time
    cloud.start_operation(stack, "UPDATE_STACK", token)
    cloud.simulation.start(update(cloud, stack))


def update(cloud: Region, stack: Stack) -> Operation:
    """Update a stack to its new revision, which is set already; if that fails, roll it back."""
    generation = stack.generation
    cloud.record_event(stack, None, "UPDATE_IN_PROGRESS", "" if stack.led_by else "User Initiated")
    for resource in stack.resources.values():
        resource.progress = ""
    logical_ids = properties.enabled_resources(scope_of_stack(cloud, stack), stack.template.resources)
    failure_reason = stack.revision.failure_reason
    if not failure_reason:
        failure_reason = _fail_first_denied_removal(cloud, stack, logical_ids)
    if not failure_reason:
        yield from creation.start_in_order(
            cloud,
            stack,
            logical_ids,
            start=lambda logical_id: cloud.simulation.start(_update_resource(cloud, stack, logical_id)),
        )
    if stack.is_superseded(generation):
        return
    any_resource_failed = any(resource.progress == "failed" for resource in stack.resources.values())
    if not failure_reason and not any_resource_failed:
        try:
            stack.outputs, stack.exports = properties.resolve_outputs(cloud, stack)
        except cloud.resource_errors as error:
            failure_reason = status_reason(error)
    if failure_reason or any_resource_failed:
        yield from _fail(cloud, stack, failure_reason)
        return
    _set_removed_resources_aside(stack, logical_ids)
    cloud.record_event(stack, None, UPDATE_CLEANUP_STATUS)
    if stack.led_by is None:
        yield from clean_up(cloud, stack, "UPDATE_COMPLETE")


def _fail(cloud: Region, stack: Stack, failure_reason: str) -> Operation:
    """Cancel the remaining updates; then roll back or, if rollback is disabled, leave the stack in UPDATE_FAILED.

    Args:
        failure_reason: why the stack itself failed; "" if some of its resources failed
    """
    creation.cancel_resources(cloud, stack)
    reason = failure_reason or _failed_resources_message(stack)
    if stack.leader.disable_rollback or stack.stable_state is None:
        cloud.record_event(stack, None, "UPDATE_FAILED", reason)
        for child in stack.children.values():
            if child.status == UPDATE_CLEANUP_STATUS:
                cloud.record_event(child, None, "UPDATE_COMPLETE")
        return
    yield from rollback.roll_back(cloud, stack, reason)


def _failed_resources_message(stack: Stack) -> str:
    """The status reason of a stack whose resources failed in the current operation."""
    message = ""
    for verb in ("create", "update"):
        status = f"{verb.upper()}_FAILED"
        logical_ids = [
            logical_id
            for logical_id, resource in stack.resources.items()
            if resource.status == status and resource.progress
        ]
        if logical_ids:
            message += deletion.failure_message(verb, logical_ids)
    return message


def _set_removed_resources_aside(stack: Stack, logical_ids: list[str]) -> None:
    """Leave the resources that the new template no longer has to the cleanup phase.

    Args:
        logical_ids: the resources of the new template
    """
    for logical_id in list(stack.resources):
        if logical_id not in logical_ids:
            removed_resource = stack.resources.pop(logical_id)
            policy = removed_resource.definition.deletion_policy
            stack.obsolete_resources.append(
                (removed_resource, "Retain" if policy == "RetainExceptOnCreate" else policy)
            )


def _fail_first_denied_removal(cloud: Region, stack: Stack, logical_ids: list[str]) -> str:
    """Fail the first resource whose removal the stack policy denies; return the status reason of the stack, or "".

    Args:
        logical_ids: the resources of the new template
    """
    for logical_id, resource in stack.resources.items():
        if (
            logical_id not in logical_ids
            and resource.exists
            and (reason := denial_reason(stack, resource, "Update:Delete"))
        ):
            # The rollback then restores the resource from UPDATE_FAILED to UPDATE_COMPLETE.
            resource.was_updated, resource.progress = True, "failed"
            cloud.record_event(stack, resource, "UPDATE_FAILED", reason)
            return deletion.failure_message("update", [logical_id])
    return ""


def _update_resource(cloud: Region, stack: Stack, logical_id: str) -> Operation:
    """Create, modify or replace one resource of the new template, or leave it as it is."""
    definition = stack.template.resources[logical_id]
    resource = stack.resources.get(logical_id)
    if resource is not None and resource.exists and resource.status == "CREATE_FAILED" and resource.child is None:
        yield from deletion.remove_resource(cloud, stack, resource, "Delete")
    if resource is None or not resource.exists:
        new_resource = stack.resources[logical_id] = Resource(logical_id, definition)
        yield from creation.create_resource(cloud, stack, new_resource)
        return
    resource.generation += 1
    generation = resource.generation
    resource.progress = "in_progress"
    try:
        new_properties = properties.resolve_properties(cloud, stack, definition)
        action = _update_action(cloud, stack, resource, definition.type, new_properties)
        if not action:
            resource.definition, resource.progress = definition, "complete"
            return
        resource.was_updated = True
        policy_action = "Update:Replace" if action == "replace" else "Update:Modify"
        if reason := denial_reason(stack, resource, policy_action):
            raise ResourceError(reason)
        if action == "replace":
            resource = _replace(stack, resource, new_properties)
            generation = resource.generation
            cloud.record_event(stack, resource, "UPDATE_IN_PROGRESS", REPLACEMENT_REASON)
            cloud.failures.raise_injected(stack.name, logical_id, "UPDATE")
            yield from creation.provision(cloud, stack, resource, "UPDATE_IN_PROGRESS")
        else:
            yield from _modify(cloud, stack, resource, new_properties, only_metadata=action == "metadata")
    except cloud.resource_errors as error:
        if not resource.is_superseded(generation):
            resource.was_updated, resource.progress = True, "failed"
            if resource.status != "UPDATE_IN_PROGRESS":
                cloud.record_event(stack, resource, "UPDATE_IN_PROGRESS")
            cloud.record_event(stack, resource, "UPDATE_FAILED", status_reason(error))
    else:
        if not resource.is_superseded(generation):
            resource.progress = "complete"
            cloud.record_event(stack, resource, "UPDATE_COMPLETE")


def _modify(
    cloud: Region, stack: Stack, resource: Resource, new_properties: JsonDict, *, only_metadata: bool
) -> Operation:
    """Give a resource its new definition and properties; after a failure it has the old properties again."""
    old_properties = resource.properties
    resource.attempted_properties = None
    resource.definition, resource.properties = stack.template.resources[resource.logical_id], new_properties
    cloud.record_event(stack, resource, "UPDATE_IN_PROGRESS")
    try:
        if only_metadata:  # metadata is stored by CloudFormation itself, so no service is called
            yield from modification.await_update_duration(cloud, stack, resource, old_properties)
        elif resource.type == NESTED_STACK:
            yield from _update_nested(cloud, stack, resource, old_properties)
        else:
            yield from modification.modify(cloud, stack, resource, old_properties)
    except cloud.resource_errors:
        if resource.attempted_properties is None:
            resource.attempted_properties = new_properties
        resource.properties = old_properties
        raise


def _update_action(cloud: Region, stack: Stack, resource: Resource, new_type: str, new_properties: Properties) -> str:
    """How to update a resource: "replace", "modify", "metadata" (only its metadata changes) or "" (no change)."""
    if new_type != resource.type:
        raise ResourceError(f"Update of resource type is not permitted: {resource.type} to {new_type}")
    new_definition = stack.template.resources[resource.logical_id]
    changed_paths = [path for path, _, _ in find_differences(resource.properties, new_properties)]
    requirements = {property_schemas.requires_recreation(cloud.region, resource.type, path) for path in changed_paths}
    must_replace = "Always" in requirements
    if "Conditionally" in requirements and not must_replace:
        update_policy = scope_of_stack(cloud, stack).resolve(new_definition.body.get("UpdatePolicy", {}))
        call = dataclasses.replace(properties.handler_call(cloud, stack, resource), update_policy=update_policy)
        must_replace = HANDLERS[resource.type].must_replace(call)
    if must_replace:
        _check_replacement(cloud, stack, resource, new_properties)
        return "replace"
    if changed_paths or resource.status in ("UPDATE_FAILED", "CREATE_FAILED"):
        return "modify"
    if resource.type == NESTED_STACK and _nested_stack_changes(cloud, stack, resource, new_properties):
        return "modify"
    if resource.definition.body.get("Metadata") != new_definition.body.get("Metadata"):
        return "metadata"
    return ""


def _check_replacement(cloud: Region, stack: Stack, resource: Resource, new_properties: Properties) -> None:
    """Refuse a replacement with rollback disabled, or if both resources would have the same name in the template."""
    if stack.leader.disable_rollback:
        raise ResourceError("Replacement type updates not supported on stack with disable-rollback.")
    identifiers = property_schemas.schema(cloud.region, resource.type).get("primaryIdentifier", [])
    for identifier in identifiers:
        name_property = identifier.removeprefix("/properties/")
        if name_property not in new_properties:
            continue
        if new_properties[name_property] == resource.properties.get(name_property) == resource.physical_id:
            raise ResourceError(
                "CloudFormation cannot update a stack when a custom-named resource requires replacing. Rename "
                f"{resource.physical_id} and update the stack again."
            )


def _replace(stack: Stack, resource: Resource, new_properties: JsonDict) -> Resource:
    """Replace a resource by a new one that is not created yet; the old one is deleted in the cleanup phase."""
    logical_id = resource.logical_id
    definition = stack.template.resources[logical_id]
    stack.obsolete_resources.append((dataclasses.replace(resource), definition.replace_policy))
    replacement = Resource(
        logical_id, definition, physical_id=resource.physical_id, properties=new_properties, progress="in_progress"
    )
    replacement.was_updated = replacement.is_replacement = True
    stack.resources[logical_id] = replacement
    return replacement


def _nested_stack_changes(cloud: Region, stack: Stack, resource: Resource, new_properties: Properties) -> bool:
    """Whether a nested stack needs an update although the properties of its resource are the same.

    That is the case if the template at the same URL has changed, or the last update of the nested stack failed.
    """
    nested_stack = resource.child
    if nested_stack is None:
        return True
    new_resource = dataclasses.replace(resource, properties=dict(new_properties))
    new_revision = creation.nested_revision(cloud, stack, new_resource, nested_stack.name)
    return nested_stack.status not in STABLE_STATUSES or not nested_stack.revision.is_same_as(new_revision)


def _update_nested(cloud: Region, stack: Stack, resource: Resource, old_properties: Properties) -> Operation:
    """Update a nested stack; on return it awaits its cleanup, or the update of its parent was cancelled."""
    generation, nested_stack = resource.generation, resource.child
    yield from modification.await_update_duration(cloud, stack, resource, old_properties)
    if resource.is_superseded(generation):
        return
    if nested_stack is None:
        raise ResourceError(f"{resource.logical_id} has no stack")
    new_revision = creation.nested_revision(cloud, stack, resource, nested_stack.name)
    if nested_stack.status in STABLE_STATUSES and nested_stack.revision.is_same_as(new_revision):
        return
    if nested_stack.status == "DELETE_COMPLETE":
        raise ResourceError(f"Stack with id {nested_stack.id} does not exist")
    if nested_stack.led_by is None and not nested_stack.finished:
        raise ResourceError(f"Stack:{nested_stack.id} is in {nested_stack.status} state and can not be updated.")
    nested_stack.led_by = stack
    start(cloud, nested_stack, new_revision)
    yield lambda: nested_stack.status != "UPDATE_IN_PROGRESS" or resource.is_superseded(generation)
    if resource.is_superseded(generation):
        return
    if nested_stack.status != UPDATE_CLEANUP_STATUS:
        raise ResourceError(rollback.nested_failure(nested_stack))
    resource.attributes = {f"Outputs.{name}": value for name, value in nested_stack.outputs.items()}
