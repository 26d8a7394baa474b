"""A deletion as text: what it would do, what it did, and what stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import click

from cfngen.cli.render.durations import duration
from cfngen.cli.terminal import columns
from cfngen.deploy.removal.accounting import Counted
from cfngen.deploy.removal.deletion import Deleted
from cfngen.deploy.removal.leftover import Leftover, Removed
from cfngen.deploy.removal.retained import Retained
from cfngen.deploy.removal.stack_removal import DeletionFailed
from cfngen.deploy.removal.survey import Part, Survey
from cfngen.words import counted

SHOWN = 5  # ids of one kind; more are counted


def survey(found: Survey) -> list[str]:
    """Return what deleting a cluster would do."""
    where = f"{found.region}, account {found.account}"
    lines = [click.style(found.cluster, bold=True) + f"  {where}"]
    if found.status:
        protected = "; its termination protection is lifted" if found.protected else ""
        lines.append(f"stack {found.stack} ({found.status}){protected}")
        if found.by_console:
            lines.append("It was made from cfngen's templates, but not by `cfngen deploy`.")
    else:
        lines.append(f"there is no stack {found.stack}")
    lines += _section("Goes with the stack", _parts(found.goes), "red")
    removed = [*found.removed, *(found.volumes if found.delete_volumes else ())]
    removed += found.snapshots if found.delete_snapshots else ()
    lines += _section("Made by Kubernetes, and deleted", _leftovers(removed), "red")
    lines += _section("Stays", _retained(found.stays), "yellow")
    lines += _section("In the way, and not the cluster's", [(each.id, each.what) for each in found.obstacles], "red")
    lines += _section("Of a cluster that nobody knows, and not touched", _leftovers(found.unclear), "yellow")
    if found.authorities:
        lines += [
            "",
            "A master's snapshot holds etcd's data. A master starts on it only with this cluster's certificate",
            "authorities, whose secret goes with the stack. If you may want the data again, copy them first:",
            *(
                f"  aws secretsmanager get-secret-value --region {found.region} --secret-id {each} "
                "--query SecretString --output text > authorities.json"
                for each in found.authorities
            ),
        ]
    return lines


def removed(message: Removed) -> list[str]:
    """Return the line of something that is gone."""
    each = message.leftover
    return [click.style("  - ", fg="red") + _described(each)]


def failed(message: DeletionFailed) -> list[str]:
    """Return what CloudFormation could not delete this time."""
    head = f"{message.stack}: CloudFormation could not delete {counted(len(message.undeleted), 'resource')}"
    rows = [(each.name, each.id, each.reason) for each in message.undeleted]
    return [click.style(f"{head} (try {message.round} of {message.rounds})", fg="yellow", bold=True), *columns(rows)]


def result(deleted: Deleted) -> list[str]:
    """Return how a deletion ended: its first line says it all, the rest is what is left to do."""
    lines = [_verdict(deleted)]
    lines += _section("Checked afterwards", _counts(deleted.counted), None)
    if deleted.objects:
        lines.append(f"  {counted(deleted.objects, 'object version')} of templates deleted")
    if deleted.bucket_deleted:
        lines.append("  the bucket of the templates is deleted")
    for title, colour, blocks in (
        ("Not removed, though Kubernetes made it", "red", _not_removed(deleted)),
        ("Stays in your account", "yellow", _staying(deleted.retained)),
    ):
        shown = list(blocks)
        lines += ["", click.style(title, fg=colour, bold=True), *shown] if shown else []
    if deleted.succeeded:
        lines += ["", "Next: cfngen kubeconfig --remove   takes the cluster out of kubectl's configuration."]
    elif deleted.goes_on:
        lines += ["", f"Next: cfngen delete --stack-name {deleted.stack}   attaches again, and sees it to its end."]
    elif deleted.status:
        lines += [
            "",
            f"Next: cfngen delete --stack-name {deleted.stack}   goes on; --leave-behind gives up what cannot go.",
        ]
    return lines


def _verdict(deleted: Deleted) -> str:
    took = duration(deleted.seconds)
    if deleted.goes_on:
        return f"{deleted.stack}: {deleted.status or 'deletion'}; it goes on without cfngen."
    if (
        not deleted.stack_id
        and deleted.succeeded
        and not (deleted.removed or deleted.objects or deleted.bucket_deleted)
    ):
        return click.style(f"There is nothing of the cluster {deleted.cluster} to delete.", fg="green")
    if deleted.succeeded:
        return click.style(f"{deleted.cluster} is deleted, after {took}.", fg="green", bold=True)
    what = f"{deleted.stack}: {deleted.status}" if deleted.status else f"{deleted.cluster} is deleted but for leftovers"
    return click.style(f"{what}, after {took}.", fg="red", bold=True)


def _section(title: str, rows: Iterable[Sequence[str]], colour: str | None) -> list[str]:
    shown = list(rows)
    return ["", click.style(title, fg=colour, bold=True), *columns(shown)] if shown else []


def _parts(parts: Sequence[Part]) -> Iterator[tuple[str, str, str]]:
    for each in parts:
        ids = [_short(identity) for identity in each.ids[:SHOWN]]
        more = f", … ({len(each.ids) - SHOWN} more)" if len(each.ids) > SHOWN else ""
        yield str(len(each.ids)), each.kind if len(each.ids) > 1 else each.kind.removesuffix("s"), ", ".join(ids) + more


def _short(identity: str) -> str:
    """The part of an ARN that people know: a stack's or secret's name."""
    if not identity.startswith("arn:"):
        return identity
    rest = identity.split(":", 5)[5]
    kind, _, name = rest.partition("/")
    return name.split("/")[0] if kind == "stack" else rest.rpartition(":")[2]


def _leftovers(found: Iterable[Leftover]) -> Iterator[tuple[str, str, str]]:
    for each in found:
        size = f"{each.gigabytes} GiB" if each.gigabytes else ""
        noted = "deletion protection is lifted" if each.protected else ""
        # A volume's name is seldom its own, and its id is what one looks for.
        name, more = (each.id, each.name) if each.gigabytes else (each.name, "")
        yield each.kind, name, ", ".join(filter(None, (each.purpose or more, size, noted)))


def _retained(found: Iterable[Retained]) -> Iterator[tuple[str, str, str]]:
    for each in found:
        yield each.kind, each.id, "; ".join(filter(None, (each.why, each.cost)))


def _staying(found: Iterable[Retained]) -> Iterator[str]:
    """What stays, each with why, what that costs, and the command that ends it."""
    for each in found:
        yield f"  {each.kind} {each.id}"
        yield from (f"      {text}" for text in (each.why, each.cost, each.command) if text)


def _not_removed(deleted: Deleted) -> Iterator[str]:
    for each in deleted.leftovers:
        yield f"  {_described(each)}"
        yield f"      {each.command(deleted.region) or 'AWS releases it by itself'}"


def _counts(found: Iterable[Counted]) -> Iterator[tuple[str, str]]:
    for each in found:
        parts = [f"{each.gone} gone"] if each.gone or not each.unknown else []
        parts += [f"left: {', '.join(each.left)}"] if each.left else []
        parts += [f"not allowed to look for {', '.join(each.unknown)}"] if each.unknown else []
        yield each.kind, "; ".join(parts)


def _described(each: Leftover) -> str:
    size = f", {each.gigabytes} GiB" if each.gigabytes else ""
    return f"{each.kind} {each.name}{size}{f' ({each.purpose})' if each.purpose else ''}"
