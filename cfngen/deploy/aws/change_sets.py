"""Reads a change set and those of its nested stacks completely, as plain data.

Nothing is analyzed here: `replacement` decides which of the listed changes will really happen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import Enum
from typing import TypeVar

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import DeniedError, is_transient, translate_aws_errors
from cfngen.deploy.aws.stacks import CLUSTER_TAG, StackView, looked_up_values, parameter_values
from cfngen.deploy.aws.types import AwsObject, Clock

# What CloudFormation shows in place of a value, or in the middle of one: of a value that is known only once the change
# set is executed; of a large one, with the SHA-256 of something that is not documented; of a NoEcho parameter's.
_KNOWN_LATER = "{{changeSet:KNOWN_AFTER_APPLY}}"
_TRUNCATED = "(Truncated-Signature):"
_NO_ECHO_MASK = "****"
_NO_CHANGES_REASONS = ("The submitted information didn't contain changes", "No updates are to be performed")
_RETRY_SECONDS = 180  # how long a call that fails with a transient error is repeated
_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 5.0  # pauses between calls
_PAUSE_FACTOR = 1.5  # each pause is longer than the last by this factor

Response = TypeVar("Response")


class Unshown(Enum):
    """Why CloudFormation does not show a value, in whole or in part."""

    KNOWN_LATER = "known later"
    """It is known only once the change set is executed."""
    TRUNCATED = "truncated"
    """It is large. Two signatures may differ although the values are equal in effect."""
    MASKED = "masked"
    """It is that of a NoEcho parameter."""


ShownValue = str | Unshown | None
"""A value in a change set; None if there is none, or the description has no values."""


@dataclass(frozen=True)
class ChangeDetail:
    """One reason for a change, as CloudFormation lists it; a property may have several.

    Attributes:
        attribute: what changes: `Properties`, `Tags`, `Metadata`, `UpdatePolicy`, …
        name: name of the property; empty unless `attribute` is `Properties`.
        path: e.g. `/Properties/LaunchTemplateData/InstanceType`; empty in descriptions without values.
        recreation: `Never`, `Conditionally` or `Always`: whether such a change replaces the resource.
        evaluation: `Static`, or `Dynamic` if CloudFormation is not certain of the change.
        source: kind of the cause: `DirectModification`, `ParameterReference`, `ResourceReference`,
            `ResourceAttribute` or `Automatic`.
        cause: the parameter, resource or attribute that is the cause; empty if it is the template itself.
        only_in: `templates` or `change set` if only one of the two says that the value changes; else empty.
    """

    attribute: str
    name: str = ""
    path: str = ""
    recreation: str = "Never"
    before: ShownValue = None
    after: ShownValue = None
    evaluation: str = "Static"
    source: str = "DirectModification"
    cause: str = ""
    only_in: str = ""

    @property
    def value_path(self) -> str:
        """Path of the value that changes, or the attribute and property if there is no path."""
        return self.path or f"/{self.attribute}" + (f"/{self.name}" if self.name else "")

    @property
    def shows_values(self) -> bool:
        """Whether CloudFormation shows both values, of which one may be missing."""
        is_shown = not isinstance(self.before, Unshown) and not isinstance(self.after, Unshown)
        return is_shown and (self.before, self.after) != (None, None)

    @property
    def is_after_known(self) -> bool:
        """Whether the new value is known, also if it is masked."""
        is_hidden = self.after in (Unshown.KNOWN_LATER, Unshown.TRUNCATED)
        return not is_hidden and (self.before, self.after) != (None, None)


@dataclass(frozen=True)
class ResourceChange:
    """The change of one resource in a change set.

    Attributes:
        action: `Add`, `Modify`, `Remove`, `Import` or `Dynamic`.
        physical_id: its physical id; empty if it has none yet.
        replacement: `True`, `False`, `Conditional`; empty for actions other than `Modify`.
        policy: what happens to a resource that is removed or replaced, as CloudFormation spells it; often empty.
        change_set_id: ARN of the change set of a nested stack; empty for all other resources.
        before: the old definition of the resource in its template, evaluated (`cfngen.templates.evaluation`); empty if
            it is not known.
        after: the new definition, likewise.
    """

    action: str
    logical_id: str
    physical_id: str
    type: str
    replacement: str = ""
    policy: str = ""
    scope: tuple[str, ...] = ()
    details: tuple[ChangeDetail, ...] = ()
    change_set_id: str = ""
    before: AwsObject = field(default_factory=dict)
    after: AwsObject = field(default_factory=dict)


@dataclass(frozen=True)
class ChangeSet:
    """The change set of one stack, with those of its nested stacks.

    Attributes:
        status: status of the change set, e.g. `CREATE_COMPLETE`.
        execution_status: e.g. `AVAILABLE`.
        created: when CloudFormation started to create it.
        looked_up: what CloudFormation has found in Parameter Store, by name of the parameter.
        resource_changes: the changes of resources by logical id.
        children: the change sets of nested stacks by logical id.
    """

    id: str
    stack_id: str
    stack_name: str
    status: str
    execution_status: str = ""
    reason: str = ""
    created: datetime | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    looked_up: Mapping[str, str] = field(default_factory=dict)
    resource_changes: Mapping[str, ResourceChange] = field(default_factory=dict)
    children: Mapping[str, ChangeSet] = field(default_factory=dict)

    @property
    def pending(self) -> bool:
        """Whether CloudFormation is still creating it."""
        return self.status in ("CREATE_PENDING", "CREATE_IN_PROGRESS")

    @property
    def failed(self) -> bool:
        """Whether it cannot be executed."""
        return self.status == "FAILED"

    @property
    def nothing_to_do(self) -> bool:
        """Whether it failed only because nothing changes; CloudFormation says so only in the status reason."""
        return self.failed and any(words in self.reason for words in _NO_CHANGES_REASONS)


def pauses() -> Callable[[], float]:
    """Return a function that returns how many seconds to wait before each next call of AWS: more each time."""
    seconds = _MIN_PAUSE_SECONDS / _PAUSE_FACTOR

    def next_pause() -> float:
        nonlocal seconds
        seconds = min(seconds * _PAUSE_FACTOR, _MAX_PAUSE_SECONDS)
        return seconds

    return next_pause


def retry_transient_errors(clock: Clock, call: Callable[[], Response]) -> Response:
    """Return the response of a call, retrying it for some minutes while it fails with a transient error.

    Args:
        call: a call that changes nothing, or that can safely be repeated.

    Raises:
        AwsError: AWS refuses the call, or it still fails at the end.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    start, pause = clock.now(), pauses()
    with translate_aws_errors():
        while True:
            try:
                return call()
            except (BotoCoreError, ClientError) as error:
                if not is_transient(error) or (clock.now() - start).total_seconds() > _RETRY_SECONDS:
                    raise
            clock.sleep(pause())


def read_pages(account: Account, call: Callable[..., AwsObject], **arguments: object) -> Iterator[AwsObject]:
    """Yield the pages of a call's response, each retried as by `retry_transient_errors`."""
    while True:
        page = retry_transient_errors(account.clock, lambda: call(**arguments))
        yield page
        if not page.get("NextToken"):
            return
        arguments["NextToken"] = page["NextToken"]


def read_change_set_status(account: Account, change_set_id: str) -> ChangeSet:
    """Return a change set without its changes, to see its status."""
    client = account.client("cloudformation")
    return _parse_change_set(
        retry_transient_errors(account.clock, lambda: client.describe_change_set(ChangeSetName=change_set_id)),
        resource_changes=[],
    )


def read_change_set(account: Account, change_set_id: str) -> ChangeSet:
    """Return a change set and those of its nested stacks, with all changes and values that CloudFormation shows.

    Both descriptions are read. The one with property values evaluates a Fn::GetAtt of a resource that is updated in
    place to its old value, and so lists neither such changes nor what follows from them; nothing warns of it.
    """
    describe = account.client("cloudformation").describe_change_set
    pages_with_values = read_pages(account, describe, ChangeSetName=change_set_id, IncludePropertyValues=True)
    changes_with_values = _parse_resource_changes(pages_with_values)
    pages = list(read_pages(account, describe, ChangeSetName=change_set_id))
    # With property values, a warning may replace the status reason (aws/aws-cdk-cli#1780).
    change_set = _parse_change_set(pages[0], _merge_descriptions(changes_with_values, _parse_resource_changes(pages)))
    children = {
        resource_change.logical_id: read_change_set(account, resource_change.change_set_id)
        for resource_change in change_set.resource_changes.values()
        if resource_change.change_set_id
    }
    return replace(change_set, children=children)


def _merge_descriptions(
    changes_with_values: list[ResourceChange], changes_without_values: list[ResourceChange]
) -> list[ResourceChange]:
    """Return the changes with property values, and add what only the description without property values contains.

    Whole changes may be missing, or some of a change's details. Details without values have no path, so details of the
    two descriptions are matched by property and cause.
    """
    changes_by_id = {resource_change.logical_id: resource_change for resource_change in changes_with_values}
    for resource_change in changes_without_values:
        existing = changes_by_id.setdefault(resource_change.logical_id, resource_change)
        known_details = {_property_and_cause(detail) for detail in existing.details}
        missing_details = tuple(
            detail for detail in resource_change.details if _property_and_cause(detail) not in known_details
        )
        changes_by_id[resource_change.logical_id] = replace(
            existing,
            details=existing.details + missing_details,
            replacement=max(existing.replacement, resource_change.replacement, key=_replacement_rank),
            change_set_id=existing.change_set_id or resource_change.change_set_id,
        )
    return list(changes_by_id.values())


def _property_and_cause(detail: ChangeDetail) -> tuple[str, str, str, str]:
    """Return the property and the cause of a detail, which are the same with and without property values."""
    return detail.attribute, detail.name, detail.source, detail.cause


def _replacement_rank(replacement: str) -> int:
    ranks = ("", "False", "Conditional")
    return ranks.index(replacement) if replacement in ranks else len(ranks)


def _parse_change_set(page: AwsObject, resource_changes: list[ResourceChange]) -> ChangeSet:
    return ChangeSet(
        id=page["ChangeSetId"],
        stack_id=page["StackId"],
        stack_name=page["StackName"],
        status=page["Status"],
        execution_status=page.get("ExecutionStatus", ""),
        reason=page.get("StatusReason") or "",
        created=page.get("CreationTime"),
        parameters=parameter_values(page),
        looked_up=looked_up_values(page),
        resource_changes={resource_change.logical_id: resource_change for resource_change in resource_changes},
    )


@dataclass(frozen=True)
class ValidationFailure:
    """One problem found by early validation.

    Attributes:
        path: path in that stack's template, e.g. `/Resources/Vpc/Properties/CidrBlock`.
        logical_id: the resource; may be empty.
    """

    stack: str
    path: str
    reason: str
    logical_id: str = ""

    def __str__(self) -> str:
        location = self.path or self.logical_id
        return f"{self.stack}: {location}: {self.reason}" if location else f"{self.stack}: {self.reason}"


def read_validation_failures(account: Account, change_set: ChangeSet) -> Iterator[ValidationFailure]:
    """Yield the problems that early validation found in one stack; none if DescribeEvents is not allowed."""
    describe = account.client("cloudformation").describe_events
    pages = read_pages(account, describe, ChangeSetName=change_set.id, Filters={"FailedEvents": True})
    with suppress(DeniedError):
        for event in (event for page in pages for event in page["OperationEvents"]):
            # A warning does not fail the change set.
            is_warning = "WARN" in (event.get("ValidationFailureMode"), event.get("HookFailureMode"))
            reason = event.get("ValidationStatusReason") or event.get("HookStatusReason") or ""
            if reason and not is_warning:
                yield ValidationFailure(
                    stack=change_set.stack_name,
                    path=event.get("ValidationPath") or "",
                    reason=reason,
                    logical_id=event.get("LogicalResourceId") or "",
                )


def _parse_resource_changes(pages: Iterable[AwsObject]) -> list[ResourceChange]:
    changes = (change for page in pages for change in page["Changes"])
    return [_parse_resource_change(change["ResourceChange"]) for change in changes if "ResourceChange" in change]


def _parse_resource_change(change: AwsObject) -> ResourceChange:
    return ResourceChange(
        action=change.get("Action") or "",
        logical_id=change.get("LogicalResourceId") or "",
        physical_id=change.get("PhysicalResourceId") or "",
        type=change.get("ResourceType") or "",
        replacement=change.get("Replacement") or "",
        policy=change.get("PolicyAction") or "",
        scope=tuple(change.get("Scope") or ()),
        details=tuple(_parse_detail(detail) for detail in change.get("Details") or ()),
        change_set_id=change.get("ChangeSetId") or "",
    )


def _parse_detail(detail: AwsObject) -> ChangeDetail:
    target = detail.get("Target") or {}
    path = str(target.get("Path") or "")
    return ChangeDetail(
        attribute=target.get("Attribute") or "Properties",
        name=target.get("Name") or "",
        path=path if path.startswith("/") else "",
        recreation=target.get("RequiresRecreation") or "Never",
        before=shown_value(target.get("BeforeValue")),
        after=shown_value(target.get("AfterValue")),
        evaluation=detail.get("Evaluation") or "Static",
        source=detail.get("ChangeSource") or "DirectModification",
        cause=detail.get("CausingEntity") or "",
    )


def shown_value(text: str | None) -> ShownValue:
    """Return the value that a text in a description of a change set shows, or why it does not show one."""
    if text is None:
        return None
    if _TRUNCATED in text:
        return Unshown.TRUNCATED
    if _KNOWN_LATER in text:
        return Unshown.KNOWN_LATER
    return Unshown.MASKED if _NO_ECHO_MASK in text else text


def read_change_set_clusters(account: Account, stack: StackView) -> Iterator[str]:
    """Yield the clusters that the change sets of an empty stack are for; the stack itself may have no tags yet."""
    describe = account.client("cloudformation").describe_change_set
    for summary in account.items("cloudformation.list_change_sets", "Summaries", StackName=stack.id):
        change_set = describe(ChangeSetName=summary["ChangeSetId"])
        yield from (tag["Value"] for tag in change_set.get("Tags", ()) if tag["Key"] == CLUSTER_TAG)
