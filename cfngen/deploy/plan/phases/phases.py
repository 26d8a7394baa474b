"""Divides an update into parts and plans each as a phase; its change set is created just before it is executed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from cfngen.cluster.naming.logical_ids import MASTER_STACK
from cfngen.cluster.naming.network_ids import RuleId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.operation_origin import followed_by
from cfngen.deploy.aws.stacks import require_stack
from cfngen.deploy.aws.templates import DeployedTemplates
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Danger, Report, Step
from cfngen.deploy.plan import change_sets
from cfngen.deploy.plan.phases import documents
from cfngen.deploy.plan.phases.documents import MODIFIABLE_PROPERTIES, VOLUME, parameters_of_volumes
from cfngen.deploy.plan.plan import Change, Phase, PhaseKind, Plan, PlanRequest, Replacement, StackPlan
from cfngen.deploy.plan.publishing import publish
from cfngen.deploy.plan.publishing.publish import PublishedTemplates
from cfngen.templates.document import Document

_MODIFIABLE_PATHS = tuple(f"/Properties/{name}" for name in MODIFIABLE_PROPERTIES)


@dataclass(frozen=True)
class UpdatePart:
    """A part of an update that is carried out as one stack update; the plan shows it as a `Phase`.

    Attributes:
        kind: what the part updates, e.g. `volumes` or `node-groups`.
        groups: logical ids of the node group stacks that the part updates; empty for other kinds.
    """

    kind: PhaseKind
    stacks: tuple[StackPlan, ...]
    groups: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What the part updates, in words."""
        return self.phase(predicted=True).title

    def phase(self, *, predicted: bool) -> Phase:
        """Return the part as the plan shows it; `predicted` if the part has no change set yet."""
        return Phase(self.kind, self.groups, predicted=predicted, stacks=self.stacks)


PlanPart = Callable[[Sequence[UpdatePart], Sequence[Document], int], Plan]
"""Takes a part, the templates to deploy, and the part's position, which becomes part of the change set's name."""


@dataclass
class PhasedUpdate:
    """An update in phases; only the first phase has a change set yet.

    Attributes:
        overall_plan: the plan of the whole update, as the user sees it.
        first_plan: the plan of the first phase, whose change set can be executed.
        parts: all parts, including the first.
        deployed: the templates and parameters before the update.
    """

    overall_plan: Plan
    first_plan: Plan
    parts: tuple[UpdatePart, ...]
    deployed: DeployedTemplates
    requested: tuple[Document, ...]
    plan_part: PlanPart


def plan_phases(
    overall_plan: Plan,
    deployed: DeployedTemplates,
    requested: Sequence[Document],
    plan_part: PlanPart,
    discard: Callable[[Plan], None],
    *,
    parallel_groups: int = 1,
) -> PhasedUpdate | None:
    """Return an update in phases; None if one normal stack update is enough.

    An update of nothing but volumes is one phase too, since it must not be rolled back: EBS cannot shrink volumes.

    Args:
        overall_plan: the plan of the whole update; its change set is deleted if there are several phases.
        parallel_groups: how many node groups with disruptive changes are updated together.
    """
    root = next(document for document in requested if document.children)
    separable_groups = _separable_groups(overall_plan, deployed, requested)
    parts = divide_into_parts(
        overall_plan, separable_groups, list(root.body["Resources"]), parallel_groups=parallel_groups
    )
    make_update = partial(PhasedUpdate, deployed=deployed, requested=tuple(requested), plan_part=plan_part)
    if len(parts) == 1 and parts[0].kind == "volumes":
        plan = replace(overall_plan, on_failure=NO_ROLLBACK)
        return make_update(overall_plan=plan, first_plan=plan, parts=parts)
    if len(parts) < 2:
        return None
    discard(overall_plan)
    for position in range(len(parts)):
        remaining_parts = parts[position:]
        first_plan = plan_part(remaining_parts, phase_documents(deployed, requested, remaining_parts), position)
        if not first_plan.is_empty:  # else nothing changes in this part, and the update starts with the next one
            plan = _plan_with_phases(overall_plan, first_plan, remaining_parts)
            return make_update(overall_plan=plan, first_plan=first_plan, parts=remaining_parts)
    return None


def _separable_groups(overall_plan: Plan, deployed: DeployedTemplates, requested: Sequence[Document]) -> frozenset[str]:
    # If nodes get another security group, the rules for the old one must stay until the last node has the new one.
    changes_nodes_group = any(
        _is_for_other_nodes_group(change) for stack in overall_plan.stacks for change in stack.changes
    )
    return frozenset() if changes_nodes_group else documents.separable_groups(deployed, requested)


def _plan_with_phases(overall_plan: Plan, first_plan: Plan, parts: Sequence[UpdatePart]) -> Plan:
    """Return the plan of the whole update with the change set of its first part; a single phase is not listed."""
    first, *later_parts = parts
    first_phase = Phase(first.kind, first.groups, predicted=False, stacks=first_plan.stacks)
    return replace(
        overall_plan,
        change_set_id=first_plan.change_set_id,
        created=first_plan.created,
        phases=(first_phase, *(later.phase(predicted=True) for later in later_parts)) if later_parts else (),
    )


def _is_for_other_nodes_group(change: Change) -> bool:
    """Return whether a change replaces a rule for the nodes' security group by one for another group."""
    rule = RuleId.parse(change.logical_id)
    return (
        rule is not None
        and rule.source == "Nodes"
        and any(
            property_.certain and property_.path == "/Properties/SourceSecurityGroupId"
            for property_ in change.properties
        )
    )


def phase_documents(
    deployed: DeployedTemplates, requested: Sequence[Document], remaining_parts: Sequence[UpdatePart]
) -> tuple[Document, ...]:
    """Return the templates for the first of the remaining parts; node groups of later parts stay as deployed."""
    if remaining_parts[0].kind == "volumes":
        return documents.volume_phase_documents(deployed, requested)
    groups_of_later_parts = [group for part in remaining_parts[1:] for group in part.groups]
    if not groups_of_later_parts:
        return tuple(requested)
    return documents.with_unchanged_groups(deployed, requested, unchanged=groups_of_later_parts)


NO_ROLLBACK = "DO_NOTHING"
"""`on_failure` of a phase that grows volumes: no rollback, since it would shrink other volumes, which EBS refuses."""


@dataclass(frozen=True)
class PartPlanner:
    """Plans the phases of one update.

    Attributes:
        request: the request for the plan of the whole update.
        cleanup: callbacks that run when the command ends; they delete the change sets that were not executed.
    """

    account: Account
    request: PlanRequest
    upload: Callable[[Sequence[Document]], PublishedTemplates]
    report: Report
    cleanup: ExitStack

    def __call__(self, parts: Sequence[UpdatePart], documents: Sequence[Document], position: int) -> Plan:
        """Create a change set for the first of the remaining parts of the update and return its plan.

        Raises:
            CfngenError: CloudFormation cannot create the change set.
        """
        part, *later_parts = parts
        published = self.upload(documents)
        is_volume_phase = part.kind == "volumes"
        parameters = self.request.parameters
        if is_volume_phase:
            parameters = self._volume_update_parameters(published.root)
        request = replace(
            self.request,
            template_url=published.template_url,
            documents=tuple(documents),
            deployed=None,  # the phases before this one have changed it
            token=f"{self.request.token}-{position}",
            parameters=parameters,
            capabilities=publish.capabilities(documents),
            on_failure=NO_ROLLBACK if is_volume_phase else self.request.on_failure,
            predicted=(),
            note=followed_by(self.request.note, (later.title for later in later_parts)),
        )
        self.report(Step(f"creating a change set: {part.title}"))
        plan = change_sets.make_plan(self.account, request, report=self.report)
        self.cleanup.callback(change_sets.discard, self.account, plan, self.report)
        return plan

    def _volume_update_parameters(self, root: Document) -> tuple[AwsObject, ...]:
        """Return the root's parameters for the volume phase.

        Only parameters of volumes, and parameters that are not deployed yet, get their requested values. All others
        keep their deployed values.
        """
        with translate_aws_errors():
            deployed_parameters = require_stack(self.account, self.request.stack).parameters
        requested_parameters = {parameter["ParameterKey"]: parameter for parameter in self.request.parameters}
        volume_parameters = parameters_of_volumes(self.request.documents)
        parameters: list[AwsObject] = []
        for name in root.body.get("Parameters", {}):
            if name in deployed_parameters and name not in volume_parameters:
                parameters.append({"ParameterKey": name, "UsePreviousValue": True})
            elif name in deployed_parameters or name in requested_parameters:
                parameters.append(requested_parameters[name])
        return tuple(parameters)


def divide_into_parts(
    plan: Plan, separable_groups: Collection[str], resource_order: Sequence[str], *, parallel_groups: int = 1
) -> tuple[UpdatePart, ...]:
    """Return the parts of an update, in the order in which they are carried out.

    Volumes come first if one of them grows, then the control plane with everything else that is not a node group, then
    node groups. Node groups without disruptive changes are updated together. The others, including new ones, are
    updated one by one, or as many at a time as the user wants. Node groups that are removed come last, when their
    replacements exist.

    Args:
        separable_groups: logical ids of the node group stacks that can be updated separately from everything else.
        resource_order: logical ids of the requested root's resources; node groups are updated in this order.
        parallel_groups: how many node groups with disruptive changes are updated together.
    """
    other_stacks: list[StackPlan] = []
    changes_by_group: dict[str, list[StackPlan]] = {}
    for stack in plan.stacks:
        if stack.path and stack.path[0] in separable_groups:
            changes_by_group.setdefault(stack.path[0], []).append(stack)
            continue
        # The root's own changes: a nested stack is also listed as a resource of the root.
        group_changes = [change for change in stack.changes if not stack.path and change.logical_id in separable_groups]
        for group_change in group_changes:
            changes_by_group.setdefault(group_change.logical_id, []).append(replace(stack, changes=(group_change,)))
        other_changes = tuple(change for change in stack.changes if change not in group_changes)
        if other_changes or not group_changes:
            other_stacks.append(replace(stack, changes=other_changes))
    volumes: tuple[StackPlan, ...] = ()
    control_plane = tuple(other_stacks)
    if _any_volume_grows(other_stacks):
        volumes, control_plane = _split_volume_changes(other_stacks)
    parts = [
        UpdatePart("volumes", stacks=volumes),
        UpdatePart("control-plane", stacks=control_plane),
        *_node_group_parts(changes_by_group, resource_order, parallel_groups),
    ]
    return tuple(part for part in parts if part.stacks)


def _node_group_parts(
    changes_by_group: Mapping[str, Sequence[StackPlan]], resource_order: Sequence[str], parallel_groups: int
) -> Iterator[UpdatePart]:
    """Yield the parts that update node groups; a part without stacks is dropped by the caller.

    Args:
        resource_order: logical ids of the requested root's resources; node groups are updated in this order.
        parallel_groups: how many node groups with disruptive changes are updated together.
    """

    def part_of(kind: PhaseKind, groups: Sequence[str]) -> UpdatePart:
        stacks = tuple(stack for group in groups for stack in changes_by_group[group])
        return UpdatePart(kind, stacks=stacks, groups=tuple(groups))

    # Node groups that the requested root no longer has are missing in its order, and come last.
    position = {logical_id: index for index, logical_id in enumerate(resource_order)}
    ordered_groups = sorted(changes_by_group, key=lambda group: (position.get(group, len(position)), group))
    removed_groups: list[str] = []
    undisrupted_groups: list[str] = []
    other_groups: list[str] = []
    for group in ordered_groups:
        stacks = changes_by_group[group]
        if any(stack.action == "delete" for stack in stacks):
            removed_groups.append(group)
        elif all(stack.action == "update" and stack.danger is Danger.NONE for stack in stacks):
            undisrupted_groups.append(group)
        else:
            other_groups.append(group)
    yield part_of("node-groups", undisrupted_groups)
    for first in range(0, len(other_groups), parallel_groups):
        yield part_of("node-groups", other_groups[first : first + parallel_groups])
    yield part_of("removed-node-groups", removed_groups)


def _modifies_volume(change: Change) -> bool:
    is_update_in_place = change.action == "update" and change.replacement is Replacement.NO
    return (
        is_update_in_place
        and change.type == VOLUME
        and any(property_.path in _MODIFIABLE_PATHS for property_ in change.properties)
    )


def _any_volume_grows(stacks: Iterable[StackPlan]) -> bool:
    """Return whether the size of a master's volume changes; EBS accepts only larger sizes."""
    return any(
        _modifies_volume(change) and any(property_.path == "/Properties/Size" for property_ in change.properties)
        for stack in stacks
        if stack.path == (MASTER_STACK,)
        for change in stack.changes
    )


def _split_volume_changes(stacks: Sequence[StackPlan]) -> tuple[tuple[StackPlan, ...], tuple[StackPlan, ...]]:
    """Return the changes that modify the masters' volumes, and all other changes, both by stack.

    A change of a volume is split if it also has properties that ModifyVolume does not change, such as tags.
    """
    volume_stacks: list[StackPlan] = []
    other_stacks: list[StackPlan] = []
    for stack in stacks:
        is_masters_stack = stack.path == (MASTER_STACK,)
        volume_changes = [change for change in stack.changes if is_masters_stack and _modifies_volume(change)]
        if not volume_changes:
            other_stacks.append(stack)
            continue
        modifications = tuple(_only_modifiable_properties(change) for change in volume_changes)
        volume_stacks.append(replace(stack, changes=modifications))
        other_changes = [change for change in stack.changes if change not in volume_changes]
        for change in volume_changes:
            rest_of_change = _without_modifiable_properties(change)
            if rest_of_change.properties:
                other_changes.append(rest_of_change)
        if other_changes:
            other_stacks.append(replace(stack, changes=tuple(other_changes)))
    return tuple(volume_stacks), tuple(other_stacks)


def _only_modifiable_properties(change: Change) -> Change:
    properties = tuple(property_ for property_ in change.properties if property_.path in _MODIFIABLE_PATHS)
    return replace(change, properties=properties)


def _without_modifiable_properties(change: Change) -> Change:
    properties = tuple(property_ for property_ in change.properties if property_.path not in _MODIFIABLE_PATHS)
    # The impact and the danger describe the modification.
    return replace(change, properties=properties, impact=None, danger=Danger.NONE)
