"""Shell completion of names that depend on the cluster file; errors are ignored.

The names are derived from the cluster alone, since generating the templates would take too long.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from cfngen.cli.input.source import find_source

if TYPE_CHECKING:
    import click

    from cfngen.cluster.model import Cluster


def stacks(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of the cluster's templates, in the order in which they are generated."""
    cluster = _selected_cluster(context)
    if cluster is None:
        return []
    # A cluster in existing subnets has no stack for the network.
    network_stacks = () if cluster.network.subnets[0].id else ("vpc",)
    always_present = ("security-groups", "secrets", "iam", "master")
    return _starting_with(
        incomplete, (*network_stacks, *always_present, *_node_group_roles(cluster), "cluster", "standalone")
    )


def roles(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the roles that an instance of the cluster can have."""
    cluster = _selected_cluster(context)
    return _starting_with(incomplete, ("master", *_node_group_roles(cluster))) if cluster else []


def grantees(context: click.Context, parameter: click.Parameter, incomplete: str) -> list[str]:
    """Return the names of those who need permissions for the cluster."""
    cluster = _selected_cluster(context)
    if cluster is None:
        return []
    etcd_operators = ("etcd",) if cluster.etcd.backups.enabled else ()
    people = ("operator", "execution", "bucket", "pipeline", "boundary", "replace", *etcd_operators, "pause")
    return _starting_with(incomplete, (*people, "master", *_node_group_roles(cluster)))


def _node_group_roles(cluster: Cluster) -> tuple[str, ...]:
    """Return the role of each node group, which is also the name of its stack and of its grantee."""
    return tuple(f"nodes-{group.name}" for group in cluster.node_groups)


def _starting_with(incomplete: str, names: Iterable[str]) -> list[str]:
    return [name for name in names if name.startswith(incomplete)]


def _selected_cluster(context: click.Context) -> Cluster | None:
    """Return the cluster that the incomplete command line selects; None if it cannot be read."""
    options = context.params
    try:
        source = find_source(
            options.get("file"),
            tuple(options.get("overrides") or ()),
            no_env=bool(options.get("no_env")),
            defaults=bool(options.get("defaults")),
        )
        # The cluster file cannot be read from standard input: that is the user's terminal.
        return None if source.standard_input else source.read().cluster
    except Exception:  # noqa: BLE001  an error message in the middle of a command line helps nobody
        return None
