"""`cfngen delete`: delete a cluster, including the AWS resources that Kubernetes created for it."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import echo, examples_epilog, progress_line
from cfngen.cli.exit_codes import SUCCESS, operation_exit_code
from cfngen.cli.input.options import Option, OptionGroup, yes_option
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.several_clusters.command import SeveralClustersCommand, parallel_option

if TYPE_CHECKING:
    from cfngen.cli.display.screen import Screen
    from cfngen.cluster.model import Cluster
    from cfngen.deploy.aws.account import Account
    from cfngen.deploy.messages.message import Consent, Question, Report
    from cfngen.deploy.operations.deletion.kubernetes import DeleteServices
    from cfngen.deploy.plan.deletion.plan import AuthorityCopy, CopyMethod, DeletionRequest


@dataclass(frozen=True)
class _DeletionOptions:
    """The values of the options of `cfngen delete` that say what is deleted, and when the command exits.

    Attributes:
        bucket: name of the bucket of the templates; empty means cfngen's own bucket.
    """

    delete_volumes: bool
    delete_snapshots: bool
    empty_bucket: bool
    delete_bucket: bool
    bucket: str
    even_if_occupied: bool
    leave_behind: bool
    detach: bool

    def __post_init__(self) -> None:
        # Volumes and templates are deleted after the stack. With --detach, cfngen has exited by then.
        deletes_after_stack = self.delete_volumes or self.delete_snapshots or self.empty_bucket or self.delete_bucket
        if self.detach and deletes_after_stack:
            raise click.UsageError(
                "--detach exits before volumes and templates can be deleted; remove --detach, or the options for them."
            )

    def request(self, target: Target, account: Account, authorities: AuthorityCopy | None) -> DeletionRequest:
        """Return the request to delete the target's cluster.

        Args:
            authorities: how to keep a copy of the certificate authorities; None means that the user is asked.
        """
        from cfngen.cluster.iam.service_accounts import accounts_with_made_roles, role_name
        from cfngen.cluster.sections.references import known_id
        from cfngen.deploy.plan.deletion.plan import DeletionRequest
        from cfngen.deploy.plan.publishing.bucket import default_name as default_bucket_name

        network = target.cluster.network
        return DeletionRequest(
            stack_name=target.stack_name,
            cluster=target.cluster.name,
            vpc_id=known_id(network.vpc.id) or "",  # `_with_referenced_vpc` looks up what a reference leads to
            # By this range, routes that Kubernetes made for pods are told from other routes.
            pod_cidr=str(network.pod_cidr),
            role_names=tuple(
                role_name(target.cluster, account) for _, account in accounts_with_made_roles(target.cluster)
            ),
            delete_volumes=self.delete_volumes,
            delete_snapshots=self.delete_snapshots,
            empty_bucket=self.empty_bucket,
            delete_bucket=self.delete_bucket,
            bucket=self.bucket or default_bucket_name(account),
            even_if_occupied=self.even_if_occupied,
            leave_behind=self.leave_behind,
            detach=self.detach,
            authorities=authorities,
        )


_deletion_options = OptionGroup(
    "options",
    _DeletionOptions,
    Option(
        "--delete-volumes",
        is_flag=True,
        help="Also delete the EBS volumes of PersistentVolumeClaims, with all their data.",
    ),
    Option("--delete-snapshots", is_flag=True, help="Also delete the EBS snapshots of PersistentVolumeClaims."),
    Option("--empty-bucket", is_flag=True, help="Also delete all versions of this cluster's templates in the bucket."),
    Option("--delete-bucket", is_flag=True, help="Also delete the bucket, if it is empty afterwards."),
    Option("--bucket", metavar="NAME", default="", help="S3 bucket of the templates. Default: cfngen's own bucket."),
    Option("--even-if-occupied", is_flag=True, help="Continue even if other resources use the cluster's network."),
    Option("--leave-behind", is_flag=True, help="When no attempt is left, keep what cannot be deleted, and list it."),
    Option("--detach", is_flag=True, help="Exit once CloudFormation has started; do not look for leftovers."),
)


@click.command(
    "delete",
    cls=SeveralClustersCommand,
    short_help="Delete the cluster and what Kubernetes created for it.",
    epilog=examples_epilog(
        "cfngen delete --dry-run                    what would be deleted or kept, and what blocks it",
        "cfngen delete",
        "cfngen delete --delete-volumes --yes       also volumes of claims; never asks",
        "cfngen delete --empty-bucket               also the cluster's templates in S3",
        "cfngen delete --leave-behind --yes         keep what CloudFormation cannot delete",
        "cfngen delete --authorities file           keep the certificate authorities in a file",
    ),
)
@deployed_target_options
@click.option("--dry-run", is_flag=True, help="Only show what would be deleted, and what blocks the deletion.")
@yes_option("Do not ask to type the cluster's name.")
@parallel_option
@_deletion_options
@click.option(
    "--authorities",
    type=click.Choice(("file", "recovery-window", "destroy")),
    help="Keep a copy of the certificate authorities in a file, in a secret that can be restored for 30 days, or not "
    "at all. Without a copy, no snapshot of etcd can be restored. Default: ask; with --yes, recovery-window.",
)
@click.option(
    "--authorities-file",
    metavar="FILE",
    type=PathArgument("give a file name"),
    help="File for --authorities file. Default: NAME-authorities.json, where NAME is the cluster's name.",
)
@click.option(
    "--no-drain", is_flag=True, help="Do not ask Kubernetes to delete its load balancers; delete them through AWS."
)
@click.pass_context
def command(
    context: click.Context,
    *,
    target: Target,
    options: _DeletionOptions,
    dry_run: bool,
    yes: bool,
    no_drain: bool,
    authorities: CopyMethod | None,
    authorities_file: Path | None,
) -> None:
    """Delete the resources that Kubernetes created, which would block the deletion of the network, and then the stack.

    The command shows what will be deleted, what will be kept and why, and asks you to type the cluster's name. Then
    Kubernetes deletes the load balancers of its Services. cfngen deletes the remaining load balancers, security groups
    and network interfaces with the cluster's tags. Volumes of claims are kept, unless you use --delete-volumes. At the
    end the command lists what is left in your account, what it costs, and how to delete it.

    If the command is interrupted or fails, run it again: it continues, even if the stack is already deleted.
    """
    if authorities_file and authorities not in ("file", None):
        raise click.UsageError(f"--authorities {authorities} writes no file; remove --authorities-file.")
    from cfngen.deploy.aws.errors import translate_aws_errors
    from cfngen.deploy.operations.deletion.execution import delete
    from cfngen.deploy.plan.deletion.plan import AuthorityCopy
    from cfngen.deploy.watching.diagnosis import diagnose

    account = target.connect()
    copy_file = authorities_file or Path(f"{target.cluster.name}-authorities.json")
    copy_method: CopyMethod | None = "file" if authorities_file else authorities
    request = options.request(target, account, AuthorityCopy(copy_method, copy_file) if copy_method else None)
    with screen(target, account) as display:
        request = _with_referenced_vpc(account, request, target.cluster, display.report)
        if dry_run:
            _show_preview(account, request, display)
            context.exit(SUCCESS)
        deleted = delete(
            account,
            request,
            display.interaction(_deletion_consent(target, yes=yes)),
            delete_services=None if no_drain else _service_deletion_function(target, account),
            choose_authority_copy=lambda: _ask_copy_method(display, copy_file, yes=yes),
        )
        if deleted.status and not deleted.in_progress:
            with translate_aws_errors():
                display.report(diagnose(account, deleted.stack_id))
        display.report(deleted)
    context.exit(operation_exit_code(deleted))


def _show_preview(account: Account, request: DeletionRequest, display: Screen) -> None:
    from cfngen.deploy.operations.deletion.execution import preview_with_refusal

    with progress_line("looking for resources …"):
        plan, refusal = preview_with_refusal(account, request)
    display.report(plan)
    if refusal:
        raise refusal


def _with_referenced_vpc(
    account: Account, request: DeletionRequest, cluster: Cluster, report: Report
) -> DeletionRequest:
    """Return the request with the id of the VPC, if the cluster file has a reference to it and no stack has the id.

    The stack records the id, but an earlier run of the command may have deleted the stack.
    """
    from cfngen.deploy.aws.errors import translate_aws_errors
    from cfngen.deploy.aws.stacks import find_last_deleted, find_stack
    from cfngen.deploy.messages.message import Notice
    from cfngen.deploy.preflight.references import UnresolvedReferenceError, resolve_vpc

    if request.vpc_id or not cluster.network.vpc.id:
        return request
    with translate_aws_errors():
        stack = find_stack(account, request.stack_name) or find_last_deleted(
            account, request.stack_name, request.cluster
        )
    if stack and stack.values.get("VpcId"):
        return request
    try:
        return replace(request, vpc_id=resolve_vpc(account, cluster))
    except UnresolvedReferenceError as error:
        text = f"the VPC is not searched for leftovers such as network interfaces, since its id is not known: {error}"
        report(Notice(text, "enter the id of the VPC as network.vpc.id, and run the command again."))
        return request


def _deletion_consent(target: Target, *, yes: bool) -> Consent:
    """Return a function that asks for consent; --yes agrees to the deletion, but not to dangers found during it."""
    ask_unless_yes = target.consent(yes=yes, allow_danger=yes)
    always_ask = target.consent(yes=False)

    def answer(question: Question) -> bool:
        # The question whether to delete the cluster asks for its name.
        if question.name or not question.dangerous:
            return ask_unless_yes(question)
        # A danger appeared during the deletion. Without a terminal the answer is no: the stack stays unchanged.
        has_terminal = bool(sys.stdin and sys.stdin.isatty())
        return has_terminal and always_ask(question)

    return answer


def _ask_copy_method(display: Screen, copy_file: Path, *, yes: bool) -> AuthorityCopy:
    """Ask how to keep a copy of the certificate authorities, and return the answer.

    With --yes, or without a terminal to ask on, the copy is kept in a secret that can be restored for some time.
    """
    from cfngen.deploy.plan.deletion.plan import AuthorityCopy
    from cfngen.deploy.plan.deletion.remaining_buckets_keys_and_logs import RECOVERY_WINDOW_DAYS

    display.close()
    if yes or not (sys.stdin and sys.stdin.isatty()):
        return AuthorityCopy("recovery-window")
    echo(
        "The secret with the certificate authorities is deleted, too. Without a copy, no snapshot can be restored:\n"
        f"  f  keep a copy in {copy_file}, which only you can read\n"
        f"  r  keep a copy in a secret that can be restored for {RECOVERY_WINDOW_DAYS} days\n"
        "  d  keep no copy",
        err=True,
    )
    method_by_letter: dict[str, CopyMethod] = {"f": "file", "r": "recovery-window", "d": "destroy"}
    letter = click.prompt("Choose", type=click.Choice(tuple(method_by_letter)), default="r", err=True)
    return AuthorityCopy(method_by_letter[letter], copy_file)


def _service_deletion_function(target: Target, account: Account) -> DeleteServices:
    """Return a function that deletes the Services with load balancers, and waits until Kubernetes has deleted these.

    The function takes a function that shows messages, and returns what `delete_load_balancer_services` returns.
    """

    def delete_services(report: Report) -> tuple[str, ...]:
        from cfngen.deploy.access import cluster_access
        from cfngen.deploy.aws import stacks
        from cfngen.deploy.operations.deletion.kubernetes import delete_load_balancer_services

        stack = stacks.require_root_stack(account, target.stack_name)
        outputs = stacks.read_outputs(account, stack)
        endpoint = cluster_access.find_api_endpoint(stack, outputs, target.kubernetes_override)
        authority = cluster_access.find_authority(account, stack, outputs)
        with cluster_access.connect_as_administrator(
            endpoint, authority, account.caller, account.clock.now()
        ) as kubernetes:
            return delete_load_balancer_services(kubernetes, account.clock, report)

    return delete_services
