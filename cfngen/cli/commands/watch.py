"""`cfngen watch`: attach to an operation that is under way."""

from __future__ import annotations

import click

from cfngen.cli.failures import ending
from cfngen.cli.screen import screen
from cfngen.cli.target import Target, target_options
from cfngen.cli.terminal import examples


@click.command(
    "watch",
    short_help="Attach to an operation that is under way.",
    epilog=examples("cfngen watch", "cfngen watch --stack-name prod --output json"),
)
@target_options
@click.pass_context
def command(context: click.Context, target: Target) -> None:
    """Watch the stack's operation that is under way, whoever began it, until it ends.

    Exits as `cfngen deploy` would have: 0 if the operation succeeded, 1 if it failed, 6 if you leave before its end.
    """
    from cfngen.deploy.failures import aws_errors
    from cfngen.deploy.removal import remains
    from cfngen.deploy.stacks import existing, find
    from cfngen.deploy.status import Standing
    from cfngen.deploy.watching.diagnosis import diagnose
    from cfngen.deploy.watching.watch import watch

    account = target.connect()
    with aws_errors(), screen(target, account) as shown:
        began = account.clock.now()
        stack = existing(account, target.stack_name)
        outcome = watch(account, stack.id, report=shown.report, interrupted=shown.interrupted)
        if not outcome.succeeded and not outcome.detached:
            shown.report(diagnose(account, stack.id))
        now = find(account, stack.id) or stack
        if now.status.standing is Standing.DEAD and not outcome.detached:
            remains.of_creation(account, now, target.cluster.name, shown.report)
        seconds = (account.clock.now() - began).total_seconds()
        finished = outcome.finished(outcome.action, now, seconds)
        shown.report(finished)
    context.exit(ending(finished))
