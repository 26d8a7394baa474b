"""Whether a phase turns out worse than it was foreseen, and agreed to."""

from __future__ import annotations

from collections.abc import Iterable

from cfngen.deploy.preview.plan import Change, Danger, Plan, StackPlan


def worse(agreed: Iterable[StackPlan], actual: Plan) -> tuple[tuple[str, Danger], ...]:
    """Return what hurts more than was agreed to, in words, with how much it may hurt.

    Args:
        agreed: what was foreseen for the phase.
        actual: its plan, from its own change set.
    """
    known = {(stack.path, each.logical_id): each for stack in agreed for each in stack.changes}
    found: dict[str, Danger] = {}
    for stack in actual.stacks:
        for change in stack.changes:
            before = known.get((stack.path, change.logical_id))
            if change.danger.rank > (before.danger.rank if before else 0):
                found[_said(stack, change)] = change.danger
    return tuple(found.items())


def _said(stack: StackPlan, change: Change) -> str:
    place = "/".join((*stack.path, change.logical_id))
    return f"{place}: {change.meaning.text}" if change.meaning else f"{place} {change.action}s"
