"""Drains a node before its instance is terminated.

A systemd service polls the instance metadata for a termination. It drains with the kubelet's own credentials: a node
may list and evict its own pods and cordon itself (Kubernetes' node authorizer and NodeRestriction), but not read
DaemonSets, as `kubectl drain` does. `cfngen.userdata.node_rights`
also lets it list nodes, to find out whether other nodes can run its pods.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from ..host import kubelet
from ..host.kubectl import command_prefix, kubectl
from ..machine import BootError, Machine

if TYPE_CHECKING:
    from ..contract import JsonObject, NodeBoot

LIFECYCLE_HOOK = "cfngen-drain"
DRAIN_UNIT = "cfngen-drain.service"
# Pause between two queries of the instance metadata, and between two rounds of evictions.
POLL_SECONDS = 5.0
# Seconds between two heartbeats; without them the lifecycle hook times out after some minutes.
HEARTBEAT_SECONDS = 30.0
# EC2 gives notice two minutes before it interrupts a Spot Instance ("Spot Instance interruption notices", EC2 User
# Guide).
SPOT_DRAIN_SECONDS = 100.0
# Seconds for one request to the API server. Two requests and the pause between them must take less time than the
# lifecycle hook's heartbeat timeout.
REQUEST_TIMEOUT_SECONDS = 45
# Evictions that are requested in parallel.
EVICTION_BATCH_SIZE = 8
# Page size for the list of schedulable nodes; if there are more, other nodes can certainly run the pods.
MAX_NODES_LISTED = 20
# The taint that kubeadm gives to masters.
MASTER_TAINT = "node-role.kubernetes.io/control-plane"
# `unschedulable` keeps new pods from the node, the label keeps load balancers from opening new connections to it.
# NodeRestriction lets a kubelet set labels below node.kubernetes.io.
CORDON_PATCH = {
    "metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}},
    "spec": {"unschedulable": True},
}
LIFECYCLE_STATE_PATH = "meta-data/autoscaling/target-lifecycle-state"
SPOT_ACTION_PATH = "meta-data/spot/instance-action"


def start(machine: Machine, boot: NodeBoot) -> str:
    """Enable and start the service that watches for the instance's termination."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", DRAIN_UNIT)
    return f"pods get {boot.config['drain']} min to move when this instance is terminated"


def watch(machine: Machine, boot: NodeBoot) -> str:
    """Wait until this instance is about to be terminated, drain it, and complete the lifecycle action."""
    spot_noticed = False
    while machine.metadata(LIFECYCLE_STATE_PATH, default="") != "Terminated":
        if not spot_noticed and machine.metadata(SPOT_ACTION_PATH, default=""):
            spot_noticed = True
            machine.say("EC2 is about to interrupt this Spot Instance: " + drain(machine, boot, SPOT_DRAIN_SECONDS))
        machine.sleep(POLL_SECONDS)
    outcome = drain(machine, boot, boot.config["drain"] * 60)
    response = _notify_auto_scaling(machine, boot, "complete_lifecycle_action", LifecycleActionResult="CONTINUE")
    return f"this instance is being terminated: {outcome}; {response}"


def drain(machine: Machine, boot: NodeBoot, seconds: float) -> str:
    """Cordon the node and evict its pods, except those of DaemonSets, until they are gone or the time-out has passed.

    Pod disruption budgets are honoured. If the API server does not answer, the requests are repeated, as the masters
    may be replaced at the same time.

    Args:
        machine: the instance.
        boot: this run of the program.
        seconds: time-out.

    Returns:
        The outcome, for the log.
    """
    if not machine.exists(kubelet.KUBELET_CONF):
        return "it never joined the cluster"
    start_time = last_heartbeat = machine.clock()
    outcome = ""

    def send_heartbeat() -> None:
        nonlocal last_heartbeat
        if machine.clock() - last_heartbeat >= HEARTBEAT_SECONDS:
            last_heartbeat = machine.clock()
            _notify_auto_scaling(machine, boot, "record_lifecycle_action_heartbeat")

    while True:
        try:
            pods = _cordon_and_list_pods(machine, boot)
            elapsed, remaining = machine.clock() - start_time, sorted("/".join(pod) for pod in pods)
            outcome = f"{len(remaining)} pods remain after {seconds:.0f} s: {', '.join(remaining)}"
            if not remaining:
                return f"all its pods are gone after {elapsed:.0f} s"
            if not _can_other_nodes_run_pods(machine, boot):
                names = ", ".join(remaining)
                return f"{len(remaining)} pods remain after {elapsed:.0f} s, as no other node can run them: {names}"
            not_terminating = [pod for pod, is_terminating in pods.items() if not is_terminating]
            for start_index in range(0, len(not_terminating), EVICTION_BATCH_SIZE):
                batch = not_terminating[start_index : start_index + EVICTION_BATCH_SIZE]
                with ThreadPoolExecutor(EVICTION_BATCH_SIZE) as pool:
                    list(pool.map(lambda pod: _evict(machine, *pod), batch))
                send_heartbeat()
        except BootError as error:
            outcome = f"its pods were not evicted, the API server does not answer: {error}"
        if machine.clock() - start_time >= seconds:
            return outcome
        send_heartbeat()
        machine.sleep(POLL_SECONDS)


def _cordon_and_list_pods(machine: Machine, boot: NodeBoot) -> dict[tuple[str, str], bool]:
    """Cordon the node and list the pods that must leave it: all except those of DaemonSets, static and ended ones.

    Returns:
        By namespace and name of each pod, whether it is already terminating.
    """
    node_name = boot.facts["instanceId"]
    _kubectl(machine, "patch", "node", node_name, "-p", json.dumps(CORDON_PATCH))
    selector = "--field-selector=spec.nodeName=" + node_name
    pods = {}
    for pod in json.loads(_kubectl(machine, "get", "pods", "--all-namespaces", selector, "-o", "json"))["items"]:
        metadata = pod["metadata"]
        is_daemon = any(owner["kind"] == "DaemonSet" for owner in metadata.get("ownerReferences", []))
        is_static = "kubernetes.io/config.mirror" in metadata.get("annotations", {})
        has_ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not (is_daemon or is_static or has_ended):
            pods[metadata["namespace"], metadata["name"]] = "deletionTimestamp" in metadata
    return pods


def _can_other_nodes_run_pods(machine: Machine, boot: NodeBoot) -> bool:
    """Return whether another node is schedulable; also True if the nodes cannot be listed, as with older masters.

    When the cluster or its last node group is deleted, no other node is schedulable, and disruption budgets would block
    evictions until the time-out.
    """
    query = urlencode({"fieldSelector": "spec.unschedulable=false", "limit": MAX_NODES_LISTED})
    try:
        node_list = json.loads(_kubectl(machine, "get", "--raw", f"/api/v1/nodes?{query}"))
    except BootError as error:
        machine.log(f"could not list the other nodes: {error}")
        return True
    other_nodes = [node for node in node_list["items"] if node["metadata"]["name"] != boot.facts["instanceId"]]
    return bool(node_list["metadata"].get("continue")) or any(_is_schedulable(node) for node in other_nodes)


def _is_schedulable(node: JsonObject) -> bool:
    """Return whether a node is Ready, not cordoned and no master."""
    spec, conditions = node.get("spec", {}), node.get("status", {}).get("conditions", [])
    is_ready = any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)
    return (
        is_ready
        and not spec.get("unschedulable")
        and MASTER_TAINT not in [taint["key"] for taint in spec.get("taints", [])]
    )


def _evict(machine: Machine, namespace: str, name: str) -> None:
    """Request a pod's eviction; a refusal, e.g. by a disruption budget, is only logged, as the caller tries again."""
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
    """Run kubectl with the kubelet's credentials; return its output."""
    return kubectl(machine, *arguments, kubeconfig=kubelet.KUBELET_CONF, timeout=REQUEST_TIMEOUT_SECONDS)[1]


def _notify_auto_scaling(machine: Machine, boot: NodeBoot, lifecycle_operation: str, **arguments: str) -> str:
    """Call an operation of Auto Scaling on this instance's lifecycle action.

    It is no error if no lifecycle action is waiting, e.g. because it has timed out.

    Args:
        machine: the instance.
        boot: this run of the program.
        lifecycle_operation: boto3's method, e.g. `complete_lifecycle_action`.
        arguments: further parameters of the operation.

    Returns:
        The outcome, for the log.
    """
    facts = boot.facts
    try:
        resource = machine.aws(
            "cloudformation",
            "describe_stack_resource",
            StackName=facts["stack"],
            LogicalResourceId=facts["resource"],
        )
        response = machine.aws(
            "autoscaling",
            lifecycle_operation,
            "ValidationError",  # the error code if no lifecycle action is waiting
            AutoScalingGroupName=resource["StackResourceDetail"]["PhysicalResourceId"],
            LifecycleHookName=LIFECYCLE_HOOK,
            InstanceId=facts["instanceId"],
            **arguments,
        )
    except BootError as error:
        # The lifecycle hook's own time-out then ends the wait.
        return f"the lifecycle action was not completed: {error}"
    return response["Error"]["Message"] if "Error" in response else "the lifecycle action was completed"
