"""`cfngen resume`: start a paused cluster again."""

from __future__ import annotations

from datetime import timedelta

import click

from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.options import wait_option, yes_option
from cfngen.cli.input.target import Target, deployed_target_options


@click.command(
    "resume",
    short_help="Start a paused cluster again.",
    epilog=examples_epilog(
        "cfngen resume",
        "cfngen resume --yes && cfngen validate cluster --wait 5m",
        "cfngen resume --yes --wait 0s      launch everything, and wait for nothing",
    ),
)
@deployed_target_options
@yes_option("Do not ask.")
@wait_option(
    "How long to wait for the masters, and then for the nodes; 0s waits for nothing. Default: the time limit for "
    "booting an instance, plus 15 minutes."
)
def command(target: Target, *, yes: bool, timeout: timedelta | None) -> None:
    """Give the Auto Scaling groups the sizes that they had before `cfngen pause`, and wait until the cluster works.

    Masters come first; nodes follow once the API server and etcd are healthy. A group whose sizes somebody has changed
    during the pause keeps those.

    If the command is interrupted or fails, run it again: it continues. It also ends a pause that was interrupted.
    """
    from cfngen.deploy.operations.pausing.resume import resume

    account = target.connect()
    with screen(target, account) as display:
        interaction = display.interaction(target.consent(yes=yes))
        display.report(
            resume(
                account,
                target.stack_name,
                target.cluster,
                interaction,
                find_url_override=target.kubernetes_override,
                timeout=timeout,
            )
        )
