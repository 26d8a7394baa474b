"""Formats a deletion as text: the plan, the progress, the result, and what is retained."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from cfngen.cli.display.suggested_commands import next_line
from cfngen.cli.render.durations import duration_text
from cfngen.cli.render.layout import hanging, line_width, paragraph, table
from cfngen.cli.render.operations import cluster_heading
from cfngen.deploy.aws.orphaned_resource import OrphanedResource
from cfngen.deploy.operations.deletion.removal import OrphanRemoved
from cfngen.deploy.operations.deletion.report import Deleted, DeletionCount
from cfngen.deploy.operations.deletion.stack_removal import DeletionFailed
from cfngen.deploy.operations.leftovers import Remains
from cfngen.deploy.plan.deletion.plan import DeletedResources, DeletionPlan
from cfngen.deploy.plan.deletion.remaining_volumes_and_orphans import RetainedResource
from cfngen.deploy.preflight.blockers import Blocker
from cfngen.deploy.preflight.network.subnet_tags import SubnetTag
from cfngen.hints import Line, suggest
from cfngen.text import pluralize

MAX_IDS_SHOWN = 5  # of one kind of resource; the others are only counted
_BLOCKERS_TITLE = "Blocks the deletion, and is not part of the cluster"
_AUTHORITIES_NOTE = (
    "Snapshots of etcd and of masters' volumes contain the state of Kubernetes. A master can start from them only with "
    "this cluster's certificate authorities, whose secret is deleted with the stack. To choose whether a copy of the "
    "secret is kept, use --authorities file, recovery-window or destroy; without this option you are asked."
)


def deletion_plan_lines(plan: DeletionPlan, width: int | None = None) -> list[str]:
    """Return the plan of a deletion: what is deleted, what is kept, and what blocks the deletion."""
    max_width = line_width(width)
    deleted_orphans = list(plan.removed)
    if plan.delete_volumes:
        deleted_orphans += plan.volumes
    if plan.delete_snapshots:
        deleted_orphans += plan.snapshots
    lines = [*cluster_heading(plan, max_width), *_stack_lines(plan, max_width)]
    stack_rows = _stack_resource_rows(plan.deleted_parts)
    lines += _section("Deleted with the stack", stack_rows, colour="red", max_width=max_width, right_aligned=(0,))
    for title, rows, colour in (
        ("Created by Kubernetes, and deleted", _orphan_rows(deleted_orphans), "red"),
        ("Tags of existing subnets, and removed", _subnet_tag_rows(plan.subnet_tags), "red"),
        ("Kept", _retained_rows(plan.retained), "yellow"),
    ):
        lines += _section(title, rows, colour=colour, max_width=max_width)
    lines += _titled(_BLOCKERS_TITLE, _blocker_lines(plan.blockers, max_width), "red")
    unattributed = _orphan_rows(plan.unattributed_volumes)
    lines += _section("Of an unknown cluster, and not touched", unattributed, colour="yellow", max_width=max_width)
    if plan.name_conflict:
        addition = " These resources may belong to it, and are not touched:" if plan.foreign_resources else ""
        lines += [
            "",
            *paragraph(_as_sentence(plan.name_conflict) + addition, max_width),
            *table((), list(_retained_rows(plan.foreign_resources)), max_width),
        ]
    return [*lines, "", *paragraph(_AUTHORITIES_NOTE, max_width)] if plan.authorities else lines


def _stack_lines(plan: DeletionPlan, max_width: int) -> list[str]:
    if not plan.status:
        return [f"there is no stack {plan.stack}"]
    protected = "; its termination protection is turned off" if plan.protected else ""
    lines = list(paragraph(f"stack {plan.stack} ({plan.status}){protected}", max_width, 0, 2))
    if plan.by_console:
        lines += paragraph("It was created from cfngen's templates, but not by `cfngen deploy`.", max_width)
    return lines


def remains_lines(message: Remains, width: int | None = None) -> list[str]:
    """Return the resources that a failed creation, or earlier stacks of the same name, left in the account."""
    stacks = f"earlier stacks named {message.stack}, which are deleted" if message.earlier else message.stack
    title = click.style(f"Kept in your account from {stacks}", fg="yellow", bold=True)
    return ["", title, *_retained_lines(message.retained, line_width(width))]


def removed_resource_lines(message: OrphanRemoved, width: int | None = None) -> list[str]:
    """Return the line that reports a deleted resource."""
    return list(hanging("-", _orphan_text(message.orphan), line_width(width), 2, style={"fg": "red"}))


def failed_attempt_lines(message: DeletionFailed, width: int | None = None) -> list[str]:
    """Return the resources that CloudFormation could not delete in this attempt."""
    heading = f"{message.stack}: CloudFormation could not delete {pluralize(len(message.undeleted), 'resource')}"
    rows = [(resource.name, resource.id, resource.reason) for resource in message.undeleted]
    max_width = line_width(width)
    heading += f" (attempt {message.round} of {message.rounds})"
    return [
        *paragraph(heading, max_width, 0, 2, style={"fg": "yellow", "bold": True}),
        *table((), rows, max_width),
        *_titled(_BLOCKERS_TITLE, _blocker_lines(message.blockers, max_width), "red"),
    ]


def result_lines(deleted: Deleted, width: int | None = None) -> list[Line]:
    """Return the result of a deletion: success or failure in the first line, then the details and the next command."""
    max_width = line_width(width)
    lines: list[Line] = [_verdict_line(deleted)]
    if deleted.name_conflict:
        text = f"{_as_sentence(deleted.name_conflict)} Neither it nor resources with its name are touched."
        lines += paragraph(text, max_width)
    lines += _section("Checked afterwards", _check_rows(deleted.counted), colour=None, max_width=max_width)
    lines += _section(
        "Tags removed from existing subnets", _subnet_tag_rows(deleted.subnet_tags), colour=None, max_width=max_width
    )
    if deleted.objects:
        lines.append(f"  {pluralize(deleted.objects, 'object version')} of templates deleted")
    if deleted.bucket_deleted:
        lines.append("  the bucket of the templates has been deleted")
    for title, colour, section_lines in (
        ("Created by Kubernetes, but not deleted", "red", _undeleted_orphan_lines(deleted, max_width)),
        (_BLOCKERS_TITLE, "red", _blocker_lines(deleted.blockers, max_width)),
        ("Kept in your account", "yellow", _retained_lines(deleted.retained, max_width)),
    ):
        lines += _titled(title, section_lines, colour)
    # kubectl's configuration may belong to the other cluster of the same name.
    if deleted.succeeded and deleted.name_conflict:
        return lines
    return [*lines, *_next_lines(deleted)]


def _next_lines(deleted: Deleted) -> Iterator[Line]:
    command = suggest("delete", stack=deleted.stack)
    if deleted.succeeded:
        purpose = "   removes the cluster from kubectl's configuration."
        yield from ("", next_line(suggest("kubeconfig", "--remove"), purpose))
    elif deleted.in_progress:
        yield from ("", next_line(command, "   attaches again, and watches until the end."))
    elif deleted.status:
        yield from ("", next_line(command, "   continues, once nothing blocks the deletion."))
        if deleted.status == "DELETE_FAILED":
            forced = command.with_options((("--leave-behind",),))
            yield next_line(forced, "   continues without what cannot be deleted.")


def _verdict_line(deleted: Deleted) -> str:
    elapsed = duration_text(deleted.seconds)
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
    did_anything = deleted.removed or deleted.subnet_tags or deleted.objects or deleted.bucket_deleted
    return not deleted.stack_id and deleted.succeeded and not did_anything


def _section(
    title: str, rows: Iterable[Sequence[str]], *, colour: str | None, max_width: int, right_aligned: Sequence[int] = ()
) -> list[str]:
    return _titled(title, table((), list(rows), max_width, right_aligned=right_aligned), colour)


def _titled(title: str, possibly_no_lines: Iterable[str], colour: str | None) -> list[str]:
    lines = list(possibly_no_lines)
    return ["", click.style(title, fg=colour, bold=True), *lines] if lines else []


def _blocker_lines(blockers: Sequence[Blocker], max_width: int) -> list[str]:
    rows = [(blocker.id, blocker.what) for blocker in blockers]
    # Not wrapped, so that a command can be copied as one line.
    return [*table((), rows, max_width), *(f"    {blocker.command}" for blocker in blockers if blocker.command)]


def _as_sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}."


def _stack_resource_rows(parts: Sequence[DeletedResources]) -> Iterator[tuple[str, str, str]]:
    for part in parts:
        count = len(part.ids)
        ids = ", ".join(_short_name(resource_id) for resource_id in part.ids[:MAX_IDS_SHOWN])
        if count > MAX_IDS_SHOWN:
            ids += f", … ({count - MAX_IDS_SHOWN} more)"
        yield str(count), part.kind if count > 1 else part.kind.removesuffix("s"), ids


def _short_name(resource_id: str) -> str:
    """Return the name of the stack or secret if the id is its ARN; other ids are returned unchanged."""
    if not resource_id.startswith("arn:"):
        return resource_id
    # The sixth part of an ARN names the resource: `stack/NAME/ID`, or `secret:NAME`.
    resource_part = resource_id.split(":", 5)[5]
    kind, _, name_and_id = resource_part.partition("/")
    return name_and_id.split("/")[0] if kind == "stack" else resource_part.rpartition(":")[2]


def _orphan_rows(resources: Iterable[OrphanedResource]) -> Iterator[tuple[str, str, str]]:
    for resource in resources:
        size = f"{resource.gigabytes} GiB" if resource.gigabytes else ""
        protection = "deletion protection is turned off" if resource.protected else ""
        if resource.gigabytes:
            # A volume is shown by its id, since its name is often not unique.
            name, description = resource.id, resource.purpose or resource.name
        else:
            name, description = resource.name, resource.purpose
        yield resource.kind, name, ", ".join(filter(None, (description, size, protection)))


def _subnet_tag_rows(tags: Iterable[SubnetTag]) -> Iterator[tuple[str, str]]:
    for tag in tags:
        yield tag.subnet, f"{tag.key} = {tag.value}"


def _retained_rows(resources: Iterable[RetainedResource]) -> Iterator[tuple[str, str, str]]:
    for resource in resources:
        yield resource.kind, resource.id, "; ".join(filter(None, (resource.why, resource.cost)))


def _retained_lines(resources: Iterable[RetainedResource], max_width: int) -> Iterator[str]:
    for resource in resources:
        yield from paragraph(f"{resource.kind} {resource.id}", max_width, 2, 4)
        for text in filter(None, (resource.why, resource.cost)):
            yield from paragraph(text, max_width, 6)
        # Not wrapped, so that the command can be copied as one line.
        if command := str(resource.command):
            yield f"      {command}"


def _undeleted_orphan_lines(deleted: Deleted, max_width: int) -> Iterator[str]:
    for orphan in deleted.orphans:
        yield from paragraph(_orphan_text(orphan), max_width, 2, 4)
        yield f"      {orphan.command(deleted.region) or 'AWS releases it automatically'}"


def _check_rows(counts: Iterable[DeletionCount]) -> Iterator[tuple[str, str]]:
    for count in counts:
        results: list[str] = []
        if count.gone or not count.unknown:
            results.append(f"{count.gone} gone")
        if count.left:
            results.append(f"left: {', '.join(count.left)}")
        if count.unknown:
            results.append(f"no permission to look for {', '.join(count.unknown)}")
        yield count.kind, "; ".join(results)


def _orphan_text(resource: OrphanedResource) -> str:
    size = f", {resource.gigabytes} GiB" if resource.gigabytes else ""
    purpose = f" ({resource.purpose})" if resource.purpose else ""
    return f"{resource.kind} {resource.name}{size}{purpose}"
