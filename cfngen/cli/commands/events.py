"""`cfngen events`: the stack events of a cluster."""

from __future__ import annotations

import click

from cfngen.cli.display.terminal import echo, examples_epilog
from cfngen.cli.input.target import Target, deployed_target_options


@click.command(
    "events",
    short_help="Show what happened in the stacks.",
    epilog=examples_epilog(
        "cfngen events",
        "cfngen events --failures          the cause of the last failure, and what to do",
        "cfngen events --all --verbose     everything since the stack was created",
        "cfngen events --output json | jq -r 'select(.status | endswith(\"FAILED\")).reason'",
    ),
)
@deployed_target_options
@click.option("--failures", is_flag=True, help="Show only the cause of the last failure, and what to do about it.")
@click.option("--all", "all_operations", is_flag=True, help="Show every operation, not only the last one.")
@click.option("--verbose", is_flag=True, help="Also show events that add no information.")
def command(target: Target, failures: bool, all_operations: bool, verbose: bool) -> None:
    """Show the events of the root and all nested stacks, oldest first, without those that add no information.

    Only events of the last operation are shown, unless --all is given; a rollback includes the operation that failed.
    """
    from cfngen.cli.render.events import history_lines
    from cfngen.deploy.aws.errors import translate_aws_errors
    from cfngen.deploy.aws.events import read_history
    from cfngen.deploy.aws.stacks import require_stack
    from cfngen.deploy.operations.deployment.quorum import add_control_plane
    from cfngen.deploy.watching.diagnosis import diagnose

    account = target.connect()
    with translate_aws_errors():
        stack = require_stack(account, target.stack_name)
        if failures:
            diagnosis = diagnose(account, stack.id)
            target.show(add_control_plane(account, target.cluster, target.kubernetes_override, diagnosis))
            return
        events = read_history(account, stack.id, operation="all" if all_operations else "latest", complete=verbose)
    if target.json:
        for event in events:
            target.show(event)
    else:
        echo("\n".join(history_lines(events)))
