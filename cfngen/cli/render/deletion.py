"""Formats a deletion as text: the plan, the progress, the result, and what is retained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.render.wrapping import columns as columns_of
from cfngen.cli.render.wrapping import wrapped
from cfngen.cli.suggested_commands import next_line
from cfngen.deploy.deletion.deletion_report import Counted
from cfngen.deploy.deletion.leftovers import Remains
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, Removed
from cfngen.deploy.deletion.plan import DeletionPlan, Part
from cfngen.deploy.deletion.result import Deleted
from cfngen.deploy.deletion.retained_resources import RetainedResource
from cfngen.deploy.deletion.stack_removal import DeletionFailed
from cfngen.hints import Line, suggest
from cfngen.text import pluralize

MAX_IDS_SHOWN = 5  # of one kind of resource; the others are only counted
_BLOCKERS_TITLE = "Blocks the deletion, and is not part of the cluster"
_MIN_TEXT_WIDTH = 30  # columns; where less space is left in a row, the text goes on the next line
_AUTHORITIES_NOTE = (
    "Snapshots of etcd and of masters' volumes contain the state of Kubernetes. A master can start from them only with "
    "this cluster's certificate authorities, whose secret is deleted with the stack. To choose whether a copy of the "
    "secret is kept, use --authorities file, recovery-window or destroy; without this option you are asked."
)


def plan_lines(plan: DeletionPlan, width: int | None = None) -> list[str]:
    """Return the plan of a deletion.

    Args:
        plan: the plan of the deletion.
        width: width of the terminal in columns; None means the actual one.
    """
    columns = columns_of(width)
    first, *more = wrapped(f"{plan.cluster}  {plan.region}, account {plan.account}", columns, "  ", first="")
    lines = [click.style(plan.cluster, bold=True) + first.removeprefix(plan.cluster), *more]
    if plan.status:
        protected = "; its termination protection is turned off" if plan.protected else ""
        lines += wrapped(f"stack {plan.stack} ({plan.status}){protected}", columns, "  ", first="")
        if plan.by_console:
            lines += wrapped("It was created from cfngen's templates, but not by `cfngen deploy`.", columns)
    else:
        lines.append(f"there is no stack {plan.stack}")
    removed = [*plan.removed, *(plan.volumes if plan.delete_volumes else ())]
    removed += plan.snapshots if plan.delete_snapshots else ()
    blockers = [(blocker.id, blocker.what) for blocker in plan.blockers]
    for title, rows, colour in (
        ("Deleted with the stack", _part_rows(plan.deleted_parts), "red"),
        ("Created by Kubernetes, and deleted", _orphan_rows(removed), "red"),
        ("Kept", _retained_rows(plan.retained), "yellow"),
        (_BLOCKERS_TITLE, blockers, "red"),
        ("Of an unknown cluster, and not touched", _orphan_rows(plan.unattributed_volumes), "yellow"),
    ):
        lines += _section(title, rows, colour, columns)
    if plan.name_conflict:
        what_follows = " These resources may belong to it, and are not touched:" if plan.foreign_resources else ""
        lines += [
            "",
            *wrapped(_sentence(plan.name_conflict) + what_follows, columns),
            *_table(_retained_rows(plan.foreign_resources), columns),
        ]
    if plan.authorities:
        lines += ["", *wrapped(_AUTHORITIES_NOTE, columns)]
    return lines


def remains_lines(message: Remains, width: int | None = None) -> list[str]:
    """Return the retained resources of a failed creation, or of earlier stacks.

    Args:
        message: the retained resources.
        width: width of the terminal in columns; None means the actual one.
    """
    stacks = f"earlier stacks named {message.stack}, which are deleted" if message.earlier else f"{message.stack}"
    title = click.style(f"Kept in your account from {stacks}", fg="yellow", bold=True)
    return ["", title, *_retained_lines(message.retained, columns_of(width))]


def removed_lines(message: Removed, width: int | None = None) -> list[str]:
    """Return that a resource has been deleted.

    Args:
        message: the resource.
        width: width of the terminal in columns; None means the actual one.
    """
    first, *more = wrapped(_orphan_text(message.orphan), columns_of(width), "    ")
    return [click.style("  - ", fg="red") + first.lstrip(), *more]


def failed_lines(message: DeletionFailed, width: int | None = None) -> list[str]:
    """Return the resources that CloudFormation could not delete in this attempt.

    Args:
        message: the failed attempt.
        width: width of the terminal in columns; None means the actual one.
    """
    head = f"{message.stack}: CloudFormation could not delete {pluralize(len(message.undeleted), 'resource')}"
    rows = [(resource.name, resource.id, resource.reason) for resource in message.undeleted]
    columns = columns_of(width)
    lines = wrapped(f"{head} (attempt {message.round} of {message.rounds})", columns, "  ", first="")
    blockers = [(blocker.id, blocker.what) for blocker in message.blockers]
    return [
        *(click.style(line, fg="yellow", bold=True) for line in lines),
        *_table(rows, columns),
        *_section(_BLOCKERS_TITLE, blockers, "red", columns),
    ]


def result_lines(deleted: Deleted, width: int | None = None) -> list[Line]:
    """Return the result of a deletion: the verdict in the first line, then the details and the next command.

    Args:
        deleted: the result.
        width: width of the terminal in columns; None means the actual one.
    """
    columns = columns_of(width)
    lines: list[Line] = [_verdict(deleted)]
    if deleted.name_conflict:
        lines += wrapped(
            _sentence(deleted.name_conflict) + " Neither it nor resources with its name are touched.", columns
        )
    lines += _section("Checked afterwards", _count_rows(deleted.counted), None, columns)
    if deleted.objects:
        lines.append(f"  {pluralize(deleted.objects, 'object version')} of templates deleted")
    if deleted.bucket_deleted:
        lines.append("  the bucket of the templates has been deleted")
    for title, colour, blocks in (
        ("Created by Kubernetes, but not deleted", "red", _orphan_lines(deleted, columns)),
        (_BLOCKERS_TITLE, "red", _table(((blocker.id, blocker.what) for blocker in deleted.blockers), columns)),
        ("Kept in your account", "yellow", _retained_lines(deleted.retained, columns)),
    ):
        section_lines = list(blocks)
        lines += ["", click.style(title, fg=colour, bold=True), *section_lines] if section_lines else []
    if deleted.name_conflict and deleted.succeeded:
        # kubectl's configuration may belong to the other cluster of the same name.
        return lines
    if deleted.succeeded:
        purpose = "   removes the cluster from kubectl's configuration."
        lines += ["", next_line(suggest("kubeconfig", "--remove"), purpose)]
    elif deleted.in_progress:
        command = suggest("delete", stack=deleted.stack)
        lines += ["", next_line(command, "   attaches again, and watches until the end.")]
    elif deleted.status:
        command = suggest("delete", stack=deleted.stack)
        lines += ["", next_line(command, "   continues, once nothing blocks the deletion.")]
        if deleted.status == "DELETE_FAILED":
            command = command.with_options((("--leave-behind",),))
            lines += [next_line(command, "   continues without what cannot be deleted.")]
    return lines


def _verdict(deleted: Deleted) -> str:
    """Return the first line of the result."""
    elapsed = duration(deleted.seconds)
    if deleted.in_progress:
        return f"{deleted.stack}: {deleted.status or 'deletion'}; it continues without cfngen."
    if _nothing_to_delete(deleted):
        subject = f"the stack {deleted.stack}" if deleted.name_conflict else f"the cluster {deleted.cluster}"
        return click.style(f"There is nothing to delete for {subject}.", fg="green")
    if deleted.succeeded:
        return click.style(f"{deleted.cluster} is deleted, after {elapsed}.", fg="green", bold=True)
    subject = (
        f"{deleted.stack}: {deleted.status}"
        if deleted.status
        else f"{deleted.cluster} is deleted, except for leftovers"
    )
    return click.style(f"{subject}, after {elapsed}.", fg="red", bold=True)


def _nothing_to_delete(deleted: Deleted) -> bool:
    """Return whether there was nothing to delete."""
    did_anything = deleted.removed or deleted.objects or deleted.bucket_deleted
    return not deleted.stack_id and deleted.succeeded and not did_anything


def _section(title: str, rows: Iterable[Sequence[str]], colour: str | None, columns: int) -> list[str]:
    lines = _table(rows, columns)
    return ["", click.style(title, fg=colour, bold=True), *lines] if lines else []


def _table(rows: Iterable[Sequence[str]], columns: int) -> list[str]:
    """Return aligned columns, numbers to the right; the last column is wrapped, or put below if it is too narrow."""
    split_rows = [(row[:-1], row[-1]) for row in rows]
    if not split_rows:
        return []
    columns_of_cells = list(zip(*(heads for heads, _ in split_rows), strict=True))
    widths = [max(map(len, column)) for column in columns_of_cells]
    numbers = [all(cell.isdigit() for cell in column) for column in columns_of_cells]
    hanging = 2 + sum(width + 2 for width in widths)
    lines: list[str] = []
    for heads, text in split_rows:
        aligned = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(heads, widths, numbers, strict=True)
        )
        head = "  " + "  ".join(aligned) + "  "
        if min(len(text), max(_MIN_TEXT_WIDTH, *map(len, text.split()), 0)) <= columns - hanging:
            first, *more = wrapped(text, columns, " " * hanging)
            lines += [(head + first.lstrip()).rstrip(), *more]
        else:
            # If the aligned columns are wider than the terminal, their cells are wrapped, too.
            fits = hanging - 2 <= columns
            lines += [head.rstrip()] if fits else wrapped("  ".join(filter(None, heads)), columns, "    ", first="  ")
            lines += wrapped(text, columns, "      ") if text else []
    return lines


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _part_rows(parts: Sequence[Part]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each kind of resource in the stack: number, kind and ids."""
    for part in parts:
        ids = [_short_name(identity) for identity in part.ids[:MAX_IDS_SHOWN]]
        more = f", … ({len(part.ids) - MAX_IDS_SHOWN} more)" if len(part.ids) > MAX_IDS_SHOWN else ""
        yield str(len(part.ids)), part.kind if len(part.ids) > 1 else part.kind.removesuffix("s"), ", ".join(ids) + more


def _short_name(identity: str) -> str:
    """Return the name of the stack or secret in an ARN; other ids as they are."""
    if not identity.startswith("arn:"):
        return identity
    rest = identity.split(":", 5)[5]
    kind, _, name = rest.partition("/")
    return name.split("/")[0] if kind == "stack" else rest.rpartition(":")[2]


def _orphan_rows(resources: Iterable[OrphanedResource]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each AWS resource that Kubernetes created."""
    for resource in resources:
        size = f"{resource.gigabytes} GiB" if resource.gigabytes else ""
        protection = "deletion protection is turned off" if resource.protected else ""
        # For a volume the id is shown: its name is often not unique.
        name, more = (resource.id, resource.name) if resource.gigabytes else (resource.name, "")
        yield resource.kind, name, ", ".join(filter(None, (resource.purpose or more, size, protection)))


def _retained_rows(resources: Iterable[RetainedResource]) -> Iterator[tuple[str, str, str]]:
    """Yield a row for each retained resource."""
    for resource in resources:
        yield resource.kind, resource.id, "; ".join(filter(None, (resource.why, resource.cost)))


def _retained_lines(resources: Iterable[RetainedResource], columns: int) -> Iterator[str]:
    """Return the retained resources, each with the reason, the cost, and the command that deletes it."""
    for resource in resources:
        yield from wrapped(f"{resource.kind} {resource.id}", columns, "    ", first="  ")
        for text in filter(None, (resource.why, resource.cost)):
            yield from wrapped(text, columns, "      ")
        # Not wrapped, so that the command can be copied as one line.
        yield from (f"      {text}" for text in (str(resource.command),) if text)


def _orphan_lines(deleted: Deleted, columns: int) -> Iterator[str]:
    """Yield the resources that could not be deleted, each with the command that deletes it."""
    for leftover in deleted.orphans:
        yield from wrapped(_orphan_text(leftover), columns, "    ", first="  ")
        yield f"      {leftover.command(deleted.region) or 'AWS releases it automatically'}"


def _count_rows(counts: Iterable[Counted]) -> Iterator[tuple[str, str]]:
    """Yield a row for each kind of resource that was looked for after the deletion."""
    for count in counts:
        parts = [f"{count.gone} gone"] if count.gone or not count.unknown else []
        parts += [f"left: {', '.join(count.left)}"] if count.left else []
        parts += [f"no permission to look for {', '.join(count.unknown)}"] if count.unknown else []
        yield count.kind, "; ".join(parts)


def _orphan_text(resource: OrphanedResource) -> str:
    size = f", {resource.gigabytes} GiB" if resource.gigabytes else ""
    return f"{resource.kind} {resource.name}{size}{f' ({resource.purpose})' if resource.purpose else ''}"
