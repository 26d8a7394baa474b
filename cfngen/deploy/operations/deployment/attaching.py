"""Attaches to a stack operation in progress, and completes the deployment that started it.

A deployment that was interrupted cannot set stack policies or termination protection at its end, so `attach` does.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cfngen.deploy.aws import operation_origin, protection
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.events import read_last_event
from cfngen.deploy.aws.stacks import StackView, find_stack, require_stack, reread_stack
from cfngen.deploy.messages.message import Finished, Notice, Question, Report
from cfngen.deploy.messages.next_steps import as_hint, next_steps
from cfngen.deploy.messages.stack_status import StackHealth
from cfngen.deploy.operations import leftovers, stack_protection
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.preflight.stack_checks import check_ownership
from cfngen.deploy.watching.diagnosis import Diagnosis, diagnose
from cfngen.deploy.watching.watch import WatchResult, watch
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

_DEPLOYMENT_ACTIONS = ("create", "update")  # actions of stack operations that `deploy` starts


class EmptyStackError(CfngenError):
    """The stack is empty: no operation has ever started in it."""

    code = "no-operation"

    def __init__(self, stack: StackView) -> None:
        super().__init__(
            f"the stack {stack.name} is in {stack.status}: it is empty, and no operation is in progress in it",
            hint=as_hint(next_steps(stack.status, stack.name)),
        )


def attach(
    account: Account,
    stack_name: str,
    cluster: str,
    interaction: Interaction,
    *,
    complete: Callable[[Diagnosis], Diagnosis] = lambda diagnosis: diagnosis,
) -> Finished:
    """Watch a stack's latest operation until it ends, then do what an interrupted deployment has left undone.

    After a deployment, this enables termination protection and sets the stack policies.

    Args:
        cluster: name of the cluster; stacks of other clusters are watched but not changed.
        complete: adds what is known elsewhere to the diagnosis of a failure.

    Raises:
        NoStackError: there is no such stack.
        EmptyStackError: the stack is empty.
        ForeignStackError: the user wants to cancel the creation of a stack of another cluster.
        WatchEndedError: the stack can no longer be read; the operation continues.
    """
    with translate_aws_errors():
        stack = require_stack(account, stack_name)
        if stack.status.health is StackHealth.EMPTY:
            raise EmptyStackError(stack)
        report = interaction.report
        outcome = watch(account, stack.id, report=report, on_interrupt=interaction.on_interrupt)
        if outcome.cancelled and outcome.status.name == "CREATE_IN_PROGRESS":
            check_ownership(account, stack, cluster)
            outcome = cancel_creation(account, interaction, outcome)
        if not outcome.succeeded and not outcome.detached:
            report(complete(diagnose(account, stack.id, with_failure=outcome.action != "rollback")))
        stack = reread_stack(account, stack)
        if not outcome.detached:
            leftovers.report_lost_addresses(account, stack, report)
        if not outcome.detached and stack.cluster == cluster:
            _finish_deployment(account, stack, outcome, report)
            if stack.status.health is StackHealth.DELETE_ONLY:
                leftovers.report_failed_creation(account, stack, cluster, report)
    return outcome.finished(outcome.action, stack)


def _finish_deployment(account: Account, stack: StackView, outcome: WatchResult, report: Report) -> None:
    """Set the stack policies after a creation or update, and enable termination protection if its `deploy` would have.

    A creation that failed loses its termination protection instead, so that it can be deleted.
    """
    if outcome.action not in _DEPLOYMENT_ACTIONS or (outcome.action == "create" and not outcome.succeeded):
        stack_protection.unprotect_failed_creation(account, stack, report)
        return
    # The stack policies are also set after a failed update, because the update's deployment may have lifted them.
    try:
        origin = operation_origin.read_origin(account, stack)
        # Deployments with --no-protect, and operations not started by cfngen, leave termination protection as it is.
        enable_termination_protection = origin is not None and origin.protect is True
        stack_protection.protect_stack(account, stack, termination=enable_termination_protection, report=report)
        if outcome.succeeded and origin is not None and origin.following:
            hint = CommandText(
                "unless the cfngen that began it still runs, ",
                suggest("deploy", stack=stack.name),
                " continues with them.",
            )
            report(Notice(f"this was one phase of a deployment; after it come: {origin.following}", hint))
    except AwsError as error:
        text = f"{stack.name} is up to date, but not protected: {error}"
        report(Notice(text, error.hint or "the next deployment tries again."))


def cancel_creation(account: Account, interaction: Interaction, outcome: WatchResult) -> WatchResult:
    """Delete a stack that is being created, if the user agrees; otherwise continue to watch the creation.

    Args:
        outcome: outcome of the watch in which the user chose to cancel the creation.

    Returns:
        The outcome of the deletion, marked as failed; or that of the creation, if the user declined.
    """
    question = Question(
        f"Delete {outcome.stack}, which is being created?",
        ("everything it has created so far is deleted, and the cluster with it",),
    )
    if not interaction.consent(question):
        return watch(account, outcome.stack_id, report=interaction.report, on_interrupt=interaction.on_interrupt)
    if stack := find_stack(account, outcome.stack_id):
        protection.disable_termination_protection(account, stack)
    previous_event = read_last_event(account, outcome.stack_id)
    account.client("cloudformation").delete_stack(StackName=outcome.stack_id)
    deletion_outcome = watch(
        account,
        outcome.stack_id,
        since=previous_event,
        report=interaction.report,
        on_interrupt=interaction.on_interrupt,
    )
    # The user requested a creation, which has failed even if the deletion succeeded.
    return replace(deletion_outcome, succeeded=False)
