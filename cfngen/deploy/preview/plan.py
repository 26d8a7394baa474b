"""The plan of a deployment: what it will do to each resource, and what that means for the cluster.

Plain data that is printed as text or JSON; `cfngen.deploy.preview.planning` creates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Literal

from cfngen.cluster.logical_ids import NodeGroupId
from cfngen.cluster.model import Cluster
from cfngen.deploy.messages import Message
from cfngen.deploy.quotas.service_quotas import Quota
from cfngen.templates.document import Document


class Danger(str, Enum):
    """How dangerous a change is."""

    NONE = "none"
    """Nothing is interrupted."""
    DISRUPTIVE = "disruptive"
    """Something is interrupted or removed, or network access changes; no data is lost."""
    DANGEROUS = "dangerous"
    """Data, addresses or the cluster itself may be lost."""

    @property
    def rank(self) -> int:
        """Its position in the order; the most dangerous has the highest."""
        return list(Danger).index(self)


class Replacement(str, Enum):
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
class Impact:
    """What a change means for the cluster.

    Attributes:
        text: one or two sentences.
        danger: how dangerous it is.
        fails: whether AWS refuses it, so that the whole deployment would fail.
        dangerous_part: the part of the text that describes the danger, if the rest of the text is harmless; else empty.
    """

    text: str
    danger: Danger = Danger.NONE
    fails: bool = False
    dangerous_part: str = ""


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


@dataclass(frozen=True)
class Item:
    """A kind of component that a new cluster consists of.

    Attributes:
        count: how many.
        what: e.g. `master`, `node`, `VPC`.
        detail: e.g. `t3.medium, group gpu`; may be empty.
    """

    count: int
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Cost:
    """Something that AWS charges for as long as it exists; prices are not included.

    Attributes:
        quantity: how much.
        unit: e.g. `instance`, `GiB`, `address`.
        what: e.g. `t3.medium`, `gp3 volume`.
        detail: what it is used for.
    """

    quantity: int
    unit: str
    what: str
    detail: str = ""


@dataclass(frozen=True)
class Creation:
    """A cluster that does not exist yet.

    Attributes:
        items: what it consists of.
        costs: what AWS charges for as long as it exists; traffic, requests and snapshots are not included.
    """

    items: tuple[Item, ...] = ()
    costs: tuple[Cost, ...] = ()


PhaseKind = Literal["volumes", "control-plane", "node-groups", "removed-node-groups"]


@dataclass(frozen=True)
class Phase:
    """One stack update of a deployment that has several; it can be rolled back without the phases before it.

    Attributes:
        kind: what it updates: data volumes of the masters, everything except node groups, node groups, or node groups
            that are removed.
        groups: logical ids of the stacks of the node groups that it updates.
        predicted: whether the changes are taken from the change set of the whole deployment. The change set of the
            phase is created just before the phase, and compared with these changes.
        stacks: the changes in each stack.
    """

    kind: PhaseKind
    groups: tuple[str, ...]
    predicted: bool
    stacks: tuple[StackPlan, ...]

    @property
    def title(self) -> str:
        """What it updates, in words."""
        names = ", ".join(parsed.group for group in self.groups if (parsed := NodeGroupId.parse(group)))
        groups = f"node group{'s' if len(self.groups) > 1 else ''} {names}"
        return {
            "volumes": "data volumes of the masters",
            "control-plane": "control plane",
            "node-groups": groups,
            "removed-node-groups": f"removal of {groups}",
        }[self.kind]

    @property
    def danger(self) -> Danger:
        """The danger of its most dangerous change."""
        return max((stack.danger for stack in self.stacks), key=lambda danger: danger.rank, default=Danger.NONE)


@dataclass(frozen=True)
class Plan(Message):
    """What a deployment will do. As a message it is one JSON document.

    Attributes:
        stack: name of the root stack.
        stack_id: its ARN.
        operation: `create` or `update`.
        change_set_id: ARN of the change set to execute, that of the first phase if there are several; empty if there is
            nothing to do.
        created: when CloudFormation began to create the change set; null if there is nothing to do.
        stacks: the root and its nested stacks that have changes; the most dangerous come first.
        counts: how many resources change.
        danger: the danger of the most dangerous change.
        templates_only: whether only descriptions, outputs or metadata change, and no resources.
        creation: what a new cluster consists of; null for an update.
        quotas: what the deployment adds to the usage of the account's quotas.
        quotas_ignored: whether to deploy even if the quotas are exceeded.
        costs: what AWS charges for in addition after an update or, if the quantity is negative, no longer.
        on_failure: what happens to the stack if the deployment fails: `ROLLBACK`, `DELETE` or `DO_NOTHING`.
        express: whether to deploy in express mode, in which CloudFormation does not wait until resources are stable.
        shell: whether the stack is empty and was created for this plan; it is deleted if the plan is not executed.
        predicted: impacts that the change set does not show, e.g. of a new Kubernetes version.
        retries: paths of failed resources that are retried; there is no change set then, since templates and parameters
            have not changed.
        phases: the stack updates that the deployment consists of, in order; none if there is only one.
    """

    kind: ClassVar[str] = "plan"
    stack: str
    stack_id: str
    operation: str
    change_set_id: str = ""
    created: datetime | None = None
    stacks: tuple[StackPlan, ...] = ()
    counts: Counts = Counts()
    danger: Danger = Danger.NONE
    templates_only: bool = False
    creation: Creation | None = None
    quotas: tuple[Quota, ...] = ()
    quotas_ignored: bool = False
    costs: tuple[Cost, ...] = ()
    on_failure: str = "ROLLBACK"
    express: bool = False
    shell: bool = False
    predicted: tuple[Impact, ...] = ()
    retries: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    _executed: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.retries and (not self.change_set_id or not (self.stacks or self.templates_only))

    @property
    def is_executed(self) -> bool:
        """Whether the change set has been executed, so that it must not be deleted."""
        return bool(self._executed)

    def mark_executed(self) -> None:
        """Record that the change set is being executed: CloudFormation may not show it yet."""
        self._executed.append(self.change_set_id)

    def mark_refused(self) -> None:
        """Record that CloudFormation has refused to execute the change set."""
        self._executed.clear()

    @property
    def is_dangerous(self) -> bool:
        """Whether data, addresses or the whole cluster may be lost."""
        return self.danger is Danger.DANGEROUS

    @property
    def replaces(self) -> tuple[Change, ...]:
        """The changes that replace, or might replace, a resource."""
        return tuple(change for change in self.changes if change.replacement is not Replacement.NO)

    @property
    def refusal(self) -> str:
        """Why the plan cannot be executed with its options; empty if it can."""
        if failures := [consequence.text for consequence in self.consequences if consequence.fails]:
            return "; ".join(failures)
        if exceeded := [quota.name for quota in self.quotas if quota.sufficient is False and not self.quotas_ignored]:
            return f"the account's quotas do not suffice ({', '.join(exceeded)}); --ignore-quotas goes on all the same"
        rollback_disabled = self.on_failure == "DO_NOTHING"
        if self.operation == "create" or not self.replaces or not (rollback_disabled or self.express):
            return ""
        first, *more = (replace.logical_id for replace in self.replaces)
        others_text = f" and {len(more)} more" if more else ""
        mode = "in express mode" if self.express else "while what failed is kept (rollback is off)"
        return f"{first}{others_text} may be replaced, and CloudFormation replaces nothing {mode}"

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes of all stacks."""
        return tuple(change for stack in self.stacks for change in stack.changes)

    @property
    def consequences(self) -> tuple[Impact, ...]:
        """All impacts that are not harmless, the most dangerous first, without duplicates."""
        impacts = dict.fromkeys(
            impact
            for impact in (
                *self.predicted,
                *(
                    impact
                    for stack in self.stacks
                    for impact in (stack.impact, *(change.impact for change in stack.changes))
                ),
            )
            if impact and impact.danger is not Danger.NONE
        )
        return tuple(sorted(impacts, key=lambda impact: -impact.danger.rank))


@dataclass(frozen=True)
class PlanRequest:
    """What is to be deployed, and how.

    Attributes:
        stack: name of the root stack.
        cluster: the cluster.
        template_url: URL of the root's template.
        documents: the templates of the cluster, which show what outputs and parameters refer to.
        parameters: entries of CreateChangeSet's `Parameters`.
        capabilities: capabilities to acknowledge, e.g. `CAPABILITY_IAM`.
        tags: tags of the root stack.
        token: unique to this request: letters, digits and hyphens.
        on_failure: what happens to the stack if the deployment fails: `ROLLBACK`, `DELETE` (only for a new stack) or
            `DO_NOTHING`.
        role_arn: service role for CloudFormation; if empty, the stack's own role or the caller's permissions are used.
        notification_arns: SNS topics that receive the stack's events; None leaves them unchanged.
        express: whether to deploy in express mode, in which CloudFormation does not wait until resources are stable.
        quotas: what is added to the usage of the account's quotas, from `cfngen.deploy.quotas.service_quotas`.
        quotas_ignored: whether to deploy even if the quotas are exceeded.
        costs: what AWS charges for in addition after an update.
        predicted: impacts that the change set does not show.
        note: description of the change set: who created it, and what is to be done at the end.
        masters: current number of masters; 0 if it is not known.
    """

    stack: str
    cluster: Cluster
    template_url: str
    documents: tuple[Document, ...]
    token: str
    parameters: tuple[Mapping[str, Any], ...] = ()
    capabilities: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    on_failure: str = "ROLLBACK"
    role_arn: str = ""
    notification_arns: tuple[str, ...] | None = None
    express: bool = False
    quotas: tuple[Quota, ...] = ()
    quotas_ignored: bool = False
    costs: tuple[Cost, ...] = ()
    predicted: tuple[Impact, ...] = ()
    note: str = ""
    masters: int = 0
