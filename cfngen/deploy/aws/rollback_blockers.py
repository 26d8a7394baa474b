"""Finds the resources of an update that made its rollback fail; continuing the rollback can skip them.

CloudFormation skips "only resources that are in the UPDATE_FAILED state because a rollback failed", and no resources
that are in this state "for other reasons, for example, because an update was canceled" (API reference,
ContinueUpdateRollback). The status alone does not show the reason: a resource whose update was cancelled, and that the
rollback did not reach, is in UPDATE_FAILED as well. The events show it: a resource that failed after the stack started
to roll back failed because of the rollback.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.deploy.aws.account import Account
from cfngen.deploy.aws.events import is_cancelled, parse_event
from cfngen.deploy.aws.stacks import NESTED_STACK, ResourceView, StackView, find_stack, list_resources

# A nested stack in one of these statuses can be skipped as a whole (API reference, ContinueUpdateRollback).
SKIPPABLE_STACK_STATUSES = frozenset({"DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED"})


def find_rollback_blockers(account: Account, root: StackView) -> dict[str, str]:
    """Return the resources that made a rollback fail; keys are as `ResourcesToSkip` spells them, values the reasons.

    A resource in a nested stack is spelled as the nested stack's *name*, a dot and the logical id. A nested stack
    itself is included only if it is being deleted, because skipping it skips all of its resources.
    """
    return dict(_find_blockers(account, root, ""))


def _find_blockers(account: Account, stack: StackView, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the resources that made a stack's rollback fail: (entry for `ResourcesToSkip`, reason of the failure).

    `prefix` is the beginning of the entries: the stack's name and a dot, or empty for the root.
    """
    failed = [resource for resource in list_resources(account, stack.id) if resource.status == "UPDATE_FAILED"]
    rollback_failures = _find_failed_in_rollback(account, stack) if failed else frozenset[str]()
    for resource in failed:
        if resource.type == NESTED_STACK and resource.physical_id:
            yield from _find_nested_blockers(account, resource, prefix)
        elif resource.logical_id in rollback_failures:
            yield f"{prefix}{resource.logical_id}", resource.reason


def _find_nested_blockers(account: Account, resource: ResourceView, prefix: str) -> Iterator[tuple[str, str]]:
    """Yield the same as `_find_blockers` for a nested stack, or only the nested stack itself if it is being deleted."""
    child = find_stack(account, resource.physical_id)
    if child is None or child.status.name in SKIPPABLE_STACK_STATUSES:
        yield f"{prefix}{resource.logical_id}", resource.reason
    else:
        yield from _find_blockers(account, child, f"{child.name}.")


def _find_failed_in_rollback(account: Account, stack: StackView) -> frozenset[str]:
    """Return the logical ids of the resources that failed after the latest rollback started or was continued."""
    # Events are listed newest first; only the newest event of each resource counts.
    has_failed_by_id: dict[str, bool] = {}
    for entry in account.items("cloudformation.describe_stack_events", "StackEvents", StackName=stack.id):
        event = parse_event(entry, ())
        if event.of_stack and event.status == "UPDATE_ROLLBACK_IN_PROGRESS":
            break
        has_failed = event.status == "UPDATE_FAILED" and not is_cancelled(event)
        has_failed_by_id.setdefault(event.logical_id, has_failed)
    return frozenset(logical_id for logical_id, has_failed in has_failed_by_id.items() if has_failed)
