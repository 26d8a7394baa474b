"""Objects of a cluster that its users, or a failure, would make: load balancers, claims, pods, waiting containers."""

from __future__ import annotations

import json
from typing import Any

from cfngen.sandbox.kubernetes.cluster import KubernetesCluster
from cfngen.sandbox.kubernetes.controllers import BALANCER_TYPE_ANNOTATION, Controllers
from cfngen.sandbox.kubernetes.requests import ApiRequest, Cluster, answer, parse_path
from cfngen.sandbox.kubernetes.state import SYSTEM, KubernetesState, Object


def add_load_balancer(
    controllers: Controllers, name: str, namespace: str = "default", *, network_load_balancer: bool = False
) -> Object:
    """Add a Service of type LoadBalancer, for which the cloud controller manager creates a load balancer."""
    metadata: Object = {"name": name, "namespace": namespace}
    if network_load_balancer:
        metadata["annotations"] = {BALANCER_TYPE_ANNOTATION: "nlb"}
    ports = [{"port": 80, "protocol": "TCP", "targetPort": 8080, "nodePort": 30080}]
    service = {"metadata": metadata, "spec": {"type": "LoadBalancer", "ports": ports}, "status": {}}
    created = controllers.state.put("services", service)
    controllers.on_created("services", created)
    return created


def kubectl(cluster: KubernetesCluster, method: str, path: str, body: Object | None = None) -> Any:
    """What a cluster's API answers to a request of an administrator; a refusal is raised."""
    controllers = cluster.controllers
    served = Cluster(controllers.state, controllers.on_created, controllers.delete_object)
    request = ApiRequest(method, parse_path(path), {}, json.dumps(body).encode(), "application/json", wants_table=False)
    return answer(served, request)[1]


def install_network_plugin(cluster: KubernetesCluster) -> None:
    """Apply a DaemonSet that configures the network of pods, as plug-ins do."""
    spec = {"template": {"spec": {"volumes": [{"name": "cni", "hostPath": {"path": "/etc/cni/net.d"}}]}}}
    kubectl(
        cluster, "POST", "/apis/apps/v1/namespaces/kube-system/daemonsets", {"metadata": {"name": "cni"}, "spec": spec}
    )


def claim(name: str = "data", **spec: Any) -> Object:
    """A PersistentVolumeClaim of 4 GiB of the default StorageClass, for `kubectl`."""
    common = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "4Gi"}}}
    return {"metadata": {"name": name}, "spec": {**common, **spec}}


def pod_with(*claims: str, name: str = "db", **spec: Any) -> Object:
    """A pod that uses claims, for `kubectl`."""
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    containers = [{"name": "db", "image": "db"}]
    return {"metadata": {"name": name}, "spec": {"containers": containers, "volumes": volumes, **spec}}


def set_waiting(state: KubernetesState, pod: str, reason: str, message: str = "") -> None:
    """Set the container of a system pod to waiting for a reason, e.g. CrashLoopBackOff."""
    pod_object = state.get("pods", pod, SYSTEM)
    assert pod_object is not None
    [container] = pod_object["status"]["containerStatuses"]
    waiting = {"waiting": {"reason": reason, "message": message}}
    container |= {"ready": False, "started": False, "restartCount": 5, "state": waiting}
    others = [
        condition
        for condition in pod_object["status"]["conditions"]
        if condition["type"] not in ("Ready", "ContainersReady")
    ]
    common = {"status": "False", "lastTransitionTime": state.time(), "reason": "ContainersNotReady"}
    pod_object["status"]["conditions"] = [*others, {"type": "ContainersReady", **common}, {"type": "Ready", **common}]
