"""The changes of a deployment: of each resource and each stack, with what they mean for the cluster."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from cfngen.deploy.messages.message import Danger, Impact


class Replacement(StrEnum):
    """Whether a change replaces the resource with a new one."""

    NO = "no"
    MIGHT = "might"
    """Depends on a value that becomes known only while the change set is executed."""
    WILL = "will"


@dataclass(frozen=True)
class PropertyChange:
    """A change of one value in a resource's definition.

    Attributes:
        path: path of the value, e.g. `/Properties/LaunchTemplateData/InstanceType`, `/Properties/Tags[team]`,
            `/Properties/PolicyDocument[Backups]` for the statement with that Sid, or `/UpdatePolicy`.
        before: the old value, as text or JSON; null if there was none, or it is not known or not shown.
        after: the new value, likewise.
        known: whether the new value is known already.
        certain: whether the value will certainly change; otherwise it might, depending on a value known later.
        sensitive: whether the values are secret, so that neither is shown.
        replaces: whether this change replaces the resource.
        cause: what causes the change: `parameter X`, `resource X`, `attribute X.Y`, or empty for the template itself.
        note: what changes, in words, if the values themselves are not readable; else empty. The values of user data
            are shown nevertheless.
    """

    path: str
    before: str | None = None
    after: str | None = None
    known: bool = True
    certain: bool = True
    sensitive: bool = False
    replaces: Replacement = Replacement.NO
    cause: str = ""
    note: str = ""


@dataclass(frozen=True)
class Change:
    """The change of one resource.

    Attributes:
        logical_id: its logical id in the template.
        physical_id: its physical id; empty if it has none yet.
        type: e.g. `AWS::EC2::Volume`.
        action: `add`, `update`, `remove` or `import`.
        replacement: whether an update replaces the resource with a new one.
        policy: what happens to the resource that is removed or replaced: `delete`, `retain` or `snapshot`; empty if
            nothing is removed, or it is not known.
        properties: the changes of its properties; none for a resource that is added or removed.
        impact: what it means for the cluster; null if there is nothing to add to the change itself.
        danger: how dangerous it is.
    """

    logical_id: str
    physical_id: str
    type: str
    action: str
    replacement: Replacement = Replacement.NO
    policy: str = ""
    properties: tuple[PropertyChange, ...] = ()
    impact: Impact | None = None
    danger: Danger = Danger.NONE


@dataclass(frozen=True)
class StackPlan:
    """The changes of one stack.

    Attributes:
        path: logical ids from the root to the stack; empty for the root itself.
        name: the stack's name; empty if it has none yet.
        action: `create`, `update` or `delete`.
        changes: the changes of its resources, replacements first.
        impact: what it means for the cluster that the whole stack is created or deleted; else null.
    """

    path: tuple[str, ...]
    name: str
    action: str
    changes: tuple[Change, ...]
    impact: Impact | None = None

    @property
    def danger(self) -> Danger:
        """The danger of its most dangerous change."""
        dangers = [change.danger for change in self.changes] + [self.impact.danger if self.impact else Danger.NONE]
        return max(dangers, key=lambda danger: danger.rank)


@dataclass(frozen=True)
class Counts:
    """How many resources a plan adds, updates, replaces and removes; nested stacks themselves are not counted.

    Attributes:
        add: resources that are created or imported.
        update: resources that are updated in place.
        replace: resources that will be replaced.
        might_replace: resources that might be replaced.
        remove: resources that are removed from the stack.
    """

    add: int = 0
    update: int = 0
    replace: int = 0
    might_replace: int = 0
    remove: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.add + self.update + self.replace + self.might_replace + self.remove
