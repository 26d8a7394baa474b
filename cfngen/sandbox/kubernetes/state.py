"""The objects in a cluster's Kubernetes API: plain dictionaries by kind, namespace and name.

Tests may change them directly: `state.get("nodes", name)["spec"]…`, `state.put("services", {…})`.
"""

from __future__ import annotations

import copy
import datetime
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from cfngen.sandbox.untyped import JsonDict, JsonObject

Object = JsonDict  # an object of the Kubernetes API, with its metadata, spec and status
SYSTEM = "kube-system"  # the namespace of the system's pods
# What a kubelet says of its node before a network plug-in has put its configuration on it.
NO_NETWORK_PLUGIN = (
    "container runtime network not ready: NetworkReady=false reason:NetworkPluginNotReady message:Network plugin "
    "returns error: cni plugin not initialized"
)


class RefusedError(Exception):
    """The API refuses a request.

    Args:
        reason: machine-readable reason, e.g. `NotFound`.
    """

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason


@dataclass(frozen=True)
class Kind:
    """A kind of objects.

    Attributes:
        group: API group; empty for the core group.
        name: e.g. `ConfigMap`.
        short_names: the abbreviations that kubectl accepts, e.g. `cm`.
    """

    group: str
    version: str
    name: str
    namespaced: bool = True
    short_names: tuple[str, ...] = ()

    @property
    def api_version(self) -> str:
        """The `apiVersion` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


# The kinds that a new cluster has, that cfngen reads, or that a newcomer tries first.
KINDS: Mapping[str, Kind] = {
    "configmaps": Kind("", "v1", "ConfigMap", short_names=("cm",)),
    "events": Kind("", "v1", "Event", short_names=("ev",)),
    "namespaces": Kind("", "v1", "Namespace", namespaced=False, short_names=("ns",)),
    "nodes": Kind("", "v1", "Node", namespaced=False, short_names=("no",)),
    "persistentvolumeclaims": Kind("", "v1", "PersistentVolumeClaim", short_names=("pvc",)),
    "persistentvolumes": Kind("", "v1", "PersistentVolume", namespaced=False, short_names=("pv",)),
    "pods": Kind("", "v1", "Pod", short_names=("po",)),
    "secrets": Kind("", "v1", "Secret"),
    "serviceaccounts": Kind("", "v1", "ServiceAccount", short_names=("sa",)),
    "services": Kind("", "v1", "Service", short_names=("svc",)),
    "daemonsets": Kind("apps", "v1", "DaemonSet", short_names=("ds",)),
    "deployments": Kind("apps", "v1", "Deployment", short_names=("deploy",)),
    "storageclasses": Kind("storage.k8s.io", "v1", "StorageClass", namespaced=False, short_names=("sc",)),
}


RESTORE_VERSION_JUMP = 10**9  # how far resource versions jump ahead when a snapshot is restored


class KubernetesState:
    """The objects of one cluster.

    Args:
        version: version of the API server, e.g. `1.36.3`.
    """

    def __init__(self, now: Callable[[], datetime.datetime], version: str) -> None:
        self.now = now
        self.version = version
        # By plural of the kind, then by namespace and name; the namespace of cluster-wide objects is empty.
        self._objects: dict[str, dict[tuple[str, str], Object]] = {plural: {} for plural in KINDS}
        self._changes = 0  # how many changes there were, from which resource versions are made

    @property
    def resource_version(self) -> str:
        """The `resourceVersion` of the newest change."""
        return str(self._changes)

    def put(self, kind: str, item: JsonObject) -> Object:
        """Create or replace an object, with the metadata that the API server fills in."""
        stored: Object = copy.deepcopy(dict(item))
        metadata = stored.setdefault("metadata", {})
        if KINDS[kind].namespaced:
            metadata.setdefault("namespace", "default")
        self._changes += 1
        metadata.setdefault("uid", uid(f"{kind} {metadata['name']} {self._changes}"))
        metadata.setdefault("creationTimestamp", self.time())
        metadata["resourceVersion"] = str(self._changes)
        self._objects[kind][metadata.get("namespace", ""), metadata["name"]] = stored
        return stored

    def get(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return an object, or None if it does not exist; it is not a copy, so changes to it are visible in the API."""
        return self._objects[kind].get((namespace, name))

    def remove(self, kind: str, name: str, namespace: str = "") -> None:
        """Remove an object, if it exists."""
        self._changes += 1
        self._objects[kind].pop((namespace, name), None)

    def list(self, kind: str, namespace: str = "") -> list[Object]:
        """Return the objects of a kind in one namespace or in all, in the API server's order."""
        objects = self._objects[kind]
        keys = sorted(objects)  # by namespace, then by name
        return [objects[key] for key in keys if not namespace or key[0] == namespace]

    def dump(self) -> str:
        """Return all objects as JSON, the content of a snapshot."""
        return json.dumps({kind: list(items.values()) for kind, items in self._objects.items()})

    def load(self, text: str) -> None:
        """Replace all objects with those of a `dump`; resource versions jump ahead, as after a real restore."""
        for kind, items in json.loads(text).items():
            items_by_key = {(item["metadata"].get("namespace", ""), item["metadata"]["name"]): item for item in items}
            self._objects[kind] = items_by_key
        self._changes += RESTORE_VERSION_JUMP

    def time(self, seconds_from_now: float = 0) -> str:
        """Return the time, or a time some seconds from now, in the form of timestamps in objects."""
        moment = self.now() + datetime.timedelta(seconds=seconds_from_now)
        return moment.strftime("%Y-%m-%dT%H:%M:%SZ")

    def set_ready(self, node: str, ready: bool, reason: str = "", message: str = "") -> None:
        """Set the Ready condition of a node, and add or remove the taint `not-ready`.

        Args:
            message: by default, if the node is not ready, that it has no network plug-in.
        """
        node_object = self._objects["nodes"]["", node]
        status = "True" if ready else "False"
        if reason == "NodeStatusUnknown":
            status = "Unknown"
        reason = reason or ("KubeletReady" if ready else "KubeletNotReady")
        message = message or ("kubelet is posting ready status" if ready else NO_NETWORK_PLUGIN)
        taints = [
            taint for taint in node_object["spec"].get("taints", []) if taint["key"] != "node.kubernetes.io/not-ready"
        ]
        if not ready:
            taints.append({"key": "node.kubernetes.io/not-ready", "effect": "NoSchedule"})
        node_object["spec"]["taints"] = taints
        other_conditions = [
            condition for condition in node_object["status"]["conditions"] if condition["type"] != "Ready"
        ]
        node_object["status"]["conditions"] = [*other_conditions, self._condition("Ready", status, reason, message)]

    def add_pod(
        self,
        name: str,
        node: str = "",
        *,
        labels: Mapping[str, str] | None = None,
        image: str = "",
        priority: str = "system-node-critical",
        tolerations: Sequence[Object] = (),
    ) -> Object:
        """Add a pod to kube-system: Running if `node` is set, otherwise Pending."""
        container = name.split("-" + node)[0] if node else name  # a static pod's name ends with its node's
        spec: Object = {"containers": [{"name": container, "image": image}], "priorityClassName": priority}
        if tolerations:
            spec["tolerations"] = list(tolerations)
        metadata: Object = {"name": name, "namespace": SYSTEM, "labels": dict(labels or {})}
        pod = self.put("pods", {"metadata": metadata, "spec": spec})
        if node:
            self.run_pod(pod, node)
        else:
            self.set_unscheduled(pod)
        return pod

    def run_pod(self, pod: Object, node: str) -> None:
        """Let a pod run on a node, with all its containers ready."""
        true_conditions = ("Initialized", "Ready", "ContainersReady", "PodScheduled")
        pod["spec"]["nodeName"] = node
        pod["status"] = {
            "phase": "Running",
            "startTime": self.time(),
            "conditions": [self._condition(condition_type, "True") for condition_type in true_conditions],
            "containerStatuses": [
                {
                    "name": container["name"], "ready": True, "started": True, "restartCount": 0,
                    "image": container.get("image", ""), "imageID": "",
                    "state": {"running": {"startedAt": self.time()}}, "lastState": {},
                }
                for container in pod["spec"].get("containers") or ()
            ],
        }  # fmt: skip

    def set_unscheduled(self, pod: Object, message: str = "") -> None:
        """Let a pod be Pending, since it fits on no node."""
        condition = self._condition("PodScheduled", "False", "Unschedulable", message)
        pod["status"] = {"phase": "Pending", "conditions": [condition]}

    def record_event(self, plural: str, item: Object, reason: str, message: str, *, warning: bool = False) -> None:
        """Record an event about an object, unless there is the same one already.

        Args:
            plural: the resource of the object, e.g. `pods`.
            reason: machine-readable reason, e.g. `FailedScheduling`.
        """
        metadata, kind = item["metadata"], KINDS[plural]
        name = f"{metadata['name']}.{suffix(' '.join((metadata['uid'], reason, message)))}"
        namespace = metadata.get("namespace") or "default"
        if self.get("events", name, namespace):
            return
        involved_object = {"apiVersion": kind.api_version, "kind": kind.name, "uid": metadata["uid"]}
        involved_object |= {key: metadata[key] for key in ("name", "namespace") if key in metadata}
        self.put(
            "events",
            {
                "metadata": {"name": name, "namespace": namespace},
                "involvedObject": involved_object,
                "reason": reason,
                "message": message,
                "type": "Warning" if warning else "Normal",
                "firstTimestamp": self.time(),
                "lastTimestamp": self.time(),
                "count": 1,
            },
        )

    def _condition(self, condition_type: str, status: str, reason: str = "", message: str = "") -> Object:
        """Return a condition of a node or pod that has this status from now on."""
        condition: Object = {"type": condition_type, "status": status, "lastTransitionTime": self.time()}
        if reason:
            condition["reason"] = reason
        if message:
            condition["message"] = message
        return condition


def uid(text: str) -> str:
    """Return a UID in Kubernetes' form, derived from a text: the same one for the same text."""
    digest = hashlib.sha256(text.encode()).hexdigest()
    return "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))


def suffix(text: str) -> str:
    """Return five characters like the ones Kubernetes appends to names of pods, derived from a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:5]
