"""Prepares a deployment: settles what is deployed next, checks it against the account, and makes the plan.

What AWS would refuse in the middle of a deployment is refused here, before anything has changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal

from cfngen.cluster.iam.issuer_stages import IssuerState
from cfngen.cluster.model import Cluster
from cfngen.deploy.access.cluster_access import FindApiUrlOverride, no_api_url_override
from cfngen.deploy.aws import operation_origin
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.groups import GroupView, find_groups, find_resized_groups
from cfngen.deploy.aws.pause import read_pause
from cfngen.deploy.aws.stacks import StackTree, StackView
from cfngen.deploy.aws.templates import read_deployed, templates_in_form_of
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Impact, Notice, Report, Step
from cfngen.deploy.operations.deployment.quorum import judge_quorum
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.operations.recovery import ensure_deployable
from cfngen.deploy.plan import change_sets, issuer_updates
from cfngen.deploy.plan.costs.bill import PriceList, monthly_bill
from cfngen.deploy.plan.costs.costs import cost_differences
from cfngen.deploy.plan.phases.phases import PartPlanner, PhasedUpdate, plan_phases
from cfngen.deploy.plan.plan import Plan, PlannedUpdate, PlanRequest
from cfngen.deploy.plan.publishing.bucket import agree_to_create
from cfngen.deploy.plan.publishing.carrying import add_old_programs
from cfngen.deploy.plan.publishing.publish import assign_template_urls, capabilities, publish
from cfngen.deploy.preflight import immutable_settings, masters, offered_instance_types, stack_checks
from cfngen.deploy.preflight.existing import objects
from cfngen.deploy.preflight.network import routes, subnet_tags
from cfngen.deploy.preflight.network.checks import QUOTAS, ensure_network
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.deploy.preflight.overridden_keys import OverriddenKeys
from cfngen.deploy.preflight.parameters import parameter_values
from cfngen.deploy.preflight.parameters.parameter_file import ParameterFile
from cfngen.deploy.preflight.parameters.parameter_values import ParameterValues
from cfngen.deploy.preflight.pausing import PausedError
from cfngen.deploy.preflight.quotas.checks import check_quotas
from cfngen.deploy.preflight.quotas.demand import Demand, count_demand, read_deployed_demand
from cfngen.deploy.preflight.quotas.quota import Quota
from cfngen.deploy.preflight.references import ResolvedReferences, moved_parts, resolve_references
from cfngen.templates import Document, generate
from cfngen.templates.immutable_settings import MASTER_COUNT_KEY, recorded_settings

_ON_STACK_FAILURE_BY_OPTION = {"rollback": "ROLLBACK", "delete": "DELETE", "keep": "DO_NOTHING"}
OnFailure = Literal["rollback", "delete", "keep"]


@dataclass(frozen=True)
class DeploymentRequest:
    """What the user wants to deploy, and with which options.

    Attributes:
        bucket: the operator's bucket for templates; empty means the bucket that cfngen creates.
        kms_key: KMS key that encrypts the bucket that cfngen creates; empty means S3's managed key.
        kept_parameters: names of the parameters that keep the value they have in the stack.
        tags: the operator's tags for every resource, in addition to those the stack has already.
        role_arn: service role of CloudFormation; empty means the caller's permissions.
        notification_arns: SNS topics for stack events; None keeps the stack's topics.
        token: unique name of this deployment: letters, digits and hyphens.
        skip_network_check: whether to create the cluster in an existing VPC without looking at its network first.
        parallel_groups: how many node groups whose nodes are replaced are updated at the same time.
        generate: generates the templates of a state between the deployed and the wanted cluster; see
            `cfngen.cluster.issuer_stages`.
        find_url_override: see `cluster_access`; whether every master works is asked before masters are replaced.
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
    find_url_override: FindApiUrlOverride = no_api_url_override


@dataclass(frozen=True)
class Preparation:
    """The plan of a deployment, and what it was made from.

    Attributes:
        deployed_stack: the root stack; None if it does not exist yet.
        request: what is carried out: the next update if the cluster file takes several.
        removed_issuer: the issuer that the update removes, whose tokens pods may still hold; None if it removes none.
        phases: the phases of the update; None if it is one stack update, or a creation.
        left_behind: what a plan leaves in the account; None if that is nothing, or of a deployment.
    """

    plan: Plan
    deployed_stack: StackView | None
    values: Mapping[str, str]
    request: DeploymentRequest
    removed_issuer: IssuerState | None = None
    phases: PhasedUpdate | None = None
    left_behind: Notice | None = None


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
        cleanup: deletes the change set if it is not executed.
        all_at_once: whether to plan the way to the wanted cluster as one stack update, even if a deployment takes
            several. Such a plan shows what all of them change together, and is not to be executed.
    """
    with translate_aws_errors():
        settled = _settle(account, request, interaction, all_at_once=all_at_once)
        checked = _check(account, settled, interaction.report)
        if account.only_planning and not request.bucket:
            agree_to_create(account, interaction.require_consent)
        return _plan(account, settled, checked, interaction.report, cleanup, all_at_once=all_at_once)


@dataclass(frozen=True)
class _Settled:
    """What is deployed next, with which templates and values.

    Attributes:
        request: as in `Preparation`; its documents have the old boot programs that running instances still need.
        deployed: the cluster's stacks; None if they do not exist yet.
        root_template: the root's template as it is deployed; empty if there is no stack yet.
        updates: the updates in which the wanted cluster is reached; empty if one is enough.
        resolved: cluster and values, without references.
        program_impacts: why old boot programs are kept.
    """

    request: DeploymentRequest
    deployed: StackTree | None
    root_template: TemplatePart
    updates: tuple[PlannedUpdate, ...]
    removed_issuer: IssuerState | None
    parameters: ParameterValues
    resolved: ResolvedReferences
    setting_impacts: tuple[Impact, ...]
    program_impacts: tuple[Impact, ...]

    @property
    def deployed_stack(self) -> StackView | None:
        """The root stack; None if it does not exist yet."""
        return self.deployed.root if self.deployed else None


def _settle(account: Account, request: DeploymentRequest, interaction: Interaction, *, all_at_once: bool) -> _Settled:
    """Find out which cluster is deployed next, and choose the values of its parameters; nothing is uploaded yet."""
    name = request.cluster.name
    deployed_stack = ensure_deployable(account, request.stack_name, name, interaction)
    deployed = StackTree(account, deployed_stack) if deployed_stack else None
    if deployed:
        _check_pause(account, deployed, request, interaction)
    root_template = deployed.template(deployed.root.id) if deployed else {}
    clusters = immutable_settings.next_clusters(root_template, request.cluster)
    clusters = clusters[-1:] if all_at_once else clusters
    updates = issuer_updates.planned_updates(root_template, clusters)
    if updates:
        objects.check_next_updates(account, request.cluster, deployed)
        request = replace(request, cluster=clusters[0], documents=request.generate(clusters[0]))
    request = replace(request, documents=templates_in_form_of(root_template, request.documents))
    setting_impacts = immutable_settings.setting_impacts(root_template, request.cluster, account_number=account.id)
    templates = add_old_programs(
        account, request.documents, deployed, cluster=name, bucket=request.bucket, report=interaction.report
    )
    request = replace(request, documents=templates.documents)
    # The root, which comes last, has the parameters.
    *_nested_templates, root = assign_template_urls(account, request.documents, cluster=name, bucket=request.bucket)
    parameters = parameter_values.choose_values(
        root.document.body,
        option_values=request.flags,
        file=request.parameter_file,
        kept_parameters=request.kept_parameters,
        deployed_stack=deployed_stack,
        deployed_root_template=root_template or None,
        left_out=parameter_values.left_out_parameters(request.cluster),
    )
    return _Settled(
        request=request,
        deployed=deployed,
        root_template=root_template,
        updates=updates,
        removed_issuer=immutable_settings.removed_issuer(root_template, request.cluster),
        parameters=parameters,
        resolved=_resolve(account, request.cluster, root.document.body, parameters),
        setting_impacts=setting_impacts,
        program_impacts=templates.impacts,
    )


def _resolve(account: Account, cluster: Cluster, root: TemplatePart, parameters: ParameterValues) -> ResolvedReferences:
    """Resolve the references of a cluster file; its parameters that are not chosen have their defaults."""
    declared = root.get("Parameters", {}).items()
    defaults = {name: str(parameter["Default"]) for name, parameter in declared if "Default" in parameter}
    with OverriddenKeys(cluster, parameters.sources).named():
        return resolve_references(account, cluster, {**defaults, **parameters.values})


@dataclass(frozen=True)
class _Checked:
    """What the checks have found that does not refuse the deployment.

    Attributes:
        notices: to be reported before the plan.
        reference_impacts: impacts of references that lead to other resources than before.
        volume_impacts: impacts of the real sizes of the masters' volumes.
        current_demand: what it uses of them now; None if that could not be read.
    """

    missing_tags: tuple[SubnetTag, ...]
    notices: tuple[Notice, ...]
    reference_impacts: tuple[Impact, ...]
    volume_impacts: tuple[Impact, ...]
    demand: Demand
    current_demand: Demand | None
    quotas: tuple[Quota, ...]
    root_tags: Mapping[str, str]
    groups: tuple[GroupView, ...]


def _check(account: Account, settled: _Settled, report: Report) -> _Checked:
    """Refuse what AWS would refuse later, before anything is uploaded."""
    request, deployed_stack = settled.request, settled.deployed_stack
    cluster, values = settled.resolved.cluster, settled.resolved.values
    immutable_settings.check(
        deployed_stack.values if deployed_stack else {}, values, settled.resolved.reference_by_name
    )
    missing_tags = _check_existing_objects(account, settled, report)
    volumes = (
        masters.check_volume_sizes(settled.deployed, settled.parameters.values)
        if settled.deployed
        else masters.VolumeFindings()
    )
    notices = [*settled.parameters.notices, *volumes.notices, *objects.notices(account, cluster, request.stack_name)]
    deployed_resources = settled.deployed.resources if settled.deployed else ()
    groups = find_groups(account, cluster, [resource.view for resource in deployed_resources])
    if deployed_stack and not deployed_stack.status.in_progress:
        resized_groups = find_resized_groups(account.region, groups, deployed_stack.values)
        notices += [Notice(f"{resized.group.title} {resized.text}", resized.hint) for resized in resized_groups]
    demand = count_demand(request.documents, values)
    current_demand = _read_current_demand(settled.deployed, notices)
    return _Checked(
        missing_tags=missing_tags,
        notices=tuple(notices),
        reference_impacts=moved_parts(settled.resolved, deployed_stack),
        volume_impacts=volumes.impacts,
        demand=demand,
        current_demand=current_demand,
        quotas=() if current_demand is None else check_quotas(account, demand, current_demand),
        root_tags=stack_checks.root_stack_tags(cluster.name, request.tags, deployed_stack),
        groups=groups,
    )


def _check_existing_objects(account: Account, settled: _Settled, report: Report) -> tuple[SubnetTag, ...]:
    """Check what the cluster file names in the account; return the tags that existing subnets lack."""
    request, deployed = settled.request, settled.deployed
    cluster, values = settled.resolved.cluster, settled.resolved.values
    overridden = OverriddenKeys(request.cluster, settled.parameters.sources)
    is_network_judged = False
    if not request.skip_network_check:
        is_network_judged = ensure_network(
            account,
            cluster,
            report,
            values,
            without=(QUOTAS,) if request.ignore_quotas else (),
            is_update=deployed is not None,
            source_of=overridden.source,
        )
    with overridden.named():
        objects.check(account, cluster, values, deployed, report, is_network_judged=is_network_judged)
        offered_instance_types.check(account, cluster, values, report)
        missing_tags = subnet_tags.find_missing(account, cluster, values)
    if not is_network_judged:
        routes.check(account, cluster, values, report)
    masters.check(account, cluster, values, deployed, report)
    return missing_tags


def _plan(
    account: Account, settled: _Settled, checked: _Checked, report: Report, cleanup: ExitStack, *, all_at_once: bool
) -> Preparation:
    """Upload the templates, create the change set and read it; divide an update into phases if it needs them."""
    request, deployed = settled.request, settled.deployed
    upload = partial(
        publish, account, cluster=request.cluster.name, bucket=request.bucket, kms_key=request.kms_key, report=report
    )
    template_url = upload(request.documents).template_url
    for notice in checked.notices:
        report(notice)
    plan_request = _plan_request(account, settled, checked, template_url)
    report(Step("creating a change set"))
    plan = replace(
        change_sets.make_plan(account, plan_request, report=report),
        subnet_tags=checked.missing_tags,
        updates=settled.updates,
        updates_reason=issuer_updates.why_several(settled.updates),
    )
    cleanup.callback(change_sets.discard, account, plan, report)
    if deployed:
        plan = judge_quorum(account, deployed.root, checked.groups, plan, request.find_url_override)
    preparation = Preparation(plan, settled.deployed_stack, settled.resolved.values, request, settled.removed_issuer)
    is_nested = any(document.children for document in request.documents)
    may_have_phases = is_nested and plan.operation == "update" and plan.change_set_id and not plan.leaves_stack
    if deployed is None or all_at_once or not may_have_phases or plan.refusal_reason:
        return preparation
    phases = plan_phases(
        plan,
        read_deployed(deployed),
        request.documents,
        PartPlanner(account, plan_request, upload, report, cleanup),
        lambda whole_plan: change_sets.discard(account, whole_plan, report),
        parallel_groups=request.parallel_groups,
    )
    return replace(preparation, plan=phases.overall_plan, phases=phases) if phases else preparation


def _plan_request(account: Account, settled: _Settled, checked: _Checked, template_url: str) -> PlanRequest:
    """Return what the change set and its plan are made from, with the costs of the deployment."""
    request, demand, current_demand = settled.request, checked.demand, checked.current_demand
    return PlanRequest(
        stack=request.stack_name,
        cluster=request.cluster,
        template_url=template_url,
        documents=tuple(request.documents),
        token=request.token,
        parameters=settled.parameters.request_parameters,
        values=settled.resolved.values,
        deployed=settled.deployed,
        capabilities=capabilities(request.documents),
        tags=checked.root_tags,
        on_failure=_ON_STACK_FAILURE_BY_OPTION[request.on_failure],
        role_arn=request.role_arn,
        notification_arns=request.notification_arns,
        express=request.express,
        predicted=(
            *settled.setting_impacts,
            *issuer_updates.issuer_impacts(settled.root_template, request.cluster),
            *checked.reference_impacts,
            *settled.program_impacts,
            *checked.volume_impacts,
        ),
        note=operation_origin.followed_by(
            operation_origin.change_set_description(account, request.cluster.name, protect=request.protect),
            (update.title for update in settled.updates[1:]),
        ),
        quotas=checked.quotas,
        quotas_ignored=request.ignore_quotas,
        costs=cost_differences(current_demand, demand) if current_demand and settled.deployed_stack else (),
        bill=monthly_bill(current_demand, demand, request.prices) if current_demand and request.prices else None,
        master_count=int(recorded_settings(settled.root_template).get(MASTER_COUNT_KEY, 0)),
    )


def _check_pause(account: Account, deployed: StackTree, request: DeploymentRequest, interaction: Interaction) -> None:
    """Refuse a deployment of a paused cluster, which would wait for masters; of a plan, only report the pause."""
    pause = read_pause(deployed, request.cluster)
    if pause and not account.only_planning:
        raise PausedError(request.cluster.name, pause)
    if pause:
        text = f"the cluster {request.cluster.name} {pause.text}; a deployment is refused until it is resumed"
        interaction.report(Notice(text, pause.hint))


def _read_current_demand(deployed: StackTree | None, notices: list[Notice]) -> Demand | None:
    """Return what the deployed cluster uses of the account's quotas; None, and a notice, if that cannot be read."""
    try:
        return read_deployed_demand(deployed) if deployed else Demand()
    except AwsError as error:
        notices.append(Notice(f"the update's effect on costs and quotas is unknown: {error}", error.hint))
        return None
