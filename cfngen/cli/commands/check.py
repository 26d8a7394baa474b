"""`cfngen check`: look at what a cluster is to be created in, before anything is created."""

from __future__ import annotations

import click

from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.exit_codes import network_check_exit_code
from cfngen.cli.input.target import Target, target_options
from cfngen.cli.usage import SuggestingGroup


@click.group(
    "check",
    cls=SuggestingGroup,
    short_help="Check an existing network before a deployment.",
    epilog=examples_epilog("cfngen check network", "cfngen check network -f prod.yaml --output json"),
)
def command() -> None:
    """Check what exists in the account already and the cluster is to be created in. Nothing is changed."""


@command.command(
    "network",
    short_help="Check the existing VPC and what is in it.",
    epilog=examples_epilog(
        "cfngen check network",
        "cfngen check network -f prod.yaml --profile prod",
        "cfngen check network --output json | jq -r '.findings[] | select(.severity == \"problem\").commands[]'",
    ),
)
@target_options
@click.pass_context
def network(context: click.Context, target: Target) -> None:
    """Look at the existing VPC of the cluster file: its subnets, routes, gateways, endpoints, ACLs and security groups.

    Each finding names the key of the cluster file, what to do, and the command of the AWS CLI for it. Nothing is
    changed. `cfngen plan` and `cfngen deploy` do the same before they create a cluster in an existing VPC, and before
    each update with existing security groups.

    Exits with 0 if there is no problem (there may be warnings), 2 if there is one, 1 if the VPC could not be read.
    """
    from cfngen.deploy.preflight.network.checks import check_network

    result = check_network(target.connect(with_existing_parts=True), target.cluster, target.show)
    target.show(result)
    context.exit(network_check_exit_code(has_problems=bool(result.problems)))
