"""The plan of a deployment: what it will do to each resource, and what that means for the cluster.

Plain data, for a person to read and for a program as JSON; `cfngen.deploy.preview.planning` makes it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum
from typing import Any, ClassVar, Literal

from cfngen.cluster.model import Cluster
from cfngen.deploy.messages import Message
from cfngen.deploy.quotas.service_quotas import Quota
from cfngen.templates.document import Document


class Danger(str, Enum):
    """How much a change may hurt."""

    NONE = "none"
    """Nothing that runs notices."""
    DISRUPTIVE = "disruptive"
    """Something that runs is interrupted or taken away, or who can reach it changes; nothing is lost."""
    DANGEROUS = "dangerous"
    """Data, addresses or the cluster itself may be lost."""

    @property
    def rank(self) -> int:
        """Its place in the order; the worst has the greatest."""
        return list(Danger).index(self)


class Replacement(str, Enum):
    """Whether a change makes a new resource in place of the old one."""

    NO = "no"
    MIGHT = "might"
    """Depends on a value that becomes known only while the plan is carried out."""
    WILL = "will"


@dataclass(frozen=True)
class PropertyChange:
    """A change of one value in a resource's definition.

    Attributes:
        path: where it is, e.g. `/Properties/LaunchTemplateData/InstanceType`, `/Properties/Tags[team]`,
            `/Properties/PolicyDocument[Backups]` of the statement with that Sid, or `/UpdatePolicy`.
        before: the value before, as text or JSON; null if it was not there, is not known or not shown.
        after: the value after, likewise.
        known: whether the value after is known already.
        certain: whether the value will change; otherwise it might, depending on something that becomes known later.
        sensitive: whether the values are secret, so that neither is shown.
        replaces: whether this change makes a new resource.
        cause: what makes it change: `parameter X`, `resource X`, `attribute X.Y`, or empty for the template itself.
        note: what changes, in words, where the values themselves tell a person nothing; else empty. Of user data, the
            values are told all the same.
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
        danger: how much it may hurt.
        fails: whether AWS refuses it, so that the whole deployment would fail.
        hurts: the part of the text that says what may hurt, where the rest of it hurts nobody; else empty.
    """

    text: str
    danger: Danger = Danger.NONE
    fails: bool = False
    hurts: str = ""


@dataclass(frozen=True)
class Change:
    """What happens to one resource.

    Attributes:
        logical_id: its name in the template.
        physical_id: its name in AWS; empty if it has none yet.
        type: e.g. `AWS::EC2::Volume`.
        action: `add`, `update`, `remove` or `import`.
        replacement: whether an update makes a new resource in place of the old one.
        policy: what becomes of the old or removed one: `delete`, `retain` or `snapshot`; empty where nothing goes, or
            where it is not told.
        properties: what changes in its definition; none for what is added or removed.
        meaning: what it means for the cluster; null if there is nothing to say beyond the change itself.
        danger: how much it may hurt.
    """

    logical_id: str
    physical_id: str
    type: str
    action: str
    replacement: Replacement = Replacement.NO
    policy: str = ""
    properties: tuple[PropertyChange, ...] = ()
    meaning: Impact | None = None
    danger: Danger = Danger.NONE


@dataclass(frozen=True)
class StackPlan:
    """What happens in one stack.

    Attributes:
        path: logical ids from the root to it; empty for the root itself.
        name: its name in AWS; empty if it has none yet.
        action: `create`, `update` or `delete`.
        changes: what happens to its resources, replacements first.
        meaning: what it means for the cluster that the stack as a whole comes or goes; else null.
    """

    path: tuple[str, ...]
    name: str
    action: str
    changes: tuple[Change, ...]
    meaning: Impact | None = None

    @property
    def danger(self) -> Danger:
        """The worst of its changes."""
        dangers = [change.danger for change in self.changes] + [self.meaning.danger if self.meaning else Danger.NONE]
        return max(dangers, key=lambda each: each.rank)


@dataclass(frozen=True)
class Counts:
    """How many resources a plan does what to; nested stacks themselves are not counted.

    Attributes:
        add: are made.
        update: stay, and change.
        replace: certainly give way to a new one.
        might_replace: may give way to a new one.
        remove: are taken out of the stack.
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
    """Something that a new cluster consists of, in its own terms.

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
    """Something that AWS charges for as long as it exists; what it costs is left to AWS's price list.

    Attributes:
        quantity: how much.
        unit: e.g. `instance`, `GiB`, `address`.
        what: e.g. `t3.medium`, `gp3 volume`.
        detail: who uses it, and what else to know.
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
        costs: what costs money; not everything: traffic, requests and snapshots come with use.
    """

    items: tuple[Item, ...] = ()
    costs: tuple[Cost, ...] = ()


PhaseKind = Literal["volumes", "control-plane", "node-groups", "removed-node-groups"]


@dataclass(frozen=True)
class Phase:
    """What a deployment does in one operation of CloudFormation; it may be taken back without what came before it.

    Attributes:
        kind: what it is about: the masters' data volumes that grow, everything but node groups, node groups, or node
            groups that go.
        groups: logical ids of the nested stacks of the node groups that it is about.
        foreseen: whether this is read from a change set of the whole deployment, that of the phase not being there yet:
            it is made before the phase begins, and compared with this.
        stacks: what happens in it.
    """

    kind: PhaseKind
    groups: tuple[str, ...]
    foreseen: bool
    stacks: tuple[StackPlan, ...]

    @property
    def title(self) -> str:
        """What it is about, in words."""
        names = ", ".join(group.removeprefix("NodeGroup").removesuffix("Stack") for group in self.groups)
        groups = f"node group{'s' if len(self.groups) > 1 else ''} {names}"
        return {
            "volumes": "data volumes of the masters",
            "control-plane": "control plane",
            "node-groups": groups,
            "removed-node-groups": f"removal of {groups}",
        }[self.kind]

    @property
    def danger(self) -> Danger:
        """The worst of its changes."""
        return max((stack.danger for stack in self.stacks), key=lambda each: each.rank, default=Danger.NONE)


@dataclass(frozen=True)
class Plan(Message):
    """What a deployment will do. As a message it is one JSON document.

    Attributes:
        stack: name of the root stack.
        stack_id: its ARN.
        operation: `create` or `update`.
        change_set_id: ARN of the change set that stands ready, that of the first phase if there are several; empty if
            there is nothing to do.
        created: when CloudFormation began to make the change set; null if there is nothing to do.
        stacks: the root and its nested stacks, as far as something happens in them; what may hurt most comes first.
        counts: how many resources change.
        danger: the worst of all changes.
        templates_only: whether only descriptions, outputs or metadata change, so that no resource does.
        creation: what a new cluster consists of; null for an update.
        quotas: what the deployment adds to what is taken of the account's quotas.
        quotas_ignored: whether it shall be carried out although they do not suffice.
        costs: what an update adds of what costs money or, where the quantity is negative, takes away.
        on_failure: what becomes of the stack if the deployment fails: `ROLLBACK`, `DELETE` or `DO_NOTHING`.
        express: whether CloudFormation shall not wait until resources are stable.
        shell: whether the stack was made for this plan, is empty, and goes if the plan is not carried out.
        foreseen: what it means beyond what CloudFormation says, e.g. that Kubernetes' version changes.
        retries: resources whose last operation failed and was kept, each behind the nested stacks around it, where
            templates and values are those of the stack already: there is no change set then, and they are tried again.
        phases: the operations that it is carried out in, in order; none where one does it all.
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
    foreseen: tuple[Impact, ...] = ()
    retries: tuple[str, ...] = ()
    phases: tuple[Phase, ...] = ()
    _executed: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return not self.retries and (not self.change_set_id or not (self.stacks or self.templates_only))

    @property
    def is_executed(self) -> bool:
        """Whether the plan has been handed to CloudFormation to be carried out, so that nothing of it is removed."""
        return bool(self._executed)

    def mark_executed(self) -> None:
        """Keep in mind that the plan is being carried out: reads of CloudFormation may not show it yet."""
        self._executed.append(self.change_set_id)

    def mark_refused(self) -> None:
        """Keep in mind that CloudFormation has answered that it will not carry the plan out."""
        self._executed.clear()

    @property
    def is_dangerous(self) -> bool:
        """Whether data, addresses or the cluster may be lost."""
        return self.danger is Danger.DANGEROUS

    @property
    def replaces(self) -> tuple[Change, ...]:
        """What is or may be replaced."""
        return tuple(change for change in self.changes if change.replacement is not Replacement.NO)

    @property
    def refusal(self) -> str:
        """Why CloudFormation would not carry it out in the way that was asked for; empty if it would."""
        if failures := [consequence.text for consequence in self.consequences if consequence.fails]:
            return "; ".join(failures)
        if exceeded := [quota.name for quota in self.quotas if quota.enough is False and not self.quotas_ignored]:
            return f"the account's quotas do not suffice ({', '.join(exceeded)}); --ignore-quotas goes on all the same"
        keep = self.on_failure == "DO_NOTHING"
        if self.operation == "create" or not self.replaces or not (keep or self.express):
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
        """What may hurt, the worst first, nothing twice."""
        impacts = dict.fromkeys(
            meaning
            for meaning in (
                *self.foreseen,
                *(each for stack in self.stacks for each in (stack.meaning, *(one.meaning for one in stack.changes))),
            )
            if meaning and meaning.danger is not Danger.NONE
        )
        return tuple(sorted(impacts, key=lambda each: -each.danger.rank))


@dataclass(frozen=True)
class PlanRequest:
    """What is to be deployed, and how.

    Attributes:
        stack: name of the root stack.
        cluster: the cluster.
        template_url: where the root's template is.
        documents: the templates of the cluster, of which the plan learns which stack's outputs depend on what.
        parameters: entries of CreateChangeSet's `Parameters`.
        capabilities: what CloudFormation wants to have acknowledged.
        tags: tags of the root stack.
        token: distinguishes this request from all others: letters, digits and hyphens.
        on_failure: what becomes of the stack if the deployment fails: `ROLLBACK`, `DELETE` (only for a new stack) or
            `DO_NOTHING`.
        role_arn: service role for CloudFormation; empty means the stack's own, or the caller's rights.
        notification_arns: SNS topics that get the stack's events; None leaves them as they are.
        express: whether CloudFormation shall not wait until resources are stable.
        quotas: what is added of the account's quotas, as `cfngen.deploy.quotas.service_quotas` found it.
        quotas_ignored: whether to go on although they do not suffice.
        costs: what an update adds of what costs money.
        foreseen: what it means beyond what CloudFormation says.
        note: description of the change set: who made it, and what is to be done at the end.
        masters: how many masters there are now; 0 if it is not known.
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
    foreseen: tuple[Impact, ...] = ()
    note: str = ""
    masters: int = 0
