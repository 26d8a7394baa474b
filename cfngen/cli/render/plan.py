"""Formats a plan as text: the changes by stack, and the warnings last, just above the question for consent."""

from __future__ import annotations

import difflib
import json
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from cfngen.text import plural_form, pluralize

if TYPE_CHECKING:
    from cfngen.deploy.preview.bill_of_materials import Creation
    from cfngen.deploy.preview.changes import Change, PropertyChange, StackPlan
    from cfngen.deploy.preview.plan import Plan
    from cfngen.deploy.quotas.service_quotas import Quota

Style = dict[str, Any]
Piece = tuple[str, Style]
"""Text, and the arguments of `click.style` for it."""

MIN_WIDTH, MAX_WIDTH = 40, 120
HANDLE = "AWS::CloudFormation::WaitConditionHandle"
PLAIN: Style = {}
BOLD: Style = {"bold": True}
FAINT: Style = {"dim": True}
# Colours only repeat what words and symbols say.
_SYMBOLS = {"add": "+", "import": "+", "update": "~", "remove": "-", "will": "±", "might": "±?"}
_STYLES: dict[str, Style] = {
    "add": {"fg": "green"},
    "import": {"fg": "green"},
    "update": {"fg": "yellow"},
    "remove": {"fg": "red"},
    "will": {"fg": "red", "bold": True},
    "might": {"fg": "magenta"},
}
_DANGERS: dict[str, Style] = {"none": {"fg": "cyan"}, "disruptive": {"fg": "yellow"}, "dangerous": {"fg": "red"}}
_FATE_OF_OLD_RESOURCE = {"delete": "deleted", "retain": "kept", "snapshot": "kept as a snapshot only"}
_ON_FAILURE = {
    "DELETE": "If it fails, everything that it has made is deleted.",
    "DO_NOTHING": "If it fails, everything stays as it is at that moment; nothing is rolled back.",
}


def lines(plan: Plan, *, width: int | None = None, full: bool = False) -> list[str]:
    """Return a plan as styled lines.

    Args:
        plan: the plan.
        width: width of the terminal in columns; None means the actual one.
        full: whether to show long values completely, and boot programs.
    """
    columns = width or shutil.get_terminal_size((100, 24)).columns
    return list(_lines(plan, max(MIN_WIDTH, min(columns, MAX_WIDTH)), full=full))


def _lines(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    if plan.is_empty:
        yield from flow([(f"No changes: the stack {plan.stack} is as it is wanted.", {"fg": "green"})], width)
        return
    if plan.retries:
        yield from flow([(f"The last operation on the stack {plan.stack} failed, and was kept.", BOLD)], width)
        yield from flow([(f"Templates and values stay; tried again: {', '.join(plan.retries)}.", PLAIN)], width)
    elif plan.creation is not None:
        yield from _creation(plan, plan.creation, width)
    else:
        yield from flow([(f"Update of the stack {plan.stack}", BOLD)], width)
        for impact in plan.predicted:
            yield from flow([("=>", FAINT), (impact.text, _DANGERS[impact.danger.value])], width, indent=2, hanging=5)
        for stack in plan.stacks if not plan.phases else ():
            yield from _stack_section(plan, stack, width, full=full)
        yield from _phases(plan, width, full=full)
        yield from _cost_and_quota_changes(plan, width)
        yield ""
        if not full:
            yield from _boot_program_summary([change for change in plan.changes if _is_program(change)], width)
        yield from flow([(_summary(plan), BOLD)], width)
    if plan.express:
        yield from flow([("Express mode: it ends before resources are stable.", PLAIN)], width)
    if plan.on_failure in _ON_FAILURE:
        yield from flow([(_ON_FAILURE[plan.on_failure], PLAIN)], width)
    yield from _warnings(plan, width)


def _summary(plan: Plan) -> str:
    """Return the line with the number of resources by kind of change."""
    counts = plan.counts
    parts = [
        (counts.replace, "to replace"),
        (counts.might_replace, "that might be replaced"),
        (counts.remove, "to remove"),
        (counts.update, "to update"),
        (counts.add, "to add"),
    ]
    counts_text = [f"{number} {words}" for number, words in parts if number]
    if not counts_text:
        return "No resource changes: only descriptions, outputs or metadata of the templates."
    return f"Plan: {', '.join(counts_text)}."


def _is_program(change: Change) -> bool:
    """Return whether a change adds or removes a boot program, which is metadata of a stack and nothing in AWS."""
    return change.type == HANDLE and change.action in ("add", "remove") and change.danger.value == "none"


def _boot_program_summary(changes: Sequence[Change], width: int) -> Iterator[str]:
    """Yield one line for all boot programs; a changed program has a new logical id, and is added and removed."""
    counts = [(sum(change.action == action for change in changes), _SYMBOLS[action]) for action in ("add", "remove")]
    counts_text = ", ".join(f"{symbol}{number}" for number, symbol in counts if number)
    if counts_text:
        yield from flow(
            [(f"Boot programs, as metadata of the stacks: {counts_text}; --full shows them.", FAINT)], width
        )


def _stack_section(plan: Plan, stack: StackPlan, width: int, *, full: bool) -> Iterator[str]:
    """Yield the changes of one stack, without boot programs unless `full`; nothing if there are none."""
    changes = stack.changes if full else tuple(change for change in stack.changes if not _is_program(change))
    if changes or stack.action != "update":
        yield ""
        yield from _stack(plan, stack, changes, width, full=full)


def _phases(plan: Plan, width: int, *, full: bool) -> Iterator[str]:
    """Yield the changes of each phase of an update."""
    for number, phase in enumerate(plan.phases, 1):
        yield ""
        heading: list[Piece] = [(f"Phase {number} of {len(plan.phases)}: {phase.title}", BOLD)]
        if phase.predicted:
            heading.append(("(foreseen; CloudFormation is asked again before it begins)", FAINT))
        yield from flow(heading, width, hanging=4)
        if phase.kind == "volumes":
            yield from flow(
                [("If it fails nothing is rolled back: volumes do not shrink.", PLAIN)], width, indent=2, hanging=2
            )
        for stack in phase.stacks:
            yield from _stack_section(plan, stack, width, full=full)
    if plan.phases:
        text = "The phases are carried out one after another; one that fails leaves those before it as they are."
        yield ""
        yield from flow([(text, PLAIN)], width)


def _stack(plan: Plan, stack: StackPlan, changes: Sequence[Change], width: int, *, full: bool) -> Iterator[str]:
    """Yield the title of a stack, the impact on it, and its changes."""
    name = "/".join(stack.path) or plan.stack
    pieces: list[Piece] = [(name, BOLD)]
    if stack.action != "update":
        action = {"create": "add", "delete": "remove"}[stack.action]
        words = {"create": "new stack", "delete": "stack is removed with everything in it"}[stack.action]
        pieces = [(_SYMBOLS[action], _STYLES[action]), *pieces, (words, _STYLES[action])]
    yield from flow(pieces, width, hanging=4)
    if stack.impact:
        yield from flow(
            [("=>", FAINT), (stack.impact.text, _DANGERS[stack.impact.danger.value])], width, indent=2, hanging=5
        )
    for change in changes:
        yield from _change(change, width, full=full)


def _change(change: Change, width: int, *, full: bool) -> Iterator[str]:
    """Yield a change of a resource: what happens to it, its changed properties, and the impact."""
    kind = _kind(change)
    style = _STYLES[kind]
    head: list[Piece] = [(_SYMBOLS[kind].ljust(2), style), (change.logical_id, style), (change.type, FAINT)]
    if change.physical_id and len(change.physical_id) <= 40:
        head.append((change.physical_id, FAINT))
    head.append((_fate(change), style))
    yield from flow(head, width, indent=2, hanging=7)
    for property_ in change.properties:
        yield from _property(property_, width, full=full)
    if change.impact:
        yield from flow(
            [("=>", FAINT), (change.impact.text, _DANGERS[change.impact.danger.value])], width, indent=5, hanging=8
        )


def _kind(change: Change) -> str:
    """Return the action on a resource, or `will` or `might` if it is replaced: a key of `_SYMBOLS`."""
    return change.action if change.replacement.value == "no" else change.replacement.value


def _fate(change: Change) -> str:
    """Return what happens to a resource, and to the old one if it is replaced."""
    kind = _kind(change)
    words = {
        "add": "is added",
        "import": "is taken into the stack",
        "update": "",
        "remove": "is removed",
        "will": "will be replaced",
        "might": "might be replaced",
    }[kind]
    if change.policy and kind in ("will", "might"):
        verb = " would be" if kind == "might" else " is"
        return f"{words}; the old one{verb} {_FATE_OF_OLD_RESOURCE[change.policy]}"
    if kind == "remove" and change.policy in ("retain", "snapshot"):
        return f"{words} and {_FATE_OF_OLD_RESOURCE[change.policy]}"
    return words


def _property(change: PropertyChange, width: int, *, full: bool) -> Iterator[str]:
    """Yield the old and the new value of a changed property."""
    property_path, bracket, key = re.sub(r"^/(Properties/)?", "", change.path).partition("[")
    path = property_path.replace("/", ".") + bracket + key
    remarks = [
        *([] if change.certain else ["might change"]),
        *({"will": ["makes a new resource"], "might": ["might make a new resource"]}.get(change.replaces.value, [])),
        *([change.cause] if change.cause and not change.note else []),
    ]
    pieces: list[Piece] = [(f"{path}:", PLAIN)]
    if full and (diff := _value_diff(change, width)):
        tail: list[Piece] = [(f"({', '.join(remarks)})", FAINT)] if remarks else []
        yield from flow([*pieces, *([(change.note, PLAIN)] if change.note else []), *tail], width, indent=5, hanging=9)
        yield from diff
        return
    if change.note:
        pieces.append((change.note, PLAIN))
    elif change.sensitive:
        pieces.append(("changes; secret, and not shown", PLAIN))
    elif change.before is None and change.after is None and not change.known:
        pieces.append(("changes", PLAIN))
    else:
        old, new = shortened(change.before, change.after, (width - len(path) - 20) // 2)
        pieces.append(("(none)" if old is None else old, {"fg": "red"}))
        pieces.append(("->", PLAIN))
        if not change.known:
            pieces.append(("(not known yet)", {"fg": "magenta"}))
        else:
            pieces.append(("(none)" if new is None else new, {"fg": "green"}))
    if remarks:
        pieces.append((f"({', '.join(remarks)})", FAINT))
    yield from flow(pieces, width, indent=5, hanging=9)


def _value_diff(change: PropertyChange, width: int) -> list[str]:
    """Return a unified diff of two long values; empty if they are short or unknown."""
    old_value, new_value = change.before, change.after
    if old_value is None and new_value is None:
        return []
    if change.path.endswith("/UserData"):
        from cfngen.userdata.user_data_diff import parts

        old, new = parts(old_value or ""), parts(new_value or "")
    elif max(len(old_value or ""), len(new_value or "")) <= (width - len(change.path) - 20) // 2:
        return []
    else:
        old, new = _value_lines(old_value), _value_lines(new_value)
    differing = difflib.unified_diff(old, new, lineterm="", n=2)
    marks: dict[str, Style] = {"+": {"fg": "green"}, "-": {"fg": "red"}}
    # The first two lines are file names. Lines are not wrapped, so that they can be copied.
    return [" " * 9 + click.style(line, **marks.get(line[:1], FAINT)) for line in list(differing)[2:]]


def _value_lines(value: str | None) -> list[str]:
    """Return the lines of a value; JSON is indented."""
    try:
        parsed = json.loads(value or "")
    except ValueError:
        return (value or "").splitlines()
    return json.dumps(parsed, indent=2, sort_keys=True, ensure_ascii=False).splitlines()


def shortened(old_value: str | None, new_value: str | None, limit: int) -> tuple[str | None, str | None]:
    """Return two values; if one is longer than `limit`, both are cut to the part where they differ, with ellipses.

    Args:
        old_value: the previous value; None if there is none.
        new_value: the new value; None if there is none.
        limit: maximum length of each; at least 24 characters are kept.
    """
    limit = max(limit, 24)
    old, new = _one_line(old_value), _one_line(new_value)
    if max(len(old or ""), len(new or "")) <= limit:
        return old, new
    if old is None or new is None:
        return _cut(old, 0, limit), _cut(new, 0, limit)
    common_length = next(
        (at for at, (a, b) in enumerate(zip(old, new, strict=False)) if a != b), min(len(old), len(new))
    )
    start = max(0, common_length - limit // 3)
    return _cut(old, start, limit), _cut(new, start, limit)


def _one_line(text: str | None) -> str | None:
    return None if text is None else re.sub(r"\s+", " ", text) or '""'


def _cut(text: str | None, start: int, limit: int) -> str | None:
    if text is None:
        return None
    start = start if len(text) > limit else 0
    part = text[start : start + limit - 1]
    return ("…" if start else "") + part + ("…" if start + len(part) < len(text) else "")


def _creation(plan: Plan, creation: Creation, width: int) -> Iterator[str]:
    """Yield the plan of a new cluster: what it consists of, its stacks, costs and quotas."""
    yield from flow([(f"New cluster in the stack {plan.stack}", BOLD)], width)
    items = [
        (f"{item.count:,}", item.what if item.count == 1 else plural_form(item.what), item.detail)
        for item in creation.items
    ]
    yield from _table(items, width, right=(0,))
    yield ""
    yield from flow([("Stacks", BOLD)], width)
    stacks = sorted(plan.stacks, key=lambda stack: stack.path)
    rows = [
        ("/".join(stack.path) or plan.stack, pluralize(len(stack.changes), "resource"))
        for stack in stacks
        if stack.changes
    ]
    yield from _table(rows, width)
    if creation.costs:
        yield ""
        yield from flow([("Costs money for as long as it exists", BOLD)], width)
        costs = [
            (f"{cost.quantity:,}", _unit(cost.quantity, cost.unit), cost.what, cost.detail) for cost in creation.costs
        ]
        yield from _table(costs, width, right=(0,))
        yield from flow(
            [("Traffic, requests and snapshots come with use; AWS's price list says how much.", FAINT)], width, 2, 2
        )
    if plan.quotas:
        yield ""
        yield from flow([("Quotas of the account", BOLD)], width)
        yield from _quotas(plan.quotas, width)
    yield ""
    yield from flow([(f"Plan: {plan.counts.add} to add in {pluralize(len(stacks), 'stack')}.", BOLD)], width)


def _cost_and_quota_changes(plan: Plan, width: int) -> Iterator[str]:
    """Yield the changes of costs, and the quotas that do not suffice now or at the maximum sizes."""
    if plan.costs:
        yield ""
        yield from flow([("Changes what costs money for as long as it exists", BOLD)], width)
        rows = [
            (f"{cost.quantity:+,}", _unit(abs(cost.quantity), cost.unit), cost.what, cost.detail) for cost in plan.costs
        ]
        yield from _table(rows, width, right=(0,))
    if notable := [quota for quota in plan.quotas if not (quota.sufficient and quota.room_to_grow)]:
        yield ""
        yield from flow([("Quotas of the account", BOLD)], width)
        yield from _quotas(notable, width)


def _quotas(quotas: Sequence[Quota], width: int) -> Iterator[str]:
    """Yield each quota: how much is needed, used and allowed."""
    for quota in quotas:
        limit = "limit not known" if quota.limit is None else f"{quota.limit:,} allowed"
        used = "" if quota.used is None else f", {quota.used:,} in use"
        verdict: Piece = ("not known", FAINT)
        if quota.sufficient is not None:
            verdict = ("enough", {"fg": "green"}) if quota.sufficient else ("NOT ENOUGH", {"fg": "red", "bold": True})
        if quota.sufficient and quota.room_to_grow is False:
            verdict = (
                f"enough at first, not for the {quota.needed_at_maximum:,} of the greatest sizes",
                {"fg": "yellow"},
            )
        pieces: list[Piece] = [
            (f"{quota.name}:", PLAIN),
            (f"{quota.needed:,} needed{used}, {limit}:", PLAIN),
            verdict,
        ]
        yield from flow(pieces, width, indent=2, hanging=6)
        if quota.hint and not (quota.sufficient and quota.room_to_grow is not False):
            yield from flow([(str(quota.hint), FAINT)], width, indent=6, hanging=6)


def _warnings(plan: Plan, width: int) -> Iterator[str]:
    """Yield disruptions, insufficient quotas and dangers."""
    insufficient = [quota for quota in plan.quotas if quota.sufficient is False]
    disruptive = [
        consequence.dangerous_part or consequence.text
        for consequence in plan.consequences
        if consequence.danger.value == "disruptive"
    ]
    dangerous = [
        consequence.dangerous_part or consequence.text
        for consequence in plan.consequences
        if consequence.danger.value == "dangerous"
    ]
    dangerous += [
        f"{change.logical_id} ({change.type}) {_fate(change)}"
        for change in plan.changes
        if change.danger.value == "dangerous" and change.impact is None
    ]
    if disruptive:
        yield ""
        yield from flow([("Interrupts what runs, or who can reach it:", {"fg": "yellow", "bold": True})], width)
        yield from _bullets(disruptive, width)
    if insufficient:
        yield ""
        yield from flow([("The account's quotas do not suffice:", {"fg": "red", "bold": True})], width)
        yield from _bullets(
            [f"{quota.name}: {quota.hint}" if quota.hint else quota.name for quota in insufficient], width
        )
    if insufficient_later := [quota for quota in plan.quotas if quota.sufficient and quota.room_to_grow is False]:
        yield ""
        yield from flow(
            [("The account's quotas do not suffice for the greatest sizes:", {"fg": "yellow", "bold": True})], width
        )
        yield from _bullets([f"{quota.name}: {quota.hint}" for quota in insufficient_later], width)
    if dangerous:
        yield ""
        yield from flow([("DANGER: data, addresses or the cluster may be lost:", {"fg": "red", "bold": True})], width)
        yield from _bullets(dangerous, width)
    if plan.refusal:
        yield ""
        yield from flow(
            [("Cannot be carried out like this:", {"fg": "red", "bold": True}), (f"{plan.refusal}.", PLAIN)], width
        )


def _bullets(texts: Iterable[str], width: int) -> Iterator[str]:
    """Yield each distinct text as an item of a list."""
    for text in dict.fromkeys(texts):
        yield from flow([("!", BOLD), (text, PLAIN)], width, indent=2, hanging=4)


def _table(rows: Sequence[Sequence[str]], width: int, *, right: Sequence[int] = ()) -> Iterator[str]:
    """Yield aligned columns; the last one is wrapped."""
    if not rows:
        return
    widths = [max(len(row[index]) for row in rows) for index in range(len(rows[0]))]
    for row in rows:
        cells = [
            cell.rjust(size) if index in right else cell.ljust(size)
            for index, (cell, size) in enumerate(zip(row, widths, strict=True))
        ]
        head = "  " + "  ".join(cells[:-1]) + ("  " if cells[:-1] else "")
        if len(head) > width // 2:
            yield from flow([(" ".join(row), PLAIN)], width, indent=2, hanging=6)
            continue
        first, *more = list(flow([(row[-1], PLAIN)], width - len(head))) or [""]
        yield (head + first).rstrip()
        for line in more:
            yield " " * len(head) + line


def _unit(number: int, unit: str) -> str:
    return unit if number == 1 or unit == "GiB" else plural_form(unit)


def flow(pieces: Sequence[Piece], width: int, indent: int = 0, hanging: int | None = None) -> Iterator[str]:
    """Yield styled text wrapped to `width`.

    Args:
        pieces: texts and their styles; a space is put between two of them.
        width: maximum width of a line in columns.
        indent: indentation of the first line.
        hanging: indentation of the other lines; None means that of the first.
    """
    next_indent = indent if hanging is None else hanging
    line: list[Piece] = []
    line_indent, used = indent, indent
    for text, style in pieces:
        for word in _words(text, width - max(indent, next_indent)):
            gap = 1 if line else 0
            if line and used + gap + len(word) > width:
                yield _styled(line, line_indent)
                line, line_indent, used, gap = [], next_indent, next_indent, 0
            line.append((word, style))
            used += gap + len(word)
    if line:
        yield _styled(line, line_indent)


def _words(text: str, longest: int) -> Iterator[str]:
    """Yield the words of a text; too long ones are split, and trailing spaces are kept with the last word."""
    blank = len(text) - len(text.rstrip(" "))
    words = [part[at : at + longest] for part in text.split() for at in range(0, len(part), longest)]
    if words:
        words[-1] += " " * blank
    yield from words


def _styled(words: Sequence[Piece], indent: int) -> str:
    """Return one line; adjacent words of the same style are styled together."""
    groups: list[tuple[list[str], Style]] = []
    for word, style in words:
        if groups and groups[-1][1] is style:
            groups[-1][0].append(word)
        else:
            groups.append(([word], style))
    texts = (click.style(" ".join(group), **style) if style else " ".join(group) for group, style in groups)
    return (" " * indent + " ".join(texts)).rstrip()
