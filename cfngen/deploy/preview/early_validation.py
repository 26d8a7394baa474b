"""Why a change set could not be made: what CloudFormation's early validation found, or the reason that is deepest.

Early validation looks at a template's properties, at names that are taken and at quotas before anything is created. A
change set that fails by it has a reason which only says so; what it found is told by DescribeEvents alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from cfngen.deploy.account import Account
from cfngen.deploy.aws_errors import DeniedError
from cfngen.deploy.preview.change_set_reading import Description, persistently, read
from cfngen.errors import CfngenError

_EARLY_VALIDATION = "AWS::EarlyValidation"
_NESTED_CHANGE_SET_ARN = re.compile(r"Nested change set (arn:\S+?:changeSet/\S+)")


class ChangeSetFailedError(CfngenError):
    """CloudFormation could not make the change set.

    Attributes:
        stack: name of the stack whose change set is at fault; that of a nested stack maybe.
        reason: CloudFormation's own words.
    """

    def __init__(self, stack: str, reason: str, *, hint: str = "") -> None:
        super().__init__(
            f"CloudFormation cannot plan {stack}: {reason or 'it gives no reason'}",
            hint=hint or "nothing has been changed; correct what it names, and repeat.",
        )
        self.stack = stack
        self.reason = reason


@dataclass(frozen=True)
class ValidationFailure:
    """One thing that early validation refuses.

    Attributes:
        stack: name of the stack.
        path: where it is in that stack's template, e.g. `/Resources/Vpc/Properties/CidrBlock`.
        reason: CloudFormation's own words.
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
    """CloudFormation refuses the templates before anything was created.

    Attributes:
        problems: what it refuses.
    """

    def __init__(self, stack: str, reason: str, problems: tuple[ValidationFailure, ...]) -> None:
        super().__init__(stack, reason, hint="nothing has been changed; correct what each line names, and repeat.")
        self.problems = problems


def failure(account: Account, description: Description) -> ChangeSetFailedError:
    """Return why a change set failed, as an error.

    Args:
        account: where it is.
        description: the failed change set of a root.
    """
    failed_change_sets = list(_culprits(account, description, set()))
    problems = tuple(
        problem
        for change_set in failed_change_sets
        if _EARLY_VALIDATION in change_set.reason
        for problem in _findings(account, change_set)
    )
    culprit = next(
        (change_set for change_set in failed_change_sets if _EARLY_VALIDATION in change_set.reason),
        failed_change_sets[0],
    )
    if problems:
        return EarlyValidationError(culprit.stack_name, culprit.reason, problems)
    if _EARLY_VALIDATION in culprit.reason:
        hint = (
            "DescribeEvents would tell more, and you may not call it: allow cloudformation:DescribeEvents, and repeat."
        )
        return ChangeSetFailedError(culprit.stack_name, culprit.reason, hint=hint)
    return ChangeSetFailedError(culprit.stack_name, culprit.reason)


def _culprits(account: Account, description: Description, visited: set[str]) -> Iterator[Description]:
    """Return the failed change sets that do not merely repeat the failure of one they nest."""
    visited.add(description.id)
    named_arns = {arn.rstrip(".,:;") for arn in _NESTED_CHANGE_SET_ARN.findall(description.reason)}
    nested = [
        change_set for change_set in description.children.values() if change_set.failed and not change_set.nothing_to_do
    ]
    # A nested change set that failed early is not always listed among the changes of its parent.
    missing_arns = sorted(named_arns - {change_set.id for change_set in nested} - visited)
    nested += [read(account, arn) for arn in missing_arns]
    nested_failures = [
        culprit for child in nested if child.id not in visited for culprit in _culprits(account, child, visited)
    ]
    yield from nested_failures
    if not nested_failures or (_EARLY_VALIDATION in description.reason and not named_arns):
        yield description


def _findings(account: Account, description: Description) -> Iterator[ValidationFailure]:
    """Return what early validation found in one stack; nothing if it may not be asked."""
    client = account.client("cloudformation")
    arguments = {"ChangeSetName": description.id, "Filters": {"FailedEvents": True}}
    while True:
        try:
            page = persistently(account.clock, lambda: client.describe_events(**arguments))
        except DeniedError:
            return
        for event in page.get("OperationEvents", ()):
            if event.get("ValidationFailureMode") == "WARN" or event.get("HookFailureMode") == "WARN":
                continue
            reason = event.get("ValidationStatusReason") or event.get("HookStatusReason") or ""
            if not reason:
                continue
            yield ValidationFailure(
                description.stack_name,
                event.get("ValidationPath") or "",
                reason,
                event.get("LogicalResourceId") or "",
            )
        if not page.get("NextToken"):
            return
        arguments["NextToken"] = page["NextToken"]
