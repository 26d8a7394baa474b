"""Prepares a deployment: checks the request against the account, uploads the templates and makes the plan.

What AWS would refuse in the middle of a deployment is refused here, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from cfngen.cluster.issuer_stages import IssuerState
from cfngen.cluster.model import Cluster
from cfngen.deploy.aws import last_operation
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.pause import read_pause
from cfngen.deploy.aws.stacks import StackView, read_template
from cfngen.deploy.aws.templates import read_deployed
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Notice, Step
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.recovery import ensure_deployable
from cfngen.deploy.plan import change_sets, issuer_updates
from cfngen.deploy.plan.costs.bill import PriceList, monthly_bill
from cfngen.deploy.plan.costs.costs import cost_differences
from cfngen.deploy.plan.phases import phases as update
from cfngen.deploy.plan.phases.phases import PartPlanner
from cfngen.deploy.plan.plan import Plan, PlanRequest
from cfngen.deploy.plan.publishing import publish as capabilities
from cfngen.deploy.plan.publishing.carrying import add_old_programs
from cfngen.deploy.plan.publishing.publish import assign_template_urls, publish
from cfngen.deploy.preflight import immutable_settings, masters, offered_instance_types, stack_checks
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.immutable_settings import setting_impacts
from cfngen.deploy.preflight.network import routes, subnet_tags
from cfngen.deploy.preflight.network.checks import QUOTAS, ensure_network
from cfngen.deploy.preflight.overridden_keys import OverriddenKeys
from cfngen.deploy.preflight.parameters import parameter_values
from cfngen.deploy.preflight.parameters.parameter_file import ParameterFile
from cfngen.deploy.preflight.parameters.parameter_values import left_out_parameters
from cfngen.deploy.preflight.pausing import PausedError
from cfngen.deploy.preflight.quotas import service_quotas
from cfngen.deploy.preflight.quotas.demand import Demand, count_demand, read_deployed_demand
from cfngen.deploy.preflight.references import moved_parts, resolve_references
from cfngen.templates import Document, generate
from cfngen.templates.immutable_settings import MASTER_COUNT_KEY, recorded_settings

_ON_STACK_FAILURE_BY_OPTION = {"rollback": "ROLLBACK", "delete": "DELETE", "keep": "DO_NOTHING"}
OnFailure = Literal["rollback", "delete", "keep"]


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
        parallel_groups: how many node groups whose nodes are replaced are updated at the same time.
        prices: the price list for the plan's monthly bill; None if there is none.
        generate: generates the templates of a state between the deployed and the wanted cluster; see
            `cfngen.cluster.issuer_stages`.
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
    parallel_groups: int = 1
    prices: PriceList | None = None
    generate: Callable[[Cluster], Sequence[Document]] = generate


@dataclass(frozen=True)
class Preparation:
    """The plan of a deployment, and what it was made from.

    Attributes:
        plan: the plan.
        deployed_stack: the root stack; None if it does not exist yet.
        values: values of the root's parameters.
        request: the request that is carried out: that of the next update if the cluster file takes several.
        removed_issuer: the issuer that the update removes, whose tokens pods may still hold; None if it removes none.
        phases: the phases of the update; None if it is one stack update, or a creation.
    """

    plan: Plan
    deployed_stack: StackView | None
    values: Mapping[str, str]
    request: DeploymentRequest
    removed_issuer: IssuerState | None = None
    phases: update.PhasedUpdate | None = None


def prepare(
    account: Account,
    request: DeploymentRequest,
    interaction: Interaction,
    cleanup: ExitStack,
    *,
    all_at_once: bool = False,
) -> Preparation:
    """Check the request, upload the templates and make the plan.

    Args:
        account: the account and region.
        request: the request.
        interaction: reports to the user, and asks.
        cleanup: deletes the change set if it is not executed.
        all_at_once: whether to plan the way to the wanted cluster as one stack update, even if a deployment takes
            several. Such a plan shows what all of them change together, and is not to be executed.
    """
    name = request.cluster.name
    with translate_aws_errors():
        deployed_stack = ensure_deployable(account, request.stack_name, name, interaction)
        if deployed_stack:
            _check_pause(account, deployed_stack, request, interaction)
        deployed_root_template = read_template(account, deployed_stack.id) if deployed_stack else {}
        clusters = immutable_settings.next_clusters(deployed_root_template, request.cluster)
        clusters = clusters[-1:] if all_at_once else clusters
        updates = issuer_updates.planned_updates(deployed_root_template, clusters)
        if updates:
            objects.check_next_updates(account, request.cluster, deployed_stack)
            request = replace(request, cluster=clusters[0], documents=request.generate(clusters[0]))
        removed_issuer = immutable_settings.removed_issuer(deployed_root_template, request.cluster)
        immutable_impacts = (
            *setting_impacts(deployed_root_template, request.cluster),
            *issuer_updates.issuer_impacts(deployed_root_template, request.cluster),
        )
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
            left_out=left_out_parameters(request.cluster),
        )
        overridden = OverriddenKeys(request.cluster, parameters.sources)
        with overridden.named():
            resolved = resolve_references(
                account, request.cluster, {**_parameter_defaults(root.document.body), **parameters.values}
            )
        cluster, values = resolved.cluster, resolved.values
        immutable_settings.check(deployed_stack.values if deployed_stack else {}, values, resolved.reference_by_name)
        is_network_judged = False
        if not request.skip_network_check:
            is_network_judged = ensure_network(
                account,
                cluster,
                interaction.report,
                values,
                without=(QUOTAS,) if request.ignore_quotas else (),
                is_update=deployed_stack is not None,
                source_of=overridden.source,
            )
        with overridden.named():
            objects.check(
                account,
                cluster,
                values,
                deployed_stack,
                interaction.report,
                is_network_judged=is_network_judged,
            )
            offered_instance_types.check(account, cluster, values, interaction.report)
            missing_tags = subnet_tags.find_missing(account, cluster, values)
        if not is_network_judged:
            routes.check(account, cluster, values, interaction.report)
        masters.check(account, cluster, values, deployed_stack, interaction.report)
        upload = partial(
            publish, account, cluster=name, bucket=request.bucket, kms_key=request.kms_key, report=interaction.report
        )
        published = upload(request.documents)
        volume_findings = (
            masters.check_volume_sizes(account, deployed_stack, parameters.values)
            if deployed_stack
            else masters.VolumeFindings()
        )
        for notice in (
            *parameters.notices,
            *volume_findings.notices,
            *objects.notices(account, cluster, request.stack_name),
        ):
            interaction.report(notice)
        new_demand = count_demand(request.documents, values)
        current_demand = _read_current_demand(account, deployed_stack, interaction)
        plan_request = PlanRequest(
            stack=request.stack_name,
            cluster=request.cluster,
            template_url=published.template_url,
            documents=tuple(request.documents),
            token=request.token,
            parameters=parameters.request_parameters,
            capabilities=capabilities.capabilities(request.documents),
            tags=stack_checks.root_stack_tags(name, request.tags, deployed_stack),
            on_failure=_ON_STACK_FAILURE_BY_OPTION[request.on_failure],
            role_arn=request.role_arn,
            notification_arns=request.notification_arns,
            express=request.express,
            predicted=(
                *immutable_impacts,
                *moved_parts(resolved, deployed_stack),
                *templates_to_upload.impacts,
                *volume_findings.impacts,
            ),
            note=last_operation.change_set_description(account, name, protect=request.protect),
            quotas=() if current_demand is None else service_quotas.check(account, new_demand, current_demand),
            quotas_ignored=request.ignore_quotas,
            costs=()
            if current_demand is None or deployed_stack is None
            else cost_differences(current_demand, new_demand),
            bill=None
            if current_demand is None or request.prices is None
            else monthly_bill(current_demand, new_demand, request.prices),
            master_count=int(recorded_settings(deployed_root_template).get(MASTER_COUNT_KEY, 0)),
        )
        interaction.report(Step("creating a change set"))
        whole_plan = replace(
            change_sets.make_plan(account, plan_request, report=interaction.report),
            subnet_tags=missing_tags,
            updates=updates,
            updates_reason=issuer_updates.why_several(updates),
        )
        cleanup.callback(change_sets.discard, account, whole_plan, interaction.report)
        if (
            deployed_stack is None
            or all_at_once
            or whole_plan.operation != "update"
            or not whole_plan.change_set_id
            or whole_plan.leaves_stack
            or whole_plan.refusal_reason
        ):
            return Preparation(whole_plan, deployed_stack, values, request, removed_issuer)
        phases = update.plan_phases(
            whole_plan,
            read_deployed(account, deployed_stack.id, deployed_root_template),
            request.documents,
            PartPlanner(account, plan_request, upload, interaction.report, cleanup),
            lambda plan: change_sets.discard(account, plan, interaction.report),
            parallel_groups=request.parallel_groups,
        )
    plan = phases.overall_plan if phases else whole_plan
    return Preparation(plan, deployed_stack, values, request, removed_issuer, phases)


def _check_pause(
    account: Account, deployed_stack: StackView, request: DeploymentRequest, interaction: Interaction
) -> None:
    """Refuse a deployment of a paused cluster, which would wait for masters; of a plan, only report the pause.

    Raises:
        PausedError: the cluster is paused, and this is no plan.
    """
    pause = read_pause(account, deployed_stack, request.cluster)
    if pause is None:
        return
    if not account.only_planning:
        raise PausedError(request.cluster.name, pause)
    text = f"the cluster {request.cluster.name} {pause.text}; a deployment is refused until it is resumed"
    interaction.report(Notice(text, pause.hint))


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
