"""Rolling updates of masters and node groups: how many nodes at a time, in how many batches, and how long at most.

CloudFormation replaces at most MaxBatchSize instances at a time. If these and MinInstancesInService are together more
than the group's desired size, it first launches what is missing, up to MaxSize ("UpdatePolicy attribute", AWS
CloudFormation Template Reference; that it does so was measured: guardian/testing-asg-rolling-update, November 2026).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cfngen.cluster.model import Cluster
from cfngen.cluster.sections.instances import NodeGroup

# Minutes that new nodes allow for the replacement of one master, which usually takes less.
ONE_MASTER_MINUTES = 10
# CloudFormation's longest PauseTime of a rolling update ("UpdatePolicy attribute", AWS CloudFormation User Guide).
MAX_PAUSE_MINUTES = 60
# Minutes that a rolling update waits for an instance in addition to the timeouts of the instance's own steps.
SPARE_MINUTES = 10
# Minutes that a master which is to be terminated waits until etcd has a quorum without it. A boot takes about four.
QUORUM_WAIT_MINUTES = 5
MAX_BATCH_SIZE = 100
"""CloudFormation's limit of MaxBatchSize ("UpdatePolicy attribute", AWS CloudFormation Template Reference)."""


def master_timeout(cluster: Cluster) -> int:
    """Return the minutes that CloudFormation allows for replacing one master, the PauseTime of its group."""
    quorum_wait = QUORUM_WAIT_MINUTES if cluster.control_plane.count > 1 else 0
    return min(cluster.control_plane.creation_timeout + quorum_wait + SPARE_MINUTES, MAX_PAUSE_MINUTES)


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


class RollingUpdate(NamedTuple):
    """The course of a rolling update of a group of a certain size.

    Attributes:
        surge: nodes that are launched before the first one is terminated.
        batch_size: nodes that are replaced at a time.
        batch_count: number of batches, with the surge as one of its own.
        max_minutes: minutes after which CloudFormation gives up at the latest.
    """

    surge: int
    batch_size: int
    batch_count: int
    max_minutes: int


def min_in_service(group: NodeGroup) -> int:
    """Return MinInstancesInService of a group's update policy.

    Without a surge it is 0, which holds for every size that an autoscaler gives to the group: the size of the batches
    alone limits how many nodes are missing.
    """
    return max(group.initial_size - group.update.max_unavailable, 0) if group.update.max_surge else 0


def rolling_update(cluster: Cluster, group: NodeGroup, size: int) -> RollingUpdate:
    """Return the course of a rolling update of a group that has `size` nodes when it begins.

    The cluster file leaves room for the surge (`cfngen.cluster.checks.group_updates`), so MaxSize limits no batch.
    """
    batch_size = max(min(group.update.batch_size, size), 1)
    surge = max(batch_size + min_in_service(group) - size, 0)
    # The surge replaces as many nodes; the last batch is terminated without replacement if nothing is left to replace.
    batch_count = math.ceil(max(size - surge, 0) / batch_size) + (1 if surge else 0)
    return RollingUpdate(surge, batch_size, batch_count, batch_count * batch_timeout(cluster, group))
