"""`cfngen delete`: delete a cluster, including the AWS resources that Kubernetes created for it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from cfngen.cli.exit_codes import SUCCESS, operation_exit_code
from cfngen.cli.paths import PathArgument
from cfngen.cli.screen import screen
from cfngen.cli.target import Target, target_options
from cfngen.cli.terminal import examples, progress

if TYPE_CHECKING:
    from cfngen.cli.screen import Screen
    from cfngen.deploy.account import Account
    from cfngen.deploy.deletion.authority_copies import AuthorityCopy, CopyMethod
    from cfngen.deploy.deletion.plan import DeletionRequest
    from cfngen.deploy.deletion.service_deletion import DeleteServices
    from cfngen.deploy.messages import Consent, Question, Report


@click.command(
    "delete",
    short_help="Delete the cluster, and what Kubernetes made for it.",
    epilog=examples(
        "cfngen delete --dry-run                    what would go, what would stay, and what is in the way",
        "cfngen delete",
        "cfngen delete --delete-volumes --yes       claims' volumes too; never asks",
        "cfngen delete --empty-bucket               and the cluster's templates in S3",
        "cfngen delete --leave-behind --yes         give up what CloudFormation cannot delete",
        "cfngen delete --authorities file           keep the certificate authorities in a file",
    ),
)
@target_options
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted, and why it could not be.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask for the cluster's name.")
@click.option("--delete-volumes", is_flag=True, help="Delete the EBS volumes of claims too, with all data in them.")
@click.option("--delete-snapshots", is_flag=True, help="Delete the EBS snapshots of claims too.")
@click.option("--empty-bucket", is_flag=True, help="Delete every version of this cluster's templates in the bucket.")
@click.option("--delete-bucket", is_flag=True, help="Delete the bucket too, if nothing is left in it.")
@click.option("--bucket", metavar="NAME", default="", help="Bucket of the templates. Default: cfngen's own.")
@click.option("--even-if-occupied", is_flag=True, help="Go on though others use the cluster's network.")
@click.option("--leave-behind", is_flag=True, help="After three tries, leave what cannot be deleted; it is listed.")
@click.option("--detach", is_flag=True, help="Leave once CloudFormation has begun; leftovers are then not looked for.")
@click.option(
    "--authorities",
    type=click.Choice(("file", "recovery-window", "destroy")),
    help="Keep a copy of the certificate authorities in a file, or in a secret that can be brought back for 30 days, "
    "or none: snapshots are worth nothing without it. Default: ask; with --yes, recovery-window.",
)
@click.option(
    "--authorities-file",
    metavar="FILE",
    type=PathArgument("name a file"),
    help="The file of --authorities file. Default: NAME-authorities.json, for the cluster's name.",
)
@click.option("--no-drain", is_flag=True, help="Do not ask Kubernetes to delete its load balancers; AWS is told to.")
@click.pass_context
def command(
    context: click.Context,
    /,
    target: Target,
    dry_run: bool,
    yes: bool,
    no_drain: bool,
    authorities: CopyMethod | None,
    authorities_file: Path | None,
    **options: Any,
) -> None:
    """Delete the stack, and first the resources that Kubernetes created, which would block the deletion of the network.

    It shows what will be deleted, what will be kept and why, and asks for the cluster's name. Then Kubernetes deletes
    the load balancers of its Services; remaining load balancers, security groups and network interfaces are deleted
    through AWS, by the cluster's tags. Volumes of claims are kept unless you say otherwise. At the end it lists what
    is left in your account, what that costs, and how to delete it.

    If it is interrupted or fails, run it again: it continues, even if the stack has been deleted in the meantime.
    """
    late_options = ("delete_volumes", "delete_snapshots", "empty_bucket", "delete_bucket")
    if options["detach"] and any(options[option] for option in late_options):
        raise click.UsageError("--detach leaves before volumes and templates can be deleted: leave one of them out.")
    if authorities_file and authorities not in ("file", None):
        raise click.UsageError(f"--authorities {authorities} writes no file: leave --authorities-file out.")
    from cfngen.deploy.aws_errors import translate_aws_errors
    from cfngen.deploy.deletion.authority_copies import AuthorityCopy
    from cfngen.deploy.deletion.execution import delete, preview_with_refusal
    from cfngen.deploy.publishing.bucket import default_name
    from cfngen.deploy.watching.diagnosis import diagnose

    account = target.connect()
    options["bucket"] = options["bucket"] or default_name(account)
    path = authorities_file or Path(f"{target.cluster.name}-authorities.json")
    method: CopyMethod | None = "file" if authorities_file else authorities
    request = _request(target, authorities=AuthorityCopy(method, path) if method else None, **options)
    with screen(target, account) as display:
        if dry_run:
            with progress("looking …"):
                plan, refusal = preview_with_refusal(account, request)
            display.report(plan)
            if refusal:
                raise refusal
            context.exit(SUCCESS)
        interaction = display.interaction(_consent(target, yes=yes))
        drain = None if no_drain else _drain_function(target, account)
        deleted = delete(
            account, request, interaction, drain=drain, choose=lambda: _ask_custody(display, path, yes=yes)
        )
        if deleted.status and not deleted.in_progress:
            with translate_aws_errors():
                display.report(diagnose(account, deleted.stack_id))
        display.report(deleted)
    context.exit(operation_exit_code(deleted))


def _request(target: Target, **options: Any) -> DeletionRequest:
    from cfngen.deploy.deletion.plan import DeletionRequest

    network = target.cluster.network
    return DeletionRequest(
        stack_name=target.stack_name,
        cluster=target.cluster.name,
        vpc_id=network.vpc.id or "",
        pod_cidr=str(network.pod_cidr),
        **options,
    )


def _consent(target: Target, *, yes: bool) -> Consent:
    """Return a function that asks for consent; --yes agrees to the deletion, but not to dangers found later."""
    ask_unless_yes, ask = target.consent(yes=yes, allow_danger=yes), target.consent(yes=False)

    def answer(question: Question) -> bool:
        if question.name or not question.dangerous:
            return ask_unless_yes(question)
        # In the middle of a deletion. Without a terminal the answer is no: the stack is left as it is and reported.
        return bool(sys.stdin and sys.stdin.isatty()) and ask(question)

    return answer


def _ask_custody(display: Screen, path: Path, *, yes: bool) -> AuthorityCopy:
    """Ask how to keep the certificate authorities; by default in a secret with a recovery window."""
    from cfngen.deploy.deletion.authority_copies import RECOVERY_WINDOW_DAYS, AuthorityCopy

    display.close()
    if yes or not (sys.stdin and sys.stdin.isatty()):
        return AuthorityCopy("recovery-window")
    click.echo(
        "The certificate authorities go with their secret. Without a copy no snapshot starts as this cluster again:\n"
        f"  f  keep a copy in {path}, which only you can read\n"
        f"  r  keep a copy in a secret that can be brought back for {RECOVERY_WINDOW_DAYS} days\n"
        "  d  destroy them",
        err=True,
    )
    methods: dict[str, CopyMethod] = {"f": "file", "r": "recovery-window", "d": "destroy"}
    letter = click.prompt("Which", type=click.Choice(tuple(methods)), default="r", err=True)
    return AuthorityCopy(methods[letter], path)


def _drain_function(target: Target, account: Account) -> DeleteServices:
    """Return a function that asks Kubernetes to delete its load balancers."""

    def ask_kubernetes(report: Report) -> tuple[str, ...]:
        from cfngen.deploy.access import cluster_access
        from cfngen.deploy.deletion.service_deletion import delete_load_balancer_services

        stack = cluster_access.find_root(account, target.stack_name)
        outputs = cluster_access.read_outputs(account, stack)
        endpoint = cluster_access.endpoint(stack, outputs, target.kubernetes_override)
        authority = cluster_access.find_authority(account, stack, outputs)
        with cluster_access.connection(endpoint, authority, account.caller, account.clock.now()) as kubernetes:
            return delete_load_balancer_services(kubernetes, account.clock, report)

    return ask_kubernetes
