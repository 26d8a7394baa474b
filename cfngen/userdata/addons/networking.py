"""The network plug-ins, which are installed before every other add-on.

Their agents use hostNetwork and find the API by its name in the instance's /etc/hosts, because service addresses do not
work until kube-proxy runs.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import AMAZON_VPC_PLUGIN
from cfngen.cluster.model import Cluster
from cfngen.cluster.naming.names import api_host
from cfngen.cluster.network.proxy import environment
from cfngen.userdata import pod_role
from cfngen.userdata.addons.release import Release, release_of_chart, replica_count

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

# Settings of the Amazon VPC plug-in: it reserves at least ten addresses for a node (cfngen.cluster.checks.networking
# counts with this number), and always two more than its pods use. By default it would reserve a whole interface more.
_MINIMUM_IP_TARGET, _WARM_IP_TARGET = "10", "2"


def network_plugin_releases(cluster: Cluster) -> list[tuple[Release, JsonObject]]:
    """Return the releases of the network plug-in, in order, each with the user's values for it."""
    make_releases = _PLUGINS.get(cluster.network.plugin)
    releases = make_releases(cluster) if make_releases else []
    releases_with_values: list[tuple[Release, JsonObject]] = []
    for release in releases:
        # The chart with the resource definitions takes no values.
        has_values = not release.name.endswith("-crds")
        releases_with_values.append((release, cluster.network.plugin_values if has_values else {}))
    return releases_with_values


def _cilium(cluster: Cluster) -> list[Release]:
    """Return Cilium: pods' traffic between nodes goes through a VXLAN tunnel, and kube-proxy serves the services.

    kube-controller-manager gives each node its range of pod addresses. Hubble is disabled: its certificates would be
    created again at each run of Helm, and its port is not open.
    """
    values = {
        "ipam": {"mode": "kubernetes"},
        "k8s": {"requireIPv4PodCIDR": True},
        "routingMode": "tunnel",
        "tunnelProtocol": "vxlan",
        "kubeProxyReplacement": "false",
        "k8sServiceHost": api_host(cluster),
        "k8sServicePort": cluster.api.port,
        "hubble": {"enabled": False},
        "operator": {"replicas": replica_count(cluster)},
    }
    return [release_of_chart(cluster, "cilium", values, essential=True)]


def _calico(cluster: Cluster) -> list[Release]:
    """Return Calico, installed by its operator: VXLAN between all instances, no BGP.

    Calico itself assigns pod addresses, from `network.podCidr`. The CustomResourceDefinitions are a chart of their own,
    installed first, as the operator's chart contains objects of these kinds.
    """
    pool = {
        "cidr": str(cluster.network.pod_cidr),
        "encapsulation": "VXLAN",
        "natOutgoing": "Enabled",
        "nodeSelector": "all()",
        "blockSize": 26,
    }
    values = {
        "installation": {
            "cni": {"type": "Calico", "ipam": {"type": "Calico"}},
            "calicoNetwork": {"bgp": "Disabled", "ipPools": [pool]},
            "controlPlaneReplicas": replica_count(cluster),
        },
        "kubernetesServiceEndpoint": {"host": api_host(cluster), "port": str(cluster.api.port)},
        # Flow logs and their web page; users may enable them.
        "goldmane": {"enabled": False},
        "whisker": {"enabled": False},
    }
    namespace = "tigera-operator"
    return [
        release_of_chart(cluster, "calico-crds", {}, namespace=namespace, essential=True),
        release_of_chart(cluster, "tigera-operator", values, name="calico", namespace=namespace, essential=True),
    ]


def _flannel(cluster: Cluster) -> list[Release]:
    """Return Flannel with VXLAN. Flannel does not support network policies."""
    values = {"podCidr": str(cluster.network.pod_cidr), "flannel": {"backend": "vxlan"}}
    return [release_of_chart(cluster, "flannel", values, namespace="kube-flannel", essential=True)]


def _amazon_vpc(cluster: Cluster) -> list[Release]:
    """Return the Amazon VPC plug-in, which gives pods the addresses of further network interfaces of their instance.

    The interfaces have the cluster's tags, which IAM conditions of masters and nodes check. All interfaces are created
    in the instance's own subnet. The agent for network policies is disabled.
    """
    tags = {**cluster.tags, "KubernetesCluster": cluster.name, f"kubernetes.io/cluster/{cluster.name}": "owned"}
    values = {
        "env": {
            "ADDITIONAL_ENI_TAGS": json.dumps(tags, sort_keys=True),
            "CLUSTER_ENDPOINT": f"https://{api_host(cluster)}:{cluster.api.port}",
            "ENABLE_SUBNET_DISCOVERY": "false",
            "MINIMUM_IP_TARGET": _MINIMUM_IP_TARGET,
            "WARM_IP_TARGET": _WARM_IP_TARGET,
            **environment(cluster),
        },
        "nodeAgent": {"enabled": False},
    }
    # The chart's own name of the DaemonSet and its service account is aws-node; it always uses the host's network.
    patches = pod_role.patches(cluster, AMAZON_VPC_PLUGIN, kind="DaemonSet", name="aws-node", container="aws-node")
    return [release_of_chart(cluster, "aws-vpc-cni", values, patches=patches, essential=True)]


# By `network.plugin` of the cluster file, the function that returns the plug-in's releases.
_PLUGINS: Mapping[str, Callable[[Cluster], list[Release]]] = {
    "cilium": _cilium,
    "calico": _calico,
    "flannel": _flannel,
    "amazon-vpc": _amazon_vpc,
}
