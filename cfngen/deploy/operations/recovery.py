"""Prepares a stack in any status for a deployment, and rolls back a failed operation.

`stack_status` lists what CloudFormation allows in each status. The user must confirm every destructive step.
"""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.errors import AwsError, translate_aws_errors
from cfngen.deploy.aws.events import read_last_event
from cfngen.deploy.aws.launched_versions import find_stale_groups
from cfngen.deploy.aws.operation_origin import DESCRIPTION_PATTERN, describe_time
from cfngen.deploy.aws.protection import disable_termination_protection
from cfngen.deploy.aws.rollback_blockers import find_rollback_blockers
from cfngen.deploy.aws.stacks import (
    StackView,
    find_stack,
    list_resource_tree,
    list_resources,
    require_stack,
    reread_stack,
)
from cfngen.deploy.aws.types import AwsArguments, AwsObject
from cfngen.deploy.messages.message import Event, Notice, Question, Report, Step
from cfngen.deploy.messages.next_steps import as_hint, next_steps
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.operations import leftovers
from cfngen.deploy.operations.interaction import Interaction
from cfngen.deploy.plan.plan import RecreationPlan
from cfngen.deploy.preflight import stack_checks
from cfngen.deploy.preflight.stack_checks import busy_error, check_ownership
from cfngen.deploy.watching.watch import WatchResult, watch
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, Hint, suggest

MAX_ROLLBACK_ATTEMPTS = 10
"""Maximum number of times a rollback is continued; each time skips at least one more resource."""


class BlockedError(CfngenError):
    """The stack's status requires another command before a deployment."""

    code = "stack-blocked"

    def __init__(self, stack: StackView, reason: str) -> None:
        super().__init__(f"the stack {stack.name} is in {stack.status}: {reason}", hint=_next_steps_hint(stack))
        self.stack = stack


class ImportRollbackFailedError(CfngenError):
    """The rollback of an import failed; CloudFormation cannot continue it."""

    code = "import-rollback-failed"

    def __init__(self, stack: StackView) -> None:
        super().__init__(
            f"the stack {stack.name} is in {stack.status}: an import into it failed, and so did the rollback of the "
            "import; CloudFormation can continue only the rollback of an update",
            hint=_next_steps_hint(stack),
        )
        self.stack = stack


class FailedCreationError(CfngenError):
    """The stack's creation failed, so no change set can be created: a deployment would delete the stack first.

    Attributes:
        plan: what a deployment would do instead.
    """

    code = "failed-creation"

    def __init__(self, plan: RecreationPlan) -> None:
        super().__init__(
            f"the stack {plan.stack} is in {plan.status}: its creation failed, and a deployment would delete it first",
            hint=CommandText(suggest("delete", stack=plan.stack), " deletes it."),
        )
        self.plan = plan


class NothingToRollBackError(CfngenError):
    """The stack's status does not allow a rollback."""

    code = "nothing-to-roll-back"

    def __init__(self, stack: StackView) -> None:
        earlier_templates_hint = CommandText(
            "to return to earlier templates, check out the earlier cluster file and run ", suggest("deploy"), "."
        )
        super().__init__(
            f"the stack {stack.name} is in {stack.status}, in which there is nothing to roll back",
            hint=_next_steps_hint(stack) or earlier_templates_hint,
        )
        self.stack = stack


def ensure_deployable(account: Account, stack_name: str, cluster: str, interaction: Interaction) -> StackView | None:
    """Prepare a stack so that a change set can be created for it; delete a failed creation, after confirmation.

    Returns:
        The stack; None if it does not exist, or was deleted here, so that the deployment creates it.

    Raises:
        ForeignStackError: the stack belongs to another cluster, or was made elsewhere and is not only planned for.
        BusyError: another operation is in progress.
        BlockedError: another command must be run first.
        ImportRollbackFailedError: the rollback of an import failed.
        NameConflictError: the stack does not exist yet, and another stack contains a cluster of this name.
        DeclinedError: the failed creation must be deleted first, and the user declined.
        FailedCreationError: the failed creation must be deleted first, but only a plan was requested.
    """
    stack = find_stack(account, stack_name)
    if stack is None or stack.status.health is StackHealth.EMPTY:
        # The owner cannot be checked: an empty stack has no tags before its first change set is executed.
        stack_checks.require_unique_name(account, cluster, stack_name)
        if stack is not None:
            report_other_plans(account, stack, interaction.report)
        return None
    if check_ownership(account, stack, cluster, updates=not account.only_planning):
        hint = stack_checks.update_elsewhere_hint(cluster)
        interaction.report(Notice(stack_checks.made_elsewhere_text(stack), hint))
    if stack.status.cleaning_up:
        interaction.report(Step(f"waiting for {stack.name} to finish {stack.status}"))
        watch(account, stack.id, report=interaction.report, on_interrupt=interaction.on_interrupt)
        stack = reread_stack(account, stack)
    _refuse_blocked(account, stack)
    if stack.status.health is StackHealth.DELETE_ONLY:
        stack_checks.require_unique_name(account, cluster, stack_name)
        _delete_failed_creation(account, stack, interaction)
        return None
    if stack.status.health is StackHealth.ABSENT:
        return None
    _report_last_failure(stack, interaction.report)
    report_other_plans(account, stack, interaction.report)
    return stack


def _refuse_blocked(account: Account, stack: StackView) -> None:
    match stack.status.health:
        case StackHealth.BUSY:
            raise busy_error(account, stack)
        case StackHealth.UPDATE_ROLLBACK_FAILED:
            raise BlockedError(stack, "the rollback of its last update failed")
        case StackHealth.IMPORT_ROLLBACK_FAILED:
            raise ImportRollbackFailedError(stack)
        case StackHealth.DELETE_FAILED:
            raise BlockedError(stack, "its deletion failed half-way")


def _report_last_failure(stack: StackView, report: Report) -> None:
    if stack.status.name == "UPDATE_ROLLBACK_COMPLETE":
        report(Notice(f"the last update of {stack.name} was rolled back; this is a new update"))
    if stack.status.health is StackHealth.PAUSED:
        text = (
            f"{stack.name} is in {stack.status}: this continues where the last operation failed, with rollback disabled"
        )
        report(Notice(text, CommandText(suggest("rollback", stack=stack.name), " would roll it back instead.")))


def rollback(
    account: Account,
    stack_name: str,
    cluster: str,
    interaction: Interaction,
    *,
    skip: tuple[str, ...] = (),
    force: bool = False,
) -> WatchResult:
    """Roll a stack back to its last successful state, and report Elastic IPs that its masters have lost.

    Args:
        cluster: name of the cluster that the stack must belong to.
        skip: resources to skip, each `LogicalId` or `NestedStackName.LogicalId`.
        force: skip every resource that fails to roll back; the list is computed again for each attempt.

    Raises:
        NoStackError: there is no such stack.
        NothingToRollBackError: the status does not allow a rollback.
        ImportRollbackFailedError: the rollback of an import failed.
        BusyError: another operation is in progress.
        DeclinedError: the user declined.
    """
    outcome = _start_rollback(account, stack_name, cluster, interaction, skip, force=force)
    if not outcome.detached and (current := find_stack(account, outcome.stack_id)) is not None:
        leftovers.report_lost_addresses(account, current, interaction.report)
    return outcome


def _start_rollback(
    account: Account, stack_name: str, cluster: str, interaction: Interaction, skip: tuple[str, ...], *, force: bool
) -> WatchResult:
    stack = require_stack(account, stack_name)
    if stack.status.health is StackHealth.EMPTY:
        # An empty stack has no tags, so its owner cannot be checked.
        raise NothingToRollBackError(stack)
    check_ownership(account, stack, cluster)
    cloudformation = account.client("cloudformation")
    if stack.status.in_progress:
        raise busy_error(account, stack)
    if stack.status.health is StackHealth.PAUSED:
        deletes_stack = _never_succeeded(account, stack)
        if deletes_stack:
            consequence = "the creation never succeeded, so rolling back deletes everything the stack has created"
        else:
            consequence = "the stack returns to the templates and parameter values of its last successful operation"
        interaction.require_consent(Question(f"Roll back {stack.name}?", (consequence,), dangerous=deletes_stack))
        if deletes_stack:
            disable_termination_protection(account, stack)
        previous_event = read_last_event(account, stack.id)
        cloudformation.rollback_stack(StackName=stack.id, ClientRequestToken=_request_token(stack, previous_event))
        outcome = watch(
            account, stack.id, since=previous_event, report=interaction.report, on_interrupt=interaction.on_interrupt
        )
        if deletes_stack and not outcome.detached:
            leftovers.report_failed_creation(account, reread_stack(account, stack), cluster, interaction.report)
        return outcome
    if stack.status.health is StackHealth.IMPORT_ROLLBACK_FAILED:
        raise ImportRollbackFailedError(stack)
    if stack.status.health is not StackHealth.UPDATE_ROLLBACK_FAILED:
        raise NothingToRollBackError(stack)
    return _continue_rollback(account, stack, interaction, skip, force=force)


def _continue_rollback(
    account: Account, stack: StackView, interaction: Interaction, skip: tuple[str, ...], *, force: bool
) -> WatchResult:
    """Continue a failed rollback once; with `force`, up to `MAX_ROLLBACK_ATTEMPTS` times.

    Args:
        stack: the root stack, in UPDATE_ROLLBACK_FAILED.
        skip: resources that every attempt skips, each `LogicalId` or `NestedStackName.LogicalId`.
        force: whether each attempt also skips the resources that made the previous one fail.
    """
    for _ in range(MAX_ROLLBACK_ATTEMPTS):
        skipped = skip
        if force:
            blockers = find_rollback_blockers(account, stack)
            skipped = tuple(dict.fromkeys((*skip, *blockers)))
        consequences = tuple(
            f"{name} is left unchanged, although CloudFormation records it as rolled back: correct it by hand"
            for name in skipped
        ) or ("the rollback is tried again; first fix what made it fail",)
        interaction.require_consent(
            Question(f"Continue the rollback of {stack.name}?", consequences, dangerous=bool(skipped))
        )
        previous_event = read_last_event(account, stack.id)
        arguments: AwsArguments = {"ResourcesToSkip": list(skipped)} if skipped else {}
        account.client("cloudformation").continue_update_rollback(
            StackName=stack.id, ClientRequestToken=_request_token(stack, previous_event), **arguments
        )
        outcome = watch(
            account, stack.id, since=previous_event, report=interaction.report, on_interrupt=interaction.on_interrupt
        )
        # The rollback did not reset skipped groups to the launch template version of the last successful state.
        if skipped and outcome.status.rolled_back:
            _report_stale_groups(account, stack, interaction)
        if not force or outcome.detached or outcome.status.health is not StackHealth.UPDATE_ROLLBACK_FAILED:
            return outcome
        # Without a further resource to skip, another attempt would fail in the same way.
        if set(find_rollback_blockers(account, stack)) <= set(skipped):
            return outcome
    return outcome


def _report_stale_groups(account: Account, stack: StackView, interaction: Interaction) -> None:
    try:
        with translate_aws_errors():
            views = [resource.view for resource in list_resource_tree(account, stack.id)]
        groups = find_stale_groups(account, views)
    except AwsError:
        return  # the commands `status`, `plan` and `deploy` check again
    for group in groups:
        hint = CommandText(suggest("deploy", stack=stack.name), " restores the boot program of its instances.")
        interaction.report(Notice(group.text, hint))


def _delete_failed_creation(account: Account, stack: StackView, interaction: Interaction) -> None:
    remaining = [
        resource for resource in list_resources(account, stack.id) if not resource.status.startswith("DELETE_COMPLETE")
    ]
    if account.only_planning:
        remains = tuple(resource.logical_id for resource in remaining)
        raise FailedCreationError(RecreationPlan(stack.name, stack.id, stack.status.name, remains))
    if remaining:
        content = f"it still contains: {', '.join(resource.logical_id for resource in remaining)}"
    else:
        content = "it no longer contains resources"
    consequences = (
        f"{stack.name} is in {stack.status}: its creation failed, so that CloudFormation can only delete it",
        content,
    )
    # The deletion does not endanger a bucket with snapshots: S3 does not delete a bucket that contains objects.
    is_dangerous = stack.status.name == "ROLLBACK_FAILED" and not leftovers.only_backup_buckets_left(account, stack)
    interaction.require_consent(
        Question(f"Delete the remains of {stack.name} and create it again?", consequences, dangerous=is_dangerous)
    )
    disable_termination_protection(account, stack)
    interaction.report(Step(f"deleting the remains of {stack.name}"))
    previous_event = read_last_event(account, stack.id)
    account.client("cloudformation").delete_stack(
        StackName=stack.id, ClientRequestToken=_request_token(stack, previous_event)
    )
    outcome = watch(
        account, stack.id, since=previous_event, report=interaction.report, on_interrupt=interaction.on_interrupt
    )
    if outcome.detached:
        raise busy_error(account, reread_stack(account, stack))
    if outcome.status.exists:
        current = reread_stack(account, stack)
        raise BlockedError(current, "what its failed creation left could not be removed")


def _never_succeeded(account: Account, stack: StackView) -> bool:
    """Return whether no operation of a failed stack ever succeeded, so that rolling it back deletes it.

    A failed creation that was deployed again and failed again is in UPDATE_FAILED, like any failed update. "This
    operation will delete a stack if it doesn't contain a last known stable state", which is any *_COMPLETE (API:
    RollbackStack). Events are kept for 90 days; a stack whose creation is older is taken to have succeeded.
    """
    if stack.status.name == "CREATE_FAILED":
        return True
    stack_statuses = [
        StackStatus(event.get("ResourceStatus", ""))
        for event in account.items("cloudformation.describe_stack_events", "StackEvents", StackName=stack.id)
        if event.get("PhysicalResourceId") == stack.id
    ]
    shows_creation = any(status.name in ("CREATE_IN_PROGRESS", "REVIEW_IN_PROGRESS") for status in stack_statuses)
    return shows_creation and not any(status.health is StackHealth.HEALTHY for status in stack_statuses)


def _next_steps_hint(stack: StackView) -> Hint:
    return as_hint(next_steps(stack.status, stack.name, made_elsewhere=stack.made_elsewhere))


def _request_token(stack: StackView, previous_event: Event | None) -> str:
    """Return a client request token for one call, so that CloudFormation ignores boto3's retries of the call.

    The next call has another token, because by then the stack has a newer `previous_event`.
    """
    event_id = previous_event.id if previous_event else ""
    return f"cfngen-{uuid.uuid5(uuid.NAMESPACE_URL, stack.id + event_id)}"


_MAX_PLAN_AGE = timedelta(hours=1)  # older change sets are taken for abandoned
_OPEN_STATUSES = ("CREATE_PENDING", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
_UNEXECUTED_STATUSES = ("AVAILABLE", "UNAVAILABLE")


def report_other_plans(account: Account, stack: StackView, report: Report) -> None:
    """Report change sets of the last hour that others have created for a stack and not executed yet.

    Once one change set is executed, CloudFormation refuses to execute the others. Without the permission to list change
    sets nothing is reported.
    """
    try:
        with translate_aws_errors():
            change_sets = account.items("cloudformation.list_change_sets", "Summaries", StackName=stack.id)
            summaries = [summary for summary in change_sets if _is_open(account, summary)]
    except AwsError:
        return
    for summary in summaries:
        description = DESCRIPTION_PATTERN.match(summary.get("Description", ""))
        author = description["caller"] if description else f"somebody (change set {summary['ChangeSetName']})"
        created: datetime = summary["CreationTime"]
        report(
            Notice(
                f"{author} has been planning a change of {stack.name} since {describe_time(account, created)}",
                "ask them before you continue: whoever deploys first invalidates the other's plan; ignore a plan "
                "that is only left over.",
            )
        )


def _is_open(account: Account, summary: AwsObject) -> bool:
    created = summary.get("CreationTime")
    return (
        summary.get("Status") in _OPEN_STATUSES
        and summary.get("ExecutionStatus") in _UNEXECUTED_STATUSES
        and not summary.get("ParentChangeSetId")
        and created is not None
        and account.clock.now() - created <= _MAX_PLAN_AGE
    )
