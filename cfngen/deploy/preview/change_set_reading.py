"""What CloudFormation says of a change set and of those of its nested stacks, completely, as plain data.

Nothing is judged here: `certainty` tells what will happen from what CloudFormation cannot know yet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import is_transient, translate_aws_errors
from cfngen.deploy.clock import Clock

UNKNOWN = "{{changeSet:KNOWN_AFTER_APPLY}}"
"""What stands, in a value, for what CloudFormation learns only while it executes the change set."""

# DescribeChangeSet with property values may leave out what it cannot show, and says so only by these words in a status
# reason (aws/aws-cdk-cli#1780).
_INCOMPLETE_DATA_WARNING = "can return incomplete ChangeSet data"
_NO_CHANGES_REASONS = ("The submitted information didn't contain changes", "No updates are to be performed")
_RETRY_SECONDS = 180  # seconds for which calls that fail for a passing reason are repeated
_MIN_PAUSE_SECONDS, _MAX_PAUSE_SECONDS = 1.0, 5.0  # seconds

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Detail:
    """One reason for a change, as CloudFormation lists it; several may be about one property.

    Attributes:
        attribute: `Properties`, `Tags`, `Metadata`, `UpdatePolicy`, …
        name: the property; empty for other attributes.
        path: e.g. `/Properties/LaunchTemplateData/InstanceType`; empty in descriptions without values.
        recreation: `Never`, `Conditionally` or `Always`: whether such a change makes a new resource.
        before: the value before; None if it was not there, or is not told.
        after: the value after, likewise; holds `UNKNOWN` where it is not known yet.
        evaluation: `Static`, or `Dynamic` where CloudFormation is not certain of the change.
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
    def place(self) -> str:
        """Path of what changes, or as much of it as is told."""
        return self.path or f"/{self.attribute}" + (f"/{self.name}" if self.name else "")

    @property
    def unknown(self) -> bool:
        """Whether the value after is not known yet, in whole or in part."""
        return self.after is not None and UNKNOWN in self.after

    @property
    def told(self) -> bool:
        """Whether CloudFormation tells any value."""
        return self.before is not None or self.after is not None


@dataclass(frozen=True)
class Entry:
    """What a change set says of one resource.

    Attributes:
        action: `Add`, `Modify`, `Remove`, `Import` or `Dynamic`.
        logical_id: its name in the template.
        physical_id: its name in AWS; empty if it has none yet.
        type: e.g. `AWS::EC2::Volume`.
        replacement: `True`, `False`, `Conditional`; empty for other actions than `Modify`.
        policy: what becomes of what is removed or replaced, as CloudFormation spells it; often empty.
        scope: the attributes that change.
        details: why it changes.
        change_set_id: ARN of the change set of a nested stack; empty for everything else.
        before: the resource's definition before, with values filled in; empty if it is not told.
        after: the definition after, likewise.
    """

    action: str
    logical_id: str
    physical_id: str
    type: str
    replacement: str = ""
    policy: str = ""
    scope: tuple[str, ...] = ()
    details: tuple[Detail, ...] = ()
    change_set_id: str = ""
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """One change set.

    Attributes:
        id: its ARN.
        stack_id: ARN of its stack.
        stack_name: name of its stack.
        status: e.g. `CREATE_COMPLETE`.
        execution_status: e.g. `AVAILABLE`.
        reason: why it has that status; often empty.
        created: when CloudFormation began to make it.
        parameters: the stack's parameters by name.
        entries: what it says of each resource, by logical id.
        children: the change sets of nested stacks by logical id; not those whose own could not be read.
    """

    id: str
    stack_id: str
    stack_name: str
    status: str
    execution_status: str = ""
    reason: str = ""
    created: datetime | None = None
    parameters: Mapping[str, str] = field(default_factory=dict)
    entries: Mapping[str, Entry] = field(default_factory=dict)
    children: Mapping[str, Description] = field(default_factory=dict)

    @property
    def pending(self) -> bool:
        """Whether CloudFormation is still at it."""
        return self.status in ("CREATE_PENDING", "CREATE_IN_PROGRESS")

    @property
    def failed(self) -> bool:
        """Whether it cannot be executed."""
        return self.status == "FAILED"

    @property
    def nothing_to_do(self) -> bool:
        """Whether it failed only because nothing would change; there is no status for that, only two wordings."""
        return self.failed and any(words in self.reason for words in _NO_CHANGES_REASONS)


def pauses() -> Callable[[], float]:
    """Return what gives the seconds to wait before each next look: short ones first."""
    seconds = _MIN_PAUSE_SECONDS / 1.5

    def following() -> float:
        nonlocal seconds
        seconds = min(seconds * 1.5, _MAX_PAUSE_SECONDS)
        return seconds

    return following


def persistently(clock: Clock, call: Callable[[], Answer]) -> Answer:
    """Return what a call answers, repeating it for some minutes while it fails for a passing reason.

    Args:
        clock: the time.
        call: a call that changes nothing, or whose repetition does no harm.

    Raises:
        AwsError: it was refused, or the patience is over.
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


def glance(account: Account, change_set_id: str) -> Description:
    """Return a change set without its changes: enough to see how far it is."""
    client = account.client("cloudformation")
    return _described(
        persistently(account.clock, lambda: client.describe_change_set(ChangeSetName=change_set_id)), entries=()
    )


def read(account: Account, change_set_id: str) -> Description:
    """Return a change set and those of its nested stacks with everything that CloudFormation tells."""
    first, entries = _pages(account, change_set_id, values=True)
    if _INCOMPLETE_DATA_WARNING in first.get("StatusReason", ""):
        plain_first, plain_entries = _pages(account, change_set_id, values=False)
        # The warning hides the real reason.
        first = {**first, "StatusReason": plain_first.get("StatusReason", "")}
        entries = _restored(entries, plain_entries)
    change_set = _described(first, entries)
    children = {
        entry.logical_id: read(account, entry.change_set_id)
        for entry in change_set.entries.values()
        if entry.change_set_id
    }
    return replace(change_set, children=children)


def _pages(account: Account, change_set_id: str, *, values: bool) -> tuple[dict[str, Any], list[Entry]]:
    """Return the first page of a description and the entries of all of them."""
    client = account.client("cloudformation")
    arguments: dict[str, Any] = {"ChangeSetName": change_set_id}
    if values:
        arguments["IncludePropertyValues"] = True
    first: dict[str, Any] = {}
    entries: list[Entry] = []
    while True:
        page = persistently(account.clock, lambda: client.describe_change_set(**arguments))
        first = first or page
        entries += [
            _entry(change["ResourceChange"]) for change in page.get("Changes", ()) if "ResourceChange" in change
        ]
        if not page.get("NextToken"):
            return first, entries
        arguments["NextToken"] = page["NextToken"]


def _restored(with_values: list[Entry], without_values: list[Entry]) -> list[Entry]:
    """Return the entries with values, and those without of what is missing among them.

    A detail without values has no path, so it is missing only if none with values is about the same property for the
    same reason.
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


def _identity(detail: Detail) -> tuple[str, str, str, str]:
    return detail.attribute, detail.name, detail.source, detail.cause


def _described(page: Mapping[str, Any], entries: list[Entry] | tuple[()]) -> Description:
    return Description(
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


def _entry(change: Mapping[str, Any]) -> Entry:
    return Entry(
        action=change["Action"],
        logical_id=change["LogicalResourceId"],
        physical_id=change.get("PhysicalResourceId") or "",
        type=change["ResourceType"],
        replacement=change.get("Replacement") or "",
        policy=change.get("PolicyAction") or "",
        scope=tuple(change.get("Scope") or ()),
        details=tuple(_detail(detail) for detail in change.get("Details") or ()),
        change_set_id=change.get("ChangeSetId") or "",
        before=_context(change.get("BeforeContext")),
        after=_context(change.get("AfterContext")),
    )


def _detail(detail: Mapping[str, Any]) -> Detail:
    target = detail.get("Target") or {}
    return Detail(
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


def _context(text: str | None) -> Mapping[str, Any]:
    """Return a definition; an empty one if there is none, or the service has cut it off."""
    try:
        definition = json.loads(text or "{}")
    except ValueError:
        return {}
    return definition if isinstance(definition, dict) else {}
