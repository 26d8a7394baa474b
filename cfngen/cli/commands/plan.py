"""`cfngen plan`: show what a deployment would change."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING

import click

from cfngen.cli.display import pictures
from cfngen.cli.display.pictures import write_plan_graph
from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.exit_codes import PLAN_HAS_CHANGES, plan_exit_code
from cfngen.cli.input.api_range import with_api_range
from cfngen.cli.input.deployment import DeploymentOptions, deployment_options, given_options
from cfngen.cli.input.paths import PathArgument
from cfngen.cli.input.target import Target, target_options
from cfngen.cli.render.plan import next_lines
from cfngen.cli.several_clusters.command import SeveralClustersCommand
from cfngen.hints import CommandText, Hint

if TYPE_CHECKING:
    from cfngen.deploy.messages.message import Message
    from cfngen.deploy.operations.interaction import Interaction


@click.command(
    "plan",
    cls=SeveralClustersCommand,
    short_help="Show what a deployment would change.",
    epilog=examples_epilog(
        "cfngen plan",
        "cfngen plan -f prod.yaml --profile prod",
        "cfngen plan --output json | jq 'select(.type == \"plan\").stacks'",
        "cfngen plan --full           with long values whole",
        "cfngen plan --prices prices.yaml",
        "cfngen plan --graph plan.html    a picture of what is added, changed, replaced and removed",
        "cfngen plan --sandbox        without an AWS account",
    ),
)
@target_options
@deployment_options
@click.option(
    "--graph",
    "graph_path",
    metavar="FILE",
    type=PathArgument("give a file whose name ends in .svg, .html, .mmd or .dot"),
    help="Also write a picture of the cluster, in which what is added, changed, replaced and removed has colours; the "
    "suffix says the format: .svg, .html, .mmd, .dot.",
)
@click.option(
    "--create-bucket",
    is_flag=True,
    help="Create cfngen's own bucket for templates, if there is none yet, without asking. CloudFormation reads the "
    "templates of a plan from there.",
)
@click.pass_context
def command(
    context: click.Context,
    target: Target,
    deployment: DeploymentOptions,
    graph_path: Path | None,
    create_bucket: bool,
) -> None:
    """Show what a deployment would change in the cluster's stacks, and what that means for the cluster.

    The templates are generated, linted and uploaded, and CloudFormation computes the changes with a change set, which
    is deleted afterwards. The plan distinguishes resources that will be replaced from those that might be.

    The templates stay in the bucket of --bucket, or in cfngen's own. If that does not exist yet, the command asks on a
    terminal whether to create it; elsewhere it needs --create-bucket. It ends by saying what it has left there.

    On a terminal, it asks who may reach the Kubernetes API if neither api.allowedCidrs in the cluster file nor the
    parameter ApiAllowedCidr says it.

    Exits with 0 if there is nothing to do, 4 if there are changes, and 5 if some of them may lose data, addresses or
    the cluster.
    """
    if graph_path is not None:
        pictures.require_writable(graph_path)
        pictures.format_of(graph_path)
    request = deployment.request(target)
    from cfngen.deploy.messages.message import Notice
    from cfngen.deploy.operations.deployment.deploy import prepare_plan
    from cfngen.deploy.operations.recovery import FailedCreationError

    account = target.connect(with_existing_parts=True)
    pauses: list[Message] = []
    with screen(target, account, full=deployment.full) as display:
        # An emulated account ends with its process.
        consent = target.consent(yes=create_bucket or target.sandbox, flag="--create-bucket")
        interaction = _noting_pauses(display.interaction(consent), pauses)
        try:
            request, preparation = with_api_range(
                lambda request: (request, prepare_plan(account, request, interaction)),
                request,
                target,
                display.report,
                may_ask=True,
                request_of=deployment.request,
            )
        except FailedCreationError as failure:
            if graph_path is not None:
                display.report(Notice("no picture is written, since the cluster must be created again first"))
            display.report(failure.plan)
            context.exit(PLAN_HAS_CHANGES)
        result = preparation.plan
        if graph_path is not None:
            write_plan_graph(graph_path, account, request, preparation, interaction)
        display.report(result)
        if preparation.left_behind and not target.sandbox:
            display.report(preparation.left_behind)
    if not target.json:
        for line in next_lines(result, tuple(given_options(context)), is_paused=bool(pauses)):
            echo(target.render_hint(line))
    context.exit(plan_exit_code(result))


def _noting_pauses(interaction: Interaction, pauses: list[Message]) -> Interaction:
    """Return the interaction; the notice that the cluster is paused is also appended to a list."""
    from cfngen.deploy.messages.message import Notice

    def report(message: Message) -> None:
        if isinstance(message, Notice) and "resume" in _commands_of(message.hint):
            pauses.append(message)
        interaction.report(message)

    return dataclasses.replace(interaction, report=report)


def _commands_of(hint: Hint) -> list[str]:
    return [command.name for command in hint.commands] if isinstance(hint, CommandText) else []
