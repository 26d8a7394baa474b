"""Deploying: creating or updating the root stack through change sets, after showing the plan and asking for consent.

    settle -> check -> plan -> consent -> tag subnets -> execute -> watch -> protect

A creation is one change set. An update that affects volumes, control plane and node groups is split into phases, each
with its own change set. A cluster that begins or ends to use an issuer of tokens goes through several updates, each of
which is all of this (`update_series`).

If the deployment ends before its execution, the change set is deleted, and with it the empty stack that CloudFormation
created for it. Uploaded templates stay in the bucket; their keys contain the hash of their content.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cached_property
from typing import Literal

from cfngen.deploy.aws import protection
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import translate_aws_errors
from cfngen.deploy.aws.planning_account import PlanningAccount
from cfngen.deploy.aws.stacks import StackView, find_stack
from cfngen.deploy.aws.templates import templates_by_stack
from cfngen.deploy.aws.types import TemplatePart
from cfngen.deploy.messages.message import Finished, Notice, Question, Report, Step
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations import leftovers, stack_protection
from cfngen.deploy.operations.deletion import removal
from cfngen.deploy.operations.deployment import execution, update_series
from cfngen.deploy.operations.deployment.attaching import cancel_creation
from cfngen.deploy.operations.deployment.preparation import DeploymentRequest, Preparation, prepare
from cfngen.deploy.operations.deployment.quorum import add_control_plane
from cfngen.deploy.operations.deployment.unplanned import PlanWitness
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.plan import Change, Plan, Replacement
from cfngen.deploy.preflight.pausing import ensure_not_paused
from cfngen.deploy.watching.diagnosis import diagnose
from cfngen.deploy.watching.expectations import Expectation, ResourceAction, expect_operation
from cfngen.deploy.watching.watch import WatchResult, watch
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, SuggestedCommand, suggest
from cfngen.templates.document import Document
from cfngen.text import pluralize

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
    """Return what a deployment would change, without changing anything permanently."""
    return prepare_plan(account, request, interaction).plan


def prepare_plan(account: Account, request: DeploymentRequest, interaction: Interaction) -> Preparation:
    """Return what `plan` returns, with what the plan was made from, and what it leaves in the account.

    Raises:
        DeclinedError: the user does not want the bucket that a plan needs.
    """
    planning_account = PlanningAccount.of(account)
    with ExitStack() as cleanup:
        preparation = prepare(planning_account, request, interaction, cleanup)
    return replace(preparation, left_behind=_left_behind(planning_account, preparation))


def _left_behind(account: PlanningAccount, preparation: Preparation) -> Notice | None:
    """Return what a plan leaves in the account, with what removes it again if there is no cluster yet."""
    if not account.uploaded:
        return None
    bucket, request = account.uploaded[0], preparation.request
    what = f"{pluralize(len(account.uploaded), 'template')} in the bucket {bucket}"
    if account.created_buckets:
        what += ", which was created for them"
    text = f"left in the account: {what}; the change set is deleted"
    if preparation.deployed_stack:
        return Notice(text)
    flags = ("--empty-bucket",) if request.bucket else ("--empty-bucket", "--delete-bucket")
    options = (*((flag,) for flag in flags), *([("--bucket", bucket)] if request.bucket else []))
    delete = SuggestedCommand("delete", (*options, ("--stack-name", request.stack_name)))
    return Notice(f"{text}, and so is its empty stack", CommandText(delete, " removes them if no cluster is deployed."))


def plan_all_updates(account: Account, request: DeploymentRequest, interaction: Interaction) -> Plan:
    """Return what all updates change together if a deployment takes several; to be looked at, not to be executed.

    Each resource is compared as it is deployed with what it is after the last update. The plan of a deployment itself
    shows the first update only.
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

    return update_series.carry_out_series(request, interaction, deploy_once)


def _deploy_once(
    account: Account, request: DeploymentRequest, interaction: Interaction, *, is_agreed: bool
) -> update_series.Deployment:
    """Deploy the wanted cluster, or the next state on the way to it; return the result and the plan.

    Args:
        is_agreed: whether the user agreed to this update when the series began; only dangers are asked about again.
    """
    started = account.clock.now()
    with ExitStack() as cleanup:
        preparation = prepare(account, request, interaction, cleanup)
        deployment, plan = _Deployment(account, interaction, preparation, started), preparation.plan
        deployment.show_plan(is_agreed=is_agreed)
        if plan.is_empty:
            return update_series.Deployment(deployment.finish_unchanged("none"), plan)
        if plan.refusal_reason:
            raise ImpossiblePlanError(plan.refusal_reason)
        if not is_agreed or plan.is_dangerous:
            deployment.require_consent()
        deployment.wait_for_new_tokens()
        deployment.ensure_not_paused_since()
        deployment.tag_subnets()
        if plan.leaves_stack:
            return update_series.Deployment(deployment.finish_unchanged("tag"), plan)
        deployment.adjust_protection(cleanup)
        outcome = deployment.execute_all()
    return update_series.Deployment(deployment.finish(outcome), plan)


@dataclass(frozen=True)
class _Deployment:
    """One stack update or creation: its steps, which `_deploy_once` takes in order."""

    account: Account
    interaction: Interaction
    preparation: Preparation
    started: datetime

    @property
    def request(self) -> DeploymentRequest:
        return self.preparation.request

    @property
    def plan(self) -> Plan:
        return self.preparation.plan

    @property
    def deployed_stack(self) -> StackView | None:
        return self.preparation.deployed_stack

    @property
    def report(self) -> Report:
        return self.interaction.report

    @cached_property
    def witness(self) -> PlanWitness:
        """What compares the operations of all phases with the plan."""
        return PlanWitness(self.report)

    def show_plan(self, *, is_agreed: bool) -> None:
        """Report the plan, and before a creation what earlier stacks of this name have left."""
        if self.deployed_stack is None:
            leftovers.report_earlier_stacks(
                self.account, self.request.stack_name, self.request.cluster.name, self.report
            )
        self.report(replace(self.plan, updates=(), updates_reason="") if is_agreed else self.plan)

    def require_consent(self) -> None:
        is_dangerous = self.plan.is_dangerous
        updates = f" in {len(self.plan.updates)} updates" if self.plan.updates else ""
        danger = " despite the danger above" if is_dangerous else ""
        text = f"Deploy {self.request.stack_name}{updates}{danger}?"
        self.interaction.require_consent(
            Question(text, dangerous=is_dangerous, name=self.request.cluster.name if is_dangerous else "")
        )

    def wait_for_new_tokens(self) -> None:
        """Before an issuer of tokens is removed, wait until no pod holds one of its tokens."""
        if self.preparation.removed_issuer and self.deployed_stack is not None:
            update_series.wait_for_new_tokens(self.account, self.deployed_stack, self.interaction)

    def ensure_not_paused_since(self) -> None:
        """Refuse a cluster that was paused while a question waited for its answer, or between two phases."""
        if self.deployed_stack is not None:
            ensure_not_paused(self.account, self.deployed_stack, self.request.cluster)

    def tag_subnets(self) -> None:
        """Add the tags that existing subnets lack."""
        with translate_aws_errors():
            execution.add_missing(self.account, self.request.cluster, self.preparation.values, self.report)

    def adjust_protection(self, cleanup: ExitStack) -> None:
        """Lift stack policies that would refuse the plan, until `cleanup`; protect a new stack from the beginning."""
        changes_protected_resource = any(_is_protected(change) for change in self.plan.changes)
        if self.deployed_stack is not None and (self.plan.is_dangerous or changes_protected_resource):
            cleanup.enter_context(
                stack_protection.lift_stack_policies(self.account, self.deployed_stack, report=self.report)
            )
        if self.deployed_stack is None and self.request.protect and self.request.on_failure != "delete":
            stack_protection.protect_new_stack(self.account, self.plan.stack_id)

    def execute_all(self) -> WatchResult:
        """Execute the plan, phase by phase if it has phases, and watch until it has ended."""
        is_creation = self.deployed_stack is None
        self.report(Step(f"{'creating' if is_creation else 'updating'} {self.request.stack_name}"))
        with translate_aws_errors():
            if self.preparation.phases:
                outcome = update_series.carry_out_phases(
                    self.account, self.preparation.phases, self.interaction, self._execute, self.request.cluster.name
                )
            else:
                outcome = self._execute(self.plan, self.request.documents)
            if outcome.cancelled and not outcome.status.rolling_back and is_creation:
                outcome = cancel_creation(self.account, self.interaction, outcome)
        return outcome

    def _execute(self, plan: Plan, documents: Sequence[Document]) -> WatchResult:
        self.ensure_not_paused_since()
        try:
            stack_id = execution.execute(self.account, plan)
        except KeyboardInterrupt:
            raise StartInterruptedError(self.request.stack_name) from None
        return watch(
            self.account,
            stack_id,
            since=plan.created,
            report=self._report_of(plan),
            on_interrupt=self.interaction.on_interrupt,
            expected=_expect_changes(self.request, documents, plan, continues=self._continues),
        )

    @property
    def _continues(self) -> bool:
        """Whether this continues after a failure with rollback disabled: CloudFormation then works on more."""
        return self.deployed_stack is not None and self.deployed_stack.status.health is StackHealth.PAUSED

    def _report_of(self, plan: Plan) -> Report:
        """Return what reports the execution of a plan, and in it what neither this nor the whole plan names."""
        return self.report if self._continues else self.witness.compare_with(self.plan, plan)

    def finish(self, outcome: WatchResult) -> Finished:
        """Protect the stack after success, report the diagnosis after a failure; return the result."""
        account, cluster = self.account, self.request.cluster
        action = "create" if self.deployed_stack is None else "update"
        with translate_aws_errors():
            stack = find_stack(account, outcome.stack_id)
        if not outcome.detached and stack is not None:
            if outcome.succeeded:
                stack_protection.protect_deployed_stack(account, stack, self.request.protect, report=self.report)
            else:
                diagnosis = diagnose(account, stack.id)
                self.report(add_control_plane(account, cluster, self.request.find_url_override, diagnosis))
                stack_protection.unprotect_failed_creation(account, stack, self.report)
                leftovers.report_lost_addresses(account, stack, self.report)
                if action == "create" and stack.status.health is not StackHealth.PAUSED:
                    leftovers.report_failed_creation(account, stack, cluster.name, self.report)
        finished = outcome.finished(action, stack)
        if finished.succeeded and self.preparation.removed_issuer and self.deployed_stack is not None:
            buckets = update_series.buckets_of(self.preparation.removed_issuer, self.deployed_stack)
            removal.remove_issuer_buckets(account, buckets, self.report)
        return replace(finished, unplanned=tuple(self.witness.unplanned))

    def finish_unchanged(self, action: Literal["tag", "none"]) -> Finished:
        """Protect the stack, which the deployment leaves as it is; return the result."""
        stack = self.deployed_stack
        if stack is not None:
            stack_protection.protect_deployed_stack(self.account, stack, self.request.protect, report=self.report)
        return Finished(
            action=action,
            stack=self.request.stack_name,
            stack_id=stack.id if stack else "",
            status=stack.status.name if stack else "",
            succeeded=True,
            seconds=(self.account.clock.now() - self.started).total_seconds(),
            outputs=stack.outputs if stack else {},
        )


def _is_protected(change: Change) -> bool:
    """Return whether the stack policies deny a change: they deny replacing and deleting the protected types."""
    deletes_resource = change.action == "remove" or change.replacement is not Replacement.NO
    return deletes_resource and change.type in protection.PROTECTED_TYPES


def _expect_changes(
    request: DeploymentRequest, documents: Sequence[Document], plan: Plan, *, continues: bool
) -> Expectation:
    """Return what a plan does; how long it takes is unknown if it continues what has failed before."""
    # Keys are paths of logical ids from the root stack: () is the root itself.
    templates_by_path: dict[tuple[str, ...], TemplatePart] = {
        (stack,) if stack else (): template for stack, template in templates_by_stack(documents).items()
    }
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
    expectation = expect_operation(templates_by_path, actions, values)
    return replace(expectation, seconds=0) if continues else expectation
