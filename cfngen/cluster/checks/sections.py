"""The sections that checks go through, each with its path."""

from __future__ import annotations

from collections.abc import Iterator

from cfngen.cluster.model import Cluster, ExtraVolume, Instances, Machine, NodeGroup
from cfngen.cluster.paths import Path


def subnet_path(index: int, key: str = "cidr") -> Path:
    """Return the path of a key of the subnet at a position of `network.subnets`."""
    return ("network", "subnets", index, key)


def node_groups(cluster: Cluster) -> Iterator[tuple[Path, NodeGroup]]:
    """Yield the path and the settings of each node group."""
    for index, group in enumerate(cluster.node_groups):
        yield ("nodeGroups", index), group


def all_instances(cluster: Cluster) -> Iterator[tuple[Path, Instances]]:
    """Yield the path and the settings of the masters and of each node group."""
    yield ("controlPlane",), cluster.control_plane
    yield from node_groups(cluster)


def all_machines(cluster: Cluster) -> Iterator[tuple[Path, Machine]]:
    """Yield the path and the settings of the masters, of each node group and of the bastion."""
    yield from all_instances(cluster)
    if cluster.bastion:
        yield ("bastion",), cluster.bastion


def extra_volumes(cluster: Cluster) -> Iterator[tuple[Path, ExtraVolume]]:
    """Yield the path and the settings of each further volume of node groups."""
    for path, group in node_groups(cluster):
        for position, volume in enumerate(group.volumes):
            yield (*path, "volumes", position), volume
