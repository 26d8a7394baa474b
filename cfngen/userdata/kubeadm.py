"""The configuration of kubeadm (kubeadm.k8s.io/v1beta4) and of the kubelet; the boot program replaces `${…}` in it.

Fields after https://kubernetes.io/docs/reference/config-api/kubeadm-config.v1beta4/ and
https://kubernetes.io/docs/reference/config-api/kubelet-config.v1beta1/.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import KEYS_KEY
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import api_host
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.topology import (
    certificate_names,
    has_both_endpoints,
    has_internal_load_balancer,
    has_public_endpoint,
)
from cfngen.cluster.sections.instances import NodeGroup
from cfngen.releases import exact_version
from cfngen.userdata import audit
from cfngen.userdata.deep_merge import merge
from cfngen.userdata.files import BIN_FOLDER, CREDENTIAL_PROVIDERS_FILE, MASTER_MOUNT
from cfngen.userdata.node_rights import TOKEN_GROUP

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject


API_VERSION = "kubeadm.k8s.io/v1beta4"
ENCRYPTION_FILE = "/etc/kubernetes/encryption.json"
# The folder with the boot program's patches of what kubeadm writes, as a field of kubeadm's documents.
PATCHES = {"directory": "/opt/cfngen/patches"}


def endpoint(cluster: Cluster) -> str:
    """Return the host name and port at which instances reach the API; each instance has the name in its /etc/hosts."""
    return f"{api_host(cluster)}:{cluster.api.port}"


def init_documents(cluster: Cluster) -> list[JsonObject]:
    """Return the documents of `kubeadm init`: InitConfiguration and ClusterConfiguration."""
    return [
        {
            "apiVersion": API_VERSION,
            "kind": "InitConfiguration",
            "localAPIEndpoint": {"advertiseAddress": "${privateAddress}", "bindPort": cluster.api.port},
            "nodeRegistration": {
                **_node_registration(),
                "taints": [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}],
            },
            # kubeadm always creates a token. Nodes use the one that masters publish, so this one may expire soon.
            "bootstrapTokens": [
                {"ttl": "15m0s", "groups": [TOKEN_GROUP], "description": "made by kubeadm at boot, not used"}
            ],
            "patches": PATCHES,
        },
        with_flags(cluster, merge(_cluster_configuration(cluster), cluster.kubernetes.cluster_configuration)),
    ]


def _cluster_configuration(cluster: Cluster) -> JsonObject:
    """Return kubeadm's ClusterConfiguration, without the user's own fields from the cluster file."""
    network, plugin = cluster.network, network_plugin(cluster)
    # With several masters `publicAddress` is the DNS name of their load balancer, which exists even if the API is not
    # public; with one master it exists only if the API is public.
    has_public_address = has_public_endpoint(cluster)
    endpoint_names = ["${publicAddress}"] if has_public_address else []
    # kubeadm itself adds the private address of a single master, which is the internal endpoint then.
    if has_both_endpoints(cluster) and has_internal_load_balancer(cluster):
        endpoint_names.append("${internalAddress}")
    networking: JsonObject = {}
    if plugin.uses_pod_cidr:
        networking["podSubnet"] = str(network.pod_cidr)
    networking["serviceSubnet"] = str(network.service_cidr)
    networking["dnsDomain"] = network.dns_domain
    return {
        "apiVersion": API_VERSION,
        "kind": "ClusterConfiguration",
        "clusterName": cluster.name,
        "kubernetesVersion": f"v{exact_version(cluster.kubernetes_version)}",
        "controlPlaneEndpoint": endpoint(cluster),
        "networking": networking,
        "apiServer": {
            # kubeadm adds the endpoint's name, the master's own address and name, the first service address and the
            # kubernetes.default names.
            "certSANs": [*endpoint_names, "127.0.0.1", "localhost", *certificate_names(cluster)],
            "extraArgs": _extra_args(
                {**audit.api_server_flags(cluster), "encryption-provider-config": ENCRYPTION_FILE}
            ),
            "extraVolumes": [
                *audit.api_server_volumes(cluster),
                {
                    "name": "encryption",
                    "hostPath": ENCRYPTION_FILE,
                    "mountPath": ENCRYPTION_FILE,
                    "readOnly": True,
                    "pathType": "File",
                },
            ],
        },
        "controllerManager": {"extraArgs": _extra_args(_controller_manager_flags(cluster))},
        "etcd": {"local": {"dataDir": f"{MASTER_MOUNT}/etcd"}},
    }


def _controller_manager_flags(cluster: Cluster) -> dict[str, str]:
    """Return the flags of kube-controller-manager: it assigns pod CIDRs, the cloud controller manager their routes."""
    plugin = network_plugin(cluster)
    flags = {"allocate-node-cidrs": "true" if plugin.gives_nodes_pod_cidrs else "false", "cloud-provider": "external"}
    if plugin.uses_pod_cidr:
        flags["cluster-cidr"] = str(cluster.network.pod_cidr)
    flags["configure-cloud-routes"] = "false"
    return flags


def join_configuration(group: NodeGroup) -> JsonObject:
    """Return kubeadm's JoinConfiguration for a group's nodes; each instance adds `discovery`."""
    label_flags = {}
    if group.labels:
        label_flags["node-labels"] = ",".join(f"{key}={value}" for key, value in sorted(group.labels.items()))
    registration = _node_registration(**label_flags)
    if group.taints:
        registration["taints"] = [taint.model_dump() for taint in group.taints]
    return {
        "apiVersion": API_VERSION,
        "kind": "JoinConfiguration",
        "nodeRegistration": registration,
        "patches": PATCHES,
    }


def kubelet_configuration(cluster: Cluster) -> JsonObject:
    """Return fields of the KubeletConfiguration for the whole cluster; an instance adds `providerID` and `resolvConf`.

    Settings of the cluster file override cfngen's.
    """
    # With the Amazon VPC plug-in there is no graceful shutdown: it would stop the plug-in like other pods, and leave
    # behind network interfaces that the plug-in was creating. kops configures none with this plug-in either.
    if network_plugin(cluster).gives_pods_vpc_addresses:
        grace_period, critical_pods_grace_period = "0s", "0s"
    else:
        grace_period, critical_pods_grace_period = "30s", "10s"
    defaults = {
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
        "shutdownGracePeriod": grace_period,
        "shutdownGracePeriodCriticalPods": critical_pods_grace_period,
    }
    return merge(defaults, cluster.kubernetes.kubelet_configuration)


def _node_registration(**extra_arguments: str) -> JsonObject:
    """Return kubeadm's `nodeRegistration`: how a kubelet registers its Node."""
    # Nodes are named by the instance id, as a Node object keeps its first provider id: so the instance that replaces a
    # master registers another Node at once. The cloud controller manager recognises names that begin with i-.
    return {
        "name": "${instanceId}",
        "criSocket": "unix:///run/containerd/containerd.sock",
        "kubeletExtraArgs": _extra_args(
            {
                "cloud-provider": "external",
                "image-credential-provider-bin-dir": BIN_FOLDER,
                "image-credential-provider-config": CREDENTIAL_PROVIDERS_FILE,
                "node-ip": "${address}",
                **extra_arguments,
            }
        ),
    }


def _extra_args(values_by_flag: Mapping[str, str]) -> list[dict[str, str]]:
    return [{"name": flag, "value": value} for flag, value in values_by_flag.items()]


_ISSUER_FLAG, _KEYS_FLAG = "service-account-issuer", "service-account-jwks-uri"
# The URL of the issuer, whose host is a reference of user data.
_ISSUER_URL = "https://${issuer}"


def with_flags(cluster: Cluster, cluster_configuration: JsonObject) -> JsonObject:
    """Return kubeadm's ClusterConfiguration with the API server's flags of the issuer, if the cluster has one.

    kube-apiserver's reference says of `--service-account-issuer`: given several times, "the first is used to generate
    tokens and all are used to determine which issuers are accepted". kubeadm keeps the order of `extraArgs`, and leaves
    out its own flag of the same name (`ArgumentsToCommand` in cmd/kubeadm/app/util/arguments.go; before 1.34.4 and
    1.35.1 it sorted them, kubernetes/kubeadm#3261). Without `--api-audiences`, tokens for the API server need any of
    the issuers as audience (pkg/kubeapiserver/options/authentication.go). So pods' tokens of either issuer stay valid,
    whichever comes first.

    They are added after the user's settings have been merged: the flag of the issuers is there twice, while settings
    with the same name replace each other when they are merged.
    """
    issuer = cluster.service_account_issuer
    if issuer is None:
        return cluster_configuration
    # kubeadm's own issuer (cmd/kubeadm/app/phases/controlplane/manifests.go), which it leaves out if there is another.
    kubeadm_issuer = f"https://kubernetes.default.svc.{cluster.network.dns_domain}"
    issuers = [_ISSUER_URL, kubeadm_issuer] if issuer.sign_tokens else [kubeadm_issuer, _ISSUER_URL]
    flags = [
        *({"name": _ISSUER_FLAG, "value": url} for url in issuers),
        {"name": _KEYS_FLAG, "value": f"{_ISSUER_URL}/{KEYS_KEY}"},
    ]
    api_server = cluster_configuration["apiServer"]
    return {**cluster_configuration, "apiServer": {**api_server, "extraArgs": [*api_server["extraArgs"], *flags]}}
