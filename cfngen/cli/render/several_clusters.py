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
    header = ["CLUSTER", "REGION", "FILE", "RESULT"]
    rows = [[each.cluster, each.region, each.file, each.outcome] for each in message.clusters]
    if any(each.status for each in message.clusters):
        header.append("STACK")
        for row, each in zip(rows, message.clusters, strict=True):
            row.append(each.status)
    lines = table(header, rows)
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
        (each.cluster, each.region, each.stack, each.status, f"{each.updated or each.created:%Y-%m-%d %H:%M} UTC")
        for each in message.clusters
    ]
    where = f"in {join_and(list(message.regions))} of account {message.account}"
    if not rows:
        return [f"There are no clusters {where}; --regions names other regions."]
    header = ("CLUSTER", "REGION", "STACK", "STATUS", "LAST DEPLOYMENT")
    return [*table(header, rows), "", f"{pluralize(len(rows), 'cluster')} {where}."]
