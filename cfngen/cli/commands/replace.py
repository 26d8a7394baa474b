"""`cfngen replace`: replace one instance, a master's also by one of another type."""

from __future__ import annotations

from datetime import timedelta

import click

from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.options import wait_option, yes_option
from cfngen.cli.input.target import Target, deployed_target_options


@click.command(
    "replace",
    short_help="Replace one instance by a new one.",
    epilog=examples_epilog(
        "cfngen replace a                              the instance in the master slot a",
        "cfngen replace i-0123456789abcdef0            a node, drained first, or a master",
        "cfngen replace a --instance-type m6i.large    its own type is sold out in the zone",
    ),
)
@click.argument("instance", metavar="INSTANCE|SLOT")
@deployed_target_options
@click.option(
    "--instance-type",
    metavar="TYPE",
    default="",
    help="Masters: launch this type from now on, of the same architecture. The next deployment that changes the master "
    "goes back to the type of the cluster file.",
)
@yes_option("Do not ask before the instance is terminated.")
@wait_option(
    "How long to wait for the new instance. Default: the time limits for draining and booting an instance, plus "
    "15 minutes.",
    minimum=timedelta(seconds=1),
)
def command(target: Target, instance: str, instance_type: str, yes: bool, timeout: timedelta | None) -> None:
    """Terminate an instance, and wait until the new one that its Auto Scaling group launches works.

    INSTANCE is the id of a master, of a node or of the bastion; SLOT is the letter of a master's slot, which also names
    a master whose instance is gone. A new master has the address, the data volume and the etcd member of the old one. A
    master is refused if etcd would lose its quorum.

    If the command is interrupted or fails, run it again: it continues to wait, and terminates nothing twice.
    """
    from cfngen.deploy.operations.replacing.replace import replace

    account = target.connect()
    with screen(target, account) as display:
        interaction = display.interaction(target.consent(yes=yes, allow_danger=yes))
        result = replace(
            account,
            target.stack_name,
            target.cluster,
            instance,
            instance_type=instance_type,
            consent=interaction.consent,
            report=interaction.report,
            find_url_override=target.kubernetes_override,
            timeout=timeout,
        )
        display.report(result)
