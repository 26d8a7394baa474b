"""`cfngen deploy`: create or update a cluster."""

from __future__ import annotations

from datetime import timedelta

import click

from cfngen.cli import verification
from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.api_range import with_api_range
from cfngen.cli.input.deployment import DeploymentOptions, deployment_options
from cfngen.cli.input.options import allow_danger_option, yes_option
from cfngen.cli.input.target import Target, target_options
from cfngen.cli.several_clusters.command import SeveralClustersCommand, canary_option, parallel_option
from cfngen.cli.verification import verify_option


@click.command(
    "deploy",
    cls=SeveralClustersCommand,
    short_help="Create or update the cluster.",
    epilog=examples_epilog(
        "cfngen deploy",
        "cfngen deploy -f prod.yaml --profile prod --account 123456789012",
        "cfngen deploy --yes --output json        in a pipeline: never asks, one JSON object a line",
        "cfngen deploy --on-failure keep          keep what failed, to inspect it",
        "cfngen deploy --sandbox                  without an AWS account",
        "cfngen deploy -f clusters/ --canary clusters/trial.yaml --yes",
    ),
)
@target_options
@deployment_options
@yes_option("Do not ask, unless data, addresses or the cluster may be lost.")
@allow_danger_option
@click.option(
    "--protect/--no-protect", default=True, show_default=True, help="Turn on the stack's termination protection."
)
@verify_option
@canary_option
@parallel_option
@click.pass_context
def command(
    context: click.Context,
    *,
    target: Target,
    deployment: DeploymentOptions,
    yes: bool,
    allow_danger: bool,
    protect: bool,
    verify: bool,
) -> None:
    """Generate, lint and upload the templates, show the plan, ask for consent, and create or update the stacks.

    You can repeat it at any time: if there is nothing to change, it says so, and checks the cluster. Ctrl-C asks
    whether to continue watching, to detach while CloudFormation continues (`cfngen watch` attaches again), or to
    cancel.

    On a terminal, it asks who may reach the Kubernetes API if neither api.allowedCidrs in the cluster file nor the
    parameter ApiAllowedCidr says it, and offers to write it into the file. With --yes it does not ask.

    Exits with 2 if the stacks are deployed but the cluster does not work. If the Kubernetes API cannot be reached from
    here, that is only reported.
    """
    request = deployment.request(target, protect=protect)
    from cfngen.cluster.network.network_plugins import awaits_plugin_of_user
    from cfngen.deploy.operations.deployment.deploy import deploy

    account = target.connect(with_existing_parts=True)
    with screen(target, account, full=deployment.full) as display:
        interaction = display.interaction(target.consent(yes=yes, allow_danger=allow_danger))
        finished = with_api_range(
            lambda request: deploy(account, request, interaction),
            request,
            target,
            display.report,
            may_ask=not yes,
            request_of=lambda target: deployment.request(target, protect=protect),
        )
        display.report(finished)
        # What was not changed does not have to settle, and nothing does before the user installs a network plug-in.
        is_settled = finished.action == "none" or (
            finished.action == "create" and awaits_plugin_of_user(target.cluster)
        )
        settling_time = timedelta(0) if is_settled else verification.SETTLING_TIME
        exit_code = verification.check_at_end(target, account, display, finished, settling_time, verify=verify)
    context.exit(exit_code)
