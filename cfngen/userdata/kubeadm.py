"""kubeadm's configuration (kubeadm.k8s.io/v1beta4) and the kubelet's; `${…}` is filled in on the instance.

Fields after https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/ and
https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster, NodeGroup
from cfngen.cluster.names import api_host
from cfngen.cluster.network_plugins import network_plugin
from cfngen.releases import exact_version
from cfngen.userdata import audit
from cfngen.userdata.deep_merge import merge
from cfngen.userdata.files import BIN, CREDENTIAL_PROVIDERS, MASTER_MOUNT

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

VERSION = "kubeadm.k8s.io/v1beta4"
# Written by the boot program (boot/master/encryption.py), which has the key.
ENCRYPTION = "/etc/kubernetes/encryption.json"
PATCHES = {"directory": "/opt/cfngen/patches"}


def endpoint(cluster: Cluster) -> str:
    """Return the API endpoint that instances use, host and port; each has the host in its /etc/hosts."""
    return f"{api_host(cluster)}:{cluster.api.port}"


def init(cluster: Cluster) -> list[JsonObject]:
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
            # kubeadm always creates a token. Nodes use the one that masters publish, so this one may expire soon.
            "bootstrapTokens": [{"ttl": "15m0s", "description": "made by kubeadm at boot, not used"}],
            "patches": PATCHES,
        },
        merge(_cluster_configuration(cluster), cluster.kubernetes.cluster_configuration),
    ]


def _cluster_configuration(cluster: Cluster) -> JsonObject:
    network, plugin = cluster.network, network_plugin(cluster)
    # With several masters it is the DNS name of their load balancer, which exists even if the API is not public.
    has_load_balancer = cluster.api.public or cluster.control_plane.count > 1
    names = [*(["${publicAddress}"] if has_load_balancer else []), "127.0.0.1", "localhost"]
    return {
        "apiVersion": VERSION,
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": f"v{exact_version(cluster.kubernetes_version)}",
        "controlPlaneEndpoint": endpoint(cluster),
        "networking": {
            **({"podSubnet": str(network.pod_cidr)} if plugin.pod_range else {}),
            "serviceSubnet": str(network.service_cidr),
            "dnsDomain": network.dns_domain,
        },
        "apiServer": {
            # kubeadm adds the endpoint's name, the master's own address and name, the first service address and the
            # kubernetes.default names.
            "certSANs": [*names, *cluster.api.additional_names],
            "extraArgs": _arguments({**audit.arguments(cluster), "encryption-provider-config": ENCRYPTION}),
            "extraVolumes": [
                *audit.volumes(cluster),
                {
                    "name": "encryption",
                    "hostPath": ENCRYPTION,
                    "mountPath": ENCRYPTION,
                    "readOnly": True,
                    "pathType": "File",
                },
            ],
        },
        "controllerManager": {
            # Where nodes have ranges for pods they are given out here; VPC routes to them are the cloud controller
            # manager's.
            "extraArgs": _arguments(
                {
                    "allocate-node-cidrs": "true" if plugin.node_ranges else "false",
                    "cloud-provider": "external",
                    **({"cluster-cidr": str(network.pod_cidr)} if plugin.pod_range else {}),
                    "configure-cloud-routes": "false",
                }
            )
        },
        "etcd": {"local": {"dataDir": f"{MASTER_MOUNT}/etcd"}},
    }


def join(group: NodeGroup) -> JsonObject:
    """Return the JoinConfiguration of a group's nodes; the instance adds `discovery`."""
    labels = ",".join(f"{key}={value}" for key, value in sorted(group.labels.items()))
    registration = _registration(**({"node-labels": labels} if labels else {}))
    if group.taints:
        registration["taints"] = [taint.model_dump() for taint in group.taints]
    return {
        "apiVersion": VERSION,
        "kind": "JoinConfiguration",
        "nodeRegistration": registration,
        "patches": PATCHES,
    }


def kubelet(cluster: Cluster) -> JsonObject:
    """Return fields of the KubeletConfiguration; an instance adds `providerID` and `resolvConf`."""
    # A graceful shutdown would stop the Amazon VPC plug-in like other pods, and leave network interfaces behind that it
    # was creating. kops does not configure one with it either.
    grace_periods = ("0s", "0s") if network_plugin(cluster).interfaces else ("30s", "10s")
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
        # Masters approve the certificates (boot/master/csr_approval.py).
        "serverTLSBootstrap": True,
        "shutdownGracePeriod": grace_periods[0],
        "shutdownGracePeriodCriticalPods": grace_periods[1],
    }
    return merge(ours, cluster.kubernetes.kubelet_configuration)


def _registration(**extra_arguments: str) -> JsonObject:
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
                **extra_arguments,
            }
        ),
    }


def _arguments(values: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]
