"""The emulator's model of a stack: its revision, resources, outputs, events, operations and drift."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.sandbox.cloudformation.errors import PropertyError
from cfngen.sandbox.cloudformation.template import ResourceDefinition, Template
from cfngen.sandbox.untyped import JsonDict, JsonObject

# The statuses of a stack in which an update may start, and to which it may roll back.
STABLE_STATUSES = frozenset(
    {"CREATE_COMPLETE", "UPDATE_COMPLETE", "UPDATE_ROLLBACK_COMPLETE", "IMPORT_COMPLETE", "IMPORT_ROLLBACK_COMPLETE"}
)


NO_ECHO_MASK = "****"  # what the API shows instead of the value of a NoEcho parameter


@dataclass(frozen=True)
class StackEvent:
    """A stack event, of a resource or of the stack itself (then the logical id is the stack's name).

    Attributes:
        operation_id: the id of the operation, one of the stack's `operations`.
        token: the operation's ClientRequestToken, or "".
        properties: the resource's properties as JSON.
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
class LaunchedInstance:
    """An instance that an Auto Scaling group has launched; `group` is the group's name."""

    instance_id: str
    group: str


@dataclass(frozen=True)
class Revision:
    """A stack's template with the parameters and settings of the call that submitted it.

    Attributes:
        body: the template as JSON.
        parameter_strings: parameter values as strings, from the call or from defaults.
        parameters: parameter values as Ref returns them: numbers, lists, and values from Parameter Store.
        notification_arns: the SNS topics of the call; the emulator sends no notifications.
        role_arn: the service role of the call, or ""; the emulator does not assume it.
        failure_reason: why the stack must fail before its first resource, or "".
        invalid_properties: the properties that early validation refused, by logical id.
    """

    body: str
    template: Template
    parameter_strings: Mapping[str, str]
    parameters: JsonObject
    tags: Mapping[str, str]
    capabilities: tuple[str, ...]
    notification_arns: tuple[str, ...] = ()
    role_arn: str = ""
    failure_reason: str = ""
    invalid_properties: Mapping[str, PropertyError] = field(default_factory=dict)

    def is_same_as(self, other: Revision) -> bool:
        """Whether another revision has the same template, parameters and tags."""
        return (
            self.template.body == other.template.body
            and self.parameter_strings == other.parameter_strings
            and self.parameters == other.parameters
            and self.tags == other.tags
        )


@dataclass(frozen=True)
class StableState:
    """The last stable state of a stack, to which a failed update rolls back."""

    revision: Revision
    resources: Mapping[str, Resource]
    outputs: Mapping[str, str]
    exports: Mapping[str, str]


@dataclass(eq=False)
class Stack:
    """A stack.

    Attributes:
        parent: the stack that nests this one; None for a root stack.
        led_by: the parent whose operation the current one is a part of; None if the call was for this stack itself.
        resources: the stack's resources by logical id, also deleted ones.
        outputs: the values of the outputs by name, set when a creation or an update is complete.
        exports: the values of the exports by export name.
        own_termination_protection: whether termination protection was enabled for this stack itself.
        policy: the stack policy as JSON, or "".
        policy_during_update: the stack policy that replaces it during the current update, or "".
        change_set_id: the id of the change set that was executed last, or "".
        disable_rollback: whether the current operation leaves a failed stack as it is.
        drift: the drift status: NOT_CHECKED, IN_SYNC or DRIFTED.
        operations: (operation id, operation type as in the API) of all operations, the current or last one at the end.
        token: the ClientRequestToken of the current or last operation, or "".
        stable_state: the state to which a failed update rolls back; None while the stack itself is stable, and if it
            never was.
        express: whether the current operation skips waiting for signals of instances.
        force_rollback: whether the current rollback skips resources that fail.
        force_deletion: whether the last deletion retains resources that cannot be deleted.
        obsolete_resources: (resource, deletion policy) of each resource that the cleanup phase deletes.
        stacks_in_review: nested stacks (by logical id) that the executed change set created in REVIEW_IN_PROGRESS.
        generation: incremented for every operation; see `is_superseded`.
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
    events: list[StackEvent] = field(default_factory=list)
    created: datetime.datetime | None = None
    updated: datetime.datetime | None = None
    deleted: datetime.datetime | None = None
    own_termination_protection: bool = False
    policy: str = ""
    policy_during_update: str = ""
    change_set_id: str = ""
    disable_rollback: bool = False
    drift: str = "NOT_CHECKED"
    drift_checked: datetime.datetime | None = None
    operations: list[tuple[str, str]] = field(default_factory=list)
    token: str = ""
    stable_state: StableState | None = None
    express: bool = False
    force_rollback: bool = False
    force_deletion: bool = False
    obsolete_resources: list[tuple[Resource, str]] = field(default_factory=list)
    stacks_in_review: dict[str, Stack] = field(default_factory=dict)
    generation: int = 0
    led_by: Stack | None = None

    @property
    def template(self) -> Template:
        """The current template, or the one that the current operation applies."""
        return self.revision.template

    @property
    def parameters(self) -> JsonObject:
        """Parameter values as Ref returns them."""
        return self.revision.parameters

    @property
    def tags(self) -> Mapping[str, str]:
        """The stack's tags."""
        return self.revision.tags

    @property
    def description(self) -> str:
        """The template's Description."""
        return str(self.template.body.get("Description", ""))

    @property
    def finished(self) -> bool:
        """Whether no operation is in progress."""
        return bool(self.status) and not self.status.endswith("_IN_PROGRESS")

    def is_superseded(self, generation: int) -> bool:
        """Whether an operation, begun in this generation, was cancelled or another took over while it waited."""
        return self.generation != generation

    @property
    def root(self) -> Stack:
        """The root stack: this stack, or the outermost one that nests it."""
        return self.parent.root if self.parent else self

    @property
    def leader(self) -> Stack:
        """The stack for which the current operation was called: this one, or one that nests it."""
        return self.led_by.leader if self.led_by else self

    @property
    def protected(self) -> bool:
        """Whether termination protection is enabled; nested stacks have the setting of their root stack."""
        return self.root.own_termination_protection

    @property
    def children(self) -> dict[str, Stack]:
        """Nested stacks by logical id."""
        return {key: resource.child for key, resource in self.resources.items() if resource.child is not None}


@dataclass(eq=False)
class Resource:
    """A resource of a stack.

    Attributes:
        physical_id: the value of Ref; "" until the actual resource is created.
        attributes: the values of GetAtt by attribute name.
        signals: the signals received for this resource: unique id -> SUCCESS or FAILURE.
        expected_signals: how many signals the resource waits for.
        child: the nested stack, if the resource is of type AWS::CloudFormation::Stack and its stack was created.
        progress: the state of the resource in the stack's current operation: "" (not started), in_progress, complete
            or failed.
        generation: incremented for every operation on the resource, and when one is cancelled; see `is_superseded`.
        was_updated: whether the resource has been updated since the last stable state.
        is_replacement: whether it replaces another resource. Until it is created, it has the physical id of the other.
        attempted_properties: the new properties of a failed update, some of which the actual resource may have.
        rollback_failed: whether the current rollback of the stack failed at this resource.
        drift: the drift status: NOT_CHECKED, IN_SYNC, MODIFIED or DELETED.
    """

    logical_id: str
    definition: ResourceDefinition
    status: str = ""
    reason: str = ""
    physical_id: str = ""
    attributes: JsonDict = field(default_factory=dict)
    properties: JsonDict = field(default_factory=dict)
    signals: dict[str, str] = field(default_factory=dict)
    expected_signals: int = 0
    child: Stack | None = None
    last_event_time: datetime.datetime | None = None
    progress: str = ""
    generation: int = 0
    was_updated: bool = False
    is_replacement: bool = False
    attempted_properties: JsonDict | None = None
    rollback_failed: bool = False
    drift: str = "NOT_CHECKED"

    @property
    def type(self) -> str:
        """The resource type, e.g. `AWS::EC2::VPC`."""
        return self.definition.type

    @property
    def exists(self) -> bool:
        """Whether there is an actual resource, which has not been deleted or retained."""
        return bool(self.physical_id) and self.status not in ("DELETE_COMPLETE", "DELETE_SKIPPED")

    def is_superseded(self, generation: int) -> bool:
        """Whether an operation, begun in this generation, was cancelled or another took over while it waited."""
        return self.generation != generation


def masked_parameters(revision: Revision) -> dict[str, str]:
    """Parameters of a revision as the API returns them, with NoEcho values masked by four asterisks."""
    masked = dict(revision.parameter_strings)
    for name, definition in revision.template.parameters.items():
        if name in masked and str(definition.get("NoEcho", "")).lower() == "true":
            masked[name] = NO_ECHO_MASK
    return masked


def mask_no_echo(text: str, *revisions: Revision) -> str:
    """The text, with the values of the revisions' NoEcho parameters masked by four asterisks."""
    for revision in revisions:
        for name, shown_value in masked_parameters(revision).items():
            actual_value = revision.parameter_strings[name]
            if shown_value == NO_ECHO_MASK and actual_value:
                text = text.replace(actual_value, NO_ECHO_MASK)
    return text


@dataclass(frozen=True)
class PropertyDifference:
    """A property whose actual value differs from the template.

    Attributes:
        path: the path below the resource's properties, e.g. `/MaxSize`
        expected: the value in the template; "" if the template has none
        actual: the actual value; "" if the actual resource has none
        kind: the DifferenceType: ADD, REMOVE or NOT_EQUAL
    """

    path: str
    expected: str
    actual: str
    kind: str


@dataclass(frozen=True)
class ResourceDrift:
    """The drift of one resource.

    Attributes:
        status: IN_SYNC, MODIFIED or DELETED
        expected: the compared properties in the template, as JSON
        actual: the compared properties of the actual resource, as JSON; "" if it is deleted
    """

    stack_id: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    expected: str
    actual: str
    differences: tuple[PropertyDifference, ...]
    time: datetime.datetime


@dataclass(frozen=True)
class DriftDetection:
    """A finished drift detection.

    Attributes:
        drift: the drift status of the stack: DRIFTED, IN_SYNC or NOT_CHECKED
    """

    id: str
    stack_id: str
    drift: str
    time: datetime.datetime
    resources: tuple[ResourceDrift, ...]

    @property
    def drifted_resource_count(self) -> int:
        """The number of resources that have drifted."""
        return sum(resource.status in ("MODIFIED", "DELETED") for resource in self.resources)
