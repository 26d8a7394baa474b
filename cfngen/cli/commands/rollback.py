"""`cfngen rollback`: out of a failed update, back to the last good state."""

from __future__ import annotations

import click

from cfngen.cli.failures import DONE, FAILED, GOES_ON
from cfngen.cli.screen import screen
from cfngen.cli.target import Target, target_options
from cfngen.cli.terminal import examples


@click.command(
    "rollback",
    short_help="Take a failed operation back.",
    epilog=examples(
        "cfngen rollback",
        "cfngen rollback --skip NodeGroupGpuAutoScalingGroup",
        "cfngen rollback --force        leave whatever cannot be rolled back as it is",
    ),
)
@target_options
@click.option(
    "--skip",
    metavar="RESOURCE",
    multiple=True,
    help="Leave this resource as it is: its logical id, or NESTED-STACK-NAME.LOGICAL-ID. Repeatable.",
)
@click.option("--force", is_flag=True, help="Leave whatever fails to roll back as it is; the list is shown before.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask, unless something may be lost.")
@click.option("--allow-danger", is_flag=True, help="With --yes: do not ask even then.")
@click.pass_context
def command(
    context: click.Context, target: Target, skip: tuple[str, ...], force: bool, yes: bool, allow_danger: bool
) -> None:
    """Take the stack back to its last good state, where CloudFormation has stopped half-way.

    From CREATE_FAILED and UPDATE_FAILED, which `--on-failure keep` leaves, it rolls back. From UPDATE_ROLLBACK_FAILED
    it tries once more; what fails again can be left as it is, by name or with --force, and must then be put right by
    hand.
    """
    from cfngen.deploy.failures import aws_errors
    from cfngen.deploy.messages import Finished
    from cfngen.deploy.recovery import rollback
    from cfngen.deploy.stacks import find
    from cfngen.deploy.watching.diagnosis import diagnose

    account = target.connect()
    with aws_errors(), screen(target, account) as shown:
        began = account.clock.now()
        waiting = shown.waiting(target.consent(yes=yes, allow_danger=allow_danger))
        outcome = rollback(account, target.stack_name, target.cluster.name, waiting, skip=skip, force=force)
        stack = find(account, outcome.stack_id)
        well = outcome.status.name in ("UPDATE_ROLLBACK_COMPLETE", "DELETE_COMPLETE", "ROLLBACK_COMPLETE")
        if not well and not outcome.detached:
            shown.report(diagnose(account, outcome.stack_id))
        shown.report(
            Finished(
                action="rollback",
                stack=target.stack_name,
                stack_id=outcome.stack_id,
                status=outcome.status.name,
                succeeded=well,
                seconds=(account.clock.now() - began).total_seconds(),
                outputs=stack.outputs if stack else {},
                goes_on=outcome.detached,
            )
        )
    if outcome.detached:
        context.exit(GOES_ON)
    context.exit(DONE if well else FAILED)
