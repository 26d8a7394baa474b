"""`cfngen plan`: show what a deployment would change."""

from __future__ import annotations

import click

from cfngen.cli.deployment import DeploymentOptions, deployment_options
from cfngen.cli.exit_codes import plan_exit_code
from cfngen.cli.screen import screen
from cfngen.cli.target import Target, target_options
from cfngen.cli.terminal import examples_epilog


@click.command(
    "plan",
    short_help="Show what a deployment would change.",
    epilog=examples_epilog(
        "cfngen plan",
        "cfngen plan -f prod.yaml --profile prod",
        "cfngen plan --parameter ApiAllowedCidr=203.0.113.7/32",
        "cfngen plan --output json | jq 'select(.type == \"plan\").stacks'",
        "cfngen plan --full           with long values whole",
        "cfngen plan --prices prices.yaml",
        "cfngen plan --sandbox        without an AWS account",
    ),
)
@target_options
@deployment_options
@click.pass_context
def command(context: click.Context, target: Target, deployment: DeploymentOptions) -> None:
    """Show what a deployment would change in the cluster's stacks, and what that means for the cluster.

    The templates are generated, linted and uploaded, and CloudFormation computes the changes with a change set, which
    is deleted afterwards. The plan distinguishes resources that will be replaced from those that might be.

    Exits with 0 if there is nothing to do, 4 if there are changes, and 5 if some of them may lose data, addresses or
    the cluster.
    """
    request = deployment.request(target)
    from cfngen.deploy.operation import plan

    account = target.connect()
    with screen(target, account, full=deployment.full) as display:
        result = plan(account, request, display.interaction(target.consent(yes=False)))
        display.report(result)
    context.exit(plan_exit_code(result))
