"""The add-ons of a kind cluster: those that need nothing of AWS, with the cluster's versions and values."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cfngen.kind.configuration import API_PORT, has_kinds_network
from cfngen.userdata.addons import releases
from cfngen.userdata.deep_merge import merge

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject
    from cfngen.cluster.model import Cluster

STORAGE_DRIVER = "aws-ebs-csi-driver"
_VPC_CNI = "aws-vpc-cni"
# What needs AWS, and what takes its place.
_KINDS_NETWORK = "kind's own network plug-in (kindnet) gives pods their addresses"
STAND_INS = {
    STORAGE_DRIVER: "storage classes of the same names, whose volumes are folders of a node (rancher.io/local-path)",
    _VPC_CNI: _KINDS_NETWORK,
    "cluster-autoscaler": "nothing: each group is one node",
    "aws-node-termination-handler": "nothing: no node is interrupted",
    "aws-load-balancer-controller": "nothing for its ingresses; install another ingress controller",
    "external-dns": "nothing: names are not published",
    "nvidia-device-plugin": "nothing: kind's nodes have no GPU",
}


@dataclass(frozen=True)
class Chart:
    """A Helm release of the kind cluster.

    Attributes:
        sha256: the archive's digest, 64 hexadecimal digits.
        values: the chart's values, those of the cluster file included.
    """

    name: str
    namespace: str
    url: str
    sha256: str
    values: JsonObject


def installed_charts(cluster: Cluster) -> list[Chart]:
    """Return the releases to install, in order."""
    return [
        Chart(
            release["name"],
            release["namespace"],
            url=release["chart"]["url"],
            sha256=release["chart"]["sha256"],
            values=merge(json.loads(release["values"]), _values_for_kind(cluster).get(release["name"], {})),
        )
        for release in releases(_without_aws(cluster))
        if release["name"] not in STAND_INS
    ]


def left_out(cluster: Cluster) -> dict[str, str]:
    """Return what the kind cluster has not, by name; each with what takes its place."""
    absent = {
        release["name"]: STAND_INS[release["name"]] for release in releases(cluster) if release["name"] in STAND_INS
    }
    if cluster.control_plane.count > 1:
        absent[f"{cluster.control_plane.count} masters"] = "one control-plane node"
    if has_kinds_network(cluster) and _VPC_CNI not in absent:
        absent["routes in the VPC"] = _KINDS_NETWORK
    absent["cloud-controller-manager"] = (
        "cloud-provider-kind gives services of type LoadBalancer an address of this machine, if you run it"
    )
    absent["encryption of Secrets"] = "nothing: etcd keeps them as they are, so put no real ones there"
    if cluster.addons.pod_identity_webhook.enabled or cluster.service_account_issuer is not None:
        absent["roles of pods"] = (
            "credentials of your own for development, in a Secret; never those of the cluster's roles"
        )
    return absent


def storage_classes(cluster: Cluster) -> list[JsonObject]:
    """Return StorageClasses with the names, and the choice of the default, of those that the EBS CSI driver has.

    The provisioner takes none of the parameters of EBS, neither expands volumes, and only knows where a volume is to be
    once a pod needs it.
    """
    driver = next((release for release in releases(cluster) if release["name"] == STORAGE_DRIVER), None)
    classes = json.loads(driver["values"])["storageClasses"] if driver else []
    return [
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": storage_class["name"], "annotations": storage_class.get("annotations") or {}},
            "provisioner": "rancher.io/local-path",
            "reclaimPolicy": storage_class.get("reclaimPolicy", "Delete"),
            "volumeBindingMode": "WaitForFirstConsumer",
        }
        for storage_class in classes
    ]


def _without_aws(cluster: Cluster) -> Cluster:
    """Return the cluster with one master, without proxy, and with kubelets that sign their own certificates.

    From these follow the numbers of replicas, the environment of the add-ons' programs, and how metrics-server asks the
    kubelets.
    """
    kubernetes, network = cluster.kubernetes, cluster.network
    kubelet = {**kubernetes.kubelet_configuration, "serverTLSBootstrap": False}
    return cluster.model_copy(
        update={
            "control_plane": cluster.control_plane.model_copy(update={"count": 1}),
            "kubernetes": kubernetes.model_copy(update={"kubelet_configuration": kubelet}),
            "network": network.model_copy(update={"proxy": None}),
        }
    )


def _values_for_kind(cluster: Cluster) -> dict[str, JsonObject]:
    """Return values by release that say where the API is: kind names the container of the control plane like this."""
    host = f"{cluster.name}-control-plane"
    return {
        "cilium": {"k8sServiceHost": host, "k8sServicePort": API_PORT},
        "calico": {"kubernetesServiceEndpoint": {"host": host, "port": str(API_PORT)}},
    }
