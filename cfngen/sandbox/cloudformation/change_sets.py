"""The emulator's model of a change set: its changes with their details, its findings and its status."""

from __future__ import annotations

import datetime
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from cfngen.sandbox.cloudformation.intrinsics import UNKNOWN
from cfngen.sandbox.cloudformation.stack import Revision, Stack


@dataclass(frozen=True)
class ResourceChangeDetail:
    """One difference of a resource at one path (ResourceChangeDetail).

    Attributes:
        attribute: Properties, Tags, Metadata, CreationPolicy, UpdatePolicy, DeletionPolicy or UpdateReplacePolicy.
        name: the name of the property if the attribute is Properties.
        path: e.g. `/Properties/LaunchTemplateData/InstanceType`.
        requires_recreation: Never, Conditionally or Always.
        before: the old value as a string, or None if it is added.
        after: the new value as a string, or None if it is removed.
        change_type: Add, Remove or Modify.
        evaluation: Static, or Dynamic if the value is known only when the change set is executed.
        change_source: DirectModification, ParameterReference, ResourceReference, ResourceAttribute or Automatic.
        causing_entity: the parameter, resource or attribute whose change causes this one, or "".
    """

    attribute: str
    name: str = ""
    path: str = ""
    requires_recreation: str = "Never"
    before: str | None = None
    after: str | None = None
    change_type: str = "Modify"
    evaluation: str = "Static"
    change_source: str = "DirectModification"
    causing_entity: str = ""


# The detail of a change without a difference in the template, e.g. of a nested stack.
AUTOMATIC_CHANGE = ResourceChangeDetail("Properties", evaluation="Dynamic", change_source="Automatic")


def replacement_by(details: Sequence[ResourceChangeDetail]) -> str:
    """Whether the differences replace the resource: True, False or Conditional, as in the API.

    A property whose new value is not known yet may turn out to be unchanged, so it replaces a resource conditionally.
    """
    if any(detail.requires_recreation == "Always" and detail.after != UNKNOWN for detail in details):
        return "True"
    if all(detail.requires_recreation == "Never" for detail in details):
        return "False"
    return "Conditional"


def text_in_api(value: object) -> str | None:
    """A value as the API shows it: a string unchanged, any other value as JSON, and None for a missing value."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


@dataclass(frozen=True)
class ResourceChange:
    """The change of one resource (ResourceChange).

    Attributes:
        action: Add, Modify or Remove.
        replacement: True, False or Conditional for Modify, otherwise "".
        policy_action: what happens to a resource that is removed or replaced: Delete, Retain, Snapshot,
            ReplaceAndDelete, ReplaceAndRetain, ReplaceAndSnapshot or "".
        scope: the attributes that change.
        child: the nested stack's own change set.
        before_context: the resource before the change as JSON, with NoEcho values masked.
        after_context: the resource after the change as JSON, with NoEcho values masked.
    """

    action: str
    logical_id: str
    physical_id: str
    type: str
    replacement: str = ""
    policy_action: str = ""
    scope: tuple[str, ...] = ()
    details: tuple[ResourceChangeDetail, ...] = ()
    child: ChangeSet | None = None
    before_context: str = ""
    after_context: str = ""


@dataclass(frozen=True)
class FailedValidation:
    """An operation that early validation fails, for the properties that its revision has as invalid.

    Attributes:
        revision: the new revision of the stack; without a body if a nested template was refused.
        operation_type: the OperationType of the API: CREATE_CHANGESET, CREATE_STACK or UPDATE_STACK.
        token: the ClientRequestToken of the call, or "".
    """

    stack: Stack
    revision: Revision
    operation_id: str
    operation_type: str
    time: datetime.datetime
    token: str


@dataclass(eq=False)
class ChangeSet:
    """A change set of a stack.

    Attributes:
        id: the change set's ARN.
        kind: the ChangeSetType, CREATE or UPDATE.
        reason: the status reason, or "".
        nested: whether it includes change sets of nested stacks, or is itself one.
        parent: the change set that includes this one; None for a root change set.
        on_failure: what the execution does with the stack if it fails: ROLLBACK, DELETE, DO_NOTHING or "".
        express: whether its execution skips waiting until resources are ready.
        revision: the new revision of the stack; without a body if a nested template was refused.
        warnings: why its values are not all known.
        operation_id: the id of the operation that creates the change set.
        token: the ClientRequestToken of the call, or "".
    """

    name: str
    id: str
    stack: Stack
    kind: str
    created: datetime.datetime
    revision: Revision
    status: str = "CREATE_PENDING"
    execution_status: str = "UNAVAILABLE"
    reason: str = ""
    changes: list[ResourceChange] = field(default_factory=list)
    nested: bool = False
    parent: ChangeSet | None = None
    on_failure: str = ""
    express: bool = False
    description: str = ""
    warnings: list[str] = field(default_factory=list)
    operation_id: str = ""
    token: str = ""

    @property
    def root(self) -> ChangeSet:
        """The root change set: this one, or the outermost one that nests it."""
        return self.parent.root if self.parent else self

    @property
    def children(self) -> list[ChangeSet]:
        """The change sets of the nested stacks that change."""
        return [change.child for change in self.changes if change.child is not None]
