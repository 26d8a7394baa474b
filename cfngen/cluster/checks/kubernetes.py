"""Checks of Kubernetes' configuration: a version of the catalogue, and no keys or flags that cfngen sets itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import Problem
from cfngen.releases import UnknownReleaseError, exact_version

_CLUSTER_CONFIGURATION_PATH: Path = ("kubernetes", "clusterConfiguration")
_KUBELET_CONFIGURATION_PATH: Path = ("kubernetes", "kubeletConfiguration")
_ETCD_DATA_DIRECTORY_PATH: Path = (*_CLUSTER_CONFIGURATION_PATH, "etcd", "local", "dataDir")
# What to do about a key that cfngen sets and that has no counterpart in the cluster file; completes a message.
_REMOVE = "remove it"
KEYS_SET_BY_CFNGEN: Mapping[Path, str] = {
    (*_CLUSTER_CONFIGURATION_PATH, "apiVersion"): _REMOVE,
    (*_CLUSTER_CONFIGURATION_PATH, "kind"): _REMOVE,
    (*_CLUSTER_CONFIGURATION_PATH, "kubernetesVersion"): "use kubernetesVersion",
    (*_CLUSTER_CONFIGURATION_PATH, "clusterName"): "use name",
    (*_CLUSTER_CONFIGURATION_PATH, "controlPlaneEndpoint"): "use api",
    (*_CLUSTER_CONFIGURATION_PATH, "certificatesDir"): _REMOVE,
    (*_CLUSTER_CONFIGURATION_PATH, "networking", "podSubnet"): "use network.podCidr",
    (*_CLUSTER_CONFIGURATION_PATH, "networking", "serviceSubnet"): "use network.serviceCidr",
    (*_CLUSTER_CONFIGURATION_PATH, "networking", "dnsDomain"): "use network.dnsDomain",
    _ETCD_DATA_DIRECTORY_PATH: "remove it, etcd's data is on the master's volume (controlPlane.volume)",
    (*_CLUSTER_CONFIGURATION_PATH, "etcd", "external"): "remove it, etcd runs on the masters",
    (*_CLUSTER_CONFIGURATION_PATH, "apiServer", "certSANs"): "use api.additionalNames",
    (*_KUBELET_CONFIGURATION_PATH, "apiVersion"): _REMOVE,
    (*_KUBELET_CONFIGURATION_PATH, "kind"): _REMOVE,
    (*_KUBELET_CONFIGURATION_PATH, "clusterDNS"): "use network.dnsServiceIp",
    (*_KUBELET_CONFIGURATION_PATH, "clusterDomain"): "use network.dnsDomain",
    (*_KUBELET_CONFIGURATION_PATH, "providerID"): _REMOVE,
}
"""What the user can do instead, by path of the keys that cfngen sets itself."""

# What the user can do instead, by component and name of the flags that cfngen sets itself.
_FLAGS_SET_BY_CFNGEN = {
    ("controllerManager", "cluster-cidr"): "use network.podCidr",
    ("controllerManager", "allocate-node-cidrs"): _REMOVE,
    ("controllerManager", "node-cidr-mask-size"): "remove it, each node gets a /24",
    ("controllerManager", "cloud-provider"): _REMOVE,
    ("apiServer", "service-cluster-ip-range"): "use network.serviceCidr",
    ("apiServer", "secure-port"): "use api.port",
    ("apiServer", "cloud-provider"): "remove it, Kubernetes no longer has this flag",
}
# The sections of ClusterConfiguration that have `extraArgs`.
_COMPONENTS: tuple[Path, ...] = (("apiServer",), ("controllerManager",), ("scheduler",), ("etcd", "local"))


def _check_version(cluster: Cluster) -> Iterator[Problem]:
    try:
        exact_version(cluster.kubernetes_version)
    except UnknownReleaseError as error:
        yield Problem(("kubernetesVersion",), f"{error}; choose one of them")


def _kubernetes_configuration(cluster: Cluster) -> Mapping[str, object]:
    """Return the user's configuration of Kubernetes as plain data, at the same paths as in the cluster file."""
    kubernetes = cluster.kubernetes
    configurations = {
        "clusterConfiguration": kubernetes.cluster_configuration,
        "kubeletConfiguration": kubernetes.kubelet_configuration,
    }
    return {"kubernetes": configurations}


def _check_no_keys_of_cfngen(cluster: Cluster) -> Iterator[Problem]:
    configuration = _kubernetes_configuration(cluster)
    for path, instead in KEYS_SET_BY_CFNGEN.items():
        parent = lookup(configuration, path[:-1])
        if isinstance(parent, Mapping) and path[-1] in parent:
            yield Problem(path, f"cfngen sets this key itself; {instead}")


def _check_extra_args(cluster: Cluster) -> Iterator[Problem]:
    configuration = _kubernetes_configuration(cluster)
    for component in _COMPONENTS:
        path = (*_CLUSTER_CONFIGURATION_PATH, *component, "extraArgs")
        arguments = lookup(configuration, path)
        if arguments is None:
            continue
        if not isinstance(arguments, list):
            yield Problem(
                path, "kubeadm.k8s.io/v1beta4 requires a list here; write each flag as `- {name: …, value: …}`"
            )
            continue
        for index, argument in enumerate(arguments):
            yield from _check_extra_arg((*path, index), component, argument)


def _check_extra_arg(path: Path, component: Path, argument: object) -> Iterator[Problem]:
    if not isinstance(argument, Mapping) or set(argument) != {"name", "value"}:
        yield Problem(path, "a flag has a name and a value; write it as `{name: …, value: …}`")
        return
    if not isinstance(argument["value"], str):
        yield Problem((*path, "value"), "the value of a flag must be text; put it in quotes")
    instead = _FLAGS_SET_BY_CFNGEN.get((str(component[0]), str(argument["name"])))
    if instead:
        yield Problem((*path, "name"), f"cfngen sets --{argument['name']} itself; {instead}")


PROBLEM_CHECKS = (_check_version, _check_no_keys_of_cfngen, _check_extra_args)
