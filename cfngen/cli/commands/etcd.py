"""`cfngen etcd`: list, take and restore snapshots of the cluster's database."""

from __future__ import annotations

from datetime import timedelta

import click

from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog, progress_line
from cfngen.cli.input.options import parse_duration, wait_option, yes_option
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.usage import SuggestingGroup


@click.group(
    "etcd",
    cls=SuggestingGroup,
    short_help="List, take and restore snapshots of etcd.",
    epilog=examples_epilog(
        "cfngen etcd list",
        "cfngen etcd backup                take a snapshot now",
        "cfngen etcd restore               restore the newest snapshot",
    ),
)
def command() -> None:
    """List the snapshots of etcd that the masters upload to the cluster's bucket, take a new one, or restore one.

    Masters take a snapshot every `etcd.backups.interval` minutes. Each is kept for `etcd.backups.hourlyDays` days, and
    one of each day for `etcd.backups.dailyDays` days. See docs/operate/backups.md.
    """


@command.command(
    "list",
    short_help="Show the snapshots.",
    epilog=examples_epilog(
        "cfngen etcd list", "cfngen etcd list --all", "cfngen etcd list --output json | jq -r '.snapshots[0].key'"
    ),
)
@deployed_target_options
@click.option("--all", "show_all", is_flag=True, help="Show every snapshot, not only the newest ones.")
def listing(target: Target, show_all: bool) -> None:
    """List the snapshots, the newest first, and show whether one is being restored.

    To list the snapshots of a deleted cluster, specify their bucket with `--set etcd.backups.bucket=NAME`.
    """
    from cfngen.deploy.aws.snapshots import REQUEST_KEY, Snapshots, find_store

    account = target.connect()
    with progress_line("reading …"):
        snapshot_store = find_store(account, target.stack_name, target.cluster)
        restoring = str(snapshot_store.read(REQUEST_KEY).get("snapshot", ""))
        snapshots = Snapshots(
            cluster=snapshot_store.cluster,
            bucket=snapshot_store.bucket,
            prefix=snapshot_store.prefix,
            snapshots=snapshot_store.snapshots(),
            restoring=restoring,
        )
    target.show(snapshots, full=show_all)


@command.command(
    "backup",
    short_help="Take a snapshot now.",
    epilog=examples_epilog("cfngen etcd backup", "cfngen etcd backup && cfngen deploy --yes"),
)
@deployed_target_options
@wait_option("How long to wait for the snapshot, e.g. 10m.", default="5m", minimum=timedelta(seconds=1))
def backup(target: Target, timeout: timedelta) -> None:
    """Ask the masters for a snapshot, and wait until it is in the bucket.

    The request is an object in the bucket, which the master with etcd's leader reads within a minute; you need no
    access to the cluster itself.
    """
    from cfngen.deploy.aws.snapshots import find_store
    from cfngen.deploy.operations.etcd.backup import take_snapshot
    from cfngen.deploy.preflight.pausing import ensure_stack_not_paused

    account = target.connect()
    with screen(target, account) as display:
        ensure_stack_not_paused(account, target.stack_name, target.cluster)
        snapshot_store = find_store(account, target.stack_name, target.cluster)
        display.report(take_snapshot(snapshot_store, display.report, timeout))


@command.command(
    "restore",
    short_help="Restore the cluster from a snapshot.",
    epilog=examples_epilog(
        "cfngen etcd restore",
        "cfngen etcd restore 2026-11-21T120000Z.db",
        "cfngen etcd restore 1h30m                        the cluster as it was 90 minutes ago, or earlier",
        "cfngen etcd restore KEY --yes                    a key that `cfngen etcd list` shows; never asks",
    ),
)
@click.argument("snapshot", default="latest")
@deployed_target_options
@yes_option("Do not ask to type the cluster's name.")
@wait_option(
    "How long to wait for the masters. Default: the time limit for booting an instance, plus 15 minutes.",
    minimum=timedelta(seconds=1),
)
def restore(target: Target, snapshot: str, yes: bool, timeout: timedelta | None) -> None:
    """Replace all masters with new ones that start from a snapshot, and wait until they work.

    SNAPSHOT is `latest`, a key that `cfngen etcd list` shows, the last part of a key, or an age such as `1h30m`: the
    newest snapshot that is at least so old. The command shows the consequences first, and asks you to type the
    cluster's name. Everything written since the snapshot is lost; the Kubernetes API is unavailable for some minutes,
    while pods on nodes keep running.

    If the command is interrupted or fails, run it again: it continues with the same snapshot.
    """
    from cfngen.deploy.operations.etcd.restore import restore as restore_snapshot

    account = target.connect()
    with screen(target, account) as display:
        interaction = display.interaction(target.consent(yes=yes, allow_danger=yes))
        result = restore_snapshot(
            account,
            target.stack_name,
            target.cluster,
            parse_duration(snapshot) or snapshot,
            consent=interaction.consent,
            report=interaction.report,
            find_url_override=target.kubernetes_override,
            timeout=timeout,
        )
        display.report(result)
