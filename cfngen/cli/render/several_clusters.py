"""Formats how a command ended for several clusters, and which clusters an account has."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from cfngen.cli.render.layout import table
from cfngen.text import join_and, pluralize

if TYPE_CHECKING:
    from cfngen.cli.several_clusters.outcomes import ClusterOutcomes
    from cfngen.deploy.status.cluster_list import ClusterList


def outcome_lines(message: ClusterOutcomes) -> list[str]:
    """Return a table of the clusters, and how a deployment that has stopped continues."""
    header = ("CLUSTER", "REGION", "FILE", "RESULT", "STACK")
    rows = [(run.cluster, run.region, run.file, run.outcome, run.status) for run in message.clusters]
    columns = len(header) if any(run.status for run in message.clusters) else len(header) - 1
    lines = table(header[:columns], [row[:columns] for row in rows])
    if message.command == "deploy" and message.exit_code:
        lines += [
            "",
            click.style("hint: ", bold=True)
            + "what is done stays; run the same command again when the cause is mended, and it continues.",
        ]
    return lines


def list_lines(message: ClusterList) -> list[str]:
    """Return a table of the clusters of an account."""
    rows = [
        (root.cluster, root.region, root.stack, root.status, f"{root.updated or root.created:%Y-%m-%d %H:%M} UTC")
        for root in message.clusters
    ]
    where = f"in {join_and(list(message.regions))} of account {message.account}"
    if not rows:
        return [f"There are no clusters {where}; --regions names other regions."]
    header = ("CLUSTER", "REGION", "STACK", "STATUS", "LAST DEPLOYMENT")
    return [*table(header, rows), "", f"{pluralize(len(rows), 'cluster')} {where}."]
