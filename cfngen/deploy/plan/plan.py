"""The data of a plan and of the request for it: what a deployment does to each resource, and what that means.

Plain data that is printed as text or JSON; `cfngen.deploy.plan.planning` creates it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Literal

from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.logical_ids import NodeGroupId
from cfngen.deploy.aws.kept_file import FileChange
from cfngen.deploy.aws.stacks import StackTree
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Danger, Impact, Message
from cfngen.deploy.plan.costs.bill import MonthlyBill
from cfngen.deploy.plan.costs.costs import Cost, CreationSummary
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.preflight.quotas.quota import Quota
from cfngen.templates.document import Document
from cfngen.userdata.downloads import Downloads

PhaseKind = Literal["volumes", "control-plane", "node-groups", "removed-node-groups"]


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
        only_in: `templates` or `change set` if only one of the two says that the value changes; else empty.
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
    only_in: str = ""
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
        parsed_ids = [NodeGroupId.parse(group) for group in self.groups]
        names = ", ".join(parsed_id.group for parsed_id in parsed_ids if parsed_id)
        groups = f"node groups {names}" if len(self.groups) > 1 else f"node group {names}"
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
class PlannedUpdate:
    """One of several updates that follow each other, each a whole deployment with a change set of its own.

    Attributes:
        title: what the cluster does after it.
        effect: what the update does.
    """

    title: str
    effect: str


@dataclass(frozen=True)
class Counts:
    """How many resources in AWS a plan adds, updates, replaces and removes.

    What is only in the templates is not counted: nested stacks themselves, wait conditions, boot programs.

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
class Plan(Message):
    """What a deployment will do. As a message it is one JSON document.

    Attributes:
        stack: name of the root stack.
        stack_id: its ARN.
        operation: `create` or `update`.
        change_set_id: ARN of the change set to execute, that of the first phase if there are several; empty if there is
            nothing to do.
        created: when CloudFormation started to create the change set; null if there is nothing to do.
        stacks: the root and its nested stacks that have changes; the most dangerous come first.
        counts: how many resources change.
        danger: the danger of the most dangerous change.
        templates_only: whether only descriptions, outputs or metadata change, and no resources.
        creation: what a new cluster consists of; null for an update.
        quotas: what the deployment adds to the usage of the account's quotas.
        quotas_ignored: whether to deploy even if the quotas are exceeded.
        costs: billed items that the update adds (quantity above 0) or removes (quantity below 0).
        bill: what AWS charges in a month before and after the deployment; null without a price list.
        on_failure: what happens to the stack if the deployment fails: `ROLLBACK`, `DELETE` or `DO_NOTHING`.
        express: whether to deploy in express mode, in which CloudFormation does not wait until resources are stable.
        shell: whether the stack is still empty, made with this change set; it goes if the plan is not executed.
        predicted: impacts that the change set does not show, e.g. of a new Kubernetes version.
        retries: paths of failed resources that are retried, without a change set: templates and values are the same.
        unfinished: paths of failed resources that are tried again besides these changes, after a failure that was kept.
        downloads: what mirrors must serve, since instances have no way to the internet; null if they have one.
        subnet_tags: the tags that existing subnets get before the stacks change, since they lack them.
        phases: the stack updates that the deployment consists of, in order; none if there is only one.
        updates: the updates that lead to the cluster, in order; this plan is of the first. None if one is enough.
        updates_reason: why there are several.
        file_change: how the cluster file differs from the deployed one; null if it does not, and for a new cluster.
    """

    kind: ClassVar[str] = "plan"
    stack: str
    stack_id: str
    operation: str
    change_set_id: str = ""
    created: datetime | None = None
    stacks: tuple[StackPlan, ...] = ()
    counts: Counts = field(default_factory=Counts)
    danger: Danger = Danger.NONE
    templates_only: bool = False
    creation: CreationSummary | None = None
    quotas: tuple[Quota, ...] = ()
    quotas_ignored: bool = False
    costs: tuple[Cost, ...] = ()
    bill: MonthlyBill | None = None
    on_failure: str = "ROLLBACK"
    express: bool = False
    shell: bool = False
    predicted: tuple[Impact, ...] = ()
    retries: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()
    downloads: Downloads | None = None
    subnet_tags: tuple[SubnetTag, ...] = ()
    phases: tuple[Phase, ...] = ()
    updates: tuple[PlannedUpdate, ...] = ()
    updates_reason: str = ""
    file_change: FileChange | None = None
    _executed: list[str] = field(default_factory=list, repr=False, compare=False)

    @property
    def place(self) -> str:
        """Region and account of the stack, in words; empty if the stack has no ARN yet."""
        arn_parts = self.stack_id.split(":")
        return f"{arn_parts[3]}, account {arn_parts[4]}" if len(arn_parts) > 4 else ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to do."""
        return self.leaves_stack and not self.subnet_tags

    @property
    def leaves_stack(self) -> bool:
        """Whether there is nothing to do in the stacks; existing subnets may get tags."""
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
    def refusal_reason(self) -> str:
        """Why the plan cannot be executed with its options; empty if it can."""
        failures = [impact.text for impact in self.consequences if impact.fails]
        if failures:
            return "; ".join(failures)
        exceeded = ", ".join(quota.name for quota in self.quotas if quota.sufficient is False)
        if exceeded and not self.quotas_ignored:
            return f"the account's quotas do not suffice ({exceeded}); --ignore-quotas continues anyway"
        # CloudFormation replaces no resources in express mode or while rollback is disabled.
        if self.operation == "create" or not self.replaces or not (self.on_failure == "DO_NOTHING" or self.express):
            return ""
        first_change, *other_changes = self.replaces
        others_text = f" and {len(other_changes)} more" if other_changes else ""
        mode = "in express mode" if self.express else "while rollback is disabled (--on-failure keep)"
        return (
            f"{first_change.logical_id}{others_text} may be replaced, and CloudFormation replaces no resources {mode}"
        )

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes of all stacks."""
        return tuple(change for stack in self.stacks for change in stack.changes)

    @property
    def consequences(self) -> tuple[Impact, ...]:
        """All impacts that are not harmless, the most dangerous first, without duplicates."""
        impacts = list(self.predicted)
        for stack in self.stacks:
            if stack.impact:
                impacts.append(stack.impact)
            impacts += [change.impact for change in stack.changes if change.impact]
        # A dictionary drops duplicates and keeps the order.
        dangerous_impacts = dict.fromkeys(impact for impact in impacts if impact.danger is not Danger.NONE)
        return tuple(sorted(dangerous_impacts, key=lambda impact: -impact.danger.rank))


@dataclass(frozen=True)
class RecreationPlan(Message):
    """What a deployment will do to a stack whose creation failed: CloudFormation can only delete it.

    There is no plan of the creation until then, since CloudFormation creates no change set for the stack.

    Attributes:
        stack: name of the root stack.
        stack_id: its ARN.
        status: its status.
        remains: logical ids of the root's resources that still exist.
    """

    kind: ClassVar[str] = "recreationPlan"
    stack: str
    stack_id: str
    status: str
    remains: tuple[str, ...] = ()


@dataclass(frozen=True)
class PlanRequest:
    """The input from which the change set and the plan of a deployment are created.

    Attributes:
        documents: the templates of the cluster, which show what outputs and parameters refer to.
        parameters: entries of CreateChangeSet's `Parameters`.
        values: values of the root's parameters, without references.
        deployed: the deployed stacks, if they have been read and have not changed since; None to read them.
        token: unique to this request: letters, digits and hyphens.
        on_failure: what happens to the stack if the deployment fails: `ROLLBACK`, `DELETE` (only for a new stack) or
            `DO_NOTHING`.
        role_arn: service role for CloudFormation; if empty, the stack's own role or the caller's permissions are used.
        notification_arns: SNS topics that receive the stack's events; None leaves them unchanged.
        quotas: what is added to the usage of the account's quotas, from `preflight.quotas.service_quotas`.
        bill: the monthly bill; None without a price list.
        predicted: impacts that the change set does not show.
        note: description of the change set: who created it, and whether the stack is protected at the end.
        master_count: current number of masters; 0 if it is not known.
    """

    stack: str
    cluster: Cluster
    template_url: str
    documents: tuple[Document, ...]
    token: str
    parameters: tuple[AwsObject, ...] = ()
    values: Mapping[str, str] = field(default_factory=dict)
    deployed: StackTree | None = None
    capabilities: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    on_failure: str = "ROLLBACK"
    role_arn: str = ""
    notification_arns: tuple[str, ...] | None = None
    express: bool = False
    quotas: tuple[Quota, ...] = ()
    quotas_ignored: bool = False
    costs: tuple[Cost, ...] = ()
    bill: MonthlyBill | None = None
    predicted: tuple[Impact, ...] = ()
    note: str = ""
    master_count: int = 0
