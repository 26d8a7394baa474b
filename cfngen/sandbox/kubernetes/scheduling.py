"""The scheduler: which pod runs on which node, and in which zone the volume of its claim has to be.

kube-scheduler looks at taints, cordons, node selectors and at the zones of volumes (kubernetes.io, "Scheduling,
Preemption and Eviction" and "Storage Classes", Volume binding mode). Of several nodes it takes the one with the fewest
pods of the same labels: CoreDNS prefers different nodes. Requests for CPU and memory, and affinity, are not looked at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from cfngen.sandbox.kubernetes.admission import DELAYED_BINDING, claim_names
from cfngen.sandbox.kubernetes.state import KubernetesState, Object

SELECTED_NODE = "volume.kubernetes.io/selected-node"  # annotation of a claim: the node of the first pod that uses it
ZONE_LABEL = "topology.kubernetes.io/zone"


def schedule_pending_pods(state: KubernetesState) -> None:
    """Put each Pending pod on a node; without one that fits, it stays Pending, and an event says why.

    A pod with claims does not run before their volumes are attached to the node.
    """
    for pod in state.list("pods"):
        if is_pending(pod) and not pod["spec"].get("nodeName"):
            _schedule(state, pod)


def is_pending(pod: Object) -> bool:
    """Return whether a pod does not run yet, on a node or without one."""
    return bool(pod.get("status", {}).get("phase") == "Pending")


def bound_volume(state: KubernetesState, claim: Object) -> Object | None:
    """Return the PersistentVolume of a claim; None if the claim is not bound."""
    return state.get("persistentvolumes", claim["spec"].get("volumeName", ""))


def zone_of(state: KubernetesState, node: str) -> str:
    """Return the zone of a node; empty if there is no such node."""
    node_object = state.get("nodes", node)
    return str(node_object["metadata"]["labels"][ZONE_LABEL]) if node_object else ""


def _schedule(state: KubernetesState, pod: Object) -> None:
    claims = [state.get("persistentvolumeclaims", name, pod["metadata"]["namespace"]) for name in claim_names(pod)]
    node, problem = _choose_node(state, pod, [claim for claim in claims if claim])
    problem = next(_claim_problems(state, pod), problem)
    if problem:
        if [problem] != [condition.get("message") for condition in pod["status"].get("conditions", ())]:
            state.set_unscheduled(pod, problem)
        state.record_event("pods", pod, "FailedScheduling", problem, warning=True)
        return
    unbound_claims = [claim for claim in claims if claim and bound_volume(state, claim) is None]
    for claim in unbound_claims:
        claim["metadata"].setdefault("annotations", {})[SELECTED_NODE] = node
    if unbound_claims:
        return
    if claims:
        pod["spec"]["nodeName"] = node
    else:
        state.run_pod(pod, node)


def _claim_problems(state: KubernetesState, pod: Object) -> Iterator[str]:
    """Yield why a pod can run on no node because of its claims."""
    for name in claim_names(pod):
        claim = state.get("persistentvolumeclaims", name, pod["metadata"]["namespace"])
        if claim is None:
            yield f'persistentvolumeclaim "{name}" not found'
        elif "deletionTimestamp" in claim["metadata"]:
            yield f'persistentvolumeclaim "{name}" is being deleted'
        elif bound_volume(state, claim) is None:
            storage_class = state.get("storageclasses", claim["spec"].get("storageClassName", ""))
            if storage_class is None or storage_class["volumeBindingMode"] != DELAYED_BINDING:
                yield f"{_none_available(state)}pod has unbound immediate PersistentVolumeClaims."


def _choose_node(state: KubernetesState, pod: Object, claims: Sequence[Object]) -> tuple[str, str]:
    """Return the node for a pod; if none fits, an empty text and the reasons."""
    nodes = state.list("nodes")
    reasons = [_why_not_on(state, pod, claims, node) for node in nodes]
    names = [node["metadata"]["name"] for node, reason in zip(nodes, reasons, strict=True) if not reason]
    if not names:
        counted = (f"{count} node(s) {reason}" for reason, count in sorted(Counter(reasons).items()))
        return "", f"{_none_available(state)}{', '.join(counted)}."
    labels = pod["metadata"].get("labels")
    siblings = [other for other in state.list("pods") if other["metadata"].get("labels") == labels]
    used_nodes = [sibling["spec"].get("nodeName") for sibling in siblings]
    return min(names, key=used_nodes.count), ""


def _none_available(state: KubernetesState) -> str:
    return f"0/{len(state.list('nodes'))} nodes are available: "


def _why_not_on(state: KubernetesState, pod: Object, claims: Sequence[Object], node: Object) -> str:
    """Return why a pod cannot run on a node, in the scheduler's words; empty if it can."""
    if node["spec"].get("unschedulable"):
        return "were unschedulable"
    for taint in node["spec"].get("taints", ()):
        if not _tolerates(pod["spec"].get("tolerations") or (), taint):
            return f"had untolerated taint {{{taint['key']}: }}"
    if not (pod["spec"].get("nodeSelector") or {}).items() <= node["metadata"]["labels"].items():
        return "didn't match Pod's node affinity/selector"
    volumes = (bound_volume(state, claim) for claim in claims)
    zones = {zone for volume in volumes if volume for zone in volume_zones(volume)}
    return "had volume node affinity conflict" if zones - {zone_of(state, node["metadata"]["name"])} else ""


def volume_zones(volume: Object) -> list[str]:
    """Return the zones in which a PersistentVolume can be attached."""
    [term] = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
    return [zone for expression in term["matchExpressions"] for zone in expression["values"]]


def _tolerates(tolerations: Sequence[Object], taint: Object) -> bool:
    """Return whether one of a pod's tolerations is for a taint; the taints of the emulator have no values."""
    return any(
        toleration.get("key", taint["key"]) == taint["key"]
        and toleration.get("effect", taint["effect"]) == taint["effect"]
        for toleration in tolerations
    )
