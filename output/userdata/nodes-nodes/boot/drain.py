"""Moves a node's pods elsewhere before EC2 takes the instance.

A service asks the metadata service every few seconds whether that is to come. The kubelet's own credentials suffice:
a node may list and evict its own pods and mark itself unschedulable (Kubernetes' node authorizer and NodeRestriction).
They do not suffice for `kubectl drain`, which asks for pods that are gone and for DaemonSets.
"""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from . import kubelet
from .machine import BootError, Machine

HOOK = "cfngen-drain"
UNIT = "cfngen-drain.service"
INTERVAL = 5.0
# Seconds between two signs of life to Auto Scaling, whose hook gives up after some minutes without one.
HEARTBEAT = 30.0
# EC2 announces the end of a spot instance two minutes before ("Spot Instance interruption notices", EC2 User Guide).
SPOT = 100.0
# Seconds for which an API server that does not answer is asked again: with the cluster itself gone there is none.
PATIENCE = 60.0
# No new pods, and no new connections from load balancers; a kubelet may set labels below node.kubernetes.io.
LEAVING = {
    "metadata": {"labels": {"node.kubernetes.io/exclude-from-external-load-balancers": "true"}},
    "spec": {"unschedulable": True},
}
STATE = "meta-data/autoscaling/target-lifecycle-state"
SPOT_ACTION = "meta-data/spot/instance-action"


def start(machine: Machine, config: dict[str, Any]) -> str:
    """Let the service run that watches for the end, from now on and at every boot."""
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", "--now", UNIT)
    return f"pods get {config['drain']} min to move when this instance is terminated"


def watch(machine: Machine, config: dict[str, Any]) -> str:
    """Wait until this instance is to be terminated, move its pods, let Auto Scaling go on."""
    warned = False
    while machine.metadata(STATE, missing="") != "Terminated":
        if not warned and machine.metadata(SPOT_ACTION, missing=""):
            warned = True
            machine.say("EC2 takes this spot instance back: " + drain(machine, config, SPOT))
        machine.sleep(INTERVAL)
    outcome = drain(machine, config, config["drain"] * 60)
    told = _tell(machine, config, "complete_lifecycle_action", LifecycleActionResult="CONTINUE")
    return f"this instance is to be terminated: {outcome}; {told}"


def drain(machine: Machine, config: dict[str, Any], seconds: float) -> str:
    """Mark the node as leaving and evict its pods, but those of DaemonSets, until they are gone or time is up.

    Pods' disruption budgets are honoured.

    Args:
        machine: the instance.
        config: the role's configuration.
        seconds: how long at most.
    """
    if not machine.exists(kubelet.KUBELET_CONF):
        return "it never joined the cluster"
    begin = beaten = answered = machine.clock()
    left: list[str] = []
    while True:
        try:
            pods = _pods(machine, config)
            answered = machine.clock()
        except BootError as error:
            if machine.clock() - answered >= PATIENCE:
                return f"its pods stay, the API server does not answer: {error}"
        else:
            left = sorted("/".join(each) for each in pods)
            if not left:
                return f"its pods are gone after {machine.clock() - begin:.0f} s"
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda pod: _evict(machine, *pod), [pod for pod, going in pods.items() if not going]))
        if machine.clock() - begin >= seconds:
            return f"{len(left)} pods are still there after {seconds:.0f} s: {', '.join(left)}"
        if machine.clock() - beaten >= HEARTBEAT:
            beaten = machine.clock()
            _tell(machine, config, "record_lifecycle_action_heartbeat")
        machine.sleep(INTERVAL)


def _pods(machine: Machine, config: dict[str, Any]) -> dict[tuple[str, str], bool]:
    """Return the pods that are to go elsewhere, namespace and name, and whether each is about to end already."""
    name = config["facts"]["instanceId"]
    _kubectl(machine, "patch", "node", name, "-p", json.dumps(LEAVING))
    selector = "--field-selector=spec.nodeName=" + name
    found = {}
    for pod in json.loads(_kubectl(machine, "get", "pods", "--all-namespaces", selector, "-o", "json"))["items"]:
        data = pod["metadata"]
        owned = any(each["kind"] == "DaemonSet" for each in data.get("ownerReferences", []))
        static = "kubernetes.io/config.mirror" in data.get("annotations", {})
        ended = pod.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not (owned or static or ended):
            found[data["namespace"], data["name"]] = "deletionTimestamp" in data
    return found


def _evict(machine: Machine, namespace: str, name: str) -> None:
    """Ask for a pod's eviction; what refuses it (a disruption budget) may allow it later."""
    eviction = {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"namespace": namespace, "name": name},
    }
    path = f"/api/v1/namespaces/{namespace}/pods/{name}/eviction"
    try:
        _kubectl(machine, "create", "--raw", path, "-f", "-", stdin=json.dumps(eviction))
    except BootError as error:
        machine.log(f"{namespace}/{name} is not evicted: {error}")


def _kubectl(machine: Machine, *arguments: str, stdin: str = "") -> str:
    command = ("kubectl", "--kubeconfig", kubelet.KUBELET_CONF, "--request-timeout=10s", *arguments)
    return machine.run(*command, stdin=stdin, timeout=20)[1]


def _tell(machine: Machine, config: dict[str, Any], operation: str, **arguments: str) -> str:
    """Tell Auto Scaling how it goes; a termination that waits for nobody, or not any more, is fine."""
    facts = config["facts"]
    try:
        resource = machine.aws(
            "cloudformation",
            "describe_stack_resource",
            StackName=facts["stack"],
            LogicalResourceId=facts["resource"],
        )
        answer = machine.aws(
            "autoscaling",
            operation,
            "ValidationError",
            AutoScalingGroupName=resource["StackResourceDetail"]["PhysicalResourceId"],
            LifecycleHookName=HOOK,
            InstanceId=facts["instanceId"],
            **arguments,
        )
    except BootError as error:
        # The hook's own time-out ends the wait.
        return f"Auto Scaling was not told: {error}"
    return answer["Error"]["Message"] if "Error" in answer else "Auto Scaling was told"
