"""What cfngen reads of a cluster's Kubernetes objects, from the JSON of the API.

Whatever an object lacks is empty here: what is read must not depend on every field of a version of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
UNINITIALISED = "node.cloudprovider.kubernetes.io/uninitialized"
Object = Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """A Node.

    Attributes:
        name: its name; cfngen's nodes are named after their instance.
        instance_id: the instance it says it runs on; empty if it does not say.
        ready: whether its kubelet says it is, and is heard of.
        reason: why it is not ready; what the kubelet says.
        version: of the kubelet, e.g. `1.36.3`.
        master: whether it has the control plane's role.
        initialised: whether the cloud controller manager has seen it; before, it takes no pods.
        routed: whether its network is set up, which in route mode means that there is a route to its pods.
    """

    name: str
    instance_id: str = ""
    ready: bool = False
    reason: str = ""
    version: str = ""
    master: bool = False
    initialised: bool = True
    routed: bool = True


@dataclass(frozen=True)
class Pod:
    """A Pod.

    Attributes:
        name: its name.
        node: where it runs; empty if nowhere yet.
        phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        ready: whether all of its containers are, or it has done its work.
        reason: why it is not; e.g. `CrashLoopBackOff`.
        message: more about the reason.
        leaving: whether it is being deleted.
    """

    name: str
    node: str = ""
    phase: str = ""
    ready: bool = False
    reason: str = ""
    message: str = ""
    leaving: bool = False


@dataclass(frozen=True)
class LoadBalancer:
    """A Service of type LoadBalancer.

    Attributes:
        namespace: its namespace.
        name: its name.
        hostname: DNS name of the load balancer in AWS; empty until it has one.
        leaving: whether it is being deleted.
    """

    namespace: str
    name: str
    hostname: str = ""
    leaving: bool = False


@dataclass(frozen=True)
class Readiness:
    """What the API server says of itself.

    Attributes:
        ready: whether it is.
        failing: names of its checks that fail, e.g. `etcd`.
    """

    ready: bool
    failing: tuple[str, ...] = ()


def node(item: Object) -> Node:
    """Return a Node from its JSON."""
    spec, status, metadata = _of(item, "spec"), _of(item, "status"), _of(item, "metadata")
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready = conditions.get("Ready", {})
    reasons = [str(ready.get(key, "")) for key in ("reason", "message")]
    taints = {taint.get("key") for taint in spec.get("taints") or ()}
    is_ready = ready.get("status") == "True"
    return Node(
        name=str(metadata.get("name", "")),
        # aws:///<zone>/<instance>; https://cloud-provider-aws.sigs.k8s.io/prerequisites/
        instance_id=str(spec.get("providerID") or "").rpartition("/")[2],
        ready=is_ready,
        reason="" if is_ready else ": ".join(filter(None, reasons)) or "its kubelet has not said anything yet",
        version=_version(_of(status, "nodeInfo").get("kubeletVersion")),
        master=CONTROL_PLANE in (metadata.get("labels") or {}),
        initialised=UNINITIALISED not in taints,
        routed=conditions.get("NetworkUnavailable", {}).get("status") != "True",
    )


def pod(item: Object) -> Pod:
    """Return a Pod from its JSON."""
    spec, status, metadata = _of(item, "spec"), _of(item, "status"), _of(item, "metadata")
    phase = str(status.get("phase", ""))
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready = phase == "Succeeded" or (phase == "Running" and conditions.get("Ready", {}).get("status") == "True")
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    reason, message = ("", "") if ready else _why(status, conditions, containers)
    return Pod(
        name=str(metadata.get("name", "")),
        node=str(spec.get("nodeName") or ""),
        phase=phase,
        ready=ready,
        reason=reason,
        message=message,
        leaving="deletionTimestamp" in metadata,
    )


def load_balancer(item: Object) -> LoadBalancer:
    """Return a Service of type LoadBalancer from its JSON."""
    metadata = _of(item, "metadata")
    ingress: list[Object] = _of(_of(item, "status"), "loadBalancer").get("ingress") or [{}]
    return LoadBalancer(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        hostname=str(ingress[0].get("hostname") or ingress[0].get("ip") or ""),
        leaving="deletionTimestamp" in metadata,
    )


def version(item: Object) -> str:
    """Return the version of the API server from the answer of /version, e.g. `1.36.3`."""
    return _version(item.get("gitVersion"))


def readiness(text: str) -> Readiness:
    """Return what the verbose answer of /readyz says: a line for each check, `[-]` before one that fails."""
    failing = tuple(line[3:].split(" ")[0] for line in text.splitlines() if line.startswith("[-]"))
    last = text.strip().splitlines()[-1:]
    return Readiness(not failing and last != ["readyz check failed"], failing)


def _why(status: Object, conditions: Mapping[str, Object], containers: list[Object]) -> tuple[str, str]:
    """Return the nearest reason why a pod is not ready, and what is said about it."""
    for container in containers:
        state = _of(container, "state")
        for kind in ("waiting", "terminated"):
            said = _of(state, kind)
            # An init container that has done its work has terminated too.
            if said and not (kind == "terminated" and said.get("exitCode") == 0):
                return str(said.get("reason") or kind), str(said.get("message") or "")
    for each in ("PodScheduled", "Ready"):
        condition = conditions.get(each, {})
        if condition.get("status") == "False":
            return str(condition.get("reason") or each), str(condition.get("message") or "")
    return str(status.get("reason") or ""), str(status.get("message") or "")


def _of(item: Object, key: str) -> Object:
    found = item.get(key)
    return found if isinstance(found, Mapping) else {}


def _version(text: object) -> str:
    return str(text or "").removeprefix("v")
