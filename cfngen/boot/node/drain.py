"""Drains a node before its instance is terminated.

A systemd service polls the instance metadata for a coming termination, and drains the node with the kubelet's own
credentials. With these a node may list and evict its own pods and cordon itself (Kubernetes' node authorizer and
NodeRestriction), but not read DaemonSets, as `kubectl drain` does. `cfngen.userdata.node_rights` also lets it list
nodes, to find out whether other nodes can run its pods.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ..host import kubelet, lifecycle
from ..host.kubectl import command_prefix, kubectl
from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject, NodeBoot

LIFECYCLE_HOOK = "cfngen-drain"
DRAIN_UNIT = "cfngen-drain.service"
# Seconds between two heartbeats; without them the lifecycle hook times out after some minutes.
HEARTBEAT_SECONDS = 30.0
# Time limit for draining an interrupted Spot Instance. EC2 gives notice two minutes before the interruption ("Spot
# Instance interruption notices", EC2 User Guide), and draining ends 20 seconds before it.
SPOT_DRAIN_SECONDS = 100.0
# Time-out in seconds of one request to the API server. Two requests and the pause between them must take less time than
# the lifecycle hook's heartbeat timeout.
REQUEST_TIMEOUT_SECONDS = 45
EVICTION_BATCH_SIZE = 8
# Page size for the list of nodes; if the cluster has more, some other node can certainly run the pods.
MAX_NODES_LISTED = 20
MASTER_TAINT = "node-role.kubernetes.io/control-plane"
# `unschedulable` keeps new pods from the node, the label keeps load balancers from opening new connections to it.
# NodeRestriction lets a kubelet set labels below node.kubernetes.io.
CORDON_PATCH = {
    "metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}},
    "spec": {"unschedulable": True},
}
# Path in the instance metadata: EC2's notice to a Spot Instance that it will be interrupted.
SPOT_ACTION_PATH = "meta-data/spot/instance-action"


def start(machine: Machine, boot: NodeBoot) -> str:
    """Enable and start the service that watches for the instance's termination."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", DRAIN_UNIT)
    return f"pods get {boot.config['drain']} min to move when this instance is terminated"


def watch(machine: Machine, boot: NodeBoot) -> str:
    """Wait until this instance is about to be terminated, drain it, and complete the lifecycle action."""
    spot_noticed = False
    while not lifecycle.is_terminating(machine):
        if not spot_noticed and machine.metadata(SPOT_ACTION_PATH, default=""):
            spot_noticed = True
            machine.say("EC2 is about to interrupt this Spot Instance: " + drain(machine, boot, SPOT_DRAIN_SECONDS))
        machine.sleep(lifecycle.POLL_SECONDS)
    outcome = drain(machine, boot, boot.config["drain"] * 60)
    return f"this instance is being terminated: {outcome}; {lifecycle.complete(machine, boot, LIFECYCLE_HOOK)}"


def drain(machine: Machine, boot: NodeBoot, seconds: float) -> str:
    """Cordon the node and evict its pods, except those of DaemonSets, until they are gone or the time-out has passed.

    Pod disruption budgets are honoured. If the API server does not answer, the requests are repeated, as the masters
    may be replaced at the same time.

    Returns:
        A line for the log that says whether all pods are gone, or which ones remain and why.
    """
    if not machine.exists(kubelet.KUBELET_CONF):
        return "it never joined the cluster"
    start_time = last_heartbeat = machine.clock()
    outcome = ""

    def send_heartbeat() -> None:
        nonlocal last_heartbeat
        if machine.clock() - last_heartbeat >= HEARTBEAT_SECONDS:
            last_heartbeat = machine.clock()
            lifecycle.send_heartbeat(machine, boot, LIFECYCLE_HOOK)

    while True:
        try:
            is_terminating_by_pod = _cordon_and_list_pods(machine, boot)
            elapsed = machine.clock() - start_time
            remaining = sorted(f"{namespace}/{name}" for namespace, name in is_terminating_by_pod)
            outcome = f"{len(remaining)} pods remain after {seconds:.0f} s: {', '.join(remaining)}"
            if not remaining:
                return f"all its pods are gone after {elapsed:.0f} s"
            if not _can_other_nodes_run_pods(machine, boot):
                names = ", ".join(remaining)
                return f"{len(remaining)} pods remain after {elapsed:.0f} s, as no other node can run them: {names}"
            to_evict = [pod for pod, is_terminating in is_terminating_by_pod.items() if not is_terminating]
            for start_index in range(0, len(to_evict), EVICTION_BATCH_SIZE):
                batch = to_evict[start_index : start_index + EVICTION_BATCH_SIZE]
                with ThreadPoolExecutor(EVICTION_BATCH_SIZE) as pool:
                    # The list waits until all evictions of the batch have been requested.
                    list(pool.map(lambda pod: _evict(machine, namespace=pod[0], name=pod[1]), batch))
                send_heartbeat()
        except BootError as error:
            outcome = f"its pods were not evicted, the API server does not answer: {error}"
        if machine.clock() - start_time >= seconds:
            return outcome
        send_heartbeat()
        machine.sleep(lifecycle.POLL_SECONDS)


def _cordon_and_list_pods(machine: Machine, boot: NodeBoot) -> dict[tuple[str, str], bool]:
    """Cordon the node and list the pods that must leave it.

    These are all pods except those of DaemonSets, static pods, and pods that have ended.

    Returns:
        By (namespace, name) of each pod, whether it is already terminating.
    """
    node_name = boot.facts["instanceId"]
    _kubectl(machine, "patch", "node", node_name, "-p", json.dumps(CORDON_PATCH))
    selector = "--field-selector=spec.nodeName=" + node_name
    is_terminating_by_pod = {}
    for pod in json.loads(_kubectl(machine, "get", "pods", "--all-namespaces", selector, "-o", "json"))["items"]:
        metadata = pod["metadata"]
        is_daemon = any(owner["kind"] == "DaemonSet" for owner in metadata.get("ownerReferences", []))
        is_static = "kubernetes.io/config.mirror" in metadata.get("annotations", {})
        has_ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not (is_daemon or is_static or has_ended):
            is_terminating_by_pod[metadata["namespace"], metadata["name"]] = "deletionTimestamp" in metadata
    return is_terminating_by_pod


def _can_other_nodes_run_pods(machine: Machine, boot: NodeBoot) -> bool:
    """Return whether another node is schedulable, so that it could run this node's pods.

    If not, draining ends at once: when the cluster or its last node group is deleted, disruption budgets would block
    evictions until the time-out. The result is also True if the nodes cannot be listed, as older masters do not permit
    it.
    """
    query = urlencode({"fieldSelector": "spec.unschedulable=false", "limit": MAX_NODES_LISTED})
    try:
        node_list = json.loads(_kubectl(machine, "get", "--raw", f"/api/v1/nodes?{query}"))
    except BootError as error:
        machine.log(f"could not list the other nodes: {error}")
        return True
    has_further_nodes = bool(node_list["metadata"].get("continue"))
    other_nodes = [node for node in node_list["items"] if node["metadata"]["name"] != boot.facts["instanceId"]]
    return has_further_nodes or any(_is_schedulable(node) for node in other_nodes)


def _is_schedulable(node: JsonObject) -> bool:
    """Return whether a node is Ready, not cordoned and no master."""
    spec, conditions = node.get("spec", {}), node.get("status", {}).get("conditions", [])
    is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    is_cordoned = bool(spec.get("unschedulable"))
    is_master = MASTER_TAINT in [taint["key"] for taint in spec.get("taints", [])]
    return is_ready and not is_cordoned and not is_master


def _evict(machine: Machine, namespace: str, name: str) -> None:
    """Request a pod's eviction; a refusal, e.g. by a disruption budget, is only logged, as the caller tries again."""
    # `kubectl create --raw` posts the object to the pod's subresource; kubectl has no command that evicts one pod.
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": namespace, "name": name},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    create = (*command_prefix(kubelet.KUBELET_CONF), "create", "--raw", path, "-f", "-")
    try:
        machine.run(*create, stdin=json.dumps(eviction), timeout=REQUEST_TIMEOUT_SECONDS)
    except BootError as error:
        machine.log(f"{namespace}/{name} could not be evicted: {error}")


def _kubectl(machine: Machine, *arguments: str) -> str:
    _, output = kubectl(machine, *arguments, kubeconfig=kubelet.KUBELET_CONF, timeout=REQUEST_TIMEOUT_SECONDS)
    return output
