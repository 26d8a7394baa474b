"""Plans an update phase by phase; the change set of each phase is created just before it is executed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial

from cfngen.cluster.security_group_ids import RuleId
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.stacks import require_stack
from cfngen.deploy.aws.templates import DeployedTemplates
from cfngen.deploy.aws.types import AwsObject
from cfngen.deploy.messages.message import Report, Step
from cfngen.deploy.plan import change_sets
from cfngen.deploy.plan.phases import documents
from cfngen.deploy.plan.phases.documents import parameters_of_volumes
from cfngen.deploy.plan.phases.parts import UpdatePart, divide_into_parts
from cfngen.deploy.plan.plan import Change, Phase, Plan, PlanRequest
from cfngen.deploy.plan.publishing import publish
from cfngen.deploy.plan.publishing.publish import PublishedTemplates
from cfngen.templates.document import Document

PlanPart = Callable[[UpdatePart, Sequence[Document], int], Plan]
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
    for position, part in enumerate(parts):
        remaining_parts = parts[position:]
        first_plan = plan_part(part, phase_documents(deployed, requested, remaining_parts), position)
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

    def __call__(self, part: UpdatePart, documents: Sequence[Document], position: int) -> Plan:
        """Create a change set for a part of the update and return its plan.

        Raises:
            CfngenError: CloudFormation cannot create the change set.
        """
        published = self.upload(documents)
        is_volume_phase = part.kind == "volumes"
        parameters = self.request.parameters
        if is_volume_phase:
            parameters = self._volume_update_parameters(published.root)
        request = replace(
            self.request,
            template_url=published.template_url,
            documents=tuple(documents),
            token=f"{self.request.token}-{position}",
            parameters=parameters,
            capabilities=publish.capabilities(documents),
            on_failure=NO_ROLLBACK if is_volume_phase else self.request.on_failure,
            predicted=(),
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
