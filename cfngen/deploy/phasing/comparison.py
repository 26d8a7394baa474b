"""Compares the actual plan of a phase with the plan that the user agreed to."""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.deploy.preview.changes import Change, Danger, StackPlan
from cfngen.deploy.preview.plan import Plan


def find_worse_changes(confirmed: Iterable[StackPlan], actual: Plan) -> tuple[tuple[str, Danger], ...]:
    """Return the changes of a phase that are more dangerous than the user agreed to.

    Each is returned as a description and its danger. A change that was not in the confirmed plan counts as harmless
    there, so it is returned if it is dangerous or disruptive.

    Args:
        confirmed: the changes of the phase in the plan of the whole update.
        actual: the plan of the phase, from its own change set.
    """
    confirmed_changes = {(stack.path, change.logical_id): change for stack in confirmed for change in stack.changes}
    worse_changes: dict[str, Danger] = {}
    for stack in actual.stacks:
        for change in stack.changes:
            confirmed_change = confirmed_changes.get((stack.path, change.logical_id))
            confirmed_rank = confirmed_change.danger.rank if confirmed_change else Danger.NONE.rank
            if change.danger.rank > confirmed_rank:
                worse_changes[_describe_change(stack, change)] = change.danger
    return tuple(worse_changes.items())


def _describe_change(stack: StackPlan, change: Change) -> str:
    resource_path = "/".join((*stack.path, change.logical_id))
    return f"{resource_path}: {change.impact.text}" if change.impact else f"{resource_path} {change.action}s"
