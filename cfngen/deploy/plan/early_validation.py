"""Why a change set failed: the problems found by early validation, or the reason of the innermost nested stack.

Early validation checks a template's properties, existing names and quotas before anything is created. The status
reason of the change set only says that early validation failed; DescribeEvents returns the problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import ChangeSet, read_change_set, retry_transient_errors
from cfngen.deploy.aws.errors import DeniedError
from cfngen.errors import CfngenError

_EARLY_VALIDATION = "AWS::EarlyValidation"
_NESTED_CHANGE_SET_ARN = re.compile(r"Nested change set (arn:\S+?:changeSet/\S+)")


class ChangeSetFailedError(CfngenError):
    """CloudFormation could not create the change set.

    Attributes:
        stack: name of the stack whose change set failed, which may be a nested stack.
        reason: status reason of the change set.
    """

    code = "change-set-failed"

    def __init__(self, stack: str, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"CloudFormation could not create the change set of {stack}: {reason or 'it gives no reason'}",
            hint=hint or "nothing has been changed; fix the cause, and try again.",
        )
        self.stack = stack
        self.reason = reason


@dataclass(frozen=True)
class ValidationFailure:
    """One problem found by early validation.

    Attributes:
        stack: name of the stack.
        path: path in that stack's template, e.g. `/Resources/Vpc/Properties/CidrBlock`.
        reason: message of CloudFormation.
        logical_id: the resource; may be empty.
    """

    stack: str
    path: str
    reason: str
    logical_id: str = ""

    def __str__(self) -> str:
        location = self.path or self.logical_id
        return f"{self.stack}: {location}: {self.reason}" if location else f"{self.stack}: {self.reason}"


class EarlyValidationError(ChangeSetFailedError):
    """Early validation found problems in the templates, before anything was created.

    Attributes:
        problems: the problems.
    """

    code = "early-validation-failed"

    def __init__(self, stack: str, reason: str, problems: tuple[ValidationFailure, ...]) -> None:
        super().__init__(stack, reason, hint="nothing has been changed; fix each problem, and try again.")
        self.problems = problems


def change_set_error(account: Account, change_set: ChangeSet) -> ChangeSetFailedError:
    """Return an error that says why a change set failed.

    Args:
        account: the account and region.
        change_set: the failed change set of a root.
    """
    failed_change_sets = list(_find_innermost_failures(account, change_set, visited=set()))
    failed_by_validation = [failed for failed in failed_change_sets if _EARLY_VALIDATION in failed.reason]
    problems = tuple(
        problem for failed in failed_by_validation for problem in _read_validation_failures(account, failed)
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
        account: the account and region.
        change_set: the failed change set of a stack.
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


def _read_validation_failures(account: Account, change_set: ChangeSet) -> Iterator[ValidationFailure]:
    """Yield the problems that early validation found in one stack; none if DescribeEvents is not allowed."""
    client = account.client("cloudformation")
    arguments = {"ChangeSetName": change_set.id, "Filters": {"FailedEvents": True}}
    while True:
        try:
            page = retry_transient_errors(account.clock, lambda: client.describe_events(**arguments))
        except DeniedError:
            return
        for event in page.get("OperationEvents", ()):
            if event.get("ValidationFailureMode") == "WARN" or event.get("HookFailureMode") == "WARN":
                continue  # a warning does not fail the change set
            reason = event.get("ValidationStatusReason") or event.get("HookStatusReason") or ""
            if not reason:
                continue
            yield ValidationFailure(
                stack=change_set.stack_name,
                path=event.get("ValidationPath") or "",
                reason=reason,
                logical_id=event.get("LogicalResourceId") or "",
            )
        if not page.get("NextToken"):
            return
        arguments["NextToken"] = page["NextToken"]
