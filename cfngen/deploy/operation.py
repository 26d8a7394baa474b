"""Deploying: from templates to a root stack that has them, through change sets that were shown and agreed to.

    ready -> publish -> parameters -> plan -> consent -> execute -> watch -> protect

A creation is one change set. An update of volumes, control plane and node groups goes in phases (`phasing`), of which
each is planned, executed and watched by itself.

Up to the execution everything is undone when it ends early: the change set is deleted, and so is the empty stack of
one that would have created the root. Uploaded templates stay; they are named after their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any, Literal

from cfngen.cluster.model import Cluster
from cfngen.deploy import at_work, ownership, protection, public_addresses
from cfngen.deploy.abandoning import abandoned
from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import AwsError, translate_aws_errors
from cfngen.deploy.deletion import remains
from cfngen.deploy.messages import Finished, Notice, Question, Step
from cfngen.deploy.parameters import parameter_values
from cfngen.deploy.parameters.parameter_file import ParameterFile
from cfngen.deploy.phasing import update
from cfngen.deploy.phasing.deployed import deployed as as_deployed
from cfngen.deploy.phasing.part_planning import PartPlanning
from cfngen.deploy.planning_account import PlanningAccount
from cfngen.deploy.preview import change_sets, existing_objects, foundations, master_addresses, volumes
from cfngen.deploy.preview.costs import difference
from cfngen.deploy.preview.immutable_changes import setting_impacts
from cfngen.deploy.preview.plan import Change, Plan, PlanRequest, Replacement
from cfngen.deploy.preview.planning import CompareUserData
from cfngen.deploy.publishing import capabilities
from cfngen.deploy.publishing.carrying import carried
from cfngen.deploy.publishing.publish import addressed, nested, publish
from cfngen.deploy.quotas import route_tables, service_quotas
from cfngen.deploy.quotas.demand import Demand, deployed, needs
from cfngen.deploy.recovery import DeclinedError, Interaction, ensure_deployable
from cfngen.deploy.stacks import StackView, find, template
from cfngen.deploy.status import StackHealth
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.expectations import Action, Expectation, expect
from cfngen.deploy.watching.watch import Outcome, watch
from cfngen.errors import CfngenError
from cfngen.templates.document import Document
from cfngen.templates.immutable_settings import COUNT, recorded_settings

OnFailure = Literal["rollback", "delete", "keep"]
_ACTIONS: Mapping[str, Action] = {"add": "create", "import": "create", "update": "update", "remove": "delete"}
_ON_FAILURE = {"rollback": "ROLLBACK", "delete": "DELETE", "keep": "DO_NOTHING"}


class BegunError(CfngenError):
    """Ctrl-C came while CloudFormation was told to begin."""

    exit_code = 6

    def __init__(self, stack: str) -> None:
        super().__init__(
            f"interrupted while CloudFormation was told to begin: it may be at work on the stack {stack} by now",
            hint=f"`cfngen watch --stack-name {stack}` shows it, and can cancel it.",
        )


class ImpossiblePlanError(CfngenError):
    """The plan cannot be carried out, as is known before it begins."""

    def __init__(self, why: str) -> None:
        super().__init__(
            f"nothing was changed, since it would fail: {why}", hint="change the cluster file or the options."
        )


@dataclass(frozen=True)
class DeploymentRequest:
    """What is to be deployed, and how.

    Attributes:
        cluster: the complete cluster.
        documents: its templates.
        stack_name: name of the root.
        bucket: the operator's bucket for templates; empty means cfngen's own.
        kms_key: KMS key that cfngen's own bucket encrypts with; empty means S3's.
        flags: parameters given on the command line.
        file: parameters given in a file; None if there is none.
        keep: parameters that keep the value they have in the stack.
        tags: the operator's tags for every resource, beside those that the stack has.
        role_arn: service role of CloudFormation; empty means the caller's rights.
        notification_arns: SNS topics that get the events; None keeps those there are.
        on_failure: what CloudFormation does when something fails.
        protect: whether the stack shall be protected against deletion.
        express: whether to use CloudFormation's express mode.
        token: distinguishes this deployment from all others: letters, digits and hyphens.
        ignore_quotas: whether to go on although the account's quotas do not suffice.
        compare_user_data: says in words what differs between two user data; None leaves it unsaid.
    """

    cluster: Cluster
    documents: Sequence[Document]
    stack_name: str
    token: str
    bucket: str = ""
    kms_key: str = ""
    flags: Mapping[str, str] = field(default_factory=dict)
    file: ParameterFile | None = None
    keep: tuple[str, ...] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    role_arn: str = ""
    notification_arns: tuple[str, ...] | None = None
    on_failure: OnFailure = "rollback"
    protect: bool = True
    express: bool = False
    ignore_quotas: bool = False
    compare_user_data: CompareUserData | None = None


def plan(account: Account, wanted: DeploymentRequest, waiting: Interaction) -> Plan:
    """Find out what a deployment would change, and leave nothing behind.

    Raises:
        CfngenError: as `deploy`.
    """
    with ExitStack() as leaving:
        return _planned(PlanningAccount.of(account), wanted, waiting, leaving).plan


def deploy(account: Account, wanted: DeploymentRequest, waiting: Interaction) -> Finished:
    """Bring the root stack to the templates and values that are wanted.

    Returns:
        How it ended. A detached operation has not ended: its status is that of the moment, and it did not succeed yet.

    Raises:
        BegunError: interrupted at the moment of beginning.
        CfngenError: refused before anything was changed, or the user said no.
    """
    began = account.clock.now()
    with ExitStack() as leaving:
        planned = _planned(account, wanted, waiting, leaving)
        found, existing, phases = planned.plan, planned.existing, planned.phases
        if existing is None:
            remains.of_earlier(account, wanted.stack_name, wanted.cluster.name, waiting.report)
        waiting.report(found)
        if found.is_empty:
            if existing is not None:
                _protect(account, existing, wanted, waiting)
            return _unchanged(account, wanted, began, existing)
        if found.refusal:
            raise ImpossiblePlanError(found.refusal)
        _agreed(waiting, wanted, found)
        if existing is not None and (found.is_dangerous or any(map(_is_protected, found.changes))):
            # Put back by `leaving` however the operation ends.
            leaving.enter_context(protection.lift(account, existing, report=waiting.report))
        if existing is None and wanted.protect and wanted.on_failure != "delete":
            protection.protect_new(account, found.stack_id)
        waiting.report(Step(f"{'creating' if existing is None else 'updating'} {wanted.stack_name}"))

        def execute(plan: Plan, documents: Sequence[Document]) -> Outcome:
            try:
                stack_id = change_sets.execute(account, plan)
            except KeyboardInterrupt:
                raise BegunError(wanted.stack_name) from None
            return watch(
                account,
                stack_id,
                since=plan.created,
                report=waiting.report,
                interrupted=waiting.interrupted,
                expected=_expected(wanted, documents, plan),
            )

        with translate_aws_errors():
            if phases:
                outcome = update.carry_out(account, phases, waiting, execute, wanted.cluster.name)
            else:
                outcome = execute(found, wanted.documents)
            if outcome.cancelled and not outcome.status.rolling_back and existing is None:
                outcome = abandoned(account, waiting, outcome)
    return _ended(account, wanted, waiting, outcome, "create" if existing is None else "update")


@dataclass(frozen=True)
class _Planned:
    """A plan, the stack as it was found, and the plan's phases where it has several."""

    plan: Plan
    existing: StackView | None
    phases: update.Phased | None = None


def _planned(account: Account, wanted: DeploymentRequest, waiting: Interaction, leaving: ExitStack) -> _Planned:
    """Return the plan; its change set is deleted by `leaving` unless it has been executed."""
    name = wanted.cluster.name
    with translate_aws_errors():
        existing = ensure_deployable(account, wanted.stack_name, name, waiting)
        before = template(account, existing.id) if existing else {}
        beyond = setting_impacts(before, wanted.cluster)
        kept = carried(account, wanted.documents, existing, cluster=name, bucket=wanted.bucket, report=waiting.report)
        wanted = replace(wanted, documents=kept.documents)
        # Whatever is wrong with the parameters is said before anything is sent.
        *_, root = addressed(account, wanted.documents, cluster=name, bucket=wanted.bucket)
        chosen = parameter_values.chosen(
            root.document.body,
            flags=wanted.flags,
            file=wanted.file,
            keep=wanted.keep,
            previous=existing,
            previous_root=before or None,
        )
        values = {**_defaults(root.document.body), **chosen.values}
        foundations.check(existing.parameters if existing else {}, values)
        existing_objects.check(account, wanted.cluster, values, existing)
        route_tables.check(account, wanted.cluster, values)
        master_addresses.check(account, wanted.cluster, values, existing)
        upload = partial(
            publish, account, cluster=name, bucket=wanted.bucket, kms_key=wanted.kms_key, report=waiting.report
        )
        published = upload(wanted.documents)
        real = volumes.truth(account, existing, chosen.values) if existing else volumes.Truth()
        for notice in (*chosen.notices, *real.notices):
            waiting.report(notice)
        after = needs(wanted.documents, chosen.values)
        now = _taken(account, existing, waiting)
        request = PlanRequest(
            stack=wanted.stack_name,
            cluster=wanted.cluster,
            template_url=published.template_url,
            documents=tuple(wanted.documents),
            token=wanted.token,
            parameters=chosen.entries,
            capabilities=capabilities.capabilities(wanted.documents),
            tags=ownership.tags(name, wanted.tags, existing),
            on_failure=_ON_FAILURE[wanted.on_failure],
            role_arn=wanted.role_arn,
            notification_arns=wanted.notification_arns,
            express=wanted.express,
            foreseen=(*beyond, *kept.meanings, *real.meanings),
            note=at_work.note(account, name, protect=wanted.protect),
            quotas=() if now is None else service_quotas.check(account, after, now),
            quotas_ignored=wanted.ignore_quotas,
            costs=() if now is None or existing is None else difference(now, after),
            masters=int(recorded_settings(before).get(COUNT, 0)),
        )
        waiting.report(Step("asking CloudFormation what would change"))
        found = change_sets.make_plan(
            account, request, report=waiting.report, compare_user_data=wanted.compare_user_data
        )
        leaving.callback(change_sets.discard, account, found, waiting.report)
        if (
            existing is None
            or found.operation != "update"
            or not found.change_set_id
            or found.is_empty
            or found.refusal
        ):
            return _Planned(found, existing)
        phases = update.phased(
            found,
            as_deployed(account, existing.id, before),
            wanted.documents,
            PartPlanning(account, request, upload, waiting.report, wanted.compare_user_data, leaving),
            lambda plan: change_sets.discard(account, plan, waiting.report),
        )
    return _Planned(phases.plan if phases else found, existing, phases)


def _taken(account: Account, existing: StackView | None, waiting: Interaction) -> Demand | None:
    """Return what the cluster takes of the account now; None if that cannot be found out."""
    if existing is None:
        return Demand()
    try:
        return deployed(account, existing)
    except AwsError as error:
        waiting.report(Notice(f"what the update adds to costs and quotas is not known: {error}", error.hint))
        return None


def _defaults(root: Mapping[str, Any]) -> dict[str, str]:
    """Return the values that a template's parameters have when nobody gives them."""
    parameters = root.get("Parameters", {}).items()
    return {name: str(each["Default"]) for name, each in parameters if "Default" in each}


def _expected(wanted: DeploymentRequest, documents: Sequence[Document], found: Plan) -> Expectation:
    """Return what is known of an operation before it begins, for the screen."""
    by_name = {document.name: document.body for document in documents}
    bodies: dict[tuple[str, ...], Mapping[str, Any]] = {(): by_name["cluster"]}
    for logical_id, name in nested(by_name["cluster"]).items():
        bodies[logical_id,] = by_name[name]
    values = {**(wanted.file.values if wanted.file else {}), **wanted.flags}
    if found.operation == "create":
        return expect(bodies, "create", values)
    actions: dict[tuple[tuple[str, ...], str], Action] = {}
    for stack in found.stacks:
        for change in stack.changes:
            replaced = change.replacement is not Replacement.NO
            actions[stack.path, change.logical_id] = "replace" if replaced else _ACTIONS[change.action]
    return expect(bodies, actions, values)


def _agreed(waiting: Interaction, wanted: DeploymentRequest, found: Plan) -> None:
    dangerous = found.is_dangerous
    text = f"Deploy {wanted.stack_name} in spite of the danger above?" if dangerous else f"Deploy {wanted.stack_name}?"
    if not waiting.consent(Question(text, dangerous=dangerous, name=wanted.cluster.name if dangerous else "")):
        raise DeclinedError


def _ended(
    account: Account, wanted: DeploymentRequest, waiting: Interaction, outcome: Outcome, action: str
) -> Finished:
    with translate_aws_errors():
        stack = find(account, outcome.stack_id)
    if not outcome.detached and stack is not None:
        if outcome.succeeded:
            _protect(account, stack, wanted, waiting)
        else:
            waiting.report(diagnose(account, stack.id))
            protection.give_up(account, stack, waiting.report)
            public_addresses.tell(account, stack, waiting.report)
            if action == "create" and stack.status.standing is not StackHealth.PAUSED:
                remains.of_creation(account, stack, wanted.cluster.name, waiting.report)
    return outcome.finished(action, stack)


def _is_protected(change: Change) -> bool:
    """Return whether the stack policies forbid a change."""
    goes = change.action == "remove" or change.replacement is not Replacement.NO
    return goes and change.type in protection.KEPT


def _protect(account: Account, stack: StackView, wanted: DeploymentRequest, waiting: Interaction) -> None:
    """Protect a stack that is as it is wanted; that this is not allowed does not make a failure of the deployment."""
    try:
        protection.protect(account, stack, wanted.protect, report=waiting.report)
    except AwsError as error:
        text = f"{stack.name} is as it is wanted, but not protected: {error}"
        waiting.report(Notice(text, error.hint or "the next deployment tries again."))


def _unchanged(account: Account, wanted: DeploymentRequest, began: datetime, stack: StackView | None) -> Finished:
    return Finished(
        action="none",
        stack=wanted.stack_name,
        stack_id=stack.id if stack else "",
        status=stack.status.name if stack else "",
        succeeded=True,
        seconds=(account.clock.now() - began).total_seconds(),
        outputs=stack.outputs if stack else {},
    )
