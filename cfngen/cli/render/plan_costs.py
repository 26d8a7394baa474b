"""Formats what a plan creates and costs, and whether the account's quotas suffice."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING

from cfngen.cli.render.layout import BOLD, FAINT, PLAIN, Piece, Style, flow, paragraph, table
from cfngen.cli.render.resource_names import stack_path
from cfngen.text import plural_form, pluralize

if TYPE_CHECKING:
    from cfngen.deploy.plan.costs.bill import MonthlyBill, MonthlyCost
    from cfngen.deploy.plan.costs.costs import CreationSummary
    from cfngen.deploy.plan.plan import Plan
    from cfngen.deploy.preflight.quotas.quota import Quota

_AMPLE_SHARE = 0.2  # of a quota: less of it that is left is shown
_ENOUGH: Style = {"fg": "green"}


def creation_lines(plan: Plan, creation: CreationSummary, width: int) -> Iterator[str]:
    """Yield the plan of a new cluster: what it consists of, its stacks, costs and quotas."""
    yield from stack_heading("New cluster in the stack", plan, width)
    items = [
        (f"{item.count:,}", item.what if item.count == 1 else plural_form(item.what), item.detail)
        for item in creation.items
    ]
    yield from table((), items, width, right_aligned=(0,))
    yield ""
    yield from paragraph("Stacks", width, style=BOLD)
    stacks = sorted(plan.stacks, key=lambda stack: stack.path)
    stack_rows = [
        (stack_path(stack.path, root_name=plan.stack), pluralize(len(stack.changes), "resource"))
        for stack in stacks
        if stack.changes
    ]
    yield from table((), stack_rows, width)
    if creation.costs:
        yield ""
        yield from paragraph("Billed while it exists", width, style=BOLD)
        costs = [
            (f"{cost.quantity:,}", unit_form(cost.quantity, cost.unit), cost.what, cost.detail)
            for cost in creation.costs
        ]
        yield from table((), costs, width, right_aligned=(0,))
        note = "Traffic, requests and snapshots are billed by use; see AWS's price list."
        yield from paragraph(note, width, 2, style=FAINT)
    if plan.bill:
        yield ""
        yield from bill_lines(plan.bill, width, is_new=True)
    if plan.quotas:
        yield ""
        yield from paragraph("Quotas of the account", width, style=BOLD)
        yield from _quota_lines(plan.quotas, width)
    yield ""
    yield from paragraph(f"Plan: {plan.counts.add} to add in {pluralize(len(stacks), 'stack')}.", width, style=BOLD)


def cost_and_quota_lines(plan: Plan, width: int) -> Iterator[str]:
    """Yield what an update adds to the bill and removes from it, and the quotas that are or may become too low."""
    if plan.costs:
        yield ""
        yield from paragraph("Changes of the bill", width, style=BOLD)
        rows = [
            (f"{cost.quantity:+,}", unit_form(abs(cost.quantity), cost.unit), cost.what, cost.detail)
            for cost in plan.costs
        ]
        yield from table((), rows, width, right_aligned=(0,))
    if plan.bill:
        yield ""
        yield from bill_lines(plan.bill, width, is_new=False)
    doubtful_quotas = [quota for quota in plan.quotas if not (quota.sufficient and quota.room_to_grow)]
    if doubtful_quotas:
        yield ""
        yield from paragraph("Quotas of the account", width, style=BOLD)
        yield from _quota_lines(doubtful_quotas, width)


def stack_heading(words: str, plan: Plan, width: int) -> Iterator[str]:
    """Yield what a plan is about: the stack, and where it is."""
    yield from flow(
        [(f"{words} {plan.stack}", BOLD), (f"({plan.place})" if plan.place else "", PLAIN)], width, hanging=2
    )


def bill_lines(bill: MonthlyBill, width: int, *, is_new: bool) -> Iterator[str]:
    """Yield what the cluster costs in a month: each item, the totals, and what has no price in the price list.

    Args:
        is_new: whether the cluster does not exist yet, so that there is nothing to compare with.
    """
    yield from paragraph(f"Cost of a month of {bill.hours} hours, in {bill.currency}", width, style=BOLD)
    rows = [
        (
            "no price" if cost.planned is None else f"{cost.planned:,}",
            "" if is_new or cost.planned == cost.current else f"{_difference(cost):+,}",
            f"{cost.quantity:,} {unit_form(cost.quantity, cost.unit)}",
            cost.item,
        )
        for cost in bill.costs
    ]
    rows.append((f"{bill.planned:,}", "" if is_new else f"{bill.difference:+,}", "in total", ""))
    yield from table((), rows, width, right_aligned=(0, 1))
    notes = []
    if bill.maximum != bill.planned:
        notes.append(f"With every node group at its maximum size it is {bill.maximum:,}.")
    notes.append(f"Prices of {bill.date}. Traffic, requests, snapshots, and what Kubernetes creates are not included.")
    if bill.unpriced:
        keys = ", ".join(cost.price_key or cost.item for cost in bill.unpriced)
        notes.append(f"The price list has no price for {keys}; the totals leave these out.")
    for note in notes:
        yield from paragraph(note, width, 2, style=FAINT)


def _difference(cost: MonthlyCost) -> Decimal:
    """Return what a deployment adds to the cost of an item; 0 if its price is not known."""
    return (cost.planned or Decimal()) - (cost.current or Decimal())


def _quota_lines(quotas: Sequence[Quota], width: int) -> Iterator[str]:
    """Yield a line for each quota that is or may become too low, or nearly so, and one for all others."""
    ample_quotas = [quota for quota in quotas if quota.sufficient and _remaining_share(quota) >= _AMPLE_SHARE]
    for quota in quotas:
        if quota in ample_quotas:
            continue
        limit = "limit not known" if quota.limit is None else f"{quota.limit:,} allowed"
        used = "" if quota.used is None else f", {quota.used:,} in use"
        pieces: list[Piece] = [
            (f"{quota.name}:", PLAIN),
            (f"{quota.needed:,} needed{used}, {limit}:", PLAIN),
            _quota_verdict(quota),
        ]
        yield from flow(pieces, width, 2, 6)
        # The warnings at the end of the plan repeat what does not suffice, with its hint.
        if quota.hint and quota.sufficient is None:
            yield from paragraph(str(quota.hint), width, 6, style=FAINT)
    if ample_quotas:
        count = len(ample_quotas)
        subject = f"all {count}" if count == len(quotas) else pluralize(count, "other quota")
        yield from flow([(f"{subject}:", PLAIN), ("enough", _ENOUGH)], width, 2, 6)


def _remaining_share(quota: Quota) -> float:
    """Return which part of a quota is left with every group at its maximum size; negative if that is too much."""
    limit = quota.limit or 0
    needed = max(quota.needed, quota.needed_at_maximum)
    return (limit - (quota.used or 0) - needed) / max(limit, 1)


def _quota_verdict(quota: Quota) -> Piece:
    if quota.sufficient is None:
        return "not known", FAINT
    if not quota.sufficient:
        return "NOT ENOUGH", {"fg": "red", "bold": True}
    if quota.room_to_grow is False:
        text = f"enough at first, but not for the {quota.needed_at_maximum:,} at the maximum sizes"
        return text, {"fg": "yellow"}
    return f"enough, {(quota.limit or 0) - (quota.used or 0) - quota.needed:,} left", _ENOUGH


def unit_form(number: int, unit: str) -> str:
    """Return the singular or plural of a unit; GiB has no plural."""
    return unit if number == 1 or unit == "GiB" else plural_form(unit)
