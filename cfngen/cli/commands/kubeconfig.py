"""`cfngen kubeconfig`: give kubectl access to the cluster with a short-lived client certificate."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.options import Duration
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.several_clusters.command import SeveralClustersCommand

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from cfngen.deploy.access.certificates import Identity
    from cfngen.deploy.access.kubeconfig import KubeconfigContent
    from cfngen.deploy.aws.account import Account

MIN_DURATION = timedelta(minutes=5)
"""The minimum of --duration."""
DEFAULT_DURATION = "12h"
"""How long the certificate is valid without --duration."""


@click.command(
    "kubeconfig",
    cls=SeveralClustersCommand,
    short_help="Give kubectl access to the cluster for some hours.",
    epilog=examples_epilog(
        "cfngen kubeconfig",
        "cfngen kubeconfig --duration 1h --context prod --no-switch",
        "cfngen kubeconfig --user alice --group developers --print > alice.kubeconfig",
        "cfngen kubeconfig --internal --context prod-internal",
        "cfngen kubeconfig --print --output json | jq .kubeconfig",
        "cfngen kubeconfig --remove",
    ),
)
@deployed_target_options
@click.option(
    "--context", "context_name", metavar="NAME", default="", help="Name of the context. Default: the cluster's name."
)
@click.option(
    "--duration",
    "certificate_lifetime",
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
    "kubeconfig_file",
    metavar="FILE",
    type=PathArgument("give a file name"),
    help="File to change. Default: the first file in KUBECONFIG, or ~/.kube/config.",
)
@click.option(
    "--internal",
    is_flag=True,
    help="Use the API's internal endpoint, which clients in the VPC and in connected networks reach.",
)
@click.option("--print", "print_only", is_flag=True, help="Print a separate kubeconfig; change no file.")
@click.option("--no-switch", "keep_current_context", is_flag=True, help="Do not change the current context.")
@click.option(
    "--remove",
    "remove_cluster_entries",
    is_flag=True,
    help="Remove the cluster's entries from the file; AWS is not called.",
)
def command(
    *,
    target: Target,
    context_name: str,
    certificate_lifetime: timedelta,
    user: str,
    groups: tuple[str, ...],
    kubeconfig_file: Path | None,
    internal: bool,
    print_only: bool,
    keep_current_context: bool,
    remove_cluster_entries: bool,
) -> None:
    """Issue a short-lived client certificate, and write it to kubectl's configuration.

    You need permission to read the secret of the cluster's certificate authority; the certificate is issued on this
    machine. Kubernetes' audit log shows your name in AWS. Other entries of the file are kept, but its comments are not.
    """
    if print_only and (kubeconfig_file is not None or remove_cluster_entries):
        raise click.UsageError("--print changes no file; remove --print, or remove --file and --remove.")
    if remove_cluster_entries and (user or groups or internal or keep_current_context):
        raise click.UsageError("--user, --group, --internal and --no-switch cannot be used with --remove.")
    if remove_cluster_entries:
        _remove_entries(target, kubeconfig_file, context_name)
        return
    from cfngen.deploy.access.certificates import ADMINISTRATORS_GROUP, Identity
    from cfngen.deploy.access.cluster_access import kubernetes_user_name
    from cfngen.deploy.access.kubeconfig import KubeconfigDocument, build_kubeconfig

    account = target.connect()
    # A user that --user names gets no groups unless --group is given.
    default_groups = () if user else (ADMINISTRATORS_GROUP,)
    identity = Identity(user=user or kubernetes_user_name(account.caller), groups=groups or default_groups)
    now = account.clock.now()
    expires = now + certificate_lifetime
    access = _issue_access(target, account, context_name, identity, now, certificate_lifetime, internal=internal)
    if print_only:
        document = KubeconfigDocument(
            kubeconfig=build_kubeconfig(access), user=identity.user, groups=identity.groups, expires=expires
        )
        target.show(document)
        return
    _write_entries(target, kubeconfig_file, access, identity, expires, switch=not keep_current_context)


def _issue_access(
    target: Target,
    account: Account,
    context_name: str,
    identity: Identity,
    now: datetime,
    certificate_lifetime: timedelta,
    *,
    internal: bool,
) -> KubeconfigContent:
    """Issue a client certificate, and return what a kubeconfig needs to use it.

    The API's endpoint and the certificate authority are read from the stack and its secret.

    Args:
        context_name: name of the context; empty means the cluster's name.
        internal: whether to use the internal endpoint; if the API is not public, it is the only one.
    """
    from cfngen.deploy.access import cluster_access
    from cfngen.deploy.access.certificates import issue_client_certificate
    from cfngen.deploy.access.kubeconfig import EntryOwner, KubeconfigContent
    from cfngen.deploy.aws import stacks

    stack = stacks.require_root_stack(account, target.stack_name)
    outputs = stacks.read_outputs(account, stack)
    has_both = cluster_access.INTERNAL_ENDPOINT_OUTPUT in outputs or target.cluster.api.public
    find_endpoint = (
        cluster_access.find_internal_api_endpoint if internal and has_both else cluster_access.find_api_endpoint
    )
    endpoint = find_endpoint(stack, outputs, target.kubernetes_override)
    authority = cluster_access.find_authority(account, stack, outputs)
    return KubeconfigContent(
        name=context_name or target.cluster.name,
        owner=EntryOwner(account.id, account.region, stack.name),
        server=endpoint.connect_url,
        authority=authority.key_pair.certificate,
        client=issue_client_certificate(authority.key_pair, identity, now=now, duration=certificate_lifetime),
        tls_name=endpoint.tls_name,
    )


def _write_entries(
    target: Target,
    kubeconfig_file: Path | None,
    access: KubeconfigContent,
    identity: Identity,
    expires: datetime,
    *,
    switch: bool,
) -> None:
    """Write the entries of a cluster into the kubeconfig file, and show what was written.

    Args:
        kubeconfig_file: value of --file; None means the file that kubectl would use.
    """
    from cfngen.deploy.access.kubeconfig import KubeconfigChange, merge_entries
    from cfngen.deploy.access.kubeconfig_file import edit_file

    file = _file_to_change(kubeconfig_file)
    edit_file(file, lambda text: merge_entries(text, access, set_current=switch))
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


def _remove_entries(target: Target, kubeconfig_file: Path | None, context_name: str) -> None:
    """Remove the stack's entries from the kubeconfig file, and show which were removed.

    Args:
        kubeconfig_file: value of --file; None means the file that kubectl would use.
        context_name: the context whose entries are removed; empty means every context of the stack.
    """
    from cfngen.deploy.access.kubeconfig import EntryOwner, KubeconfigChange, remove_entries
    from cfngen.deploy.access.kubeconfig_file import edit_file

    # Entries of a sandbox contain the account number of the sandbox, which differs from every real account's.
    account_number = target.connect().id if target.sandbox else target.account_number
    stack_owner = EntryOwner(account_number, target.region, target.stack_name)
    file = _file_to_change(kubeconfig_file)
    removed_names: Sequence[str] = ()

    def remove_from_text(text: str) -> str:
        nonlocal removed_names
        new_text, removed_names = remove_entries(text, stack_owner, name=context_name)
        return new_text

    changed = edit_file(file, remove_from_text)
    target.show(
        KubeconfigChange(
            action="removed" if changed else "none",
            stack=stack_owner.stack,
            region=stack_owner.region,
            path=str(file),
            names=tuple(removed_names),
        )
    )


def _file_to_change(kubeconfig_file: Path | None) -> Path:
    from cfngen.deploy.access.kubeconfig_file import find_path

    return kubeconfig_file if kubeconfig_file is not None else find_path(os.environ, Path.home())
