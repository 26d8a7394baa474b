"""`cfngen rollback`: return from a failed operation to the last successful state."""

from __future__ import annotations

from dataclasses import replace

import click

from cfngen.cli import verification
from cfngen.cli.display.screen import screen
from cfngen.cli.display.terminal import examples_epilog
from cfngen.cli.input.options import allow_danger_option, yes_option
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.verification import verify_option


@click.command(
    "rollback",
    short_help="Roll back a failed operation.",
    epilog=examples_epilog(
        "cfngen rollback",
        "cfngen rollback --skip STACK.RESOURCE    STACK is the nested stack's name",
        "cfngen rollback --force        skip whatever cannot be rolled back",
    ),
)
@deployed_target_options
@click.option(
    "--skip",
    "skipped_resources",
    metavar="RESOURCE",
    multiple=True,
    help="Skip this resource: its logical id, or NESTED-STACK-NAME.LOGICAL-ID. Repeatable.",
)
@click.option("--force", is_flag=True, help="Skip every resource that fails to roll back; the list is shown first.")
@yes_option("Do not ask, unless something may be lost.")
@allow_danger_option
@verify_option
@click.pass_context
def command(
    context: click.Context,
    *,
    target: Target,
    skipped_resources: tuple[str, ...],
    force: bool,
    yes: bool,
    allow_danger: bool,
    verify: bool,
) -> None:
    """Roll the stack back to its last successful state, after an operation or a rollback has failed.

    A stack in CREATE_FAILED or UPDATE_FAILED, as after `--on-failure keep`, is rolled back. In UPDATE_ROLLBACK_FAILED
    the rollback is continued; resources that fail again can be skipped, by name or with --force, and must then be
    repaired by hand.

    Exits with 2 if the stack is rolled back but the cluster does not work.
    """
    from cfngen.deploy.aws.errors import translate_aws_errors
    from cfngen.deploy.aws.stacks import find_stack
    from cfngen.deploy.operations.deployment.quorum import add_control_plane
    from cfngen.deploy.operations.recovery import rollback
    from cfngen.deploy.preflight.pausing import ensure_stack_not_paused
    from cfngen.deploy.watching.diagnosis import diagnose

    account = target.connect()
    with translate_aws_errors(), screen(target, account) as display:
        ensure_stack_not_paused(account, target.stack_name, target.cluster)
        interaction = display.interaction(target.consent(yes=yes, allow_danger=allow_danger))
        outcome = rollback(
            account, target.stack_name, target.cluster.name, interaction, skip=skipped_resources, force=force
        )
        # The command succeeds if the rollback does, although the operation that is rolled back has failed.
        outcome = replace(outcome, succeeded=outcome.status.rolled_back)
        stack = find_stack(account, outcome.stack_id)
        if not outcome.succeeded and not outcome.detached:
            diagnosis = diagnose(account, outcome.stack_id, with_failure=False)
            display.report(add_control_plane(account, target.cluster, target.kubernetes_override, diagnosis))
        finished = outcome.finished("rollback", stack)
        display.report(finished)
        exit_code = verification.check_at_end(target, account, display, finished, verify=verify)
    context.exit(exit_code)
