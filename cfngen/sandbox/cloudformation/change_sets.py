"""Change sets: what they say, and their life from creation to execution."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field

from cfngen.sandbox.cloudformation.stack import Revision, Stack


@dataclass(frozen=True)
class Detail:
    """One difference of a resource, at one path.

    Attributes:
        attribute: Properties, Tags, Metadata, CreationPolicy, UpdatePolicy, DeletionPolicy or UpdateReplacePolicy.
        name: the property, if it is one.
        path: e.g. `/Properties/LaunchTemplateData/InstanceType`.
        requires_recreation: Never, Conditionally or Always.
        before: as text, or None where it is added.
        after: as text, or None where it is removed.
        change_type: Add, Remove or Modify.
        evaluation: Static, or Dynamic where the value is certain only when the change set is executed.
        change_source: DirectModification, ParameterReference, ResourceReference, ResourceAttribute or Automatic.
        causing_entity: the parameter, resource or attribute that changes, if it is one.
    """

    attribute: str
    name: str
    path: str
    requires_recreation: str
    before: str | None
    after: str | None
    change_type: str
    evaluation: str
    change_source: str
    causing_entity: str = ""


@dataclass(frozen=True)
class Change:
    """What a change set does to one resource.

    Attributes:
        action: Add, Modify or Remove.
        replacement: True, False or Conditional for Modify, otherwise nothing.
        policy_action: what becomes of what is removed or replaced: Delete, Retain, Snapshot, ReplaceAndDelete,
            ReplaceAndRetain, ReplaceAndSnapshot or nothing.
        scope: the attributes that change.
        child: the nested stack's own change set.
        before_context: the resource before, as JSON, NoEcho values masked.
        after_context: the resource after, likewise.
    """

    action: str
    logical_id: str
    physical_id: str
    type: str
    replacement: str
    policy_action: str
    scope: tuple[str, ...]
    details: tuple[Detail, ...]
    child: ChangeSet | None
    before_context: str
    after_context: str


@dataclass(frozen=True)
class Finding:
    """What early validation has against a resource, as DescribeEvents shows it."""

    logical_id: str
    type: str
    validation_name: str
    path: str
    reason: str
    status: str = "FAILED"
    failure_mode: str = "FAIL"


@dataclass(eq=False)
class ChangeSet:
    """A change set of a stack.

    Attributes:
        parameters: as shown, NoEcho ones masked.
        revision: what the stack is to become; nothing if a nested one could not even be read.
        findings: of early validation.
        express: whether its execution does not wait until resources are ready.
    """

    name: str
    id: str
    stack: Stack
    kind: str
    created: datetime.datetime
    status: str = "CREATE_PENDING"
    execution_status: str = "UNAVAILABLE"
    reason: str = ""
    changes: list[Change] = field(default_factory=list)
    parameters: dict[str, str] = field(default_factory=dict)
    tags: dict[str, str] = field(default_factory=dict)
    capabilities: tuple[str, ...] = ()
    nested: bool = False
    parent: ChangeSet | None = None
    on_failure: str = ""
    express: bool = False
    description: str = ""
    notification_arns: tuple[str, ...] = ()
    role_arn: str = ""
    revision: Revision | None = None
    findings: list[Finding] = field(default_factory=list)
    operation_id: str = ""
    token: str = ""

    @property
    def root(self) -> ChangeSet:
        """The change set that somebody asked for: this one, or the one that nests it."""
        return self.parent.root if self.parent else self

    @property
    def children(self) -> list[ChangeSet]:
        """Change sets of nested stacks."""
        return [change.child for change in self.changes if change.child is not None]
