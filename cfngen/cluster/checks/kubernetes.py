"""Checks of Kubernetes' configuration: the version is in the catalogue, and keys that cfngen sets are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import Path, lookup
from cfngen.cluster.problems import Problem
from cfngen.releases import UnknownReleaseError, exact_version

_CLUSTER: Path = ("kubernetes", "clusterConfiguration")
_KUBELET: Path = ("kubernetes", "kubeletConfiguration")
_REMOVE = "remove it"
OWNED: Mapping[Path, str] = {
    (*_CLUSTER, "apiVersion"): _REMOVE,
    (*_CLUSTER, "kind"): _REMOVE,
    (*_CLUSTER, "kubernetesVersion"): "use kubernetesVersion",
    (*_CLUSTER, "clusterName"): "use name",
    (*_CLUSTER, "controlPlaneEndpoint"): "use api",
    (*_CLUSTER, "certificatesDir"): _REMOVE,
    (*_CLUSTER, "networking", "podSubnet"): "use network.podCidr",
    (*_CLUSTER, "networking", "serviceSubnet"): "use network.serviceCidr",
    (*_CLUSTER, "networking", "dnsDomain"): "use network.dnsDomain",
    (*_CLUSTER, "etcd", "local", "dataDir"): "remove it, etcd's data is on the master's volume (controlPlane.volume)",
    (*_CLUSTER, "etcd", "external"): "remove it, etcd runs on the masters",
    (*_CLUSTER, "apiServer", "certSANs"): "use api.additionalNames",
    (*_KUBELET, "apiVersion"): _REMOVE,
    (*_KUBELET, "kind"): _REMOVE,
    (*_KUBELET, "clusterDNS"): "use network.dnsServiceIp",
    (*_KUBELET, "clusterDomain"): "use network.dnsDomain",
    (*_KUBELET, "providerID"): _REMOVE,
}
"""Keys that cfngen sets itself, and what the user can do instead."""

_OWNED_ARGUMENTS = {
    ("controllerManager", "cluster-cidr"): "use network.podCidr",
    ("controllerManager", "allocate-node-cidrs"): _REMOVE,
    ("controllerManager", "node-cidr-mask-size"): "remove it, each node gets a /24",
    ("controllerManager", "cloud-provider"): _REMOVE,
    ("apiServer", "service-cluster-ip-range"): "use network.serviceCidr",
    ("apiServer", "secure-port"): "use api.port",
    ("apiServer", "cloud-provider"): "remove it, Kubernetes no longer has this flag",
}
_COMPONENTS: tuple[Path, ...] = (("apiServer",), ("controllerManager",), ("scheduler",), ("etcd", "local"))


def _version(cluster: Cluster) -> Iterator[Problem]:
    try:
        exact_version(cluster.kubernetes_version)
    except UnknownReleaseError as error:
        yield Problem(("kubernetesVersion",), f"{error}; choose one of them")


def _configuration(cluster: Cluster) -> Mapping[str, object]:
    kubernetes = cluster.kubernetes
    configurations = {
        "clusterConfiguration": kubernetes.cluster_configuration,
        "kubeletConfiguration": kubernetes.kubelet_configuration,
    }
    return {"kubernetes": configurations}


def _owned_keys(cluster: Cluster) -> Iterator[Problem]:
    configuration = _configuration(cluster)
    for path, instead in OWNED.items():
        parent = lookup(configuration, path[:-1])
        if isinstance(parent, Mapping) and path[-1] in parent:
            yield Problem(path, f"cfngen sets this key itself; {instead}")


def _arguments(cluster: Cluster) -> Iterator[Problem]:
    configuration = _configuration(cluster)
    for component in _COMPONENTS:
        path = (*_CLUSTER, *component, "extraArgs")
        arguments = lookup(configuration, path)
        if arguments is None:
            continue
        if not isinstance(arguments, list):
            yield Problem(
                path, "kubeadm.k8s.io/v1beta4 requires a list here; write each flag as `- {name: …, value: …}`"
            )
            continue
        for index, argument in enumerate(arguments):
            yield from _argument((*path, index), component, argument)


def _argument(path: Path, component: Path, argument: object) -> Iterator[Problem]:
    if not isinstance(argument, Mapping) or set(argument) != {"name", "value"}:
        yield Problem(path, "a flag has a name and a value; write it as `{name: …, value: …}`")
        return
    if not isinstance(argument["value"], str):
        yield Problem((*path, "value"), "the value of a flag must be text; put it in quotes")
    instead = _OWNED_ARGUMENTS.get((str(component[0]), str(argument["name"])))
    if instead:
        yield Problem((*path, "name"), f"cfngen sets --{argument['name']} itself; {instead}")


PROBLEMS = (_version, _owned_keys, _arguments)
