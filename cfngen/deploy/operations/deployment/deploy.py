"""Deploying: creating or updating the root stack through change sets, after showing the plan and asking for consent.

    ensure deployable -> parameters -> publish -> plan -> consent -> tag subnets -> execute -> watch -> protect

A creation is one change set. An update that affects volumes, control plane and node groups is split into phases
(`phasing`), each with its own change set. A cluster that begins or ends to use an issuer of tokens goes through several
updates (`update_series`), each of which is all of this.

If the deployment ends before its execution, the change set is deleted, and with it the empty stack that CloudFormation
created for it. Uploaded templates stay in the bucket; their keys contain the hash of their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import datetime
from typing import Literal

from cfngen.deploy.aws import protection
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.planning_account import PlanningAccount
from cfngen.deploy.aws.stacks import StackView, find_stack
from cfngen.deploy.aws.templates import nested_template_names
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Finished, Notice, Question, Step
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations import leftovers, stack_protection
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deployment import execution, phase_execution, update_series
from cfngen.deploy.operations.deployment.attaching import cancel_creation
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest, Preparation, prepare
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.plan import Change, Plan, Replacement
from cfngen.deploy.preflight.pausing import ensure_not_paused
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.expectations import Expectation, ResourceAction, expect_operation
from cfngen.deploy.watching.watch import WatchResult, watch
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.templates.document import Document

_EXPECTED_ACTION_BY_CHANGE: Mapping[str, ResourceAction] = {
    "add": "create",
    "import": "create",
    "update": "update",
    "remove": "delete",
}


class StartInterruptedError(CfngenError):
    """Ctrl-C was pressed during the call that starts the operation, so it may or may not have started."""

    code = "start-interrupted"

    def __init__(self, stack: str) -> None:
        super().__init__(
            f"interrupted during the call that starts the operation: it may be running on the stack {stack}",
            hint=CommandText(suggest("watch", stack=stack), " shows it, and can cancel it."),
        )


class ImpossiblePlanError(CfngenError):
    """The plan is known to fail before it is executed."""

    code = "impossible-plan"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"nothing was changed, since the deployment would fail: {reason}",
            hint="change the cluster file or the options.",
        )


def plan(account: Account, request: DeploymentRequest, interaction: Interaction) -> Plan:
    """Return what a deployment would change, without changing anything permanently.

    Raises:
        CfngenError: the same errors as `deploy`.
    """
    return prepare_plan(account, request, interaction).plan


def prepare_plan(account: Account, request: DeploymentRequest, interaction: Interaction) -> Preparation:
    """Return what a deployment would change, with what the plan was made from, without changing anything permanently.

    Raises:
        CfngenError: the same errors as `deploy`.
    """
    with ExitStack() as cleanup:
        return prepare(PlanningAccount.of(account), request, interaction, cleanup)


def plan_all_updates(account: Account, request: DeploymentRequest, interaction: Interaction) -> Plan:
    """Return what all updates change together if a deployment takes several; to be looked at, not to be executed.

    Each resource is compared as it is deployed with what it is after the last update. The plan of a deployment itself
    is that of the first update.

    Raises:
        CfngenError: the same errors as `deploy`.
    """
    # A change set of its own needs a name of its own.
    request = replace(request, token=f"{request.token}-all")
    with ExitStack() as cleanup:
        return prepare(PlanningAccount.of(account), request, interaction, cleanup, all_at_once=True).plan


def deploy(account: Account, request: DeploymentRequest, interaction: Interaction) -> Finished:
    """Create or update the root stack, and watch until CloudFormation has finished.

    Returns:
        The result. If the user detached, the operation continues: `status` is the current one, `succeeded` is false.

    Raises:
        StartInterruptedError: interrupted during the call that starts the operation.
        CfngenError: refused before anything was changed, or the user declined.
    """

    def deploy_once(next_request: DeploymentRequest, is_agreed: bool) -> update_series.Deployment:
        return _deploy_once(account, next_request, interaction, is_agreed=is_agreed)

    return update_series.carry_out(request, interaction, deploy_once)


def _deploy_once(
    account: Account, request: DeploymentRequest, interaction: Interaction, *, is_agreed: bool
) -> update_series.Deployment:
    """Deploy the wanted cluster, or the next state on the way to it; return the result and the plan.

    Args:
        request: the request for the wanted cluster.
        is_agreed: whether the user agreed to this update when the series began; only dangers are asked about again.
    """
    start_time = account.clock.now()
    with ExitStack() as cleanup:
        preparation = prepare(account, request, interaction, cleanup)
        request = preparation.request
        whole_plan, deployed_stack, phases = preparation.plan, preparation.deployed_stack, preparation.phases
        if deployed_stack is None:
            leftovers.report_earlier_stacks(account, request.stack_name, request.cluster.name, interaction.report)
        interaction.report(replace(whole_plan, updates=(), updates_reason="") if is_agreed else whole_plan)
        if whole_plan.is_empty:
            if deployed_stack is not None:
                _protect(account, deployed_stack, request, interaction)
            finished = _finished_without_changes(account, request, start_time, deployed_stack)
            return update_series.Deployment(finished, whole_plan)
        if whole_plan.refusal_reason:
            raise ImpossiblePlanError(whole_plan.refusal_reason)
        if not is_agreed or whole_plan.is_dangerous:
            _require_consent(interaction, request, whole_plan)
        if preparation.removed_issuer and deployed_stack is not None:
            update_series.wait_for_new_tokens(account, deployed_stack, interaction)
        _ensure_not_paused_since(account, request, deployed_stack)
        with translate_aws_errors():
            execution.add_missing(account, request.cluster, preparation.values, interaction.report)
        if whole_plan.leaves_stack:
            if deployed_stack is not None:
                _protect(account, deployed_stack, request, interaction)
            finished = _finished_without_changes(account, request, start_time, deployed_stack, action="tag")
            return update_series.Deployment(finished, whole_plan)
        changes_protected_resource = any(_is_protected(change) for change in whole_plan.changes)
        if deployed_stack is not None and (whole_plan.is_dangerous or changes_protected_resource):
            # `cleanup` restores the stack policies however the operation ends.
            cleanup.enter_context(
                stack_protection.lift_stack_policies(account, deployed_stack, report=interaction.report)
            )
        if deployed_stack is None and request.protect and request.on_failure != "delete":
            stack_protection.protect_new_stack(account, whole_plan.stack_id)
        interaction.report(Step(f"{'creating' if deployed_stack is None else 'updating'} {request.stack_name}"))

        def execute(plan: Plan, documents: Sequence[Document]) -> WatchResult:
            """Execute the change set of a plan, which deploys these templates, and watch it until it has ended."""
            _ensure_not_paused_since(account, request, deployed_stack)
            try:
                stack_id = execution.execute(account, plan)
            except KeyboardInterrupt:
                raise StartInterruptedError(request.stack_name) from None
            return watch(
                account,
                stack_id,
                since=plan.created,
                report=interaction.report,
                on_interrupt=interaction.on_interrupt,
                expected=_expect_changes(request, documents, plan),
            )

        with translate_aws_errors():
            if phases:
                outcome = phase_execution.carry_out(account, phases, interaction, execute, request.cluster.name)
            else:
                outcome = execute(plan=whole_plan, documents=request.documents)
            if outcome.cancelled and not outcome.status.rolling_back and deployed_stack is None:
                outcome = cancel_creation(account, interaction, outcome)
    finished = _finish(account, request, interaction, outcome, "create" if deployed_stack is None else "update")
    if finished.succeeded and preparation.removed_issuer and deployed_stack is not None:
        buckets = update_series.buckets_of(preparation.removed_issuer, deployed_stack)
        removal.remove_issuer_buckets(account, buckets, interaction.report)
    return update_series.Deployment(finished, whole_plan)


def _ensure_not_paused_since(account: Account, request: DeploymentRequest, deployed_stack: StackView | None) -> None:
    """Refuse a cluster that somebody has paused while a question waited for its answer, or between two phases.

    Raises:
        PausedError: the cluster is paused.
    """
    if deployed_stack is not None:
        ensure_not_paused(account, deployed_stack, request.cluster)


def _expect_changes(request: DeploymentRequest, documents: Sequence[Document], plan: Plan) -> Expectation:
    templates_by_name = {document.name: document.body for document in documents}
    # Keys are paths of logical ids from the root stack: () is the root itself.
    templates_by_path: dict[tuple[str, ...], TemplatePart] = {(): templates_by_name["cluster"]}
    for logical_id, name in nested_template_names(templates_by_name["cluster"]).items():
        templates_by_path[logical_id,] = templates_by_name[name]
    file_values = request.parameter_file.values if request.parameter_file else {}
    # A parameter on the command line overrides the same parameter in the file.
    values = {**file_values, **request.flags}
    if plan.operation == "create":
        return expect_operation(templates_by_path, "create", values)
    # Keys are the path of a stack and the logical id of a resource in it.
    actions: dict[tuple[tuple[str, ...], str], ResourceAction] = {}
    for stack in plan.stacks:
        for change in stack.changes:
            is_replaced = change.replacement is not Replacement.NO
            actions[stack.path, change.logical_id] = (
                "replace" if is_replaced else _EXPECTED_ACTION_BY_CHANGE[change.action]
            )
    return expect_operation(templates_by_path, actions, values)


def _require_consent(interaction: Interaction, request: DeploymentRequest, plan: Plan) -> None:
    """Ask for consent to the plan.

    Raises:
        DeclinedError: the user declined.
    """
    is_dangerous = plan.is_dangerous
    updates = f" in {len(plan.updates)} updates" if plan.updates else ""
    danger = " despite the danger above" if is_dangerous else ""
    text = f"Deploy {request.stack_name}{updates}{danger}?"
    interaction.require_consent(
        Question(text, dangerous=is_dangerous, name=request.cluster.name if is_dangerous else "")
    )


def _finish(
    account: Account, request: DeploymentRequest, interaction: Interaction, outcome: WatchResult, action: str
) -> Finished:
    with translate_aws_errors():
        stack = find_stack(account, outcome.stack_id)
    if not outcome.detached and stack is not None:
        if outcome.succeeded:
            _protect(account, stack, request, interaction)
        else:
            interaction.report(diagnose(account, stack.id))
            stack_protection.unprotect_failed_creation(account, stack, interaction.report)
            leftovers.report_lost_addresses(account, stack, interaction.report)
            if action == "create" and stack.status.health is not StackHealth.PAUSED:
                leftovers.report_failed_creation(account, stack, request.cluster.name, interaction.report)
    return outcome.finished(action, stack)


def _is_protected(change: Change) -> bool:
    deletes_resource = change.action == "remove" or change.replacement is not Replacement.NO
    return deletes_resource and change.type in protection.PROTECTED_TYPES


def _protect(account: Account, stack: StackView, request: DeploymentRequest, interaction: Interaction) -> None:
    try:
        stack_protection.protect_stack(account, stack, request.protect, report=interaction.report)
    except AwsError as error:
        text = f"{stack.name} is up to date, but not protected: {error}"
        interaction.report(Notice(text, error.hint or "the next deployment tries again."))


def _finished_without_changes(
    account: Account,
    request: DeploymentRequest,
    start_time: datetime,
    stack: StackView | None,
    action: Literal["tag", "none"] = "none",
) -> Finished:
    """Return the result of a deployment that left the stack as it was; `stack` is None if there is no stack."""
    return Finished(
        action=action,
        stack=request.stack_name,
        stack_id=stack.id if stack else "",
        status=stack.status.name if stack else "",
        succeeded=True,
        seconds=(account.clock.now() - start_time).total_seconds(),
        outputs=stack.outputs if stack else {},
    )
