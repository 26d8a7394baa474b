"""How stacks and resources come into being.

Creation starts every resource whose dependencies are settled, as CloudFormation does. When one fails, those under way
are cancelled; then a root stack rolls back, while a nested stack is left to the rollback of its parent.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, ParamValidationError

from cfngen.sandbox.cloudformation import admission, properties, removing, signals, update_policies
from cfngen.sandbox.cloudformation.admission import NESTED
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.errors import ApiError, ResourceError, UnfinishedError
from cfngen.sandbox.cloudformation.handlers import HANDLERS
from cfngen.sandbox.cloudformation.properties import GROUP
from cfngen.sandbox.cloudformation.stack import Resource, Revision, Stack

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.region import Region

FAULTS = (ApiError, ResourceError, ClientError, ParamValidationError)  # what fails a resource


def create(service: Region, stack: Stack, on_failure: str = "ROLLBACK") -> Operation:
    """Create every resource of a stack whose condition holds.

    Args:
        service: the region
        stack: a new stack, whose operation has begun
        on_failure: ROLLBACK, DELETE or DO_NOTHING
    """
    turn = stack.turn
    service.record(stack, None, "CREATE_IN_PROGRESS", "User Initiated")
    keys = properties.wanted(service.scope(stack), stack.template.resources)
    complaint = stack.revision.complaint

    def begin(key: str) -> None:
        resource = stack.resources[key] = Resource(key, stack.template.resources[key])
        service.simulation.start(create_resource(service, stack, resource))

    if not complaint:
        yield from settle(stack, keys, begin)
    if stack.turn != turn:
        return
    failed = [key for key, each in stack.resources.items() if each.progress == "failed"]
    if not complaint and not failed:
        try:
            stack.outputs, stack.exports = properties.outputs(service, stack)
        except ResourceError as error:
            complaint = str(error)
        else:
            service.record(stack, None, "CREATE_COMPLETE")
            return
    cancel_resources(service, stack)
    failed = [key for key, each in stack.resources.items() if each.status == "CREATE_FAILED"]
    reason = complaint or removing.failed_to("create", failed)
    if stack.parent or on_failure == "DO_NOTHING":
        service.record(stack, None, "CREATE_FAILED", reason)
    elif on_failure == "DELETE":
        service.begin(stack, "DELETE_STACK", stack.token)
        yield from removing.delete(service, stack, f"{reason.rstrip('. ')}. Delete requested by user.")
    else:
        yield from roll_back(service, stack, f"{reason.rstrip('. ')}. Rollback requested by user.")


def roll_back(service: Region, stack: Stack, reason: str) -> Operation:
    """Remove what a creation has made before it failed."""
    service.begin(stack, "ROLLBACK", stack.token)
    service.record(stack, None, "ROLLBACK_IN_PROGRESS", reason)
    problems = yield from removing.remove_resources(service, stack)
    end = "ROLLBACK_FAILED" if problems else "ROLLBACK_COMPLETE"
    service.record(stack, None, end, removing.failed_to("delete", problems) if problems else "")


def settle(stack: Stack, keys: list[str], begin: Callable[[str], None], *, stubborn: bool = False) -> Operation:
    """Begin with each resource as soon as all it depends on is settled.

    Args:
        stack: whose operation has begun
        keys: logical ids
        begin: lets one of them begin
        stubborn: do what can still be done after a failure, rather than return
    """
    turn = stack.turn
    begun: set[str] = set()
    while stack.turn == turn:
        for key in keys:
            needs = stack.template.resources[key].needs & set(keys)
            if key not in begun and all(_progress(stack, need) == "settled" for need in needs):
                begun.add(key)
                begin(key)
        seen = {key: _progress(stack, key) for key in begun}
        if ("failed" in seen.values() and not stubborn) or list(seen.values()) == ["settled"] * len(keys):
            return
        if stubborn and "working" not in seen.values() and "failed" in seen.values() and not _free(stack, keys, seen):
            return
        if not _free(stack, keys, seen):
            yield functools.partial(_moved_on, stack, turn, seen)


def _free(stack: Stack, keys: list[str], seen: Mapping[str, str]) -> bool:
    """Whether there is a resource that can begin now."""
    settled = {key for key, each in seen.items() if each == "settled"}
    return any(stack.template.resources[key].needs & set(keys) <= settled for key in keys if key not in seen)


def _progress(stack: Stack, key: str) -> str:
    return stack.resources[key].progress if key in stack.resources else ""


def _moved_on(stack: Stack, turn: int, seen: Mapping[str, str]) -> bool:
    return stack.turn != turn or any(_progress(stack, key) != each for key, each in seen.items())


def cancel_resources(service: Region, stack: Stack) -> None:
    """Give up whatever is under way in a stack; nested stacks that are being updated begin to roll back."""
    for resource in stack.resources.values():
        if resource.progress == "working":
            resource.turn += 1
            resource.progress = "failed"
            verb = "CREATE" if resource.status == "CREATE_IN_PROGRESS" else "UPDATE"
            if resource.child and not resource.child.finished:
                service.cancel_nested(resource.child)
            service.record(stack, resource, f"{verb}_FAILED", f"Resource {_NOUNS[verb]} cancelled")


def cancel(service: Region, stack: Stack) -> None:
    """Give up the creation of a nested stack."""
    stack.turn += 1
    cancel_resources(service, stack)
    service.record(stack, None, "CREATE_FAILED", "Resource creation cancelled")


_NOUNS = {"CREATE": "creation", "UPDATE": "update"}


def create_resource(service: Region, stack: Stack, resource: Resource) -> Operation:
    """Create one resource of a stack and wait until it is complete."""
    resource.turn += 1
    turn, resource.progress = resource.turn, "working"
    service.record(stack, resource, "CREATE_IN_PROGRESS")
    try:
        service.failures.strike(stack.name, resource.logical_id, "CREATE")
        yield from service.outlast_throttling(resource.logical_id)
        if resource.turn != turn:
            return
        resource.properties = properties.resolved(service, stack, resource.definition)
        yield from bring_into_being(service, stack, resource, "CREATE_IN_PROGRESS")
    except FAULTS as error:
        if resource.turn == turn:
            resource.progress = "failed"
            service.record(stack, resource, "CREATE_FAILED", str(error))
    else:
        if resource.turn == turn:
            resource.progress = "settled"
            service.record(stack, resource, "CREATE_COMPLETE")


def bring_into_being(service: Region, stack: Stack, resource: Resource, status: str) -> Operation:
    """Make a resource whose properties are known; on return it is complete, or was cancelled.

    Raises:
        ResourceError: it could not be made
    """
    turn = resource.turn
    wanted, seconds = signals.creation_policy(service, stack, resource)
    yield from service.take_time(resource.type)
    if resource.turn != turn:
        return
    if resource.type == NESTED:
        yield from _create_nested(service, stack, resource, status)
        return
    if resource.type == GROUP:
        update_policies.rolling(service, stack, resource)
    earlier = signals.launches(service) if resource.type == GROUP else ()
    try:
        created = HANDLERS[resource.type].create(properties.call(service, stack, resource))
    except UnfinishedError as error:
        resource.physical_id, resource.attributes = error.physical_id, dict(error.attributes)
        service.record(stack, resource, status, "Resource creation Initiated")
        raise
    resource.physical_id, resource.attributes = created.physical_id, dict(created.attributes)
    resource.signals, resource.signals_wanted = {}, wanted
    service.record(stack, resource, status, "Resource creation Initiated")
    if resource.type == GROUP:
        signals.announce(service, resource, set())
        yield from signals.stabilize(service, resource, earlier)
        if resource.turn != turn:
            return
    if wanted:
        yield from signals.await_signals(service, resource, seconds)


def _create_nested(service: Region, stack: Stack, resource: Resource, status: str) -> Operation:
    turn = resource.turn
    prepared = stack.prepared.pop(resource.logical_id, None)
    if prepared is not None and prepared.status == "REVIEW_IN_PROGRESS":
        child = prepared
        child.revision = nested_revision(service, stack, resource, child.name)
    else:
        name = service.physical_name(stack, resource.logical_id)
        child = service.new_stack(name, nested_revision(service, stack, resource, name), stack)
    resource.child, resource.physical_id = child, child.id
    service.record(stack, resource, status, "Resource creation Initiated")
    service.begin(child, "CREATE_STACK")
    service.simulation.start(create(service, child))
    yield lambda: child.finished or resource.turn != turn
    if resource.turn != turn:
        return
    if child.status != "CREATE_COMPLETE":
        raise ResourceError(f"Embedded stack {child.id} was not successfully created: {child.reason}")
    resource.attributes = {f"Outputs.{key}": value for key, value in child.outputs.items()}


def nested_revision(
    service: Region, stack: Stack, resource: Resource, name: str, parent: Revision | None = None
) -> Revision:
    """What a nested stack is to be according to its parent's resource, in the parent's revision or a future one.

    Raises:
        ApiError: its template or parameters are refused
    """
    told = resource.properties
    tags = {tag["Key"]: tag["Value"] for tag in told.get("Tags", [])}
    given = {key: str(value) for key, value in told.get("Parameters", {}).items()}
    text = service.fetch(told["TemplateURL"])
    revision = parent or stack.revision
    return admission.revision(
        service, text, given, tags, revision.capabilities, name, topics=revision.notification_arns
    )
