"""`cfngen status`: the status of a cluster on one screen."""

from __future__ import annotations

from dataclasses import replace

import click

from cfngen.cli.display.terminal import examples_epilog, progress_line
from cfngen.cli.input.source import DEFAULT_FILE
from cfngen.cli.input.target import Target, deployed_target_options
from cfngen.cli.several_clusters.command import SeveralClustersCommand


@click.command(
    "status",
    cls=SeveralClustersCommand,
    short_help="Show the deployed cluster on one screen.",
    epilog=examples_epilog(
        "cfngen status",
        "cfngen status --drift",
        "cfngen status --output json | jq .stack.status",
        "cfngen status --all --regions us-west-2,eu-central-1        every cluster of the account",
    ),
)
@deployed_target_options
@click.option(
    "--drift", is_flag=True, help="Also detect drift: compare every resource with its template. Takes about a minute."
)
@click.option(
    "--all", "lists_all", is_flag=True, help="List the clusters that cfngen has deployed in the account instead."
)
@click.option(
    "--regions",
    metavar="REGIONS",
    default="",
    help="With --all: where to look, e.g. us-west-2,eu-central-1. Default: the region of the environment or profile.",
)
def command(*, target: Target, drift: bool, lists_all: bool, regions: str) -> None:
    """Show the stack, the API, masters, node groups, certificates and volumes, and what to do next.

    What cannot be read, because a permission is missing or there is no answer, is shown as unknown with the reason.

    With --all, no cluster file is read: clusters are found by the tag `cfngen:cluster` of their root stacks.
    """
    if regions and not lists_all:
        raise click.UsageError("--regions is for --all; the region of one cluster is that of its file.")
    if lists_all:
        if drift or target.source.is_explicit or target.source.overrides or target.explicit_stack_name:
            raise click.UsageError("--all reads no cluster; remove --drift, and the options that choose one.")
        _list_clusters(target, [region.strip() for region in regions.split(",") if region.strip()])
        return
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


def _list_clusters(target: Target, regions: list[str]) -> None:
    from cfngen.cluster.model import Cluster
    from cfngen.deploy.status.cluster_list import list_clusters

    with progress_line("reading …"):
        regions = regions or [target.environment_region(str(Cluster.model_fields["region"].default))]
        clusters = list_clusters([target.connect_in(region) for region in dict.fromkeys(regions)])
    target.show(clusters)
