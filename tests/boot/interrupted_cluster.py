"""Nodes on Spot Instances, their pods, and the EC2 and Auto Scaling around them; each runs the real services.

What AWS does, and its source:

- EC2 announces an interruption two minutes before, as `spot/instance-action`, and then terminates the instance,
  whatever a lifecycle hook says ("Spot Instance interruption notices", EC2 User Guide; "Considerations and limitations
  for lifecycle hooks", Auto Scaling User Guide).
- A rebalance recommendation comes before that notice or together with it ("EC2 instance rebalance recommendations", EC2
  User Guide), as `events/recommendations/rebalance`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import parse_qs

from boots import boot_of
from scripted_machine import ScriptedMachine, refusal, stack_resource
from timeline import Program, Timeline

from cfngen.boot.host import lifecycle
from cfngen.boot.host.kubelet import KUBELET_CONF
from cfngen.boot.node import drain, rebalancing

GROUP = "k8s-NodeGroupSpotStack-NodeGroupSpotAutoScalingGroup-ABC"
NOTICE_SECONDS = 120
START_SECONDS = 10.0  # until a pod works that was created elsewhere


@dataclass
class Pod:
    """A pod of an application.

    Attributes:
        node: where it runs; nowhere if no node takes it.
        grace: seconds from its eviction to its end.
        ready: whether it counts for the budget.
        ends: when it ends; None if nobody has evicted it.
        deletions: how often its deletion began.
    """

    node: str
    grace: float = 30
    ready: bool = True
    ends: float | None = None
    deletions: int = 0


@dataclass
class SpotCluster:
    """A cluster in simulated time.

    Attributes:
        timeline: its time.
        nodes: by instance id.
        pods: by name.
        min_available: how many pods of the application must stay ready: its disruption budget.
        lost: names of pods whose instance ended while they ran.
    """

    timeline: Timeline = field(default_factory=Timeline)
    nodes: dict[str, SpotNode] = field(default_factory=dict)
    pods: dict[str, Pod] = field(default_factory=dict)
    min_available: int = 0
    lost: list[str] = field(default_factory=list)

    def add_node(self, name: str, *, minutes: int = 5, rebalance: str = "") -> SpotNode:
        """Add a node that runs the drain service, and the service for recommendations if it has an action."""
        node = self.nodes[name] = SpotNode(self, name, minutes, rebalance)
        return node

    @property
    def available(self) -> int:
        """Pods that are ready and stay so."""
        return sum(pod.ready and pod.ends is None for pod in self.pods.values())

    def evict(self, name: str) -> str:
        """Evict a pod as the API server does; return why it refuses, or nothing.

        A pod that is ending already is not ended anew, and no budget counts for it (`canIgnorePDB` in Kubernetes'
        pkg/registry/core/pod/storage/eviction.go; `BeforeDelete` in staging/src/k8s.io/apiserver/pkg/registry/rest).
        """
        pod = self.pods.get(name)
        if pod is None:
            return f'pods "{name}" not found'
        if pod.ends is None:
            if pod.ready and self.available <= self.min_available:
                return "Cannot evict pod as it would violate the pod's disruption budget."
            pod.ends, pod.deletions = self.timeline.now + pod.grace, pod.deletions + 1
            self.timeline.at(pod.ends, partial(self._replace, name))
        return ""

    def _replace(self, name: str) -> None:
        """End a pod; its controller creates another one on a node that takes pods."""
        pod = self.pods.pop(name, None)
        if pod is None:
            return
        [*places] = [node.name for node in self.nodes.values() if node.alive and not node.cordoned]
        successor = Pod(node=places[0] if places else "", grace=pod.grace, ready=False)
        self.pods[f"{name}x"] = successor
        if places:
            self.timeline.at(self.timeline.now + START_SECONDS, partial(setattr, successor, "ready", True))


class SpotNode(ScriptedMachine):
    """A node on a Spot Instance.

    Attributes:
        cordoned: whether it takes no new pods.
        alive: whether EC2 has not terminated it.
        completed: when the lifecycle action was completed, and the pods that ran on the node then.
        heartbeats: when the lifecycle action was extended.
        results: what its services said when they ended, by name.
    """

    def __init__(self, cluster: SpotCluster, name: str, minutes: int, rebalance: str) -> None:
        super().__init__()
        self.cluster, self.name = cluster, name
        self.cordoned, self.alive, self.away = False, True, False
        self.completed: list[tuple[float, list[str]]] = []
        self.heartbeats: list[float] = []
        self.services: dict[str, Program] = {}
        self.files[KUBELET_CONF] = "credentials"
        self.told[lifecycle.TARGET_STATE_PATH] = "InService"
        self.on("kubectl", self._kubectl)
        self.cloud["cloudformation.describe_stack_resource"] = lambda **_: stack_resource(GROUP)
        self.cloud["autoscaling.record_lifecycle_action_heartbeat"] = self._beat
        self.cloud["autoscaling.complete_lifecycle_action"] = self._complete
        facts = {"instanceId": name, "stack": "k8s", "resource": "NodeGroupSpotAutoScalingGroup"}
        boot = boot_of({"facts": facts, "drain": minutes, "rebalance": rebalance})
        self.start("drain", lambda: drain.watch(self, boot))
        if rebalance:
            self.start("rebalance", lambda: rebalancing.watch(self, boot))

    def start(self, service: str, function: Callable[[], object]) -> None:
        """Start a service of the instance."""
        self.services[service] = self.cluster.timeline.start(function)

    def clock(self) -> float:
        return self.cluster.timeline.now

    def sleep(self, seconds: float) -> None:
        self.cluster.timeline.sleep(seconds)

    def pods(self) -> list[str]:
        """Return the names of the pods that run on it."""
        return [name for name, pod in self.cluster.pods.items() if pod.node == self.name]

    def recommend(self) -> None:
        """EC2 recommends to rebalance the instance."""
        self.told[rebalancing.RECOMMENDATION_PATH] = json.dumps({"noticeTime": self.time()})

    def interrupt(self) -> None:
        """EC2 announces an interruption, and does it two minutes later."""
        self.told[drain.SPOT_ACTION_PATH] = json.dumps({"action": "terminate", "time": self.time(NOTICE_SECONDS)})
        self.cluster.timeline.at(self.clock() + NOTICE_SECONDS, self.end)

    def terminate(self) -> None:
        """Auto Scaling is about to terminate the instance, which its lifecycle hook delays."""
        self.told[lifecycle.TARGET_STATE_PATH] = "Terminated"

    def end(self) -> None:
        """EC2 terminates the instance, with everything that runs on it."""
        self.alive = False
        for service in self.services.values():
            service.killed = True
        for name in self.pods():
            self.cluster.lost.append(name)
            del self.cluster.pods[name]

    def _kubectl(self, text: str) -> tuple[int, str]:
        if self.away:
            return 1, "connection refused"
        if " patch node " in text:
            assert self.name in text
            self.cordoned = json.loads(text.partition(" -p ")[2])["spec"]["unschedulable"]
        elif " get --raw /api/v1/nodes?" in text:
            assert "fieldSelector" in parse_qs(text.partition("?")[2])
            ready = {"conditions": [{"type": "Ready", "status": "True"}]}
            nodes = [node.name for node in self.cluster.nodes.values() if node.alive and not node.cordoned]
            items = [{"metadata": {"name": name}, "spec": {}, "status": ready} for name in nodes]
            return 0, json.dumps({"metadata": {}, "items": items})
        elif " get pods " in text:
            return 0, json.dumps({"items": [self._manifest(name) for name in self.pods()]})
        elif match := re.search(r"/pods/(\S+)/eviction", text):
            reason = self.cluster.evict(match[1])
            return (1, reason) if reason else (0, "")
        return 0, ""

    def _manifest(self, name: str) -> dict[str, Any]:
        metadata: dict[str, Any] = {"namespace": "default", "name": name}
        if self.cluster.pods[name].ends is not None:
            metadata["deletionTimestamp"] = self.time()
        return {"metadata": metadata, "status": {"phase": "Running"}}

    def _is_held(self) -> bool:
        return self.told[lifecycle.TARGET_STATE_PATH] == "Terminated" and not self.completed

    def _beat(self, **_: Any) -> dict[str, Any]:
        if not self._is_held():
            return refusal("ValidationError", f"No active Lifecycle Action found with instance ID {self.name}")
        self.heartbeats.append(self.clock())
        return {}

    def _complete(self, **_: Any) -> dict[str, Any]:
        if not self._is_held():
            return refusal("ValidationError", f"No active Lifecycle Action found with instance ID {self.name}")
        self.completed.append((self.clock(), self.pods()))
        self.cluster.timeline.at(self.clock() + 1, self.end)
        return {}
