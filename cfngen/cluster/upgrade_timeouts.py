"""Timeouts of upgrades: how long new nodes wait for masters; templates and boot program use the same value."""

from __future__ import annotations

from cfngen.cluster.model import Cluster, NodeGroup

# Minutes that nodes wait for the replacement of one master, which usually takes less.
ONE_MASTER = 10
# CloudFormation's longest PauseTime of a rolling update ("UpdatePolicy attribute", AWS CloudFormation User Guide).
MAX_PAUSE_MINUTES = 60
# Minutes that an update waits in addition to an instance's own timeouts.
SPARE = 10


def master_upgrade_wait(cluster: Cluster, group: NodeGroup) -> int:
    """Return the minutes that a node waits for masters of its version, which are replaced one after another."""
    remaining = MAX_PAUSE_MINUTES - SPARE - group.creation_timeout - group.drain_timeout
    return max(0, min(ONE_MASTER * cluster.control_plane.count, remaining))
