"""The parts of Kubernetes objects that cfngen uses, parsed from the JSON of the API.

Missing fields become empty values, so that parsing does not depend on a version of Kubernetes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

CONTROL_PLANE_LABEL = "node-role.kubernetes.io/control-plane"
UNINITIALIZED_TAINT = "node.cloudprovider.kubernetes.io/uninitialized"
KubernetesObject: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Node:
    """A Node.

    Attributes:
        name: its name; cfngen's nodes are named after their instance.
        instance_id: EC2 instance id from its providerID; empty if it has none.
        reason: why it is not ready, from that condition.
        version: version of the kubelet, e.g. `1.36.3`.
        master: whether it has the label of the control plane.
        initialised: whether the cloud controller manager has initialised it; until then no pods are scheduled on it.
        routed: whether its network is available; in route mode, whether there is a route to its pods.
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
        node: the node it runs on; empty until it is scheduled.
        phase: `Pending`, `Running`, `Succeeded`, `Failed` or `Unknown`.
        ready: whether all of its containers are ready, or it has succeeded.
        reason: why it is not ready, e.g. `CrashLoopBackOff`.
    """

    name: str
    node: str = ""
    phase: str = ""
    ready: bool = False
    reason: str = ""
    message: str = ""
    being_deleted: bool = False


@dataclass(frozen=True)
class LoadBalancer:
    """A Service of type LoadBalancer.

    Attributes:
        hostname: DNS name of the load balancer in AWS; empty until it has one.
    """

    namespace: str
    name: str
    hostname: str = ""
    being_deleted: bool = False


@dataclass(frozen=True)
class Readiness:
    """The readiness of the API server."""

    ready: bool
    failing: tuple[str, ...] = ()


def parse_node(node: KubernetesObject) -> Node:
    """Return a Node from its JSON."""
    spec, status, metadata = _mapping_at(node, "spec"), _mapping_at(node, "status"), _mapping_at(node, "metadata")
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    ready_condition = conditions.get("Ready", {})
    reasons = [str(ready_condition.get(key, "")) for key in ("reason", "message")]
    taints = {taint.get("key") for taint in spec.get("taints") or ()}
    is_ready = ready_condition.get("status") == "True"
    return Node(
        name=str(metadata.get("name", "")),
        # aws:///<zone>/<instance>; https://cloud-provider-aws.sigs.k8s.io/prerequisites/
        instance_id=str(spec.get("providerID") or "").rpartition("/")[2],
        ready=is_ready,
        reason="" if is_ready else ": ".join(filter(None, reasons)) or "its kubelet has not reported anything yet",
        version=_version(_mapping_at(status, "nodeInfo").get("kubeletVersion")),
        master=CONTROL_PLANE_LABEL in (metadata.get("labels") or {}),
        initialised=UNINITIALIZED_TAINT not in taints,
        routed=conditions.get("NetworkUnavailable", {}).get("status") != "True",
    )


def parse_pod(pod: KubernetesObject) -> Pod:
    """Return a Pod from its JSON."""
    spec, status, metadata = _mapping_at(pod, "spec"), _mapping_at(pod, "status"), _mapping_at(pod, "metadata")
    phase = str(status.get("phase", ""))
    conditions = {condition.get("type"): condition for condition in status.get("conditions") or ()}
    is_ready = phase == "Succeeded" or (phase == "Running" and conditions.get("Ready", {}).get("status") == "True")
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    reason, message = ("", "") if is_ready else _not_ready_reason(status, conditions, containers)
    return Pod(
        name=str(metadata.get("name", "")),
        node=str(spec.get("nodeName") or ""),
        phase=phase,
        ready=is_ready,
        reason=reason,
        message=message,
        being_deleted="deletionTimestamp" in metadata,
    )


def parse_load_balancer(service: KubernetesObject) -> LoadBalancer:
    """Return a Service of type LoadBalancer from its JSON."""
    metadata = _mapping_at(service, "metadata")
    ingress: list[KubernetesObject] = _mapping_at(_mapping_at(service, "status"), "loadBalancer").get("ingress") or [{}]
    return LoadBalancer(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata.get("name", "")),
        hostname=str(ingress[0].get("hostname") or ingress[0].get("ip") or ""),
        being_deleted="deletionTimestamp" in metadata,
    )


def parse_version(response: KubernetesObject) -> str:
    """Return the version of the API server from the response of /version, e.g. `1.36.3`."""
    return _version(response.get("gitVersion"))


def parse_readiness(text: str) -> Readiness:
    """Parse the verbose response of /readyz: one line for each check, beginning with `[-]` if it fails."""
    failing = tuple(line[3:].split(" ")[0] for line in text.splitlines() if line.startswith("[-]"))
    last_line = text.strip().splitlines()[-1:]
    return Readiness(ready=not failing and last_line != ["readyz check failed"], failing=failing)


def _not_ready_reason(
    status: KubernetesObject, conditions: Mapping[str, KubernetesObject], containers: list[KubernetesObject]
) -> tuple[str, str]:
    """Return the most specific reason why a pod is not ready, and the message that belongs to it; both may be empty."""
    for container in containers:
        state = _mapping_at(container, "state")
        for state_name in ("waiting", "terminated"):
            details = _mapping_at(state, state_name)
            # An init container that succeeded is terminated too, and not a reason.
            has_succeeded = state_name == "terminated" and details.get("exitCode") == 0
            if details and not has_succeeded:
                return str(details.get("reason") or state_name), str(details.get("message") or "")
    for condition_type in ("PodScheduled", "Ready"):
        condition = conditions.get(condition_type, {})
        if condition.get("status") == "False":
            return str(condition.get("reason") or condition_type), str(condition.get("message") or "")
    return str(status.get("reason") or ""), str(status.get("message") or "")


def _mapping_at(parent: KubernetesObject, key: str) -> KubernetesObject:
    value = parent.get(key)
    return value if isinstance(value, Mapping) else {}


def _version(text: object) -> str:
    """Return a version without the `v` that Kubernetes writes before it."""
    return str(text or "").removeprefix("v")
