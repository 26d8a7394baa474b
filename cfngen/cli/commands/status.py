"""`cfngen status`: the status of a cluster on one screen."""

from __future__ import annotations

from dataclasses import replace

import click

from cfngen.cli.display.terminal import examples_epilog, progress_line
from cfngen.cli.input.source import DEFAULT_FILE
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.several_clusters import SeveralClustersCommand


@click.command(
    "status",
    cls=SeveralClustersCommand,
    short_help="Show the deployed cluster on one screen.",
    epilog=examples_epilog("cfngen status", "cfngen status --drift", "cfngen status --output json | jq .stack.status"),
)
@deployed_target_options
@click.option(
    "--drift", is_flag=True, help="Also detect drift: compare every resource with its template. Takes about a minute."
)
def command(target: Target, drift: bool) -> None:
    """Show the stack, the API, masters, node groups, certificates and volumes, and what to do next.

    What cannot be read, because a permission is missing or there is no answer, is shown as unknown with the reason.
    """
    from cfngen.deploy.messages.message import Notice
    from cfngen.deploy.status.derived_status import read_status

    account = target.connect()
    with progress_line("reading …"):
        cluster_status = read_status(
            account,
            target.stack_name,
            target.cluster,
            find_url_override=target.kubernetes_override,
            file_values=lambda: target.file_values,
            detect_drift=drift,
            report=target.show,
        )
    if target.describes_stack:
        cluster_status = replace(cluster_status, target_source="stack")
        # A deployment would make another cluster in place of one whose stack has another name, or is elsewhere.
        if target.explicit_stack_name and not cluster_status.stack.status:
            cluster_status = replace(cluster_status, next_command="")
    target.show(cluster_status)
    if not target.json and (hint := target.lost_file_hint):
        target.show(Notice(f"there is no {DEFAULT_FILE} here: name, region and version are those of the stack", hint))
