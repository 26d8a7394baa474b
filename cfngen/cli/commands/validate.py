"""`cfngen validate`: check whether a deployed cluster works."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import click

from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.exit_codes import validation_exit_code
from cfngen.cli.input.options import wait_option
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.several_clusters.command import SeveralClustersCommand


@click.command(
    "validate",
    cls=SeveralClustersCommand,
    short_help="Check whether the deployed cluster works.",
    epilog=examples_epilog(
        "cfngen validate cluster",
        "cfngen validate cluster --wait 10m && kubectl apply -f app.yaml",
        "cfngen validate cluster --output json",
    ),
)
@click.argument("what", metavar="[cluster]", type=click.Choice(("cluster",)), default="cluster")
@deployed_target_options
@wait_option(
    "Repeat the check until the cluster is valid, at most this long, e.g. 10m. Only changes are shown meanwhile."
)
@click.pass_context
def command(context: click.Context, what: str, target: Target, timeout: timedelta | None) -> None:
    """Check the stack, the Auto Scaling groups and the Kubernetes API, and list the problems.

    A cluster is valid when every instance of every group is in service and a Ready Node, no other Node is NotReady, the
    API server and the cluster's own pods are ready, and versions are those of the cluster file. Parameters of the stack
    that differ from the cluster file are named, too.

    Exits with 0 if it is valid, 2 if it is not, 1 if that could not be determined.
    """
    from cfngen.deploy.status.validation import validate, wait_until_valid

    account = target.connect()
    validate_now = partial(
        validate,
        account,
        target.stack_name,
        target.cluster,
        find_url_override=target.kubernetes_override,
        file_values=lambda: target.file_values,
    )
    verdict = wait_until_valid(validate_now, account.clock, timeout or timedelta(0), target.show)
    target.show(verdict)
    context.exit(validation_exit_code(valid=verdict.valid))
