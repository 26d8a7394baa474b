"""The node termination handler beside cfngen's own services: what 1.25.6 does in IMDS mode, as data and as a program.

Its sources are those of aws/aws-node-termination-handler at v1.25.6.
"""

from __future__ import annotations

from dataclasses import dataclass

from interrupted_cluster import SpotNode

from cfngen.boot.node import drain, rebalancing

# `for range time.Tick(time.Second * 2)` in cmd/node-termination-handler.go.
POLL_SECONDS = 2.0
# Between two evictions that a budget refuses: `evictPods` in Kubernetes' staging/src/k8s.io/kubectl/pkg/drain/drain.go.
EVICTION_PAUSE_SECONDS = 5.0


@dataclass(frozen=True)
class Rule:
    """What it does when the instance metadata has something.

    Attributes:
        path: of the instance metadata.
        drains: whether it evicts the pods once it has cordoned the node.
        source: where that is decided.
    """

    path: str
    drains: bool
    source: str


SPOT = Rule(drain.SPOT_ACTION_PATH, drains=True, source="pkg/monitor/spotitn/spot-itn-monitor.go")
REBALANCE_CORDON = Rule(
    rebalancing.RECOMMENDATION_PATH, drains=False, source="pkg/interruptionevent/draincordon/handler.go, HandleEvent"
)
REBALANCE_DRAIN = Rule(
    rebalancing.RECOMMENDATION_PATH, drains=True, source="pkg/interruptionevent/draincordon/handler.go, HandleEvent"
)
# With ENABLE_ASG_LIFECYCLE_DRAINING; it drains, and leaves the completion to others (pkg/monitor/asglifecycle). In IMDS
# mode nothing completes a lifecycle action or sends heartbeats (pkg/monitor/sqsevent does, in the other mode).


def run(node: SpotNode, *rules: Rule, node_grace_period: float = 120) -> str:
    """Watch the metadata, as the DaemonSet's pod on the node does, and act on the first thing that comes."""
    while True:
        for rule in rules:
            if rule.path in node.told:
                return act(node, rule, node_grace_period)
        node.sleep(POLL_SECONDS)


def act(node: SpotNode, rule: Rule, node_grace_period: float) -> str:
    """Cordon the node, and evict its pods until the time is over (`getDrainHelper` in pkg/node/node.go)."""
    node.cordoned = True
    deadline = node.clock() + node_grace_period
    while rule.drains and node.pods() and node.clock() < deadline:
        for name in node.pods():
            node.cluster.evict(name)
        node.sleep(EVICTION_PAUSE_SECONDS)
    return "drained" if rule.drains else "cordoned"
