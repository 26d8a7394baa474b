"""Deploying: creating or updating the root stack through change sets, after showing the plan and asking for consent.

    ensure deployable -> parameters -> publish -> plan -> consent -> tag subnets -> execute -> watch -> protect

A creation is one change set. An update that affects volumes, control plane and node groups is split into phases
(`phasing`), each with its own change set.

If the deployment ends before its execution, the change set is deleted, and with it the empty stack that CloudFormation
created for it. Uploaded templates stay in the bucket; their keys contain the hash of their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Literal

from cfngen.cluster.model import Cluster
from cfngen.deploy import operation_origin, ownership, protection, public_addresses, subnet_tags
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.aws_types import TemplatePart
from cfngen.deploy.creation_cancellation import cancel_creation
from cfngen.deploy.deletion import leftovers
from cfngen.deploy.interaction import Interaction
from cfngen.deploy.messages import Finished, Notice, Question, Step
from cfngen.deploy.network_check.checks import QUOTAS, ensure_network
from cfngen.deploy.parameters import parameter_values
from cfngen.deploy.parameters.parameter_file import ParameterFile
from cfngen.deploy.phasing import update
from cfngen.deploy.phasing.deployed import read_deployed
from cfngen.deploy.phasing.part_planning import PartPlanner
from cfngen.deploy.planning_account import PlanningAccount
from cfngen.deploy.preview import change_sets, existing_objects, foundations, master_addresses, volumes
from cfngen.deploy.preview.changes import Change, Replacement
from cfngen.deploy.preview.costs import cost_differences
from cfngen.deploy.preview.immutable_changes import setting_impacts
from cfngen.deploy.preview.plan import Plan
from cfngen.deploy.preview.plan_request import PlanRequest
from cfngen.deploy.publishing import capabilities
from cfngen.deploy.publishing.carrying import add_old_programs
from cfngen.deploy.publishing.publish import assign_template_urls, nested_template_names, publish
from cfngen.deploy.quotas import route_tables, service_quotas
from cfngen.deploy.quotas.demand import Demand, count_demand, read_deployed_demand
from cfngen.deploy.recovery import ensure_deployable
from cfngen.deploy.stacks import StackView, find_stack, read_template
from cfngen.deploy.status import StackHealth
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.expectations import Expectation, ResourceAction, expect_operation
from cfngen.deploy.watching.watch import WatchResult, watch
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest
from cfngen.templates.document import Document
from cfngen.templates.immutable_settings import MASTER_COUNT_KEY, recorded_settings

OnFailure = Literal["rollback", "delete", "keep"]
_EXPECTED_ACTION_BY_CHANGE: Mapping[str, ResourceAction] = {
    "add": "create",
    "import": "create",
    "update": "update",
    "remove": "delete",
}
_ON_STACK_FAILURE_BY_OPTION = {"rollback": "ROLLBACK", "delete": "DELETE", "keep": "DO_NOTHING"}


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


@dataclass(frozen=True)
class DeploymentRequest:
    """What the user wants to deploy, and with which options.

    Attributes:
        cluster: the complete cluster.
        documents: the templates generated from the cluster.
        stack_name: name of the root stack.
        bucket: the operator's bucket for templates; empty means the bucket that cfngen creates.
        kms_key: KMS key that encrypts the bucket that cfngen creates; empty means S3's managed key.
        flags: parameters given on the command line.
        parameter_file: parameters given in a file; None if there is none.
        kept_parameters: names of the parameters that keep the value they have in the stack.
        tags: the operator's tags for every resource, in addition to those the stack has already.
        role_arn: service role of CloudFormation; empty means the caller's permissions.
        notification_arns: SNS topics for stack events; None keeps the stack's topics.
        on_failure: what CloudFormation does when something fails.
        protect: whether to enable termination protection.
        express: whether to use CloudFormation's express mode.
        token: unique name of this deployment: letters, digits and hyphens.
        ignore_quotas: whether to deploy even if the account's quotas are exceeded.
        skip_network_check: whether to create the cluster in an existing VPC without looking at its network first.
    """

    cluster: Cluster
    documents: Sequence[Document]
    stack_name: str
    token: str
    bucket: str = ""
    kms_key: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    parameter_file: ParameterFile | None = None
    kept_parameters: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    role_arn: str = ""
    notification_arns: tuple[str, ...] | None = None
    on_failure: OnFailure = "rollback"
    protect: bool = True
    express: bool = False
    ignore_quotas: bool = False
    skip_network_check: bool = False


def plan(account: Account, request: DeploymentRequest, interaction: Interaction) -> Plan:
    """Return what a deployment would change, without changing anything permanently.

    Raises:
        CfngenError: the same errors as `deploy`.
    """
    with ExitStack() as cleanup:
        return _prepare(PlanningAccount.of(account), request, interaction, cleanup).plan


def deploy(account: Account, request: DeploymentRequest, interaction: Interaction) -> Finished:
    """Create or update the root stack, and watch until CloudFormation has finished.

    Returns:
        The result. If the user detached, the operation continues: `status` is the current one, `succeeded` is false.

    Raises:
        StartInterruptedError: interrupted during the call that starts the operation.
        CfngenError: refused before anything was changed, or the user declined.
    """
    start_time = account.clock.now()
    with ExitStack() as cleanup:
        preparation = _prepare(account, request, interaction, cleanup)
        whole_plan, deployed_stack, phases = preparation.plan, preparation.deployed_stack, preparation.phases
        if deployed_stack is None:
            leftovers.report_earlier_stacks(account, request.stack_name, request.cluster.name, interaction.report)
        interaction.report(whole_plan)
        if whole_plan.is_empty:
            if deployed_stack is not None:
                _protect(account, deployed_stack, request, interaction)
            return _finished_without_changes(account, request, start_time, deployed_stack)
        if whole_plan.refusal_reason:
            raise ImpossiblePlanError(whole_plan.refusal_reason)
        _require_consent(interaction, request, whole_plan)
        with translate_aws_errors():
            subnet_tags.add_missing(account, request.cluster, preparation.values, interaction.report)
        if whole_plan.leaves_stack:
            if deployed_stack is not None:
                _protect(account, deployed_stack, request, interaction)
            return _finished_without_changes(account, request, start_time, deployed_stack, action="tag")
        changes_protected_resource = any(_is_protected(change) for change in whole_plan.changes)
        if deployed_stack is not None and (whole_plan.is_dangerous or changes_protected_resource):
            # `cleanup` restores the stack policies however the operation ends.
            cleanup.enter_context(protection.lift_stack_policies(account, deployed_stack, report=interaction.report))
        if deployed_stack is None and request.protect and request.on_failure != "delete":
            protection.protect_new_stack(account, whole_plan.stack_id)
        interaction.report(Step(f"{'creating' if deployed_stack is None else 'updating'} {request.stack_name}"))

        def execute(plan: Plan, documents: Sequence[Document]) -> WatchResult:
            """Execute the change set of a plan, which deploys these templates, and watch it until it has ended."""
            try:
                stack_id = change_sets.execute(account, plan)
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
                outcome = update.carry_out(account, phases, interaction, execute, request.cluster.name)
            else:
                outcome = execute(plan=whole_plan, documents=request.documents)
            if outcome.cancelled and not outcome.status.rolling_back and deployed_stack is None:
                outcome = cancel_creation(account, interaction, outcome)
    return _finish(account, request, interaction, outcome, "create" if deployed_stack is None else "update")


@dataclass(frozen=True)
class _Preparation:
    """The plan of a deployment, and what it was made from.

    Attributes:
        plan: the plan.
        deployed_stack: the root stack; None if it does not exist yet.
        values: values of the root's parameters.
        phases: the phases of the update; None if it is one stack update, or a creation.
    """

    plan: Plan
    deployed_stack: StackView | None
    values: Mapping[str, str]
    phases: update.PhasedUpdate | None = None


def _prepare(
    account: Account, request: DeploymentRequest, interaction: Interaction, cleanup: ExitStack
) -> _Preparation:
    """Check the request, upload the templates and make the plan; `cleanup` deletes the unexecuted change set."""
    name = request.cluster.name
    with translate_aws_errors():
        deployed_stack = ensure_deployable(account, request.stack_name, name, interaction)
        deployed_root_template = read_template(account, deployed_stack.id) if deployed_stack else {}
        immutable_impacts = setting_impacts(deployed_root_template, request.cluster)
        templates_to_upload = add_old_programs(
            account, request.documents, deployed_stack, cluster=name, bucket=request.bucket, report=interaction.report
        )
        request = replace(request, documents=templates_to_upload.documents)
        # The parameters are checked against the root template, which comes last, before anything is uploaded.
        *_nested_templates, root = assign_template_urls(account, request.documents, cluster=name, bucket=request.bucket)
        parameters = parameter_values.choose_values(
            root.document.body,
            option_values=request.flags,
            file=request.parameter_file,
            kept_parameters=request.kept_parameters,
            deployed_stack=deployed_stack,
            deployed_root_template=deployed_root_template or None,
        )
        values = {**_parameter_defaults(root.document.body), **parameters.values}
        foundations.check(deployed_stack.parameters if deployed_stack else {}, values)
        if deployed_stack is None and not request.skip_network_check:
            ensure_network(
                account, request.cluster, interaction.report, values, without=(QUOTAS,) if request.ignore_quotas else ()
            )
        existing_objects.check(account, request.cluster, values, deployed_stack)
        missing_tags = subnet_tags.find_missing(account, request.cluster, values)
        route_tables.check(account, request.cluster, values)
        master_addresses.check(account, request.cluster, values, deployed_stack)
        upload = partial(
            publish, account, cluster=name, bucket=request.bucket, kms_key=request.kms_key, report=interaction.report
        )
        published = upload(request.documents)
        volume_findings = (
            volumes.check_volume_sizes(account, deployed_stack, parameters.values)
            if deployed_stack
            else volumes.VolumeFindings()
        )
        for notice in (*parameters.notices, *volume_findings.notices):
            interaction.report(notice)
        new_demand = count_demand(request.documents, parameters.values)
        current_demand = _read_current_demand(account, deployed_stack, interaction)
        plan_request = PlanRequest(
            stack=request.stack_name,
            cluster=request.cluster,
            template_url=published.template_url,
            documents=tuple(request.documents),
            token=request.token,
            parameters=parameters.request_parameters,
            capabilities=capabilities.capabilities(request.documents),
            tags=ownership.root_stack_tags(name, request.tags, deployed_stack),
            on_failure=_ON_STACK_FAILURE_BY_OPTION[request.on_failure],
            role_arn=request.role_arn,
            notification_arns=request.notification_arns,
            express=request.express,
            predicted=(*immutable_impacts, *templates_to_upload.impacts, *volume_findings.impacts),
            note=operation_origin.change_set_description(account, name, protect=request.protect),
            quotas=() if current_demand is None else service_quotas.check(account, new_demand, current_demand),
            quotas_ignored=request.ignore_quotas,
            costs=()
            if current_demand is None or deployed_stack is None
            else cost_differences(current_demand, new_demand),
            master_count=int(recorded_settings(deployed_root_template).get(MASTER_COUNT_KEY, 0)),
        )
        interaction.report(Step("creating a change set"))
        whole_plan = replace(
            change_sets.make_plan(account, plan_request, report=interaction.report), subnet_tags=missing_tags
        )
        cleanup.callback(change_sets.discard, account, whole_plan, interaction.report)
        if (
            deployed_stack is None
            or whole_plan.operation != "update"
            or not whole_plan.change_set_id
            or whole_plan.leaves_stack
            or whole_plan.refusal_reason
        ):
            return _Preparation(whole_plan, deployed_stack, values)
        phases = update.plan_phases(
            whole_plan,
            read_deployed(account, deployed_stack.id, deployed_root_template),
            request.documents,
            PartPlanner(account, plan_request, upload, interaction.report, cleanup),
            lambda plan: change_sets.discard(account, plan, interaction.report),
        )
    return _Preparation(phases.overall_plan if phases else whole_plan, deployed_stack, values, phases)


def _read_current_demand(account: Account, deployed_stack: StackView | None, interaction: Interaction) -> Demand | None:
    """Return what the deployed cluster uses of the account's quotas: nothing for a new one, None if unreadable."""
    if deployed_stack is None:
        return Demand()
    try:
        return read_deployed_demand(account, deployed_stack)
    except AwsError as error:
        interaction.report(Notice(f"the update's effect on costs and quotas is unknown: {error}", error.hint))
        return None


def _parameter_defaults(root: TemplatePart) -> dict[str, str]:
    """Return the default values of a template's parameters."""
    parameters = root.get("Parameters", {}).items()
    return {name: str(parameter["Default"]) for name, parameter in parameters if "Default" in parameter}


def _expect_changes(request: DeploymentRequest, documents: Sequence[Document], plan: Plan) -> Expectation:
    """Return which resources the operation will create, change or delete, for the progress display.

    Args:
        request: the deployment.
        documents: the templates that the operation deploys.
        plan: the plan that the operation executes.
    """
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
    text = f"Deploy {request.stack_name} despite the danger above?" if is_dangerous else f"Deploy {request.stack_name}?"
    interaction.require_consent(
        Question(text, dangerous=is_dangerous, name=request.cluster.name if is_dangerous else "")
    )


def _finish(
    account: Account, request: DeploymentRequest, interaction: Interaction, outcome: WatchResult, action: str
) -> Finished:
    """Protect the stack after success, report the diagnosis after a failure, and return the result."""
    with translate_aws_errors():
        stack = find_stack(account, outcome.stack_id)
    if not outcome.detached and stack is not None:
        if outcome.succeeded:
            _protect(account, stack, request, interaction)
        else:
            interaction.report(diagnose(account, stack.id))
            protection.unprotect_failed_creation(account, stack, interaction.report)
            public_addresses.report_lost_addresses(account, stack, interaction.report)
            if action == "create" and stack.status.health is not StackHealth.PAUSED:
                leftovers.report_failed_creation(account, stack, request.cluster.name, interaction.report)
    return outcome.finished(action, stack)


def _is_protected(change: Change) -> bool:
    """Return whether the stack policies deny a change: they deny replacing and deleting the protected types."""
    deletes_resource = change.action == "remove" or change.replacement is not Replacement.NO
    return deletes_resource and change.type in protection.PROTECTED_TYPES


def _protect(account: Account, stack: StackView, request: DeploymentRequest, interaction: Interaction) -> None:
    """Protect a deployed stack; an AWS error is reported as a notice, since the deployment itself has succeeded."""
    try:
        protection.protect_stack(account, stack, request.protect, report=interaction.report)
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
