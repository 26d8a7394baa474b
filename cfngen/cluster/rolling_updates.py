"""The numbers of a node group's rolling update: how many nodes at a time, in how many batches, and how long at most.

CloudFormation replaces at most MaxBatchSize instances at a time. If these and MinInstancesInService are together more
than the group's desired size, it first launches what is missing, up to MaxSize ("UpdatePolicy attribute", AWS
CloudFormation Template Reference; that it does so was measured: guardian/testing-asg-rolling-update, November 2026).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.upgrade_timeouts import batch_timeout

MAX_BATCH_SIZE = 100
"""CloudFormation's limit of MaxBatchSize ("UpdatePolicy attribute", AWS CloudFormation Template Reference)."""


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
    """Return the course of a rolling update of a group that has `size` nodes when it begins."""
    batch_size = max(min(group.update.batch_size, size, group.max_size - min_in_service(group)), 1)
    surge = max(batch_size + min_in_service(group) - size, 0)
    # The surge replaces as many nodes; the last batch is terminated without replacement if nothing is left to replace.
    batch_count = math.ceil(max(size - surge, 0) / batch_size) + (1 if surge else 0)
    return RollingUpdate(surge, batch_size, batch_count, batch_count * batch_timeout(cluster, group))
