"""A stack as the double remembers it: its resources, outputs and events."""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field
from typing import Any

from cfngen.sandbox.cloudformation.template import ResourceDefinition, Template


@dataclass(frozen=True)
class Event:
    """One line of a stack's history; of the stack itself if the logical id is the stack's name."""

    time: datetime.datetime
    stack_name: str
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str


@dataclass(frozen=True)
class Launched:
    """An instance that an Auto Scaling group has launched."""

    instance_id: str
    group: str


@dataclass
class Resource:
    """A resource of a stack, from the moment CloudFormation turns to it."""

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

    @property
    def type(self) -> str:
        """Its type, e.g. `AWS::EC2::VPC`."""
        return self.definition.type

    @property
    def exists(self) -> bool:
        """Whether there is something to delete."""
        return bool(self.physical_id) and self.status not in ("DELETE_COMPLETE", "DELETE_SKIPPED")


@dataclass
class Stack:
    """A stack; `parameters` holds the values that Ref gives, `outputs` is filled when creation is complete."""

    name: str
    id: str
    template: Template
    parameters: dict[str, Any]
    tags: dict[str, str]
    capabilities: tuple[str, ...]
    parent: Stack | None = None
    status: str = ""
    reason: str = ""
    resources: dict[str, Resource] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)

    @property
    def finished(self) -> bool:
        """Whether no operation is under way."""
        return bool(self.status) and not self.status.endswith("_IN_PROGRESS")

    @property
    def root(self) -> Stack:
        """The stack that somebody asked for: this one, or the one that nests it."""
        return self.parent.root if self.parent else self

    @property
    def children(self) -> dict[str, Stack]:
        """Nested stacks by logical id."""
        return {key: each.child for key, each in self.resources.items() if each.child is not None}

    def shown_parameters(self) -> dict[str, Any]:
        """Parameters as DescribeStacks shows them: NoEcho ones as four asterisks."""
        hidden = {
            key for key, each in self.template.parameters.items() if str(each.get("NoEcho", "")).lower() == "true"
        }
        return {key: "****" if key in hidden else value for key, value in self.parameters.items()}
