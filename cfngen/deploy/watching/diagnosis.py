"""Why an operation failed: the one failure that everything else follows from, explained as far as can be known.

Every failure passes through the whole tree: the resources beside it are cancelled, its stack fails, and so does each
stack around it. What is left when those are taken away, in the order of time, begins with the cause.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any, ClassVar

from cfngen.cluster.names import auto_scaling_group
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, DeniedError, as_aws_error, error_code, translate_aws_errors
from cfngen.deploy.messages import Event, Message
from cfngen.deploy.next_steps import NextStep, next_steps
from cfngen.deploy.stacks import GROUP, NESTED, StackView, find, stack_name, tree
from cfngen.deploy.status import StackHealth
from cfngen.deploy.watching import console_output
from cfngen.deploy.watching.console_output import InstanceWords
from cfngen.deploy.watching.event_order import in_order
from cfngen.deploy.watching.event_scope import at_rest, last_operation_and_failure, since_time
from cfngen.deploy.watching.events import StackEvents, is_cancelled, is_echo, parsed, read_all
from cfngen.deploy.watching.progress import action_of
from cfngen.deploy.watching.reasons import EXPORT_IN_USE, Explanation, explain, explain_event

_NAMED_INSTANCE = re.compile(r"Received FAILURE signal with UniqueId (i-[0-9a-f]+)")
_WAIT_CONDITION = "AWS::CloudFormation::WaitCondition"
_OF_INSTANCES = re.compile(r"resource signal|FAILURE signal|instance|launch template|capacity", re.IGNORECASE)
# What a deletion stumbles over has network interfaces; by which filter they are found.
_OCCUPIED = re.compile(r"DependencyViolation|dependenc|dependent object|mapped public address", re.IGNORECASE)
_OCCUPIED_BY = {
    "AWS::EC2::SecurityGroup": "group-id",
    "AWS::EC2::Subnet": "subnet-id",
    "AWS::EC2::VPC": "vpc-id",
}
_MOST_OCCUPANTS = 10
_MOST_EVENTS = 500  # among which a signal is looked for


@dataclass(frozen=True)
class Cause:
    """Something that failed by itself.

    Attributes:
        event: CloudFormation's word of it.
        explanation: what that means; empty where the event's reason says it.
        hint: what to do about it; may be empty.
        instances: what the instances said that should have come up.
        launches: why instances could not be launched.
        occupants: what still uses the thing that could not be deleted.
        notes: what could not be found out, and why.
    """

    event: Event
    explanation: str = ""
    hint: str = ""
    instances: tuple[InstanceWords, ...] = ()
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
        cause: the failure that the others follow from; None if nothing failed by itself.
        others: further failures that have nothing to do with it, as far as can be known, in the order of time.
        undoing: what failed afterwards, while the operation was taken back.
        cancelled: whether somebody cancelled the operation, a creation by deleting its stack, so that nothing failed.
        next_steps: ways on, the usual one first.
    """

    kind: ClassVar[str] = "diagnosis"
    stack: str
    stack_id: str
    status: str
    action: str = ""
    cause: Cause | None = None
    others: tuple[Cause, ...] = ()
    undoing: tuple[Cause, ...] = ()
    cancelled: bool = False
    next_steps: tuple[NextStep, ...] = ()


def diagnose(account: Account, root_id: str) -> Diagnosis:
    """Find out why the last operation of a stack failed; of a rollback, the operation that it takes back.

    Args:
        account: where it is.
        root_id: its ARN, or its name if it is not deleted.

    Raises:
        AwsError: CloudFormation does not tell what happened. What other services do not tell is only noted.
    """
    with translate_aws_errors():
        stack = find(account, root_id)
        if stack is None:
            return Diagnosis(stack_name(root_id) or root_id, root_id if stack_name(root_id) else "", "")
        history = _root_events(account, stack.id)
        if not history:
            return Diagnosis(stack.name, stack.id, stack.status.name, next_steps=_next_steps(stack))
        merged = _with_failures(account, stack.id, history)
    causes, undoing = _parted(merged)
    if not causes and not undoing:
        causes = _last_resort(merged)
    own = [event for event in history if event.of_stack]
    cancelled = not causes and any(_was_cancelled(*pair) for pair in pairwise(own))
    return Diagnosis(
        stack=stack.name,
        stack_id=stack.id,
        status=stack.status.name,
        action=action_of(own[0].status) if own else "",
        cause=_explained(account, causes[0]) if causes else None,
        others=tuple(_briefly(account, event) for event in causes[1:]),
        undoing=tuple(_explained(account, event) for event in undoing),
        cancelled=cancelled,
        next_steps=_next_steps(stack, failed=bool(causes or undoing), cancelled=cancelled),
    )


def _root_events(account: Account, stack_id: str) -> list[Event]:
    """Return the root's own part of the operation, and of the failed one that it takes back."""
    root = StackEvents(account.client("cloudformation"), stack_id, (), last_operation_and_failure)
    events = root.read_page()
    while root.halfway:
        events = root.read_page()
    return events


def _with_failures(account: Account, stack_id: str, history: list[Event]) -> list[Event]:
    """Return what happened in the root together with all failures in nested stacks, in order."""
    begun = history[0].time
    failed: list[Event] = []
    if (fast := _failed_only(account, stack_id, begun)) is not None:
        known = {event.id for event in history}
        failed = [event for event in fast if event.id not in known]
    merged = in_order([*history, *failed])
    if any(_is_cause(event) for event in merged):
        return merged
    # Not allowed, not there in this region, or not telling: the long way.
    return list(read_all(account, stack_id, since_time(begun)))


def _failed_only(account: Account, stack_id: str, begun: datetime, path: tuple[str, ...] = ()) -> list[Event] | None:
    """Return the failures of a stack and of those it nests; None if CloudFormation does not tell them by themselves."""
    from botocore.exceptions import ClientError

    client = account.client("cloudformation")
    found: list[Event] = []
    try:
        pages = client.get_paginator("describe_events").paginate(StackName=stack_id, Filters={"FailedEvents": True})
        # Nothing says in which order they come; of what belongs to a change set, `plan` has told.
        for page in pages:
            found += [
                parsed(entry, path)
                for entry in page["OperationEvents"]
                if entry.get("OperationType") != "CREATE_CHANGESET"
            ]
    except ClientError as error:
        # `InvalidAction` and the like: not every region and partition has this call.
        if isinstance(as_aws_error(error), DeniedError) or error_code(error).startswith(
            ("Invalid", "Unknown", "Unsupported")
        ):
            return None
        raise
    found = sorted((event for event in found if event.time >= begun), key=lambda event: event.time)
    children = {
        event.physical_id: event.logical_id
        for event in found
        if event.type == NESTED and not event.of_stack and stack_name(event.physical_id)
    }
    for child_id, logical_id in children.items():
        found += _failed_only(account, child_id, begun, (*path, logical_id)) or []
    return found


def _is_cause(event: Event) -> bool:
    """Return whether an event tells of a failure that does not come from another one."""
    if is_cancelled(event) or is_echo(event):
        return False
    if event.of_stack:
        # A stack has reasons of its own where it fails before its first resource: a parameter, a rule, an output.
        told = event.failed or event.status.endswith("ROLLBACK_IN_PROGRESS")
        # A deletion that exports in use forbid ends in the status from before.
        return (told and event.reason not in ("", "User Initiated")) or bool(EXPORT_IN_USE.search(event.reason))
    if event.failed:
        # A nested stack that never came to be has no events of its own.
        return bool(event.reason) or event.type != NESTED
    return False


def _parted(events: Sequence[Event]) -> tuple[list[Event], list[Event]]:
    """Return the causes of the failure, and what failed while it was taken back; of each resource the first."""
    causes: dict[tuple[tuple[str, ...], str], Event] = {}
    undoing: dict[tuple[tuple[str, ...], str], Event] = {}
    back = False
    for number, event in enumerate(events):
        if _is_cause(event):
            (undoing if back else causes).setdefault((event.path, event.logical_id), event)
        if number and event.of_stack and not event.path and not at_rest(event.status):
            back = back or "ROLLBACK" in event.status or event.status == "DELETE_IN_PROGRESS"
    return list(causes.values()), list(undoing.values())


def _last_resort(events: Iterable[Event]) -> list[Event]:
    """Return the failure that is deepest in the tree, where all that is left are failures that point to others."""
    failed = [event for event in events if event.failed and not is_cancelled(event)]
    return sorted(failed, key=lambda event: -len(event.path))[:1]


def _was_cancelled(before: Event, event: Event) -> bool:
    if before.status == "CREATE_IN_PROGRESS":
        # There is no other way to end a creation than to delete its stack. What CloudFormation itself deletes or rolls
        # back after a failure bears a reason.
        return event.status == "DELETE_IN_PROGRESS" and event.reason in ("", "User Initiated")
    working = before.status in ("UPDATE_IN_PROGRESS", "IMPORT_IN_PROGRESS")
    return working and event.status.endswith("ROLLBACK_IN_PROGRESS") and event.reason in ("", "User Initiated")


def _briefly(account: Account, event: Event) -> Cause:
    known = explain_event(event, account.region)
    return Cause(event, known.meaning, known.hint)


def _explained(account: Account, event: Event) -> Cause:
    """Return a failure with everything that other services tell about it."""
    cause = _briefly(account, event)
    if event.type in (GROUP, _WAIT_CONDITION) and _OF_INSTANCES.search(event.reason):
        return _with_instances(account, cause)
    if event.type in _OCCUPIED_BY and _OCCUPIED.search(event.reason):
        with _noting() as noted:
            cause = replace(cause, occupants=tuple(_occupants(account, event)))
        return replace(cause, notes=noted.notes)
    return cause


def _with_instances(account: Account, cause: Cause) -> Cause:
    event = cause.event
    failed = ""
    with _noting():
        failed = _failed_instance(account, event)
    group = event.physical_id
    if event.type == _WAIT_CONDITION:
        with _noting():
            group = _group_beside(account, event)
    launches: tuple[str, ...] = ()
    instances: tuple[InstanceWords, ...] = ()
    with _noting() as of_launches:
        launches = console_output.launch_failures(account, group) if group and not failed else ()
    with _noting() as of_consoles:
        instances = console_output.of_group(account, group, failed) if group else ()
    known = next(
        filter(lambda each: each.hint, (explain(launch, account.region) for launch in launches)), Explanation()
    )
    notes = (*of_launches.notes, *of_consoles.notes)
    if launches:
        meaning = "instances could not be launched" + (f": {known.meaning}" if known.meaning else "")
        cause = replace(cause, explanation=meaning, hint=known.hint or cause.hint)
    elif group and not instances and not notes:
        notes = ("the group has launched no instance that EC2 still knows",)
    return replace(cause, launches=launches, instances=instances, notes=notes)


def _failed_instance(account: Account, event: Event) -> str:
    """Return the instance whose signal made a group fail; an empty text where no signal came.

    A group that is updated says only how many signals it got; the signal itself is an event shortly before.
    """
    if named := _NAMED_INSTANCE.search(event.reason):
        return named[1]
    pages = (
        account.client("cloudformation")
        .get_paginator("describe_stack_events")
        .paginate(StackName=event.stack_id, PaginationConfig={"MaxItems": _MOST_EVENTS})
    )
    reached = False
    for each in (stack_event for page in pages for stack_event in page["StackEvents"]):
        # Events come newest first, and those of the rollback that follows may bear the same time.
        reached = reached or each["EventId"] == event.id or each["Timestamp"] < event.time
        if not reached or each["LogicalResourceId"] != event.logical_id:
            continue
        reason = each.get("ResourceStatusReason", "")
        if named := _NAMED_INSTANCE.search(reason):
            return named[1]
        if not reason and each["ResourceStatus"].endswith("_IN_PROGRESS"):
            break  # where the group's own update began
    return ""


def _group_beside(account: Account, event: Event) -> str:
    """Return the name of the group of the same slot as a wait condition; empty if there is none.

    Nested stacks have the groups, and what nests them the conditions.
    """
    title = auto_scaling_group(event.logical_id.removesuffix("WaitCondition"))
    found = (each.view for each in tree(account, event.stack_id) if each.view.logical_id == title)
    return next((each.physical_id for each in found), "")


def _occupants(account: Account, event: Event) -> Iterator[str]:
    filters = [{"Name": _OCCUPIED_BY[event.type], "Values": [event.physical_id]}]
    answer = account.client("ec2").describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    for each in answer[:_MOST_OCCUPANTS]:
        uses = each.get("Description") or each.get("Attachment", {}).get("InstanceId") or "no description"
        yield f"{each['NetworkInterfaceId']} ({uses}), {each.get('Status', '')} in {each.get('SubnetId', '')}"
    if len(answer) > _MOST_OCCUPANTS:
        yield f"{len(answer) - _MOST_OCCUPANTS} more network interfaces"


class _noting:  # noqa: N801 (a context manager)
    """Turns what a service does not tell into a note; evidence that is missing never hides the cause."""

    def __init__(self) -> None:
        self.notes: tuple[str, ...] = ()

    def __enter__(self) -> _noting:
        return self

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> bool:
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, (BotoCoreError, ClientError)):
            self.notes = (str(as_aws_error(error)),)
            return True
        if isinstance(error, AwsError):
            self.notes = (str(error),)
            return True
        return False


def _next_steps(stack: StackView, *, failed: bool = True, cancelled: bool = False) -> tuple[NextStep, ...]:
    status = stack.status
    if status.standing is StackHealth.HEALTHY and not status.succeeded:
        if cancelled:
            purpose = "makes the change after all; until then the cluster is as it was before"
        else:
            purpose = "tries again, once the cause is removed; until then the cluster is as it was before"
        return (NextStep(f"cfngen deploy --stack-name {stack.name}", purpose),)
    if status.standing is StackHealth.ABSENT and failed:
        return (NextStep(f"cfngen deploy --stack-name {stack.name}", "creates the cluster, once the cause is removed"),)
    # What failed is what a diagnosis has said already.
    return tuple(step for step in next_steps(status, stack.name) if "events --failures" not in step.command)
