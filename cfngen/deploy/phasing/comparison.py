"""Compares the actual plan of a phase with the plan that the user agreed to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from cfngen.deploy.messages.message import Danger
from cfngen.deploy.preview.changes import Change, StackPlan
from cfngen.deploy.preview.plan import Plan


class WorseChange(NamedTuple):
    """A change that is more dangerous than the user agreed to.

    Attributes:
        text: the changed resource, and what the change means.
        danger: how dangerous it is.
    """

    text: str
    danger: Danger


def find_worse_changes(confirmed: Iterable[StackPlan], actual: Plan) -> tuple[WorseChange, ...]:
    """Return the changes of a phase that are more dangerous than the user agreed to.

    A change that was not in the confirmed plan counts as harmless there, so it is returned if it is dangerous or
    disruptive.

    Args:
        confirmed: the changes of the phase in the plan of the whole update.
        actual: the plan of the phase, from its own change set.
    """
    confirmed_changes = {(stack.path, change.logical_id): change for stack in confirmed for change in stack.changes}
    worse_dangers: dict[str, Danger] = {}
    for stack in actual.stacks:
        for change in stack.changes:
            confirmed_change = confirmed_changes.get((stack.path, change.logical_id))
            confirmed_rank = confirmed_change.danger.rank if confirmed_change else Danger.NONE.rank
            if change.danger.rank > confirmed_rank:
                worse_dangers[_describe_change(stack, change)] = change.danger
    return tuple(WorseChange(text, danger) for text, danger in worse_dangers.items())


def _describe_change(stack: StackPlan, change: Change) -> str:
    """Return a changed resource with the impact of the change or, if there is none, with what is done to it."""
    resource_path = "/".join((*stack.path, change.logical_id))
    return f"{resource_path}: {change.impact.text}" if change.impact else f"{resource_path} {change.action}s"
