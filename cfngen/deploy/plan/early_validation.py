"""Why a change set failed: the problems found by early validation, or the reason of the innermost nested stack.

Early validation checks a template's properties, existing names and quotas before anything is created. The status
reason of the change set only says that early validation failed; DescribeEvents returns the problems.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.change_sets import ChangeSet, ValidationFailure, read_change_set, read_validation_failures
from cfngen.errors import CfngenError

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
