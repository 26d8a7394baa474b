"""A stack as the double remembers it: its revision, resources, outputs, events and operations."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cfngen.sandbox.cloudformation.template import ResourceDefinition, Template

STABLE = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
)  # an update may begin, and return


@dataclass(frozen=True)
class Event:
    """One line of a stack's history; of the stack itself if the logical id is the stack's name.

    Attributes:
        operation_id: the operation that it belongs to, one of the stack's `operations`.
        token: what the caller gave as the operation's client request token, if anything.
        properties: of the resource, as JSON.
    """

    time: datetime.datetime
    stack_name: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str
    id: str = ""
    operation_id: str = ""
    token: str = ""
    properties: str = ""


@dataclass(frozen=True)
class Launched:
    """An instance that an Auto Scaling group has launched."""

    instance_id: str
    group: str


@dataclass(eq=False)
class Resource:
    """A resource of a stack, from the moment CloudFormation turns to it.

    Attributes:
        progress: what the stack's present operation has made of it: nothing yet, working, settled or failed.
        turn: counts what was begun with the resource; whoever waits and finds another number was cancelled meanwhile.
        touched: whether an update has done anything to it since the last stable state.
        attempted: what the account may have made of it instead of its properties, where a change has failed.
        fresh: whether it takes the place of another, which it has once it has a physical id of its own.
        unrestored: whether the present rollback has failed on it.
    """

    logical_id: str
    definition: ResourceDefinition
    status: str = ""
    reason: str = ""
    physical_id: str = ""
    attributes: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, Any] = field(default_factory=dict)
    signals: dict[str, str] = field(default_factory=dict)  # unique id -> SUCCESS or FAILURE
    signals_wanted: int = 0
    child: Stack | None = None
    time: datetime.datetime | None = None  # of its last event
    progress: str = ""
    turn: int = 0
    touched: bool = False
    fresh: bool = False
    attempted: dict[str, Any] | None = None
    unrestored: bool = False
    drift: str = "NOT_CHECKED"

    @property
    def type(self) -> str:
        """Its type, e.g. `AWS::EC2::VPC`."""
        return self.definition.type

    @property
    def exists(self) -> bool:
        """Whether there is something to delete."""
        return bool(self.physical_id) and self.status not in ("DELETE_COMPLETE", "DELETE_SKIPPED")


@dataclass(frozen=True)
class Revision:
    """What a stack is made from: a template, and everything the caller gave with it.

    Attributes:
        given: parameters as texts: what the caller gave, and defaults.
        parameters: what Ref gives for each of them.
        complaint: why the stack must fail before its first resource, or nothing.
    """

    body: str
    template: Template
    given: Mapping[str, str]
    parameters: Mapping[str, Any]
    tags: Mapping[str, str]
    capabilities: tuple[str, ...]
    notification_arns: tuple[str, ...] = ()
    role_arn: str = ""
    complaint: str = ""

    def stays(self, other: Revision) -> bool:
        """Whether another revision changes nothing: neither template, nor parameters, nor tags."""
        mine, others = ((each.template.body, each.given, each.parameters, each.tags) for each in (self, other))
        return mine == others


@dataclass(frozen=True)
class Memory:
    """The last stable state of a stack, for an update that must be undone."""

    revision: Revision
    resources: Mapping[str, Resource]
    outputs: Mapping[str, str]
    exports: Mapping[str, str]


@dataclass(eq=False)
class Stack:
    """A stack; `outputs` is filled when creation or an update is complete.

    Attributes:
        memory: the state to which a failed update returns; nothing while the stack is in a stable state.
        obsolete: what is removed when the present update, or its undoing, is complete, with the policy for it.
        express: whether the present operation does not wait for the signals of instances.
        forced: whether the present rollback skips what fails.
        prepared: nested stacks that a change set has made for the present operation.
        turn: counts operations: one that finds another number has been superseded.
    """

    name: str
    id: str
    revision: Revision
    parent: Stack | None = None
    status: str = ""
    reason: str = ""
    resources: dict[str, Resource] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    exports: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    created: datetime.datetime | None = None
    updated: datetime.datetime | None = None
    deleted: datetime.datetime | None = None
    protection: bool = False
    policy: str = ""
    policy_during_update: str = ""
    change_set_id: str = ""
    disable_rollback: bool = False
    drift: str = "NOT_CHECKED"
    drift_checked: datetime.datetime | None = None
    operations: list[tuple[str, str]] = field(default_factory=list)  # id, type as in the API
    token: str = ""
    memory: Memory | None = None
    express: bool = False
    forced: bool = False
    obsolete: list[tuple[Resource, str]] = field(default_factory=list)
    prepared: dict[str, Stack] = field(default_factory=dict)
    turn: int = 0

    @property
    def template(self) -> Template:
        """The template it has, or is about to have."""
        return self.revision.template

    @property
    def parameters(self) -> Mapping[str, Any]:
        """What Ref gives for each parameter."""
        return self.revision.parameters

    @property
    def tags(self) -> Mapping[str, str]:
        """Its tags."""
        return self.revision.tags

    @property
    def capabilities(self) -> tuple[str, ...]:
        """What the caller acknowledged."""
        return self.revision.capabilities

    @property
    def notification_arns(self) -> tuple[str, ...]:
        """Topics the caller named; nothing is ever sent there."""
        return self.revision.notification_arns

    @property
    def role_arn(self) -> str:
        """The service role the caller named; it is never assumed."""
        return self.revision.role_arn

    @property
    def description(self) -> str:
        """What its template says about itself."""
        return str(self.template.body.get("Description", ""))

    @property
    def finished(self) -> bool:
        """Whether no operation is under way."""
        return bool(self.status) and not self.status.endswith("_IN_PROGRESS")

    def has_finished(self) -> bool:
        """As `finished`, to be called later."""
        return self.finished

    @property
    def root(self) -> Stack:
        """The stack that somebody asked for: this one, or the one that nests it."""
        return self.parent.root if self.parent else self

    @property
    def protected(self) -> bool:
        """Whether it must not be deleted; nested stacks are protected through their root."""
        return self.root.protection

    @property
    def children(self) -> dict[str, Stack]:
        """Nested stacks by logical id."""
        return {key: each.child for key, each in self.resources.items() if each.child is not None}

    def shown_parameters(self) -> dict[str, str]:
        """Parameters as DescribeStacks shows them, texts: NoEcho ones as four asterisks."""
        return shown(self.revision)


def shown(revision: Revision) -> dict[str, str]:
    """Parameters as the API shows them: those of the template, NoEcho ones as four asterisks."""
    declared = revision.template.parameters
    hidden = {key for key, each in declared.items() if str(each.get("NoEcho", "")).lower() == "true"}
    return {key: "****" if key in hidden else value for key, value in revision.given.items()}


def masked(text: str, *revisions: Revision) -> str:
    """A text in which the values of NoEcho parameters are four asterisks."""
    for revision in revisions:
        for key, value in shown(revision).items():
            secret = revision.given[key]
            if value == "****" and secret:
                text = text.replace(secret, value)
    return text
