"""How long new nodes wait for masters in an upgrade; the templates' timeouts and the boot program use this value."""

from __future__ import annotations

from cfngen.cluster.model import Cluster, NodeGroup

# Minutes that new nodes allow for the replacement of one master, which usually takes less.
ONE_MASTER_MINUTES = 10
# CloudFormation's longest PauseTime of a rolling update ("UpdatePolicy attribute", AWS CloudFormation User Guide).
MAX_PAUSE_MINUTES = 60
# Minutes that a rolling update waits for an instance in addition to the timeouts of the instance's own steps.
SPARE_MINUTES = 10


def master_upgrade_wait(cluster: Cluster, group: NodeGroup) -> int:
    """Return the minutes that a node of a group waits for masters of its own Kubernetes version.

    Masters are replaced one after another. With its other timeouts, the node must not wait longer than CloudFormation.
    """
    all_masters = ONE_MASTER_MINUTES * cluster.control_plane.count
    remaining = MAX_PAUSE_MINUTES - SPARE_MINUTES - group.creation_timeout - group.drain_timeout - group.update.pause
    return max(0, min(all_masters, remaining))


def batch_timeout(cluster: Cluster, group: NodeGroup) -> int:
    """Return the minutes that CloudFormation allows for replacing one batch of a group's nodes, its PauseTime.

    They suffice for terminating the old nodes and for the signals of the new ones, and are at most an hour.
    """
    node_minutes = group.creation_timeout + group.drain_timeout + group.update.pause
    return min(node_minutes + master_upgrade_wait(cluster, group) + SPARE_MINUTES, MAX_PAUSE_MINUTES)
