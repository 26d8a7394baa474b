"""The clusters of a rehearsal: kube-up's default cluster with another name, and variations of it."""

from __future__ import annotations

from typing import Any

from cfngen.cluster.load import parse
from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.base import Plugin

REHEARSAL_NAME = "cfngen-rehearsal"
"""Name of the cluster and of its root stack; the names of all resources of a rehearsal begin with it."""
DEFAULT_ZONES = ("us-west-2a", "us-west-2b", "us-west-2c")


def default_cluster(zones: tuple[str, ...], **file: Any) -> Cluster:
    """Return the default cluster in the first zone.

    Args:
        zones: three zones of a region.
        file: further content of the cluster file.
    """
    return parse({"name": REHEARSAL_NAME, "network": {"subnets": [{"zone": zones[0]}]}, **file})


def with_plugin(zones: tuple[str, ...], plugin: Plugin) -> Cluster:
    """Return the default cluster with another network plug-in."""
    return parse({"name": REHEARSAL_NAME, "network": {"subnets": [{"zone": zones[0]}], "plugin": plugin}})


def with_larger_root_volume(zones: tuple[str, ...]) -> Cluster:
    """Return the default cluster with a change that replaces its master's instance, and nothing else."""
    volume = default_cluster(zones).control_plane.root_volume
    return default_cluster(zones, controlPlane={"rootVolume": {"size": volume.size + 1}})


def three_masters(zones: tuple[str, ...]) -> Cluster:
    """Return a cluster of three masters in three zones, and a node in each."""
    return parse(
        {
            "name": REHEARSAL_NAME,
            "network": {"subnets": [{"zone": zone} for zone in zones]},
            "controlPlane": {"count": 3},
            "nodeGroups": [{"name": "nodes", "minSize": 3, "maxSize": 3}],
        }
    )
