"""Which resources keep a failed rollback from being continued.

CloudFormation leaves out "only resources that are in the UPDATE_FAILED state because a rollback failed", none that are
in it "for other reasons, for example, because an update was canceled" (API reference, ContinueUpdateRollback). A
resource's status alone does not tell the two apart: one whose update was cancelled, and to which the rollback never
came, is in UPDATE_FAILED as well. Its events do: what failed after the stack had begun to roll back failed in that.
"""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.deploy.account import Account
from cfngen.deploy.stacks import NESTED, ResourceView, StackView, find, resources
from cfngen.deploy.watching.events import is_cancelled, parsed

# States of a nested stack in which the resource of it can be skipped, after the same reference.
DELETED = frozenset({"DELETE_IN_PROGRESS", "DELETE_COMPLETE", "DELETE_FAILED"})


def rollback_blockers(account: Account, root: StackView) -> dict[str, str]:
    """Return what stands in the way of a failed rollback, as `ResourcesToSkip` names it, with the reason of each.

    That of a nested stack's resource is the nested stack's *name* and the logical id. A nested stack itself is named
    only where it is being deleted: everything in it would be skipped.
    """
    return dict(_blockers(account, root, ""))


def _blockers(account: Account, stack: StackView, prefix: str) -> Iterator[tuple[str, str]]:
    failed = [each for each in resources(account, stack.id) if each.status == "UPDATE_FAILED"]
    unrestored = _unrestored(account, stack) if failed else frozenset[str]()
    for resource in failed:
        if resource.type == NESTED and resource.physical_id:
            yield from _of_nested(account, resource, prefix)
        elif resource.logical_id in unrestored:
            yield f"{prefix}{resource.logical_id}", resource.reason


def _of_nested(account: Account, resource: ResourceView, prefix: str) -> Iterator[tuple[str, str]]:
    child = find(account, resource.physical_id)
    if child is None or child.status.name in DELETED:
        yield f"{prefix}{resource.logical_id}", resource.reason
    else:
        yield from _blockers(account, child, f"{child.name}.")


def _unrestored(account: Account, stack: StackView) -> frozenset[str]:
    """Return the resources of one stack that have failed since its newest rollback, or its continuation, began."""
    newest: dict[str, bool] = {}
    pages = account.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack.id)
    for entry in (entry for page in pages for entry in page["StackEvents"]):
        event = parsed(entry, ())
        if event.of_stack and event.status == "UPDATE_ROLLBACK_IN_PROGRESS":
            break
        newest.setdefault(event.logical_id, event.status == "UPDATE_FAILED" and not is_cancelled(event))
    return frozenset(logical_id for logical_id, failed in newest.items() if failed)
