"""How stacks and resources come into being and go: the operations that run on the simulated clock.

Creation starts every resource whose dependencies are complete, as CloudFormation does. When one fails, those under way
are cancelled; then a root stack rolls back, while a nested stack is left to the rollback of its parent.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ParamValidationError

from cfngen.sandbox.cloudformation import property_schemas
from cfngen.sandbox.cloudformation.clock import Operation
from cfngen.sandbox.cloudformation.errors import ApiError, NotModelledError, ResourceError
from cfngen.sandbox.cloudformation.handlers import HANDLERS, Call, client
from cfngen.sandbox.cloudformation.stack import Launched, Resource, Stack

if TYPE_CHECKING:
    from cfngen.sandbox.cloudformation.service import CloudFormation

NESTED = "AWS::CloudFormation::Stack"
GROUP = "AWS::AutoScaling::AutoScalingGroup"
DURATION = re.compile(r"PT(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)S)?")
LONGEST_WAIT = 12 * 3600  # seconds, CreationPolicy attribute reference


def create(service: CloudFormation, stack: Stack, complaint: str = "", *, rollback: bool = True) -> Operation:
    """Create every resource of a stack whose condition holds."""
    service.record(stack, None, "CREATE_IN_PROGRESS", "User Initiated")
    wanted = _wanted(service, stack)
    while not complaint:
        for key in wanted:
            if key not in stack.resources and _ready(stack, key, wanted):
                stack.resources[key] = Resource(key, stack.template.resources[key])
                service.simulation.start(_create_resource(service, stack, stack.resources[key]))
        seen = _statuses(stack)
        if any(status == "CREATE_FAILED" for status in seen.values()):
            break
        if list(seen.values()) == ["CREATE_COMPLETE"] * len(wanted):
            try:
                stack.outputs = _outputs(service, stack)
            except ResourceError as error:
                complaint = str(error)
                break
            service.record(stack, None, "CREATE_COMPLETE")
            return
        if not any(_ready(stack, key, wanted) for key in wanted if key not in stack.resources):
            yield functools.partial(_moved_on, stack, seen)
        if stack.status != "CREATE_IN_PROGRESS":
            return
    _cancel(service, stack)
    failed = [key for key, status in _statuses(stack).items() if status == "CREATE_FAILED"]
    reason = complaint or f"The following resource(s) failed to create: [{', '.join(failed)}]. "
    if stack.parent or not rollback:
        service.record(stack, None, "CREATE_FAILED", reason)
        return
    service.record(stack, None, "ROLLBACK_IN_PROGRESS", f"{reason.rstrip('. ')}. Rollback requested by user.")
    yield from _remove_resources(service, stack, "ROLLBACK_COMPLETE", "ROLLBACK_FAILED")


def delete(service: CloudFormation, stack: Stack, reason: str = "") -> Operation:
    """Remove a stack's resources, dependents first."""
    service.record(stack, None, "DELETE_IN_PROGRESS", reason)
    yield from _remove_resources(service, stack, "DELETE_COMPLETE", "DELETE_FAILED")


def attribute(stack: Stack, logical_id: str, name: str) -> Any:
    """What GetAtt gives for a finished resource."""
    resource = stack.resources.get(logical_id)
    if resource is None or resource.status != "CREATE_COMPLETE":
        raise ResourceError(f"Template error: {logical_id} is not complete, so that it has no {name} yet")
    if name not in resource.attributes:
        raise ResourceError(f"Requested attribute {name} does not exist in schema for {resource.type}")
    return resource.attributes[name]


def _wanted(service: CloudFormation, stack: Stack) -> list[str]:
    scope = service.scope(stack)
    definitions = stack.template.resources
    return [
        key
        for key, each in definitions.items()
        if "Condition" not in each.body or scope.condition(each.body["Condition"])
    ]


def _ready(stack: Stack, key: str, wanted: list[str]) -> bool:
    needs = stack.template.resources[key].needs & set(wanted)
    return all(each in stack.resources and stack.resources[each].status == "CREATE_COMPLETE" for each in needs)


def _statuses(stack: Stack) -> dict[str, str]:
    return {key: each.status for key, each in stack.resources.items()}


def _outputs(service: CloudFormation, stack: Stack) -> dict[str, str]:
    scope = service.scope(stack)
    outputs = {}
    for key, each in stack.template.body.get("Outputs", {}).items():
        if "Export" in each:
            raise NotModelledError("Export")
        if "Condition" not in each or scope.condition(each["Condition"]):
            outputs[key] = str(scope.resolve(each["Value"]))
    return outputs


def _moved_on(stack: Stack, seen: Mapping[str, str]) -> bool:
    return stack.status != "CREATE_IN_PROGRESS" or _statuses(stack) != seen


def _cancel(service: CloudFormation, stack: Stack) -> None:
    for resource in stack.resources.values():
        if resource.status == "CREATE_IN_PROGRESS":
            if resource.child and not resource.child.finished:
                _cancel(service, resource.child)
                service.record(resource.child, None, "CREATE_FAILED", "Resource creation cancelled")
            service.record(stack, resource, "CREATE_FAILED", "Resource creation cancelled")


def _create_resource(service: CloudFormation, stack: Stack, resource: Resource) -> Operation:
    service.record(stack, resource, "CREATE_IN_PROGRESS")
    try:
        resource.properties = _properties(service, stack, resource)
        wanted, seconds = _creation_policy(service, stack, resource)
        if resource.type == NESTED:
            yield from _create_nested(service, stack, resource)
        else:
            created = HANDLERS[resource.type].create(_call(service, stack, resource))
            resource.physical_id, resource.attributes = created.physical_id, dict(created.attributes)
            resource.signals_wanted = wanted
            service.record(stack, resource, "CREATE_IN_PROGRESS", "Resource creation Initiated")
        if resource.type == GROUP:
            _announce(service, resource)
        if wanted:
            yield from _await_signals(service, resource, seconds)
    except (ApiError, ResourceError, ClientError, ParamValidationError) as error:
        service.record(stack, resource, "CREATE_FAILED", str(error))
    else:
        if resource.status == "CREATE_IN_PROGRESS":
            service.record(stack, resource, "CREATE_COMPLETE")


def _create_nested(service: CloudFormation, stack: Stack, resource: Resource) -> Operation:
    properties = resource.properties
    tags = {tag["Key"]: tag["Value"] for tag in properties.get("Tags", [])}
    name = service.physical_name(stack, resource.logical_id)
    given = {key: str(value) for key, value in properties.get("Parameters", {}).items()}
    text = service.fetch(properties["TemplateURL"])
    child, complaint = service.prepare(name, text, given, tags, stack.capabilities, stack)
    resource.child, resource.physical_id = child, child.id
    service.record(stack, resource, "CREATE_IN_PROGRESS", "Resource creation Initiated")
    service.simulation.start(create(service, child, complaint))
    yield lambda: child.finished
    if child.status != "CREATE_COMPLETE":
        _fail_unless_cancelled(resource, f"Embedded stack {child.id} was not successfully created: {child.reason}")
    resource.attributes = {f"Outputs.{key}": value for key, value in child.outputs.items()}


def _fail_unless_cancelled(resource: Resource, reason: str) -> None:
    if resource.status == "CREATE_IN_PROGRESS":
        raise ResourceError(reason)


def _await_signals(service: CloudFormation, resource: Resource, seconds: int) -> Operation:
    deadline = service.clock.now + seconds
    service.clock.later(seconds, lambda: None)

    def decided() -> bool:
        return (
            resource.status != "CREATE_IN_PROGRESS"
            or "FAILURE" in resource.signals.values()
            or len(resource.signals) >= resource.signals_wanted
            or service.clock.now >= deadline
        )

    yield decided
    for unique_id, status in resource.signals.items():
        if status == "FAILURE":
            _fail_unless_cancelled(resource, f"Received FAILURE signal with UniqueId {unique_id}")
    if len(resource.signals) < resource.signals_wanted:
        missing = resource.signals_wanted - len(resource.signals)
        _fail_unless_cancelled(
            resource, f"Failed to receive {missing} resource signal(s) within the specified duration"
        )


def _announce(service: CloudFormation, resource: Resource) -> None:
    answer = client("autoscaling", service.region).describe_auto_scaling_groups(
        AutoScalingGroupNames=[resource.physical_id]
    )
    for instance in answer["AutoScalingGroups"][0]["Instances"]:
        service.instances(Launched(instance["InstanceId"], resource.physical_id))


def _creation_policy(service: CloudFormation, stack: Stack, resource: Resource) -> tuple[int, int]:
    """Signals to wait for, and for how many seconds."""
    policy = service.scope(stack).resolve(resource.definition.body.get("CreationPolicy", {}))
    if not policy:
        return 0, 0
    signal = policy.get("ResourceSignal", {})
    if resource.type != GROUP or set(policy) != {"ResourceSignal"} or set(signal) - {"Count", "Timeout"}:
        raise NotModelledError(f"CreationPolicy {policy} of {resource.type}")
    match = DURATION.fullmatch(signal.get("Timeout", "PT5M"))
    if not match or not any(match.groups()):
        raise ResourceError(f"CreationPolicy Timeout {signal['Timeout']} is no duration")
    hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return int(signal.get("Count", 1)), min(3600 * hours + 60 * minutes + seconds, LONGEST_WAIT)


def _properties(service: CloudFormation, stack: Stack, resource: Resource) -> dict[str, Any]:
    resolved = service.scope(stack).resolve(resource.definition.body.get("Properties", {}))
    holder = property_schemas.tag_property(service.region, resource.type)
    if holder == "Tags" and stack.tags:
        resolved["Tags"] = _with_stack_tags(stack, resource.type, resolved.get("Tags", []))
    properties = property_schemas.conform(service.region, resource.type, resolved)
    if resource.type in HANDLERS and (unknown := set(properties) - HANDLERS[resource.type].properties):
        raise NotModelledError(f"properties {sorted(unknown)} of {resource.type}")
    return properties


def _with_stack_tags(stack: Stack, resource_type: str, tags: list[dict[str, Any]]) -> list[dict[str, Any]]:
    own = {tag["Key"] for tag in tags}
    propagated = {"PropagateAtLaunch": True} if resource_type == GROUP else {}
    inherited = [{"Key": key, "Value": value, **propagated} for key, value in stack.tags.items() if key not in own]
    return [*tags, *inherited]


def _call(service: CloudFormation, stack: Stack, resource: Resource) -> Call:
    def name(*, limit: int = 128, stack_name: bool = True) -> str:
        return service.physical_name(stack, resource.logical_id, limit=limit, with_stack=stack_name)

    return Call(service.region, resource.properties, name, resource.physical_id, resource.attributes)


def _remove_resources(service: CloudFormation, stack: Stack, done: str, failed: str) -> Operation:
    remaining = {key: each for key, each in stack.resources.items() if each.exists}
    problems: list[str] = []
    while free := _unneeded(remaining, problems):
        for key in reversed(free):
            yield from _remove_resource(service, stack, remaining[key])
            if remaining[key].exists:
                problems.append(key)
            else:
                del remaining[key]
    reason = f"The following resource(s) failed to delete: [{', '.join(problems)}]. " if problems else ""
    service.record(stack, None, failed if problems else done, reason)


def _unneeded(remaining: dict[str, Resource], problems: list[str]) -> list[str]:
    needed = {need for each in remaining.values() for need in each.definition.needs}
    return [key for key in remaining if key not in needed and key not in problems]


def _remove_resource(service: CloudFormation, stack: Stack, resource: Resource) -> Operation:
    policy = resource.definition.deletion_policy
    if policy == "Retain" or (policy == "RetainExceptOnCreate" and stack.root.status == "DELETE_IN_PROGRESS"):
        service.record(stack, resource, "DELETE_SKIPPED")
        return
    service.record(stack, resource, "DELETE_IN_PROGRESS")
    try:
        if resource.child:
            yield from _remove_child(service, resource.child)
        else:
            call = _call(service, stack, resource)
            if policy == "Snapshot":
                HANDLERS[resource.type].snapshot(call)
            HANDLERS[resource.type].delete(call)
    except (ResourceError, ClientError) as error:
        service.record(stack, resource, "DELETE_FAILED", str(error))
    else:
        service.record(stack, resource, "DELETE_COMPLETE")


def _remove_child(service: CloudFormation, child: Stack) -> Operation:
    service.simulation.start(delete(service, child))
    yield lambda: child.finished
    if child.status != "DELETE_COMPLETE":
        raise ResourceError(f"Embedded stack {child.id} was not successfully deleted: {child.reason}")
