"""The configuration of a kind cluster (kind.x-k8s.io/v1alpha4) that is like the cluster of a cluster file.

Fields after pkg/apis/config/v1alpha4/types.go of kubernetes-sigs/kind v0.33.0. kind writes kubeadm's documents itself,
as kubeadm.k8s.io/v1beta4 from Kubernetes 1.36 on and as v1beta3 before (kubernetes-sigs/kind#4173), and merges patches
into the documents of the same kind and version.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.releases import kind_image
from cfngen.userdata import audit, kubeadm

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from cfngen.boot.contract import JsonObject
    from cfngen.cluster.model import Cluster
    from cfngen.cluster.sections.instances import NodeGroup

# Folder, beside the configuration, with the files that are mounted into the control plane's container.
FILES_FOLDER = "files"
API_PORT = 6443
_COMPONENTS = ("apiServer", "controllerManager", "scheduler")
# Flags for AWS, or for resources that only the cluster in AWS has. kubeadm sets the two for pods' addresses itself.
_FLAGS_FOR_AWS = frozenset(
    {
        "allocate-node-cidrs",
        "cloud-provider",
        "cluster-cidr",
        "configure-cloud-routes",
        "service-account-issuer",
        "service-account-jwks-uri",
    }
)
# Fields of the KubeletConfiguration about the machine, which in kind is a container that shares the host's resources.
_KUBELET_FIELDS_OF_MACHINES = frozenset(
    {
        "allowedUnsafeSysctls",
        "cgroupDriver",
        "cgroupRoot",
        "containerRuntimeEndpoint",
        "cpuManagerPolicy",
        "cpuManagerPolicyOptions",
        "enforceNodeAllocatable",
        "evictionHard",
        "evictionMinimumReclaim",
        "evictionSoft",
        "evictionSoftGracePeriod",
        "failSwapOn",
        "imageGCHighThresholdPercent",
        "imageGCLowThresholdPercent",
        "kubeReserved",
        "kubeReservedCgroup",
        "memoryManagerPolicy",
        "providerID",
        "protectKernelDefaults",
        "reservedMemory",
        "reservedSystemCPUs",
        "resolvConf",
        # Nothing approves the certificates that a kubelet would ask for.
        "serverTLSBootstrap",
        "shutdownGracePeriod",
        "shutdownGracePeriodByPodPriority",
        "shutdownGracePeriodCriticalPods",
        "systemReserved",
        "systemReservedCgroup",
        "topologyManagerPolicy",
        "topologyManagerScope",
    }
)


def configuration(cluster: Cluster) -> JsonObject:
    """Return kind's configuration: one control-plane node, and a worker for each node group.

    Its `hostPath`s are relative to the folder with the configuration, which must be the working directory of kind.
    """
    image = kind_image(cluster.kubernetes_version).reference
    plugin = network_plugin(cluster)
    networking: JsonObject = {"serviceSubnet": str(cluster.network.service_cidr)}
    if plugin.uses_pod_cidr:
        networking["podSubnet"] = str(cluster.network.pod_cidr)
    if not has_kinds_network(cluster):
        networking["disableDefaultCNI"] = True
    mounts = [
        {"hostPath": f"{FILES_FOLDER}{path}", "containerPath": path, "readOnly": True}
        for path in mounted_files(cluster)
    ]
    control_plane: JsonObject = {"role": "control-plane", "image": image}
    if mounts:
        control_plane["extraMounts"] = mounts
    return {
        "kind": "Cluster",
        "apiVersion": "kind.x-k8s.io/v1alpha4",
        "name": cluster.name,
        "networking": networking,
        "kubeadmConfigPatches": [_document(_cluster_patch(cluster)), _document(_kubelet_patch(cluster))],
        "nodes": [control_plane, *(_worker(cluster, group, image) for group in cluster.node_groups)],
    }


def has_kinds_network(cluster: Cluster) -> bool:
    """Whether kind's own network plug-in takes the place of one that needs the VPC."""
    plugin = network_plugin(cluster)
    return plugin.uses_vpc_routes or plugin.gives_pods_vpc_addresses


def mounted_files(cluster: Cluster) -> dict[str, str]:
    """Return the files that the control plane's components read, by path: the audit policy, and the user's own."""
    texts = {file.path: file.content for file in cluster.control_plane.files}
    texts.update(audit.files(cluster))
    volumes = [volume["hostPath"] for component in _COMPONENTS for volume in _volumes(cluster, component)]
    return {path: text for path, text in texts.items() if any(_is_under(path, volume) for volume in volumes)}


def settings_left_out(cluster: Cluster) -> list[str]:
    """Return the user's settings that the kind cluster has not, as paths in the cluster file."""
    kubelet_fields = sorted(cluster.kubernetes.kubelet_configuration.keys() & _KUBELET_FIELDS_OF_MACHINES)
    paths = [f"kubernetes.kubeletConfiguration.{field}" for field in kubelet_fields]
    for component in _COMPONENTS:
        section = cluster.kubernetes.cluster_configuration.get(component) or {}
        kept_flags = {argument["name"] for argument in _arguments(cluster, component)}
        paths += [
            f"kubernetes.clusterConfiguration.{component}.extraArgs ({argument['name']})"
            for argument in section.get("extraArgs") or []
            if argument["name"] not in kept_flags
        ]
    paths += [
        f"nodeGroups[{number}].kubeletConfiguration"
        for number, group in enumerate(cluster.node_groups)
        if group.kubelet_configuration
    ]
    return paths


def _worker(cluster: Cluster, group: NodeGroup, image: str) -> JsonObject:
    """Return the node for a group, with the labels that its instances have, those of the cloud provider included."""
    labels = {
        "topology.kubernetes.io/region": cluster.region,
        "topology.kubernetes.io/zone": group.zones[0],
        **group.labels,
    }
    worker: JsonObject = {"role": "worker", "image": image, "labels": labels}
    if group.taints:
        taints = [taint.model_dump() for taint in group.taints]
        patch = {
            "kind": "JoinConfiguration",
            "apiVersion": _kubeadm_version(cluster),
            "nodeRegistration": {"taints": taints},
        }
        worker["kubeadmConfigPatches"] = [_document(patch)]
    return worker


def _cluster_patch(cluster: Cluster) -> JsonObject:
    patch: JsonObject = {
        "kind": "ClusterConfiguration",
        "apiVersion": _kubeadm_version(cluster),
        "networking": {"dnsDomain": cluster.network.dns_domain},
    }
    document = _cluster_configuration(cluster)
    if gates := document.get("featureGates"):
        patch["featureGates"] = gates
    for component in _COMPONENTS:
        section: JsonObject = {}
        if arguments := _arguments(cluster, component):
            section["extraArgs"] = _in_version(cluster, arguments)
        if volumes := _volumes(cluster, component):
            section["extraVolumes"] = volumes
        if section:
            patch[component] = section
    etcd_arguments = document["etcd"]["local"].get("extraArgs")
    if etcd_arguments:
        patch["etcd"] = {"local": {"extraArgs": _in_version(cluster, etcd_arguments)}}
    return patch


def _kubelet_patch(cluster: Cluster) -> JsonObject:
    fields = cluster.kubernetes.kubelet_configuration
    return {
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "clusterDomain": cluster.network.dns_domain,
        **{key: value for key, value in fields.items() if key not in _KUBELET_FIELDS_OF_MACHINES},
    }


def _cluster_configuration(cluster: Cluster) -> JsonObject:
    return kubeadm.init_documents(cluster)[1]


def _arguments(cluster: Cluster, component: str) -> list[JsonObject]:
    """Return a component's flags, without those for AWS, and those that name files which kind's nodes have not."""
    kept_volumes = _volumes(cluster, component)
    section = _cluster_configuration(cluster).get(component, {})
    missing = [volume["mountPath"] for volume in section.get("extraVolumes") or [] if volume not in kept_volumes]
    return [
        argument
        for argument in section.get("extraArgs") or []
        if argument["name"] not in _FLAGS_FOR_AWS and not any(_is_under(argument["value"], path) for path in missing)
    ]


def _volumes(cluster: Cluster, component: str) -> list[JsonObject]:
    """Return the host paths of a component that kind's node has: the files of the cluster file, and what is created."""
    texts = {file.path for file in cluster.control_plane.files} | audit.files(cluster).keys()
    return [
        volume
        for volume in _cluster_configuration(cluster).get(component, {}).get("extraVolumes") or []
        if volume.get("pathType", "").endswith("OrCreate") or any(_is_under(path, volume["hostPath"]) for path in texts)
    ]


def _is_under(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def _kubeadm_version(cluster: Cluster) -> str:
    """Return the version of kubeadm's documents that kind writes for the cluster's Kubernetes."""
    minor = int(kind_image(cluster.kubernetes_version).kubernetes_version.split(".")[1])
    return kubeadm.API_VERSION if minor >= 36 else "kubeadm.k8s.io/v1beta3"


def _in_version(cluster: Cluster, arguments: Iterable[Mapping[str, str]]) -> object:
    """Return flags as kubeadm's documents have them: a list in v1beta4, a mapping in v1beta3."""
    if _kubeadm_version(cluster) == kubeadm.API_VERSION:
        return list(arguments)
    return {argument["name"]: argument["value"] for argument in arguments}


def _document(patch: JsonObject) -> str:
    return yaml.safe_dump(patch, sort_keys=False, allow_unicode=True, width=2**31)
