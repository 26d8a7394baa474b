"""A deletion as text: what it would do, what it did, and what stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.render.wrapping import columns as columns_of
from cfngen.cli.render.wrapping import wrapped
from cfngen.deploy.deletion.deletion_report import Counted
from cfngen.deploy.deletion.execution import Deleted
from cfngen.deploy.deletion.orphaned_resource import OrphanedResource, Removed
from cfngen.deploy.deletion.plan import DeletionPlan, Part
from cfngen.deploy.deletion.remains import Remains
from cfngen.deploy.deletion.retained import Retained
from cfngen.deploy.deletion.stack_removal import DeletionFailed
from cfngen.text import pluralize

SHOWN = 5  # ids of one kind; more are counted
_OTHERS = "In the way, and not the cluster's"
_LEGIBLE = 30  # columns that text needs beside others; with fewer it goes below them
_AUTHORITIES = (
    "Snapshots of etcd and of masters' volumes hold what Kubernetes knows. A master starts on them only with this "
    "cluster's certificate authorities, whose secret goes with the stack. Before it goes a copy is kept as you say, or "
    "as you are asked: --authorities file, recovery-window or destroy."
)


def survey(found: DeletionPlan, width: int | None = None) -> list[str]:
    """Return what deleting a cluster would do.

    Args:
        found: what was found.
        width: of the terminal; None asks for it.
    """
    columns = columns_of(width)
    first, *more = wrapped(f"{found.cluster}  {found.region}, account {found.account}", columns, "  ", first="")
    lines = [click.style(found.cluster, bold=True) + first.removeprefix(found.cluster), *more]
    if found.status:
        protected = "; its termination protection is lifted" if found.protected else ""
        lines += wrapped(f"stack {found.stack} ({found.status}){protected}", columns, "  ", first="")
        if found.by_console:
            lines += wrapped("It was made from cfngen's templates, but not by `cfngen deploy`.", columns)
    else:
        lines.append(f"there is no stack {found.stack}")
    removed = [*found.removed, *(found.volumes if found.delete_volumes else ())]
    removed += found.snapshots if found.delete_snapshots else ()
    obstacles = [(obstacle.id, obstacle.what) for obstacle in found.obstacles]
    for title, rows, colour in (
        ("Goes with the stack", _parts(found.goes), "red"),
        ("Made by Kubernetes, and deleted", _leftovers(removed), "red"),
        ("Stays", _retained(found.stays), "yellow"),
        (_OTHERS, obstacles, "red"),
        ("Of a cluster that nobody knows, and not touched", _leftovers(found.unclear), "yellow"),
    ):
        lines += _section(title, rows, colour, columns)
    if found.namesake:
        theirs = " What follows may be theirs, and is not touched:" if found.theirs else ""
        lines += ["", *wrapped(_sentence(found.namesake) + theirs, columns), *_table(_retained(found.theirs), columns)]
    if found.authorities:
        lines += ["", *wrapped(_AUTHORITIES, columns)]
    return lines


def remains(message: Remains, width: int | None = None) -> list[str]:
    """Return what stays of a creation that failed, or of earlier stacks.

    Args:
        message: what stays.
        width: of the terminal; None asks for it.
    """
    of = f"earlier stacks named {message.stack}, which are deleted" if message.earlier else f"{message.stack}"
    title = click.style(f"Stays in your account of {of}", fg="yellow", bold=True)
    return ["", title, *_staying(message.retained, columns_of(width))]


def removed(message: Removed, width: int | None = None) -> list[str]:
    """Return what is gone.

    Args:
        message: what.
        width: of the terminal; None asks for it.
    """
    first, *more = wrapped(_described(message.leftover), columns_of(width), "    ")
    return [click.style("  - ", fg="red") + first.lstrip(), *more]


def failed(message: DeletionFailed, width: int | None = None) -> list[str]:
    """Return what CloudFormation could not delete this time.

    Args:
        message: what it could not delete.
        width: of the terminal; None asks for it.
    """
    head = f"{message.stack}: CloudFormation could not delete {pluralize(len(message.undeleted), 'resource')}"
    rows = [(each.name, each.id, each.reason) for each in message.undeleted]
    columns = columns_of(width)
    lines = wrapped(f"{head} (try {message.round} of {message.rounds})", columns, "  ", first="")
    blocking = [(obstacle.id, obstacle.what) for obstacle in message.obstacles]
    return [
        *(click.style(line, fg="yellow", bold=True) for line in lines),
        *_table(rows, columns),
        *_section(_OTHERS, blocking, "red", columns),
    ]


def result(deleted: Deleted, width: int | None = None) -> list[str]:
    """Return how a deletion ended: its first line says it all, the rest is what is left to do.

    Args:
        deleted: how it ended.
        width: of the terminal; None asks for it.
    """
    columns = columns_of(width)
    lines = [_verdict(deleted)]
    if deleted.namesake:
        lines += wrapped(_sentence(deleted.namesake) + " It is not touched, nor what bears its name.", columns)
    lines += _section("Checked afterwards", _counts(deleted.counted), None, columns)
    if deleted.objects:
        lines.append(f"  {pluralize(deleted.objects, 'object version')} of templates deleted")
    if deleted.bucket_deleted:
        lines.append("  the bucket of the templates is deleted")
    for title, colour, blocks in (
        ("Not removed, though Kubernetes made it", "red", _not_removed(deleted, columns)),
        (_OTHERS, "red", _table(((obstacle.id, obstacle.what) for obstacle in deleted.obstacles), columns)),
        ("Stays in your account", "yellow", _staying(deleted.retained, columns)),
    ):
        shown = list(blocks)
        lines += ["", click.style(title, fg=colour, bold=True), *shown] if shown else []
    if deleted.namesake and deleted.succeeded:
        # kubectl's configuration may lead to that cluster.
        return lines
    if deleted.succeeded:
        lines += ["", "Next: cfngen kubeconfig --remove   takes the cluster out of kubectl's configuration."]
    elif deleted.goes_on:
        lines += ["", f"Next: cfngen delete --stack-name {deleted.stack}   attaches again, and sees it to its end."]
    elif deleted.status:
        again = f"cfngen delete --stack-name {deleted.stack}"
        lines += ["", f"Next: {again}   goes on, once nothing is in the way any more."]
        if deleted.status == "DELETE_FAILED":
            lines += [f"Next: {again} --leave-behind   goes on without what cannot be deleted."]
    return lines


def _verdict(deleted: Deleted) -> str:
    took = duration(deleted.seconds)
    if deleted.goes_on:
        return f"{deleted.stack}: {deleted.status or 'deletion'}; it goes on without cfngen."
    if _nothing(deleted):
        what = f"the stack {deleted.stack}" if deleted.namesake else f"the cluster {deleted.cluster}"
        return click.style(f"There is nothing of {what} to delete.", fg="green")
    if deleted.succeeded:
        return click.style(f"{deleted.cluster} is deleted, after {took}.", fg="green", bold=True)
    what = f"{deleted.stack}: {deleted.status}" if deleted.status else f"{deleted.cluster} is deleted but for leftovers"
    return click.style(f"{what}, after {took}.", fg="red", bold=True)


def _nothing(deleted: Deleted) -> bool:
    did = deleted.removed or deleted.objects or deleted.bucket_deleted
    return not deleted.stack_id and deleted.succeeded and not did


def _section(title: str, rows: Iterable[Sequence[str]], colour: str | None, columns: int) -> list[str]:
    shown = _table(rows, columns)
    return ["", click.style(title, fg=colour, bold=True), *shown] if shown else []


def _table(rows: Iterable[Sequence[str]], columns: int) -> list[str]:
    """Lines of aligned columns, numbers to the right; the last is wrapped beside the others or, without room, below."""
    shown = [(row[:-1], row[-1]) for row in rows]
    if not shown:
        return []
    cells = list(zip(*(heads for heads, _ in shown), strict=True))
    widths = [max(map(len, each)) for each in cells]
    numbers = [all(cell.isdigit() for cell in each) for each in cells]
    hanging = 2 + sum(width + 2 for width in widths)
    lines: list[str] = []
    for heads, text in shown:
        aligned = (
            cell.rjust(width) if number else cell.ljust(width)
            for cell, width, number in zip(heads, widths, numbers, strict=True)
        )
        head = "  " + "  ".join(aligned) + "  "
        if min(len(text), max(_LEGIBLE, *map(len, text.split()), 0)) <= columns - hanging:
            first, *more = wrapped(text, columns, " " * hanging)
            lines += [(head + first.lstrip()).rstrip(), *more]
        else:
            # Columns that are wider than the screen are none.
            fits = hanging - 2 <= columns
            lines += [head.rstrip()] if fits else wrapped("  ".join(filter(None, heads)), columns, "    ", first="  ")
            lines += wrapped(text, columns, "      ") if text else []
    return lines


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _parts(parts: Sequence[Part]) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        ids = [_short(identity) for identity in part.ids[:SHOWN]]
        more = f", … ({len(part.ids) - SHOWN} more)" if len(part.ids) > SHOWN else ""
        yield str(len(part.ids)), part.kind if len(part.ids) > 1 else part.kind.removesuffix("s"), ", ".join(ids) + more


def _short(identity: str) -> str:
    """The part of an ARN that people know: a stack's or secret's name."""
    if not identity.startswith("arn:"):
        return identity
    rest = identity.split(":", 5)[5]
    kind, _, name = rest.partition("/")
    return name.split("/")[0] if kind == "stack" else rest.rpartition(":")[2]


def _leftovers(found: Iterable[OrphanedResource]) -> Iterator[tuple[str, str, str]]:
    for each in found:
        size = f"{each.gigabytes} GiB" if each.gigabytes else ""
        noted = "deletion protection is lifted" if each.protected else ""
        # A volume's name is seldom its own, and its id is what one looks for.
        name, more = (each.id, each.name) if each.gigabytes else (each.name, "")
        yield each.kind, name, ", ".join(filter(None, (each.purpose or more, size, noted)))


def _retained(found: Iterable[Retained]) -> Iterator[tuple[str, str, str]]:
    for each in found:
        yield each.kind, each.id, "; ".join(filter(None, (each.why, each.cost)))


def _staying(found: Iterable[Retained], columns: int) -> Iterator[str]:
    """What stays, each with why, what that costs, and the command that ends it."""
    for each in found:
        yield from wrapped(f"{each.kind} {each.id}", columns, "    ", first="  ")
        for text in filter(None, (each.why, each.cost)):
            yield from wrapped(text, columns, "      ")
        # Left to the terminal: whoever copies it gets one line.
        yield from (f"      {text}" for text in (each.command,) if text)


def _not_removed(deleted: Deleted, columns: int) -> Iterator[str]:
    for leftover in deleted.leftovers:
        yield from wrapped(_described(leftover), columns, "    ", first="  ")
        yield f"      {leftover.command(deleted.region) or 'AWS releases it by itself'}"


def _counts(found: Iterable[Counted]) -> Iterator[tuple[str, str]]:
    for each in found:
        parts = [f"{each.gone} gone"] if each.gone or not each.unknown else []
        parts += [f"left: {', '.join(each.left)}"] if each.left else []
        parts += [f"not allowed to look for {', '.join(each.unknown)}"] if each.unknown else []
        yield each.kind, "; ".join(parts)


def _described(each: OrphanedResource) -> str:
    size = f", {each.gigabytes} GiB" if each.gigabytes else ""
    return f"{each.kind} {each.name}{size}{f' ({each.purpose})' if each.purpose else ''}"
