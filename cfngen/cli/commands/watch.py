"""`cfngen watch`: attach to an operation in progress."""

from __future__ import annotations

from functools import partial

import click

from cfngen.cli import verification
from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.verification import verify_option


@click.command(
    "watch",
    short_help="Attach to an operation in progress.",
    epilog=examples_epilog("cfngen watch", "cfngen watch --stack-name prod --output json"),
)
@deployed_target_options
@verify_option
@click.pass_context
def command(context: click.Context, target: Target, *, verify: bool) -> None:
    """Watch the stack's operation in progress, whoever started it, until it ends.

    If you have detached from `cfngen deploy`, this completes it: after success the stack is protected as requested.

    Exits like `cfngen deploy`: 0 if the operation succeeded, 1 if it failed, 2 if it succeeded but the cluster does not
    work, 6 if you detach before its end.
    """
    from cfngen.deploy.operations.deployment.attaching import attach
    from cfngen.deploy.operations.deployment.quorum import add_control_plane

    account = target.connect()
    with screen(target, account) as display:
        finished = attach(
            account,
            target.stack_name,
            target.cluster.name,
            display.interaction(target.consent(yes=False)),
            complete=partial(add_control_plane, account, target.cluster, target.kubernetes_override),
        )
        display.report(finished)
        exit_code = verification.check_at_end(target, account, display, finished, verify=verify)
    context.exit(exit_code)
