"""Why a CloudFormation operation failed: the first failure, which caused all others, with an explanation.

One failure spreads through the whole tree of stacks: resources created at the same time are cancelled, the stack
fails, and so does every stack above it. When these consequences are removed, the earliest failure that is left is the
cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.consoles import ConsoleExcerpt, read_group_consoles, read_launch_failures
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.events import is_cancelled, read_all_events, repeats_another_failure
from cfngen.deploy.aws.failure_events import find_failed_instance, read_failures, read_operation
from cfngen.deploy.aws.network import list_interfaces
from cfngen.deploy.aws.operation_events import is_at_rest, merge_events, since_time, was_cancelled
from cfngen.deploy.aws.stacks import (
    NESTED_STACK,
    StackView,
    find_stack,
    stack_name,
)
from cfngen.deploy.messages.message import Event, Message
from cfngen.deploy.messages.next_steps import NextStep, next_steps
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.watching.evidence import (
    TYPES_WITH_SIGNALS,
    ErrorsAsNotes,
    explain_consoles,
    find_group,
    sold_out_master_hint,
)
from cfngen.deploy.watching.progress import operation_of_status
from cfngen.deploy.watching.reasons import EXPORT_IN_USE, Explanation, explain_event, explain_reason
from cfngen.hints import Hint, suggest

_INSTANCE_FAILURE_REASON = re.compile(
    r"resource signal|FAILURE signal|instance|launch template|capacity", re.IGNORECASE
)
_STILL_IN_USE_REASON = re.compile(
    r"DependencyViolation|dependenc|dependent object|mapped public address", re.IGNORECASE
)
# Network interfaces keep these resources from being deleted; the filter of DescribeNetworkInterfaces that finds them.
_INTERFACE_FILTER_BY_TYPE = {
    "AWS::EC2::SecurityGroup": "group-id",
    "AWS::EC2::Subnet": "subnet-id",
    "AWS::EC2::VPC": "vpc-id",
}
_MAX_INTERFACES = 10


@dataclass(frozen=True)
class Cause:
    """A failure that is not the consequence of another one.

    Attributes:
        event: the event in CloudFormation.
        explanation: what it means; empty where the event's reason is clear by itself.
        hint: what to do about it; may be empty.
        instances: console output of the instances that should have booted.
        launches: why instances could not be launched.
        occupants: network interfaces that still use the resource that could not be deleted.
        notes: errors of other services that were called for details.
    """

    event: Event
    explanation: str = ""
    hint: Hint = ""
    instances: tuple[ConsoleExcerpt, ...] = ()
    launches: tuple[str, ...] = ()
    occupants: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Diagnosis(Message):
    """Why the last operation of a stack failed, and what to do now.

    Attributes:
        stack: name of the root stack.
        stack_id: its ARN.
        status: its status.
        action: what failed: `create`, `update`, `rollback`, `delete` or `import`; empty if nothing is known.
        cause: the failure that caused the others; None if nothing failed by itself.
        others: further failures that seem to be independent of the cause, oldest first.
        rollback_failures: failures during the rollback.
        cancelled: whether somebody cancelled the operation (a creation: deleted its stack), so that nothing failed.
        next_steps: commands to continue with, the usual one first.
        control_plane: if masters failed: whether the API answers, and how many members etcd has and needs; else empty.
    """

    kind: ClassVar[str] = "diagnosis"
    stack: str
    stack_id: str
    status: str
    action: str = ""
    cause: Cause | None = None
    others: tuple[Cause, ...] = ()
    rollback_failures: tuple[Cause, ...] = ()
    cancelled: bool = False
    next_steps: tuple[NextStep, ...] = ()
    control_plane: str = ""


def diagnose(account: Account, root_id: str, *, with_failure: bool = True) -> Diagnosis:
    """Find out why the last operation of a stack failed.

    Args:
        root_id: the root stack's ARN, or its name if it is not deleted.
        with_failure: whether to explain, if that is a rollback, why the operation before it failed.

    Raises:
        AwsError: CloudFormation refuses to list the events. Errors of other services only become notes.
    """
    with translate_aws_errors():
        stack = find_stack(account, root_id)
        if stack is None:
            # `root_id` is an ARN, or the name of a stack that does not exist.
            name_in_arn = stack_name(root_id)
            return Diagnosis(stack=name_in_arn or root_id, stack_id=root_id if name_in_arn else "", status="")
        root_events = read_operation(account, stack.id, with_failure=with_failure)
        if not root_events:
            return Diagnosis(stack.name, stack.id, stack.status.name, next_steps=_next_steps(stack))
        events = _add_nested_failures(account, stack.id, root_events)
    causes, rollback_failures = _separate_rollback_failures(events)
    if not causes and not rollback_failures:
        causes = _find_deepest_failure(events)
    status_changes = [event for event in root_events if event.of_stack]
    cancelled = not causes and was_cancelled(root_events)
    return Diagnosis(
        stack=stack.name,
        stack_id=stack.id,
        status=stack.status.name,
        action=operation_of_status(status_changes[0].status) if status_changes else "",
        cause=_cause_with_evidence(account, causes[0]) if causes else None,
        others=tuple(_cause_from_event(account, event) for event in causes[1:]),
        rollback_failures=tuple(_cause_with_evidence(account, event) for event in rollback_failures),
        cancelled=cancelled,
        next_steps=_next_steps(stack, failed=bool(causes or rollback_failures), cancelled=cancelled),
    )


def _add_nested_failures(account: Account, stack_id: str, root_events: list[Event]) -> list[Event]:
    """Return the root stack's events together with all failures in nested stacks, oldest first."""
    start = root_events[0].time
    nested_failures: list[Event] = []
    if (failures := read_failures(account, stack_id, start)) is not None:
        root_event_ids = {event.id for event in root_events}
        nested_failures = [event for event in failures if event.id not in root_event_ids]
    events = merge_events([*root_events, *nested_failures])
    if any(_is_cause(event) for event in events):
        return events
    # DescribeEvents is denied, not available in this region, or shows no cause: read all events of all stacks.
    return list(read_all_events(account, stack_id, since_time(start)))


def _is_cause(event: Event) -> bool:
    if is_cancelled(event) or repeats_another_failure(event):
        return False
    if event.of_stack:
        # A stack can fail by itself, because of a parameter, a rule or an output; then its event has a reason.
        has_failed = event.failed or event.status.endswith("ROLLBACK_IN_PROGRESS")
        # A deletion that is refused, since other stacks import an export, leaves the stack's status as it was before.
        return (has_failed and event.reason not in ("", "User Initiated")) or bool(EXPORT_IN_USE.search(event.reason))
    if event.failed:
        # A nested stack that could not be created has no events of its own, but its parent's event has a reason.
        return bool(event.reason) or event.type != NESTED_STACK
    return False


def _separate_rollback_failures(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Return the failures of the operation, and of the last attempt to roll it back; of each resource the first."""
    # Keys are the path of a stack and the logical id of a resource in it.
    causes: dict[tuple[tuple[str, ...], str], Event] = {}
    rollback_failures: dict[tuple[tuple[str, ...], str], Event] = {}
    is_rolling_back = was_at_rest = False
    for index, event in enumerate(events):
        if _is_cause(event):
            failures = rollback_failures if is_rolling_back else causes
            failures.setdefault((event.path, event.logical_id), event)
        if index and event.of_stack and not event.path:
            in_progress = not is_at_rest(event.status)
            undoes = in_progress and ("ROLLBACK" in event.status or event.status == "DELETE_IN_PROGRESS")
            is_rolling_back = is_rolling_back or undoes
            if in_progress and was_at_rest:
                rollback_failures.clear()  # another attempt begins
            was_at_rest = not in_progress
    return list(causes.values()), list(rollback_failures.values())


def _find_deepest_failure(events: Iterable[Event]) -> list[Event]:
    """Return the failure in the most deeply nested stack, as a list; empty if nothing failed.

    It is used if every failure only repeats another one.
    """
    failures = [event for event in events if event.failed and not is_cancelled(event)]
    return sorted(failures, key=lambda event: -len(event.path))[:1]


def _cause_from_event(account: Account, event: Event) -> Cause:
    explanation = explain_event(event, account.region)
    return Cause(event=event, explanation=explanation.meaning, hint=explanation.hint)


def _cause_with_evidence(account: Account, event: Event) -> Cause:
    """Return a failure with details from EC2 and Auto Scaling: console output, failed launches, network interfaces."""
    cause = _cause_from_event(account, event)
    if event.type in TYPES_WITH_SIGNALS and _INSTANCE_FAILURE_REASON.search(event.reason):
        return _add_instance_evidence(account, cause)
    if event.type in _INTERFACE_FILTER_BY_TYPE and _STILL_IN_USE_REASON.search(event.reason):
        with ErrorsAsNotes() as errors:
            cause = replace(cause, occupants=tuple(_describe_interfaces(account, event)))
        return replace(cause, notes=errors.notes)
    return cause


def _add_instance_evidence(account: Account, cause: Cause) -> Cause:
    event = cause.event
    failed_instance_id = ""
    with ErrorsAsNotes():
        failed_instance_id = find_failed_instance(account, event)
    group = ""
    with ErrorsAsNotes():
        group = find_group(account, event)
    launch_failures: tuple[str, ...] = ()
    consoles: tuple[ConsoleExcerpt, ...] = ()
    with ErrorsAsNotes() as launch_errors:
        launch_failures = read_launch_failures(account, group) if group and not failed_instance_id else ()
    with ErrorsAsNotes() as console_errors:
        consoles = read_group_consoles(account, group, failed_instance_id) if group else ()
    explanations = (explain_reason(reason, account.region) for reason in launch_failures)
    explanation = next((explanation for explanation in explanations if explanation.hint), Explanation())
    notes = (*launch_errors.notes, *console_errors.notes)
    if launch_failures:
        meaning = "instances could not be launched" + (f": {explanation.meaning}" if explanation.meaning else "")
        hint = sold_out_master_hint(account, event, launch_failures) or explanation.hint or cause.hint
        cause = replace(cause, explanation=meaning, hint=hint)
    elif (network := explain_consoles(consoles, account.region)).hint:
        cause = replace(cause, explanation=f"{cause.explanation}: {network.meaning}", hint=network.hint)
    elif group and not consoles and not notes:
        notes = ("EC2 lists no instance that the group has launched",)
    return replace(cause, launches=launch_failures, instances=consoles, notes=notes)


def _describe_interfaces(account: Account, event: Event) -> Iterator[str]:
    interfaces = list_interfaces(account, _INTERFACE_FILTER_BY_TYPE[event.type], event.physical_id)
    for interface in interfaces[:_MAX_INTERFACES]:
        purpose = interface.description or interface.instance or "no description"
        yield f"{interface.id} ({purpose}), {interface.status} in {interface.subnet}"
    if len(interfaces) > _MAX_INTERFACES:
        yield f"{len(interfaces) - _MAX_INTERFACES} more network interfaces"


def _next_steps(stack: StackView, *, failed: bool = True, cancelled: bool = False) -> tuple[NextStep, ...]:
    status = stack.status
    if status.health is StackHealth.HEALTHY and not status.succeeded:
        if stack.made_elsewhere:
            purpose = "shows what the next update would change; retry it the way the stack was made"
            return (NextStep(suggest("plan", stack=stack.name), purpose),)
        if cancelled:
            purpose = "applies the change after all; until then the stack is as it was before"
        else:
            purpose = "retries, once the cause is fixed; until then the stack is as it was before"
        return (NextStep(suggest("deploy", stack=stack.name), purpose),)
    if status.health is StackHealth.ABSENT and failed:
        return (NextStep(suggest("deploy", stack=stack.name), "creates the cluster, once the cause is fixed"),)
    # The diagnosis itself shows the failures already.
    steps = next_steps(status, stack.name, made_elsewhere=stack.made_elsewhere)
    return tuple(step for step in steps if step.command.name != "events")
