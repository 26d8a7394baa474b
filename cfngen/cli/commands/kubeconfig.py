"""`cfngen kubeconfig`: give kubectl access to the cluster with a short-lived client certificate."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.duration import Duration
from cfngen.cli.paths import PathArgument
from cfngen.cli.target import Target, target_options
from cfngen.cli.terminal import examples

if TYPE_CHECKING:
    from datetime import datetime

    from cfngen.deploy.access.certificates import Identity
    from cfngen.deploy.access.kubeconfig import Access
    from cfngen.deploy.account import Account

MIN_DURATION = timedelta(minutes=5)
DEFAULT_DURATION = "12h"


@click.command(
    "kubeconfig",
    short_help="Give kubectl access to the cluster for some hours.",
    epilog=examples(
        "cfngen kubeconfig",
        "cfngen kubeconfig --duration 1h --context prod --no-switch",
        "cfngen kubeconfig --user alice --group developers --print > alice.kubeconfig",
        "cfngen kubeconfig --print --output json | jq .kubeconfig",
        "cfngen kubeconfig --remove",
    ),
)
@target_options
@click.option("--context", "name", metavar="NAME", default="", help="Name of the context. Default: the cluster's name.")
@click.option(
    "--duration",
    metavar="DURATION",
    type=Duration(MIN_DURATION),
    default=DEFAULT_DURATION,
    show_default=True,
    help="How long the certificate is valid, e.g. 30m, 12h or 2d.",
)
@click.option(
    "--user",
    metavar="NAME",
    default="",
    help="User name in the certificate; it has no groups unless --group is given. Default: your name in AWS.",
)
@click.option(
    "--group",
    "groups",
    metavar="NAME",
    multiple=True,
    help="Group of the user. Repeatable. Default without --user: system:masters, which has all permissions.",
)
@click.option(
    "--file",
    "path",
    metavar="FILE",
    type=PathArgument("give a file name"),
    help="File to change. Default: the first file in KUBECONFIG, or ~/.kube/config.",
)
@click.option("--print", "printed", is_flag=True, help="Print a separate kubeconfig; change no file.")
@click.option("--no-switch", is_flag=True, help="Do not change the current context.")
@click.option("--remove", is_flag=True, help="Remove the cluster's entries from the file; AWS is not called.")
def command(
    *,
    target: Target,
    name: str,
    duration: timedelta,
    user: str,
    groups: tuple[str, ...],
    path: Path | None,
    printed: bool,
    no_switch: bool,
    remove: bool,
) -> None:
    """Issue a short-lived client certificate, and write it to kubectl's configuration.

    You need permission to read the secret of the cluster's certificate authority; the certificate is issued on this
    machine. Kubernetes' audit log shows your name in AWS. Other entries of the file are kept, but its comments are not.
    """
    if printed and (path is not None or remove):
        raise click.UsageError("--print changes no file; remove --print, or remove --file and --remove.")
    if remove and (user or groups or no_switch):
        raise click.UsageError("--user, --group and --no-switch cannot be used with --remove.")
    if remove:
        _remove(target, path, name)
        return
    from cfngen.deploy.access.certificates import ADMINISTRATORS, Identity
    from cfngen.deploy.access.cluster_access import user_name
    from cfngen.deploy.access.kubeconfig import KubeconfigDocument, build_kubeconfig

    account = target.connect()
    identity = Identity(user or user_name(account.caller), groups or (() if user else (ADMINISTRATORS,)))
    now = account.clock.now()
    access = _access(target, account, name, identity, now, duration)
    if printed:
        content = build_kubeconfig(access)
        target.show(KubeconfigDocument(content, identity.user, identity.groups, now + duration))
        return
    _write(target, path, access, identity, now + duration, switch=not no_switch)


def _access(
    target: Target, account: Account, name: str, identity: Identity, now: datetime, duration: timedelta
) -> Access:
    """Read the API's endpoint and certificate authority from the stack, and issue a client certificate."""
    from cfngen.deploy.access import cluster_access
    from cfngen.deploy.access.certificates import issue
    from cfngen.deploy.access.kubeconfig import Access, Owner

    stack = cluster_access.find_root(account, target.stack_name)
    outputs = cluster_access.read_outputs(account, stack)
    endpoint = cluster_access.endpoint(stack, outputs, target.kubernetes_override)
    authority = cluster_access.find_authority(account, stack, outputs)
    return Access(
        name=name or target.cluster.name,
        owner=Owner(account.id, account.region, stack.name),
        server=endpoint.server,
        authority=authority.pair.certificate,
        client=issue(authority.pair, identity, now=now, duration=duration),
        tls_name=endpoint.tls_name,
    )


def _write(
    target: Target, path: Path | None, access: Access, identity: Identity, expires: datetime, *, switch: bool
) -> None:
    from cfngen.deploy.access.kubeconfig import KubeconfigChange, merge_entries
    from cfngen.deploy.access.kubeconfig_file import edit_file

    file = _file(path)
    edit_file(file, lambda text: merge_entries(text, access, switch=switch))
    target.show(
        KubeconfigChange(
            action="written",
            stack=access.owner.stack,
            region=access.owner.region,
            path=str(file),
            names=(access.name,),
            server=access.server,
            user=identity.user,
            groups=identity.groups,
            expires=expires,
            current=switch,
        )
    )


def _remove(target: Target, path: Path | None, name: str) -> None:
    from cfngen.deploy.access.kubeconfig import KubeconfigChange, Owner, remove_entries
    from cfngen.deploy.access.kubeconfig_file import edit_file

    # The sandbox has an account number of its own, which tells its entries from those of a real account.
    account_number = target.connect().id if target.sandbox else target.account_number
    owner, file = Owner(account_number, target.region, target.stack_name), _file(path)
    names: list[str] = []

    def edit(text: str) -> str:
        new, removed = remove_entries(text, owner, name=name)
        names[:] = removed
        return new

    changed = edit_file(file, edit)
    target.show(
        KubeconfigChange(
            action="removed" if changed else "none",
            stack=owner.stack,
            region=owner.region,
            path=str(file),
            names=tuple(names),
        )
    )


def _file(path: Path | None) -> Path:
    from cfngen.deploy.access.kubeconfig_file import find_path

    return path if path is not None else find_path(os.environ, Path.home())
