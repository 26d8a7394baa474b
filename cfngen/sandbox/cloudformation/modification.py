"""Updates one resource in place, in an update or in its rollback; nested stacks have updates of their own."""

from __future__ import annotations

from cfngen.sandbox.cloudformation import properties, rolling
from cfngen.sandbox.cloudformation.errors import ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.region import Region
from cfngen.sandbox.cloudformation.simulation import Operation
from cfngen.sandbox.cloudformation.stack import Resource, Stack
from cfngen.sandbox.cloudformation.template import AUTO_SCALING_GROUP
from cfngen.sandbox.json_types import Properties


def await_update_duration(cloud: Region, stack: Stack, resource: Resource, old_properties: Properties) -> Operation:
    """Wait for as long as the update of a resource takes, or raise the failure that was injected for it.

    Raises:
        ResourceError: the injected failure; the resource still has its old properties
    """
    try:
        cloud.failures.raise_injected(stack.name, resource.logical_id, "UPDATE")
    except ResourceError:
        resource.attempted_properties = dict(old_properties)
        raise
    yield from cloud.wait_for_duration(resource.type, "update")


def modify(cloud: Region, stack: Stack, resource: Resource, old_properties: Properties) -> Operation:
    """Update a resource in place; on return it is complete, or was cancelled.

    Raises:
        ResourceError: the update failed
    """
    generation = resource.generation
    yield from await_update_duration(cloud, stack, resource, old_properties)
    if resource.generation != generation:
        return
    if resource.type == AUTO_SCALING_GROUP:
        yield from rolling.update_group(cloud, stack, resource, old_properties)
        return
    try:
        changed_attributes = HANDLERS[resource.type].update(
            properties.handler_call(cloud, stack, resource), old_properties
        )
    except ResourceError:
        # The update was refused before anything was changed, so there is nothing to roll back.
        resource.attempted_properties = dict(old_properties)
        raise
    resource.attributes = {**resource.attributes, **changed_attributes}
