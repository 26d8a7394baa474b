"""Objects that the cluster's own programs make, change and delete: kubeadm, kubelets, the scheduler, the boot program.

Objects of users come in through `requests`; both write to `state`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cfngen.sandbox.kubernetes.state import NO_NETWORK_PLUGIN, SYSTEM, KubernetesState, Object, suffix, uid

CNI_FOLDER = "/etc/cni/net.d"
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"  # the label and the taint of masters
# Of the Deployment `coredns` of kubeadm (CoreDNSDeployment in cmd/kubeadm/app/phases/addons/dns/manifests.go).
COREDNS_LABELS = {"k8s-app": "kube-dns"}
COREDNS_PRIORITY = "system-cluster-critical"
COREDNS_TOLERATIONS: tuple[Object, ...] = (
    {"key": "CriticalAddonsOnly", "operator": "Exists"},
    {"key": CONTROL_PLANE, "effect": "NoSchedule"},
)


@dataclass(frozen=True)
class NodeFacts:
    """What a kubelet reports about its node when it registers.

    Attributes:
        name: the node's name, which is the instance's id.
        architecture: `amd64` or `arm64`.
        address: private address of the instance.
        public_address: its public address; empty if it has none.
        pod_cidr: range of the node's pod addresses; empty if it has none.
        versions: versions of `containerd` and `kubelet`; without the latter, the kubelet has the API server's version.
    """

    name: str
    zone: str
    instance_type: str
    architecture: str
    address: str
    public_address: str
    pod_cidr: str
    master: bool
    os_image: str
    versions: Mapping[str, str] = field(default_factory=dict)


def register_node(state: KubernetesState, node: NodeFacts) -> None:
    """Add a node, not Ready yet, as its kubelet and the cloud controller manager create it."""
    spec: Object = {
        "providerID": f"aws:///{node.zone}/{node.name}",
        "taints": [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if node.master else [],
    }
    if node.pod_cidr:
        spec |= {"podCIDR": node.pod_cidr, "podCIDRs": [node.pod_cidr]}
    metadata = {"name": node.name, "labels": _node_labels(node), "annotations": {}}
    state.put("nodes", {"metadata": metadata, "spec": spec, "status": _node_status(node, state)})
    state.set_ready(node.name, False)
    state.add_pod(f"kube-proxy-{suffix(node.name)}", node.name, labels={"k8s-app": "kube-proxy"})


def _region(node: NodeFacts) -> str:
    return node.zone.rstrip("abcdefgh")


def _node_labels(node: NodeFacts) -> dict[str, str]:
    labels = {
        "beta.kubernetes.io/arch": node.architecture,
        "beta.kubernetes.io/instance-type": node.instance_type,
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": node.architecture,
        "kubernetes.io/hostname": node.name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": node.instance_type,
        "topology.kubernetes.io/region": _region(node),
        "topology.kubernetes.io/zone": node.zone,
    }
    return {**labels, CONTROL_PLANE: ""} if node.master else labels


def _node_status(node: NodeFacts, state: KubernetesState) -> Object:
    domain = "ec2" if _region(node) == "us-east-1" else f"{_region(node)}.compute"
    addresses = {
        "InternalIP": node.address,
        "ExternalIP": node.public_address,
        "Hostname": node.name,
        "InternalDNS": f"ip-{node.address.replace('.', '-')}.{domain}.internal",
    }
    capacity = {"cpu": "2", "ephemeral-storage": "20134592Ki", "memory": "3931516Ki", "pods": "110"}
    reasons_without_pressure = {  # by condition
        "MemoryPressure": "KubeletHasSufficientMemory",
        "DiskPressure": "KubeletHasNoDiskPressure",
        "PIDPressure": "KubeletHasSufficientPID",
    }
    time = state.time()
    return {
        "addresses": [{"type": name, "address": address} for name, address in addresses.items() if address],
        "allocatable": capacity,
        "capacity": capacity,
        "conditions": [
            {"type": name, "status": "False", "reason": reason, "lastTransitionTime": time}
            for name, reason in reasons_without_pressure.items()
        ],
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": _node_info(node, node.versions.get("kubelet") or state.version),
    }


def _node_info(node: NodeFacts, kubelet: str) -> Object:
    return {
        "architecture": node.architecture,
        "bootID": uid(f"boot {node.name}"),
        "containerRuntimeVersion": f"containerd://{node.versions.get('containerd', '')}",
        "kernelVersion": "6.8.0-1021-aws",
        "kubeProxyVersion": f"v{kubelet}",
        "kubeletVersion": f"v{kubelet}",
        "machineID": uid(node.name).replace("-", ""),
        "operatingSystem": "linux",
        "osImage": node.os_image,
        "systemUUID": uid(f"system {node.name}"),
    }


def create_cluster_objects(state: KubernetesState, *, service_address: str, dns_address: str) -> None:
    """Add the namespaces, Services and CoreDNS pods of a new cluster, as `kubeadm init` creates them."""
    for name in ("default", "kube-node-lease", "kube-public", SYSTEM):
        state.put("namespaces", {"metadata": {"name": name}, "status": {"phase": "Active"}})
    services = {"kubernetes": ("default", service_address, 443), "kube-dns": (SYSTEM, dns_address, 53)}
    for name, (namespace, address, port) in services.items():
        spec = {"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "ports": [{"port": port}]}
        state.put("services", {"metadata": {"name": name, "namespace": namespace}, "spec": spec, "status": {}})
    for number in range(2):
        _add_coredns_pod(state, f"coredns-7c65d6cfc9-{suffix(f'coredns {number}')}")


def _add_coredns_pod(state: KubernetesState, name: str) -> None:
    state.add_pod(name, labels=COREDNS_LABELS, priority=COREDNS_PRIORITY, tolerations=COREDNS_TOLERATIONS)


def start_control_plane(state: KubernetesState, node: str) -> None:
    """Add the static pods of a master's control plane."""
    for name in ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler"):
        state.add_pod(f"{name}-{node}", node, labels={"component": name, "tier": "control-plane"})


def start_addons(state: KubernetesState, node: str, manifests: list[Object]) -> None:
    """Add the DaemonSets that the boot program applies, and their pods on a master."""
    for manifest in manifests:
        if manifest["kind"] == "DaemonSet":
            name = manifest["metadata"]["name"]
            state.put("daemonsets", manifest)
            state.add_pod(f"{name}-{suffix(node + name)}", node, labels=manifest["spec"]["selector"]["matchLabels"])


def addon_pods(state: KubernetesState, name: str) -> list[Object]:
    """Return the pods of a DaemonSet that the boot program has applied; none if there is no such DaemonSet."""
    daemon_set = state.get("daemonsets", name, SYSTEM)
    if daemon_set is None:
        return []
    labels = daemon_set["spec"]["selector"]["matchLabels"].items()
    return [pod for pod in state.list("pods", SYSTEM) if labels <= pod["metadata"].get("labels", {}).items()]


def remove_addon(state: KubernetesState, name: str) -> bool:
    """Remove a DaemonSet that the boot program has applied, and its pods; return whether there was one."""
    exists = state.get("daemonsets", name, SYSTEM) is not None
    for pod in addon_pods(state, name):
        state.remove("pods", pod["metadata"]["name"], SYSTEM)
    if exists:
        state.remove("daemonsets", name, SYSTEM)
    return exists


def is_network_plugin(daemon_set: Object) -> bool:
    """Return whether a DaemonSet is a network plug-in's: its pods reach the folder of the nodes' CNI configuration."""
    pod = daemon_set["spec"].get("template", {}).get("spec") or {}
    paths = [str((volume.get("hostPath") or {}).get("path", "")) for volume in pod.get("volumes") or ()]
    return any(path.rstrip("/") == CNI_FOLDER for path in paths)


def is_without_network_plugin(node: Object) -> bool:
    """Return whether a node is not Ready only because it has no network plug-in."""
    conditions = {condition["type"]: condition.get("message") for condition in node["status"]["conditions"]}
    return conditions.get("Ready") == NO_NETWORK_PLUGIN


def delete_node(state: KubernetesState, node: str) -> None:
    """Delete a node and its pods; CoreDNS's pods are created again, and are Pending."""
    state.remove("nodes", node)
    for pod in state.list("pods"):
        metadata = pod["metadata"]
        if pod["spec"].get("nodeName") == node:
            state.remove("pods", metadata["name"], metadata["namespace"])
            if metadata["name"].startswith("coredns-"):
                _add_coredns_pod(state, metadata["name"])
