"""Creates stacks and their resources.

As in CloudFormation, the creation of a resource starts as soon as all its dependencies are complete. When a resource
fails, those in progress are cancelled. A root stack then rolls back; a nested stack is rolled back with its parent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping

from cfngen.sandbox.cloudformation import admission, deletion, properties, signals, update_policies
from cfngen.sandbox.cloudformation.admission import fetch_from_s3
from cfngen.sandbox.cloudformation.errors import ResourceError, UnfinishedError, status_reason
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.scopes import scope_of_stack
from cfngen.sandbox.cloudformation.simulation import Operation
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP, NESTED_STACK


def start(cloud: Region, stack: Stack, *, on_failure: str, token: str, express: bool = False) -> None:
    """Start to create a root stack whose template has been accepted.

    Args:
        on_failure: ROLLBACK (also ""), DELETE or DO_NOTHING
        express: whether to skip waiting until resources are ready
    """
    cloud.start_operation(stack, "CREATE_STACK", token)
    stack.disable_rollback, stack.express = on_failure == "DO_NOTHING", express
    cloud.simulation.start(create(cloud, stack, on_failure or "ROLLBACK"))


def create(cloud: Region, stack: Stack, on_failure: str = "ROLLBACK") -> Operation:
    """Create the resources of a stack: those without a condition, and those whose condition is true.

    Args:
        on_failure: what to do with a root stack that fails: ROLLBACK, DELETE or DO_NOTHING
    """
    generation = stack.generation
    cloud.record_event(stack, None, "CREATE_IN_PROGRESS", "User Initiated")
    logical_ids = properties.enabled_resources(scope_of_stack(cloud, stack), stack.template.resources)
    failure_reason = stack.revision.failure_reason

    def start(logical_id: str) -> None:
        resource = stack.resources[logical_id] = Resource(logical_id, stack.template.resources[logical_id])
        cloud.simulation.start(create_resource(cloud, stack, resource))

    if not failure_reason:
        yield from start_in_order(cloud, stack, logical_ids, start)
    if stack.is_superseded(generation):
        return
    any_resource_failed = any(resource.progress == "failed" for resource in stack.resources.values())
    if not failure_reason and not any_resource_failed:
        try:
            stack.outputs, stack.exports = properties.resolve_outputs(cloud, stack)
        except cloud.resource_errors as error:
            failure_reason = status_reason(error)
        else:
            cloud.record_event(stack, None, "CREATE_COMPLETE")
            return
    cancel_resources(cloud, stack)
    failed_ids = [logical_id for logical_id, resource in stack.resources.items() if resource.status == "CREATE_FAILED"]
    reason = failure_reason or deletion.failure_message("create", failed_ids)
    if stack.parent or on_failure == "DO_NOTHING":
        cloud.record_event(stack, None, "CREATE_FAILED", reason)
    elif on_failure == "DELETE":
        cloud.start_operation(stack, "DELETE_STACK", stack.token)
        yield from deletion.delete(cloud, stack, f"{reason.rstrip('. ')}. Delete requested by user.")
    else:
        yield from roll_back(cloud, stack, f"{reason.rstrip('. ')}. Rollback requested by user.")


def roll_back(cloud: Region, stack: Stack, reason: str) -> Operation:
    """Roll back a failed creation: delete the resources that it created."""
    cloud.start_operation(stack, "ROLLBACK", stack.token)
    cloud.record_event(stack, None, "ROLLBACK_IN_PROGRESS", reason)
    not_deleted = yield from deletion.remove_resources(cloud, stack)
    if not_deleted:
        cloud.record_event(stack, None, "ROLLBACK_FAILED", deletion.failure_message("delete", not_deleted))
    else:
        cloud.record_event(stack, None, "ROLLBACK_COMPLETE")


def start_in_order(
    cloud: Region,
    stack: Stack,
    logical_ids: list[str],
    start: Callable[[str], None],
    *,
    continue_after_failure: bool = False,
) -> Operation:
    """Start each resource as soon as all its dependencies are complete; return when all are complete or one failed.

    Args:
        start: called with a logical id; starts the creation, update or rollback of that resource
        continue_after_failure: after a failure, continue with all resources that do not depend on the failed one
    """
    generation = stack.generation
    started: set[str] = set()
    dependencies = {
        logical_id: stack.template.resources[logical_id].dependencies.intersection(logical_ids)
        for logical_id in logical_ids
    }

    def can_start(logical_id: str) -> bool:
        are_complete = all(_progress_of(stack, needed) == "complete" for needed in dependencies[logical_id])
        return logical_id not in started and are_complete

    while not stack.is_superseded(generation):
        for logical_id in filter(can_start, cloud.order.shuffled(logical_ids)):
            started.add(logical_id)
            start(logical_id)
        progress = {logical_id: _progress_of(stack, logical_id) for logical_id in started}
        all_complete = started == set(logical_ids) and set(progress.values()) <= {"complete"}
        any_failed = "failed" in progress.values()
        if all_complete or (any_failed and not continue_after_failure):
            return
        if any(map(can_start, logical_ids)):
            continue
        if any_failed and "in_progress" not in progress.values():
            return
        yield functools.partial(_has_progressed, stack, generation, progress)


def _progress_of(stack: Stack, logical_id: str) -> str:
    """The state of a resource in the current operation; "" if it has not started."""
    return stack.resources[logical_id].progress if logical_id in stack.resources else ""


def _has_progressed(stack: Stack, generation: int, earlier_progress: Mapping[str, str]) -> bool:
    return stack.is_superseded(generation) or any(
        _progress_of(stack, logical_id) != state for logical_id, state in earlier_progress.items()
    )


def cancel_resources(cloud: Region, stack: Stack) -> None:
    """Cancel all resources in progress of a stack; nested stacks that are being updated start to roll back."""
    for resource in stack.resources.values():
        if resource.progress == "in_progress":
            resource.generation += 1
            resource.progress = "failed"
            if resource.child and not resource.child.finished:
                cloud.cancel_nested(resource.child)
            if resource.status == "CREATE_IN_PROGRESS":
                cloud.record_event(stack, resource, "CREATE_FAILED", "Resource creation cancelled")
            else:
                cloud.record_event(stack, resource, "UPDATE_FAILED", "Resource update cancelled")


def cancel(cloud: Region, stack: Stack) -> None:
    """Cancel the creation of a nested stack, which its parent stack then rolls back."""
    stack.generation += 1
    cancel_resources(cloud, stack)
    cloud.record_event(stack, None, "CREATE_FAILED", "Resource creation cancelled")


def create_resource(cloud: Region, stack: Stack, resource: Resource) -> Operation:
    """Create one resource of a stack and wait until it is complete."""
    resource.generation += 1
    generation = resource.generation
    resource.progress = "in_progress"
    cloud.record_event(stack, resource, "CREATE_IN_PROGRESS")
    try:
        cloud.failures.raise_injected(stack.name, resource.logical_id, "CREATE")
        yield from cloud.retry_while_throttled(resource.logical_id)
        if resource.is_superseded(generation):
            return
        resource.properties = properties.resolve_properties(cloud, stack, resource.definition)
        yield from provision(cloud, stack, resource, "CREATE_IN_PROGRESS")
    except cloud.resource_errors as error:
        if not resource.is_superseded(generation):
            resource.progress = "failed"
            cloud.record_event(stack, resource, "CREATE_FAILED", status_reason(error))
    else:
        if not resource.is_superseded(generation):
            resource.progress = "complete"
            cloud.record_event(stack, resource, "CREATE_COMPLETE")


def provision(cloud: Region, stack: Stack, resource: Resource, status: str) -> Operation:
    """Create the actual resource from its resolved properties; on return it is complete, or was cancelled.

    Args:
        status: the resource's status meanwhile: CREATE_IN_PROGRESS, or UPDATE_IN_PROGRESS for a replacement

    Raises:
        ResourceError: the resource could not be created
    """
    generation = resource.generation
    expected_signals, timeout_seconds = signals.signals_to_await(cloud, stack, resource)
    yield from cloud.wait_for_duration(resource.type)
    if resource.is_superseded(generation):
        return
    if resource.type == NESTED_STACK:
        yield from _create_nested(cloud, stack, resource, status)
        return
    is_group = resource.type == AUTO_SCALING_GROUP
    if is_group:
        update_policies.rolling_policy(cloud, stack, resource)  # an invalid policy makes the creation fail
    earlier_activities = signals.activity_ids(cloud) if is_group else ()
    try:
        created = HANDLERS[resource.type].create(properties.handler_call(cloud, stack, resource))
    except UnfinishedError as error:
        resource.physical_id, resource.attributes = error.physical_id, dict(error.attributes)
        cloud.record_event(stack, resource, status, "Resource creation Initiated")
        raise
    resource.physical_id, resource.attributes = created.physical_id, dict(created.attributes)
    resource.signals, resource.expected_signals = {}, expected_signals
    cloud.record_event(stack, resource, status, "Resource creation Initiated")
    if is_group:
        signals.notify_launches(cloud, resource, known_instances=set())
        signals.check_launches(cloud, resource, earlier_activities)
    if expected_signals:
        yield from signals.await_signals(cloud, resource, timeout_seconds)


def _create_nested(cloud: Region, stack: Stack, resource: Resource, status: str) -> Operation:
    """Create the nested stack of a resource, and wait until it is complete.

    If the executed change set has created the nested stack in REVIEW_IN_PROGRESS, that stack is used.
    """
    generation = resource.generation
    in_review = stack.stacks_in_review.pop(resource.logical_id, None)
    if in_review is not None and in_review.status == "REVIEW_IN_PROGRESS":
        nested_stack = in_review
        nested_stack.revision = nested_revision(cloud, stack, resource, nested_stack.name)
    else:
        name = cloud.physical_name(stack, resource.logical_id)
        nested_stack = cloud.new_stack(name, nested_revision(cloud, stack, resource, name), parent=stack)
    resource.child, resource.physical_id = nested_stack, nested_stack.id
    cloud.record_event(stack, resource, status, "Resource creation Initiated")
    cloud.start_operation(nested_stack, "CREATE_STACK")
    cloud.simulation.start(create(cloud, nested_stack))
    yield lambda: nested_stack.finished or resource.is_superseded(generation)
    if resource.is_superseded(generation):
        return
    if nested_stack.status != "CREATE_COMPLETE":
        raise ResourceError(f"Embedded stack {nested_stack.id} was not successfully created: {nested_stack.reason}")
    resource.attributes = {f"Outputs.{name}": value for name, value in nested_stack.outputs.items()}


def nested_revision(
    cloud: Region, stack: Stack, resource: Resource, name: str, *, parent_revision: Revision | None = None
) -> Revision:
    """The revision of a nested stack, from the properties of its resource in the parent stack.

    Raises:
        ApiError: the nested template or its parameters are refused
    """
    parent_revision = parent_revision or stack.revision
    nested_parameters = resource.properties.get("Parameters", {})
    return admission.check_revision(
        cloud,
        fetch_from_s3(cloud, resource.properties["TemplateURL"]),
        stack_name=name,
        parameter_values={key: str(value) for key, value in nested_parameters.items()},
        tags={tag["Key"]: tag["Value"] for tag in resource.properties.get("Tags", [])},
        capabilities=parent_revision.capabilities,
        notification_arns=parent_revision.notification_arns,
    )
