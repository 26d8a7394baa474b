"""`cfngen watch`: attach to an operation in progress."""

from __future__ import annotations

import click

from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.exit_codes import operation_exit_code
from cfngen.cli.input.target import Target, target_options


@click.command(
    "watch",
    short_help="Attach to an operation in progress.",
    epilog=examples_epilog("cfngen watch", "cfngen watch --stack-name prod --output json"),
)
@target_options
@click.pass_context
def command(context: click.Context, target: Target) -> None:
    """Watch the stack's operation in progress, whoever started it, until it ends.

    If you have detached from `cfngen deploy`, this completes it: after success the stack is protected as requested.

    Exits like `cfngen deploy`: 0 if the operation succeeded, 1 if it failed, 6 if you detach before its end.
    """
    from cfngen.deploy.operations.deployment.attaching import attach

    account = target.connect()
    with screen(target, account) as display:
        finished = attach(
            account, target.stack_name, target.cluster.name, display.interaction(target.consent(yes=False))
        )
        display.report(finished)
    context.exit(operation_exit_code(finished))
