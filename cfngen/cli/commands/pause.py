"""`cfngen pause`: stop all instances of a cluster for a while."""

from __future__ import annotations

from datetime import timedelta

import click

from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.options import wait_option, yes_option
from cfngen.cli.input.target import Target, deployed_target_options


@click.command(
    "pause",
    short_help="Stop all instances for a while, e.g. overnight.",
    epilog=examples_epilog(
        "cfngen pause",
        "cfngen pause --yes                 never asks, e.g. in a nightly job",
        "cfngen resume                      starts the cluster again",
    ),
)
@deployed_target_options
@click.option("--no-snapshot", is_flag=True, help="Do not take a snapshot of etcd first.")
@yes_option("Do not ask.")
@wait_option(
    "How long to wait until the nodes are terminated, and then the masters.",
    default="30m",
    minimum=timedelta(minutes=1),
)
def command(target: Target, *, no_snapshot: bool, yes: bool, timeout: timedelta) -> None:
    """Terminate all instances, nodes first and masters last, and keep the sizes of their groups.

    Each Auto Scaling group gets the sizes 0, also as its maximum, so that cluster-autoscaler launches nothing; the
    former sizes are kept in the tag `cfngen:paused` of the group. Data of etcd and of claims, addresses and load
    balancers stay. At the end the command lists what AWS still charges for. `cfngen resume` starts the cluster again;
    until then `cfngen deploy` is refused.

    If the command is interrupted or fails, run it again: it continues.
    """
    from cfngen.deploy.operations.pausing.pause import pause

    account = target.connect()
    with screen(target, account) as display:
        interaction = display.interaction(target.consent(yes=yes))
        display.report(
            pause(account, target.stack_name, target.cluster, interaction, snapshot=not no_snapshot, timeout=timeout)
        )
