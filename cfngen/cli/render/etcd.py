"""Formats snapshots of etcd as text: the list, a new snapshot, and a restore."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta

import click

from cfngen.cli.display.suggested_commands import colored, next_line
from cfngen.cli.render.durations import age_text, duration_text, format_duration
from cfngen.cli.render.layout import table
from cfngen.cli.render.operations import operation_plan_lines
from cfngen.deploy.aws.snapshots import Snapshots
from cfngen.deploy.operations.etcd.backup import BackupTaken
from cfngen.deploy.operations.etcd.restore import Restored, RestorePlan
from cfngen.deploy.operations.etcd.watch import READY, RestoreProgress
from cfngen.hints import CommandText, Line, SuggestedCommand, suggest
from cfngen.text import pluralize

MAX_SNAPSHOTS_SHOWN = 12  # the others are only counted


def snapshot_lines(inventory: Snapshots, *, full: bool = False) -> list[Line]:
    """Return a table of the newest snapshots, or with `full` of all, and the snapshot that is being restored."""
    lines: list[Line]
    if not inventory.snapshots:
        lines = [f"There is no snapshot under s3://{inventory.bucket}/{inventory.prefix} yet."]
    else:
        shown_snapshots = inventory.snapshots if full else inventory.snapshots[:MAX_SNAPSHOTS_SHOWN]
        rows = [
            (
                f"{snapshot.time:%Y-%m-%d %H:%M:%S} UTC",
                _age_option(snapshot.age),
                size_text(snapshot.size),
                snapshot.period,
                snapshot.key,
            )
            for snapshot in shown_snapshots
        ]
        lines = [*table(("TIME", "AGE", "SIZE", "KIND", "KEY"), rows)]
        hidden_count = len(inventory.snapshots) - len(shown_snapshots)
        if hidden_count:
            lines.append(f"  … and {hidden_count:,} more; --all shows them")
        count = pluralize(len(inventory.snapshots), "snapshot")
        total_size = size_text(sum(snapshot.size for snapshot in inventory.snapshots))
        lines += ["", f"{count}, {total_size}, in the bucket {inventory.bucket}"]
    if inventory.restoring:
        sentence_start = f"The masters are being restored from {inventory.restoring}; "
        sentence = CommandText(sentence_start, suggest("etcd restore"), " continues the restore.")
        lines += ["", colored(sentence, "yellow")]
    return lines


def backup_lines(message: BackupTaken) -> list[str]:
    """Return the line that reports a new snapshot in the bucket."""
    snapshot = message.snapshot
    text = f"s3://{message.bucket}/{snapshot.key}, {size_text(snapshot.size)}, after {duration_text(message.seconds)}."
    return [click.style(text, fg="green")]


def restore_plan_lines(message: RestorePlan, width: int | None = None) -> list[str]:
    """Return what a restore will do: the cluster, the snapshot and the consequences."""
    snapshot = message.snapshot
    verb = "is still being restored" if message.pending else "will be restored"
    age = age_text(timedelta(seconds=snapshot.age))
    sentences = (
        f"{verb} from s3://{message.bucket}/{snapshot.key}",
        f"taken on {snapshot.time:%Y-%m-%d %H:%M:%S} UTC, {age} ago; {size_text(snapshot.size)}",
    )
    return operation_plan_lines(message, sentences, consequences=message.consequences, width=width)


def restore_progress_lines(message: RestoreProgress) -> list[str]:
    """Return the state of each master and of the API, on one line."""
    states: list[str] = []
    for master in message.masters:
        instance = f" ({master.instance})" if master.instance else ""
        states.append(f"master {master.slot} {_colored_state(master.state)}{instance}")
    states.append(f"API {_colored_state(message.api)}")
    return ["  " + "; ".join(states)]


def restored_lines(message: Restored) -> list[Line]:
    """Return the line that reports a finished restore, and the next command."""
    text = f"{message.cluster} is restored from {message.snapshot.key}, after {duration_text(message.seconds)}."
    return [
        click.style(text, fg="green", bold=True),
        *_unknown_node_lines(message.unknown_nodes),
        "",
        next_line(suggest("validate cluster"), "   checks that every node is Ready again."),
    ]


def _unknown_node_lines(instance_ids: Sequence[str]) -> Iterator[Line]:
    if not instance_ids:
        return
    yield ""
    count = pluralize(len(instance_ids), "instance")
    yield f"The restored cluster has no Node of {count}, which joined after the snapshot. To replace them one by one:"
    for instance_id in instance_ids:
        yield CommandText("  ", SuggestedCommand(f"replace {instance_id}"), quote="")


def _age_option(seconds: float) -> str:
    """Return an age to the minute, as `etcd restore` takes it."""
    unit = 1 if seconds < 60 else 60
    return format_duration(timedelta(seconds=max(seconds, 0) // unit * unit))


def _colored_state(state: str) -> str:
    return click.style(state, fg="green" if state == READY else None)


def size_text(byte_count: int) -> str:
    """Return a number of bytes in a suitable unit, e.g. `12.3 MiB`."""
    if byte_count < 1024:
        return pluralize(byte_count, "byte")
    larger_units = ["KiB", "MiB", "GiB", "TiB"]
    amount = byte_count / 1024
    while amount >= 1024 and len(larger_units) > 1:
        amount /= 1024
        larger_units.pop(0)
    return f"{amount:.1f} {larger_units[0]}"
