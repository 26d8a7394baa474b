"""kubeadm's configuration (kubeadm.k8s.io/v1beta4) and the kubelet's; `${…}` is filled in on the instance.

Fields after https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/ and
https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cfngen.cluster.model import Cluster
from cfngen.releases import exact_version
from cfngen.userdata.files import BIN, CREDENTIAL_PROVIDERS, MASTER_MOUNT

VERSION = "kubeadm.k8s.io/v1beta4"
PATCHES = {"directory": "/opt/cfngen/patches"}


def endpoint(cluster: Cluster) -> str:
    """Return the API endpoint that nodes use, host and port."""
    return f"${{privateAddress}}:{cluster.api.port}"


def init(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the documents of `kubeadm init`: InitConfiguration and ClusterConfiguration."""
    return [
        {
            "apiVersion": VERSION,
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": "${privateAddress}", "bindPort": cluster.api.port},
            "nodeRegistration": {
                **_registration(),
                "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
            },
            # kubeadm always makes a token; nodes get the published one, so this one may end soon.
            "bootstrapTokens": [{"ttl": "15m0s", "description": "made by kubeadm at boot, not used"}],
            "patches": PATCHES,
        },
        merge(_cluster_configuration(cluster), cluster.kubernetes.cluster_configuration),
    ]


def _cluster_configuration(cluster: Cluster) -> dict[str, Any]:
    network = cluster.network
    names = ["${privateAddress}", *(["${publicAddress}"] if cluster.api.public else []), "127.0.0.1", "localhost"]
    return {
        "apiVersion": VERSION,
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": f"v{exact_version(cluster.kubernetes_version)}",
        "controlPlaneEndpoint": endpoint(cluster),
        "networking": {
            "podSubnet": str(network.pod_cidr),
            "serviceSubnet": str(network.service_cidr),
            "dnsDomain": network.dns_domain,
        },
        # kubeadm adds the node's name, the first service address and the kubernetes.default names.
        "apiServer": {"certSANs": [*names, *cluster.api.additional_names]},
        "controllerManager": {
            # Ranges of pods are given out here; routes to them are made by the cloud controller manager.
            "extraArgs": _arguments(
                {
                    "allocate-node-cidrs": "true",
                    "cloud-provider": "external",
                    "cluster-cidr": str(network.pod_cidr),
                    "configure-cloud-routes": "false",
                }
            )
        },
        # Leaf certificates are made anew with each new instance. A year, kubeadm's default, would stop a master that
        # nobody touched for so long.
        "certificateValidityPeriod": "43800h",
        "etcd": {"local": {"dataDir": f"{MASTER_MOUNT}/etcd"}},
    }


def join() -> dict[str, Any]:
    """Return a node's JoinConfiguration; the instance adds `discovery`."""
    return {
        "apiVersion": VERSION,
        "kind": "JoinConfiguration",
        "nodeRegistration": _registration(),
        "patches": PATCHES,
    }


def kubelet(cluster: Cluster) -> dict[str, Any]:
    """Return fields of the KubeletConfiguration; an instance adds `providerID` and `resolvConf`."""
    ours = {
        "cgroupDriver": "systemd",
        "clusterDNS": [str(cluster.network.dns_service_ip)],
        "evictionHard": {
            "imagefs.available": "10%",
            "memory.available": "100Mi",
            "nodefs.available": "10%",
            "nodefs.inodesFree": "5%",
        },
        "rotateCertificates": True,
        "serverTLSBootstrap": False,
        "shutdownGracePeriod": "30s",
        "shutdownGracePeriodCriticalPods": "10s",
    }
    return merge(ours, cluster.kubernetes.kubelet_configuration)


def merge(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return `base` with the fields of `override` laid over it, at any depth.

    Lists of named things (arguments, variables, volumes) are merged by name; other lists are replaced.
    """
    merged = dict(base)
    for key, value in override.items():
        old = merged.get(key)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            merged[key] = merge(old, value)
        elif old and _named(old) and _named(value):
            by_name = merge({item["name"]: item for item in old}, {item["name"]: item for item in value})
            merged[key] = list(by_name.values())
        else:
            merged[key] = value
    return merged


def _named(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, Mapping) and "name" in item for item in value)


def _registration() -> dict[str, Any]:
    # Instance ids as node names: a replaced master registers at once (a Node object keeps its first provider id), and
    # the cloud controller manager knows what a name that begins with i- means.
    return {
        "name": "${instanceId}",
        "criSocket": "unix:///run/containerd/containerd.sock",
        "kubeletExtraArgs": _arguments(
            {
                "cloud-provider": "external",
                "image-credential-provider-bin-dir": BIN,
                "image-credential-provider-config": CREDENTIAL_PROVIDERS,
                "node-ip": "${address}",
            }
        ),
    }


def _arguments(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
