"""How long new nodes wait for masters in an upgrade; the templates and the boot program must agree on it."""

from __future__ import annotations

from cfngen.cluster.model import Cluster, NodeGroup

# Minutes that one master's replacement usually takes, and more.
ONE_MASTER = 10
# CloudFormation's longest PauseTime of a rolling update ("UpdatePolicy attribute", AWS CloudFormation User Guide).
LONGEST = 60
# Minutes that an update waits beyond what an instance itself may take.
SPARE = 10


def master_upgrade_wait(cluster: Cluster, group: NodeGroup) -> int:
    """Return for how many minutes a node waits for masters of its version; they are replaced one after another."""
    remaining = LONGEST - SPARE - group.creation_timeout - group.drain_timeout
    return max(0, min(ONE_MASTER * cluster.control_plane.count, remaining))
