"""Messages that deployment reports while it works: plain data, which the command line shows as text or as JSON.

Every message has a `kind`, which is its `type` in JSON and part of the public interface. The command line decides how a
message reads as text.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar

from cfngen.hints import Hint


@dataclass(frozen=True)
class Message:
    """Something that deployment reports."""

    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class Step(Message):
    """The start of something that takes a while.

    Attributes:
        text: what starts, e.g. `uploading 7 templates`.
    """

    kind: ClassVar[str] = "step"
    text: str


@dataclass(frozen=True)
class Notice(Message):
    """Something the user should know, though nothing failed.

    Attributes:
        text: one sentence.
        hint: what to do about it; may be empty.
    """

    kind: ClassVar[str] = "notice"
    text: str
    hint: Hint = ""


@dataclass(frozen=True)
class Event(Message):
    """One event of a stack, in its place in the tree of nested stacks.

    Attributes:
        id: CloudFormation's id of the event.
        time: when it happened.
        stack: the stack's name.
        path: logical ids from the root to the stack that has the resource; empty for a resource of the root.
        logical_id: the resource; the stack's own name for an event of the stack itself.
        physical_id: its name in AWS; may be empty.
        type: e.g. `AWS::EC2::Volume`.
        status: as CloudFormation spells it.
        reason: why; often empty.
        stack_id: ARN of the stack.
        operation_id: the operation it belongs to; empty where CloudFormation gives none.
    """

    kind: ClassVar[str] = "event"
    id: str
    time: datetime
    stack: str
    path: tuple[str, ...]
    logical_id: str
    physical_id: str
    type: str
    status: str
    reason: str = ""
    stack_id: str = ""
    operation_id: str = ""

    @property
    def of_stack(self) -> bool:
        """Whether the event is about the stack itself, not about a resource in it."""
        return self.physical_id == self.stack_id and bool(self.stack_id)

    @property
    def failed(self) -> bool:
        """Whether the resource or the stack failed."""
        return self.status.endswith("_FAILED")


@dataclass(frozen=True)
class Finished(Message):
    """The last message of a command: its operation has ended, or the user has detached from it.

    Attributes:
        action: `create`, `update`, `rollback`, `delete`, `tag` where only existing subnets got tags, or `none` where
            nothing was to be done.
        stack: name of the root stack.
        stack_id: its ARN; empty if there is none.
        status: its status now; empty if there is none.
        succeeded: whether the operation ended as it was meant to.
        seconds: how long CloudFormation took, from its first event to its last, or has taken so far; of `none`, how
            long it took to find out.
        outputs: the stack's outputs.
        in_progress: whether the operation has not ended, because the user detached from it.
        unplanned: what a deployment touched although its plan did not name it, each resource once.
    """

    kind: ClassVar[str] = "finished"
    action: str
    stack: str
    stack_id: str
    status: str
    succeeded: bool
    seconds: float
    outputs: Mapping[str, str] = field(default_factory=dict)
    in_progress: bool = False
    unplanned: tuple[UnplannedChange, ...] = ()


Report = Callable[[Message], None]
"""Shows a message to the user."""


@dataclass(frozen=True)
class Question:
    """Something that is done only with consent.

    Attributes:
        consequences: what happens if the answer is yes, one sentence each.
        dangerous: whether data, addresses or a working cluster may be lost by it.
        name: text to type in place of yes; empty where yes is enough.
    """

    text: str
    consequences: tuple[str, ...] = ()
    dangerous: bool = False
    name: str = ""


Consent = Callable[[Question], bool]
"""Asks a question, and returns whether the user answered yes."""


class Danger(StrEnum):
    """How dangerous a change is."""

    NONE = "none"
    """Nothing is interrupted."""
    DISRUPTIVE = "disruptive"
    """Something is interrupted or removed, or network access changes; no data is lost."""
    DANGEROUS = "dangerous"
    """Data, addresses or the cluster itself may be lost, or the whole internet is let in by `ingress`."""

    @property
    def rank(self) -> int:
        """Its position in the order; the most dangerous has the highest."""
        return list(Danger).index(self)


@dataclass(frozen=True)
class Impact:
    """What a change means for the cluster.

    Attributes:
        text: one or two sentences.
        danger: how dangerous it is.
        fails: whether AWS refuses it, so that the whole deployment would fail.
        dangerous_part: the part of the text that describes the danger, if the rest of the text is harmless; else empty.
        hint: what to do about it; may be empty.
    """

    text: str
    danger: Danger = Danger.NONE
    fails: bool = False
    dangerous_part: str = ""
    hint: Hint = ""


@dataclass(frozen=True)
class UnplannedChange(Message):
    """A resource that an operation touches although the plan does not name it: the plan was wrong.

    Attributes:
        path: logical ids from the root to the stack that has the resource; empty for a resource of the root.
        logical_id: its logical id in the template.
        type: e.g. `AWS::EC2::Volume`.
        action: `create`, `update`, `replace`, `delete` or `import`; `update` if it is not known whether it is replaced.
        impact: the worst that it may mean for the cluster; null if nothing is interrupted or lost by it.
    """

    kind: ClassVar[str] = "unplannedChange"
    path: tuple[str, ...]
    logical_id: str
    type: str
    action: str
    impact: Impact | None = None
