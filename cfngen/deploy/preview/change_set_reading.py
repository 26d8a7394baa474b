"""Reads a change set and those of its nested stacks completely, as plain data.

Nothing is analyzed here: `replacement` decides which of the listed changes will really happen.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TypeVar

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import is_transient, translate_aws_errors
from cfngen.deploy.aws_types import AwsArguments, AwsObject
from cfngen.deploy.clock import Clock

UNKNOWN = "{{changeSet:KNOWN_AFTER_APPLY}}"
"""Placeholder for a value that is known only once CloudFormation executes the change set."""

# DescribeChangeSet with property values may leave out changes, and says so only by these words in the status reason
# (aws/aws-cdk-cli#1780).
_INCOMPLETE_DATA_WARNING = "can return incomplete ChangeSet data"
_NO_CHANGES_REASONS = ("The submitted information didn't contain changes", "No updates are to be performed")
_RETRY_SECONDS = 180  # how long calls are retried that fail with a transient error
_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 5.0  # pauses between calls
_PAUSE_FACTOR = 1.5  # each pause is longer than the last by this factor

Response = TypeVar("Response")


@dataclass(frozen=True)
class ChangeDetail:
    """One reason for a change, as CloudFormation lists it; a property may have several.

    Attributes:
        attribute: `Properties`, `Tags`, `Metadata`, `UpdatePolicy`, …
        name: the property; empty for other attributes.
        path: e.g. `/Properties/LaunchTemplateData/InstanceType`; empty in descriptions without values.
        recreation: `Never`, `Conditionally` or `Always`: whether such a change replaces the resource.
        before: the old value; None if there was none, or CloudFormation does not show it.
        after: the new value, likewise; contains `UNKNOWN` where it is not known yet.
        evaluation: `Static`, or `Dynamic` if CloudFormation is not certain of the change.
        source: kind of the cause: `DirectModification`, `ParameterReference`, `ResourceReference`,
            `ResourceAttribute` or `Automatic`.
        cause: the parameter, resource or attribute that is the cause; empty if it is the template itself.
    """

    attribute: str
    name: str = ""
    path: str = ""
    recreation: str = "Never"
    before: str | None = None
    after: str | None = None
    evaluation: str = "Static"
    source: str = "DirectModification"
    cause: str = ""

    @property
    def value_path(self) -> str:
        """Path of the value that changes, or the attribute and property if there is no path."""
        return self.path or f"/{self.attribute}" + (f"/{self.name}" if self.name else "")

    @property
    def unknown(self) -> bool:
        """Whether the new value is not known yet, in whole or in part."""
        return self.after is not None and UNKNOWN in self.after

    @property
    def has_values(self) -> bool:
        """Whether CloudFormation shows the old or the new value."""
        return self.before is not None or self.after is not None


@dataclass(frozen=True)
class ResourceChange:
    """The change of one resource in a change set.

    Attributes:
        action: `Add`, `Modify`, `Remove`, `Import` or `Dynamic`.
        logical_id: its logical id in the template.
        physical_id: its physical id; empty if it has none yet.
        type: e.g. `AWS::EC2::Volume`.
        replacement: `True`, `False`, `Conditional`; empty for actions other than `Modify`.
        policy: what happens to a resource that is removed or replaced, as CloudFormation spells it; often empty.
        scope: the attributes that change.
        details: why it changes.
        change_set_id: ARN of the change set of a nested stack; empty for all other resources.
        before: the old definition of the resource, with values filled in; empty if CloudFormation does not show it.
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
    """A change set.

    Attributes:
        id: its ARN.
        stack_id: ARN of its stack.
        stack_name: name of its stack.
        status: e.g. `CREATE_COMPLETE`.
        execution_status: e.g. `AVAILABLE`.
        reason: its status reason; often empty.
        created: when CloudFormation started to create it.
        parameters: the stack's parameters by name.
        entries: the changes of resources by logical id.
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
    entries: Mapping[str, ResourceChange] = field(default_factory=dict)
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
    """Return a function that returns the seconds to wait before the next call; each pause is longer than the last."""
    seconds = _MIN_PAUSE_SECONDS / _PAUSE_FACTOR

    def next_pause() -> float:
        nonlocal seconds
        seconds = min(seconds * _PAUSE_FACTOR, _MAX_PAUSE_SECONDS)
        return seconds

    return next_pause


def retry_transient_errors(clock: Clock, call: Callable[[], Response]) -> Response:
    """Return the response of a call, retrying it for some minutes while it fails with a transient error.

    Args:
        clock: the clock.
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


def read_change_set_status(account: Account, change_set_id: str) -> ChangeSet:
    """Return a change set without its changes, to see its status."""
    client = account.client("cloudformation")
    return _parse_change_set(
        retry_transient_errors(account.clock, lambda: client.describe_change_set(ChangeSetName=change_set_id)),
        entries=(),
    )


def read_change_set(account: Account, change_set_id: str) -> ChangeSet:
    """Return a change set and those of its nested stacks, with all changes and values that CloudFormation shows."""
    first, entries = _read_all_pages(account, change_set_id, values=True)
    if _INCOMPLETE_DATA_WARNING in first.get("StatusReason", ""):
        plain_first, plain_entries = _read_all_pages(account, change_set_id, values=False)
        # The warning replaces the real status reason.
        first = {**first, "StatusReason": plain_first.get("StatusReason", "")}
        entries = _add_missing_details(entries, plain_entries)
    change_set = _parse_change_set(first, entries)
    children = {
        entry.logical_id: read_change_set(account, entry.change_set_id)
        for entry in change_set.entries.values()
        if entry.change_set_id
    }
    return replace(change_set, children=children)


def _read_all_pages(account: Account, change_set_id: str, *, values: bool) -> tuple[AwsArguments, list[ResourceChange]]:
    """Return the first page of DescribeChangeSet, and the resource changes of all pages."""
    client = account.client("cloudformation")
    arguments: AwsArguments = {"ChangeSetName": change_set_id}
    if values:
        arguments["IncludePropertyValues"] = True
    first: AwsArguments = {}
    entries: list[ResourceChange] = []
    while True:
        page = retry_transient_errors(account.clock, lambda: client.describe_change_set(**arguments))
        first = first or page
        entries += [
            _parse_entry(change["ResourceChange"]) for change in page.get("Changes", ()) if "ResourceChange" in change
        ]
        if not page.get("NextToken"):
            return first, entries
        arguments["NextToken"] = page["NextToken"]


def _add_missing_details(
    with_values: list[ResourceChange], without_values: list[ResourceChange]
) -> list[ResourceChange]:
    """Return the changes with values, with the changes and details added that only the description without values has.

    Details without values have no path, so the two kinds are matched by property and cause.
    """
    entries = {entry.logical_id: entry for entry in with_values}
    for entry in without_values:
        existing = entries.get(entry.logical_id)
        if existing is None:
            entries[entry.logical_id] = entry
            continue
        identities = {_identity(detail) for detail in existing.details}
        missing = tuple(detail for detail in entry.details if _identity(detail) not in identities)
        entries[entry.logical_id] = replace(existing, details=existing.details + missing)
    return list(entries.values())


def _identity(detail: ChangeDetail) -> tuple[str, str, str, str]:
    """Return what a detail with values and the same detail without values have in common."""
    return detail.attribute, detail.name, detail.source, detail.cause


def _parse_change_set(page: AwsObject, entries: list[ResourceChange] | tuple[()]) -> ChangeSet:
    return ChangeSet(
        id=page["ChangeSetId"],
        stack_id=page["StackId"],
        stack_name=page["StackName"],
        status=page["Status"],
        execution_status=page.get("ExecutionStatus", ""),
        reason=page.get("StatusReason") or "",
        created=page.get("CreationTime"),
        parameters={
            parameter["ParameterKey"]: parameter.get("ParameterValue", "") for parameter in page.get("Parameters") or ()
        },
        entries={entry.logical_id: entry for entry in entries},
    )


def _parse_entry(change: AwsObject) -> ResourceChange:
    return ResourceChange(
        action=change["Action"],
        logical_id=change["LogicalResourceId"],
        physical_id=change.get("PhysicalResourceId") or "",
        type=change["ResourceType"],
        replacement=change.get("Replacement") or "",
        policy=change.get("PolicyAction") or "",
        scope=tuple(change.get("Scope") or ()),
        details=tuple(_parse_detail(detail) for detail in change.get("Details") or ()),
        change_set_id=change.get("ChangeSetId") or "",
        before=_parse_definition(change.get("BeforeContext")),
        after=_parse_definition(change.get("AfterContext")),
    )


def _parse_detail(detail: AwsObject) -> ChangeDetail:
    target = detail.get("Target") or {}
    return ChangeDetail(
        attribute=target.get("Attribute") or "Properties",
        name=target.get("Name") or "",
        path=target.get("Path") or "",
        recreation=target.get("RequiresRecreation") or "Never",
        before=target.get("BeforeValue"),
        after=target.get("AfterValue"),
        evaluation=detail.get("Evaluation") or "Static",
        source=detail.get("ChangeSource") or "DirectModification",
        cause=detail.get("CausingEntity") or "",
    )


def _parse_definition(text: str | None) -> AwsObject:
    """Parse a resource's definition; return an empty one if there is none, or CloudFormation has truncated it."""
    try:
        definition = json.loads(text or "{}")
    except ValueError:
        return {}
    return definition if isinstance(definition, dict) else {}
