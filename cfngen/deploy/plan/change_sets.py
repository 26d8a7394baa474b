"""Creates the change set that a plan is read from, waits for it, says why it failed, and deletes it.

The root has one change set and, through it, each nested stack has one. Those of cfngen are named `cfngen-plan-…`.

Early validation checks a template's properties, existing names and quotas before anything is created. The status
reason of the change set only says that early validation failed; DescribeEvents returns the problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

from cfngen.cluster.naming.names import CHANGE_SET_PREFIX
from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import (
    ChangeSet,
    ValidationFailure,
    pauses,
    read_change_set,
    read_change_set_status,
    read_pages,
    read_validation_failures,
    retry_transient_errors,
)
from cfngen.deploy.aws.errors import AwsError, DeniedError, translate_aws_errors
from cfngen.deploy.aws.protection import disable_termination_protection
from cfngen.deploy.aws.stacks import NESTED_STACK, StackTree, StackView, find_stack, list_resource_tree, stack_name
from cfngen.deploy.aws.types import AwsArguments, AwsObject, Client
from cfngen.deploy.messages.message import Notice, Report
from cfngen.deploy.messages.stack_status import StackHealth, StackStatus
from cfngen.deploy.plan.plan import Plan, PlanRequest
from cfngen.deploy.plan.planning import plan_from_change_set
from cfngen.errors import CfngenError
from cfngen.hints import CommandText, suggest

_STALE_AGE = timedelta(hours=1)  # age at which an unused change set of cfngen may be deleted
_CREATION_TIMEOUT_SECONDS = 1800
_VISIBILITY_SECONDS = 30  # after which DescribeChangeSet must find a new change set
_DELETION_TIMEOUT_SECONDS = 120
# Error codes of a call that the current status of a change set does not allow.
INVALID_STATUS_CODES = ("InvalidChangeSetStatus", "InvalidChangeSetStatusException")
# CloudFormation updates a stack that failed with rollback disabled only with rollback disabled: "This stack is
# currently in a non-terminal [CREATE_FAILED] state. To update the stack from this state, please use the
# disable-rollback parameter" (ansible-collections/amazon.aws#1655).
_ON_FAILURE_OF_PAUSED = "DO_NOTHING"
_FINAL_EXECUTION_STATUSES = ("EXECUTE_COMPLETE", "EXECUTE_FAILED", "OBSOLETE")
# Error codes of a call for a change set that does not exist, or that AWS does not find yet.
NOT_FOUND_CODES = ("ChangeSetNotFound", "ChangeSetNotFoundException")


class ChangeSetTimeoutError(CfngenError):
    """CloudFormation did not finish creating a change set in time."""

    code = "change-set-timeout"


class _UndeletableChangeSetError(CfngenError):
    """A change set cannot be deleted in its current status, for example while it is being executed."""


class UnplannableError(CfngenError):
    """The stack is in a status in which CloudFormation creates no change sets."""

    code = "stack-not-plannable"


def make_plan(account: Account, request: PlanRequest, *, report: Report) -> Plan:
    """Create a change set and return the plan of the deployment. The plan must be executed or discarded.

    Raises:
        UnplannableError: the stack's status allows no change set.
        EarlyValidationError: early validation found problems in the templates.
        ChangeSetFailedError: the change set failed for another reason.
        AwsError: AWS refuses a call, or cannot be reached.
    """
    with translate_aws_errors():
        existing_stack = find_stack(account, request.stack)
    status = _plannable_status(request.stack, existing_stack)
    operation = status.change_set_type.lower()
    is_paused = status.health is StackHealth.PAUSED
    if is_paused:
        request = replace(request, on_failure=_ON_FAILURE_OF_PAUSED)
    # An empty stack with the cluster's tag was left behind by an earlier plan.
    belongs_to_cluster = existing_stack is None or not status.exists or existing_stack.cluster == request.cluster.name
    is_stack_empty = status.change_set_type == "CREATE" and belongs_to_cluster
    change_set_id, stack_id = _create_change_set(account, request, status)
    empty_stack_id = stack_id if is_stack_empty else ""
    try:
        change_set = _wait_for_change_set(account, change_set_id)
        if change_set.failed and not change_set.nothing_to_do:
            raise change_set_error(account, change_set)
        if not change_set.failed:
            plan = plan_from_change_set(
                account,
                request,
                change_set,
                operation=operation,
                deployed=request.deployed or (StackTree(account, existing_stack) if existing_stack else None),
                is_stack_empty=is_stack_empty,
                report=report,
            )
            # CloudFormation may list nested stacks in which nothing changes: the update is only retried then, too.
            if not is_paused:
                return plan
            if not plan.is_empty:
                return replace(plan, unfinished=_unfinished(account, plan))
    except BaseException:
        _clean_up(account, change_set_id, empty_stack_id=empty_stack_id, report=report)
        raise
    _clean_up(account, change_set_id, empty_stack_id=empty_stack_id, report=report)
    retries = find_failed(account, stack_id) if is_paused else ()
    return _plan_without_changes(request, change_set, stack_id, operation, retries)


def _unfinished(account: Account, plan: Plan) -> tuple[str, ...]:
    """Return the paths of failed resources of a paused stack that the change set of the plan does not list."""
    changed = {"/".join((*stack.path, change.logical_id)) for stack in plan.stacks for change in stack.changes}
    return tuple(path for path in find_failed(account, plan.stack_id) if path not in {plan.stack, *changed})


def _plan_without_changes(
    request: PlanRequest, change_set: ChangeSet, stack_id: str, operation: str, retries: tuple[str, ...]
) -> Plan:
    return Plan(
        stack=request.stack,
        stack_id=stack_id,
        operation=operation,
        created=change_set.created,
        bill=request.bill,
        on_failure=request.on_failure,
        express=request.express,
        retries=retries,
    )


def _plannable_status(name: str, existing: StackView | None) -> StackStatus:
    status = existing.status if existing else StackStatus("")
    if not status.change_set_type:
        raise UnplannableError(
            f"the stack {name} is in {status}; CloudFormation creates no change set in this status",
            hint=CommandText(
                "wait until the operation has ended, or repair the stack; ", suggest("status"), " shows how."
            ),
        )
    return status


def _create_change_set(account: Account, request: PlanRequest, status: StackStatus) -> tuple[str, str]:
    """Start the creation of a change set for a root and its nested stacks; return its ARN and the stack's ARN.

    Stale change sets of cfngen are deleted first, if the caller is allowed to.
    """
    name = f"{CHANGE_SET_PREFIX}{request.token}"[:128]  # longer names are not allowed
    kind = status.change_set_type
    if status.exists and not account.only_planning:
        _delete_stale_change_sets(account, request.stack, name)
    arguments: AwsArguments = {
        "StackName": request.stack,
        "ChangeSetName": name,
        "ChangeSetType": kind,
        "ClientToken": request.token,
        "Description": request.note or f"cfngen: the cluster {request.cluster.name}",
        "TemplateURL": request.template_url,
        "Parameters": [dict(parameter) for parameter in request.parameters],
        "Capabilities": list(request.capabilities),
        "Tags": [{"Key": key, "Value": value} for key, value in sorted(request.tags.items())],
        "IncludeNestedStacks": True,
    }
    if request.role_arn:
        arguments["RoleARN"] = request.role_arn
    if request.notification_arns is not None:
        arguments["NotificationARNs"] = list(request.notification_arns)
    if request.express:
        # By default, express mode does not roll back.
        disables_rollback = request.on_failure == "DO_NOTHING"
        arguments["DeploymentConfig"] = {"Mode": "EXPRESS", "DisableRollback": disables_rollback}
    elif kind == "CREATE" and request.on_failure == "DELETE":
        # DO_NOTHING is not set here, but by disabling rollback when the change set is executed: a stack that was
        # created with OnStackFailure=DO_NOTHING and failed cannot be updated, while one that was created with rollback
        # disabled can (code-dot-org/code-dot-org#68524 quotes the error message).
        arguments["OnStackFailure"] = request.on_failure
    client = account.client("cloudformation")
    response = retry_transient_errors(account.clock, lambda: client.create_change_set(**arguments))
    return str(response["Id"]), str(response["StackId"])


def _wait_for_change_set(account: Account, change_set_id: str) -> ChangeSet:
    """Wait until CloudFormation has created a change set, or failed to, and return it with all changes."""
    start, pause = account.clock.now(), pauses()
    while True:
        elapsed = (account.clock.now() - start).total_seconds()
        try:
            is_pending = read_change_set_status(account, change_set_id).pending
        except AwsError as error:
            # Reads are eventually consistent: a new change set may not be found yet.
            if error.aws_code not in NOT_FOUND_CODES or elapsed > _VISIBILITY_SECONDS:
                raise
            is_pending = True
        if not is_pending:
            return read_change_set(account, change_set_id)
        if elapsed > _CREATION_TIMEOUT_SECONDS:
            raise ChangeSetTimeoutError(
                f"CloudFormation has been creating the change set for {elapsed / 60:.0f} minutes and has not finished",
                hint="nothing has been changed; check the stack's change sets in the console, and try again.",
            )
        account.clock.sleep(pause())


def discard(account: Account, plan: Plan, report: Report | None = None) -> None:
    """Delete the change set of a plan, and its stack if it was created for the plan, unless the plan was executed."""
    if not plan.is_executed:
        _clean_up(account, plan.change_set_id, empty_stack_id=plan.stack_id if plan.shell else "", report=report)


def _clean_up(account: Account, change_set_id: str, *, empty_stack_id: str, report: Report | None) -> None:
    """Delete a change set and the empty stack that was created for it; errors are reported, but not raised.

    Args:
        change_set_id: ARN of the change set; if empty, there is none to delete.
        empty_stack_id: ARN of the stack; if empty, the stack is kept, since it existed before the change set.
    """
    try:
        if change_set_id:
            _delete_change_set(account, change_set_id)
        if empty_stack_id:
            _delete_empty_stack(account, empty_stack_id)
    except (AwsError, _UndeletableChangeSetError) as error:
        leftover = "an empty stack in REVIEW_IN_PROGRESS" if empty_stack_id else "a change set"
        if report:
            report(
                Notice(f"{leftover} remains in the account: {error}", "it is harmless; the next deployment deletes it.")
            )


def _delete_stale_change_sets(account: Account, stack: str, name: str) -> None:
    """Delete a stack's change sets of cfngen that nobody will execute: with the given name, failed, executed, or old.

    Other change sets of the last hour are left alone, since someone else may be about to execute them. If the
    deletion is not allowed or fails, the change sets stay, which does no harm.
    """
    pages = read_pages(account, account.client("cloudformation").list_change_sets, StackName=stack)
    with suppress(DeniedError, _UndeletableChangeSetError):
        summaries = [summary for page in pages for summary in page["Summaries"]]
        for summary in summaries:
            if _is_stale(account, summary, name):
                _delete_change_set(account, summary["ChangeSetId"])


def _is_stale(account: Account, summary: AwsObject, name: str) -> bool:
    """Return whether nobody will execute a change set of cfngen.

    Args:
        name: name of the change set that is about to be created; an existing one with this name is stale.
    """
    is_of_cfngen = str(summary["ChangeSetName"]).startswith(CHANGE_SET_PREFIX)
    is_finished = summary.get("Status") == "FAILED" or summary.get("ExecutionStatus") in _FINAL_EXECUTION_STATUSES
    created = summary.get("CreationTime")
    is_old = created is not None and account.clock.now() - created > _STALE_AGE
    return is_of_cfngen and (is_finished or is_old or summary["ChangeSetName"] == name)


def _delete_change_set(account: Account, change_set_id: str) -> None:
    """Delete a change set with those of nested stacks, and wait until it is deleted, which takes a while."""
    client = account.client("cloudformation")
    start, pause = account.clock.now(), pauses()
    is_accepted = False
    try:
        while (account.clock.now() - start).total_seconds() <= _DELETION_TIMEOUT_SECONDS:
            if not is_accepted:
                is_accepted = _request_deletion(account, client, change_set_id)
            elif read_change_set_status(account, change_set_id).status in ("DELETE_COMPLETE", "DELETE_FAILED"):
                return
            account.clock.sleep(pause())
    except AwsError as error:
        if error.aws_code not in NOT_FOUND_CODES:
            raise
    else:
        if not is_accepted:
            raise _UndeletableChangeSetError("CloudFormation is still creating it")


def _request_deletion(account: Account, client: Client, change_set_id: str) -> bool:
    """Call DeleteChangeSet; return False if CloudFormation is still creating the change set and refuses."""
    try:
        retry_transient_errors(account.clock, lambda: client.delete_change_set(ChangeSetName=change_set_id))
    except AwsError as error:
        if error.aws_code not in INVALID_STATUS_CODES:
            raise
        if not read_change_set_status(account, change_set_id).pending:
            raise _UndeletableChangeSetError(str(error)) from error
        return False
    return True


def _delete_empty_stack(account: Account, stack_id: str) -> None:
    """Delete a stack that was created for a change set, unless it is no longer empty or has other change sets."""
    client = account.client("cloudformation")
    with translate_aws_errors():
        stack = find_stack(account, stack_id)
    if stack is None or stack.status.health is not StackHealth.EMPTY:
        return
    if stack.protected and account.only_planning:
        return  # someone has deployed the stack or is about to, and has protected it
    summaries = retry_transient_errors(account.clock, lambda: client.list_change_sets(StackName=stack_id))["Summaries"]
    has_other_change_sets = any(not summary.get("Status", "").startswith("DELETE_") for summary in summaries)
    if not has_other_change_sets:
        disable_termination_protection(account, stack)
        retry_transient_errors(account.clock, lambda: client.delete_stack(StackName=stack_id))


def find_failed(account: Account, root_id: str) -> tuple[str, ...]:
    """Return the paths of the failed resources through their nested stacks; the root's name if none has failed.

    Raises:
        AwsError: a call failed.
    """
    with translate_aws_errors():
        failed = [
            resource for resource in list_resource_tree(account, root_id) if resource.view.status.endswith("_FAILED")
        ]
    # A nested stack also counts as failed if a resource in it has failed, and then only the resource is named.
    failed_in_stacks = [resource.name for resource in failed if resource.view.type != NESTED_STACK]
    return tuple(failed_in_stacks or [resource.name for resource in failed] or [stack_name(root_id)])


_EARLY_VALIDATION = "AWS::EarlyValidation"
_NESTED_CHANGE_SET_ARN = re.compile(r"Nested change set (arn:\S+?:changeSet/\S+)")


class ChangeSetFailedError(CfngenError):
    """CloudFormation could not create the change set.

    Attributes:
        stack: name of the stack whose change set failed, which may be a nested stack.
    """

    code = "change-set-failed"

    def __init__(self, stack: str, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"CloudFormation could not create the change set of {stack}: {reason or 'it gives no reason'}",
            hint=hint or "nothing has been changed; fix the cause, and try again.",
        )
        self.stack = stack
        self.reason = reason


class EarlyValidationError(ChangeSetFailedError):
    """Early validation found problems in the templates, before anything was created."""

    code = "early-validation-failed"

    def __init__(self, stack: str, reason: str, problems: tuple[ValidationFailure, ...]) -> None:
        super().__init__(stack, reason, hint="nothing has been changed; fix each problem, and try again.")
        self.problems = problems


def change_set_error(account: Account, change_set: ChangeSet) -> ChangeSetFailedError:
    """Return an error that says why a change set failed."""
    failed_change_sets = list(_find_innermost_failures(account, change_set, visited=set()))
    failed_by_validation = [failed for failed in failed_change_sets if _EARLY_VALIDATION in failed.reason]
    problems = tuple(
        problem for failed in failed_by_validation for problem in read_validation_failures(account, failed)
    )
    failed_change_set = (failed_by_validation or failed_change_sets)[0]
    if problems:
        return EarlyValidationError(failed_change_set.stack_name, failed_change_set.reason, problems)
    if _EARLY_VALIDATION in failed_change_set.reason:
        hint = "allow cloudformation:DescribeEvents to see which problems were found, and try again."
        return ChangeSetFailedError(failed_change_set.stack_name, failed_change_set.reason, hint=hint)
    return ChangeSetFailedError(failed_change_set.stack_name, failed_change_set.reason)


def _find_innermost_failures(account: Account, change_set: ChangeSet, visited: set[str]) -> Iterator[ChangeSet]:
    """Yield the failed change sets of a stack and its nested stacks, nested ones first.

    A change set that failed only because of a nested change set is left out.

    Args:
        visited: ids of the change sets that were read already; they are not read again.
    """
    visited.add(change_set.id)
    named_arns = {arn.rstrip(".,:;") for arn in _NESTED_CHANGE_SET_ARN.findall(change_set.reason)}
    nested = [child for child in change_set.children.values() if child.failed and not child.nothing_to_do]
    # A nested change set that failed early is not always listed among the changes of its parent.
    missing_arns = sorted(named_arns - {child.id for child in nested} - visited)
    nested += [read_change_set(account, arn) for arn in missing_arns]
    nested_failures = [
        failed_change_set
        for child in nested
        if child.id not in visited
        for failed_change_set in _find_innermost_failures(account, child, visited=visited)
    ]
    yield from nested_failures
    if not nested_failures or (_EARLY_VALIDATION in change_set.reason and not named_arns):
        yield change_set
