"""Persistent volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.cluster.network_plugins import network_plugin
from cfngen.userdata.addons.release import (
    Release,
    host_network_patch,
    on_masters,
    pinned_chart,
    release_of_chart,
    replica_count,
)

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

# The name of kube-up's default class.
STORAGE_CLASS = "default"
NAMESPACE = "kube-system"
# Attachments for the root volume and for the network interfaces with pods' addresses: on most instance types interfaces
# and volumes share one limit. 110 pods, the default of `maxPods`, need at most four interfaces of any instance type.
RESERVED_ATTACHMENTS = 1 + 3


def aws_ebs_csi_driver(cluster: Cluster) -> Release:
    """Return the EBS CSI driver, with an encrypted gp3 class as the default.

    The chart has no value for the controller's network, so a patch gives it. The driver on the nodes needs no AWS call:
    it takes zone and instance type from the Node's labels. Those do not say how many interfaces an instance has, so it
    counts one (docs/install.md of the driver, "Kubernetes Metadata").
    """
    tags = {**cluster.tags, "KubernetesCluster": cluster.name}
    values = {
        "controller": {
            "replicaCount": replica_count(cluster),
            "region": cluster.region,
            # Tags volumes with kubernetes.io/cluster/<name>; IAM's conditions go by the other one.
            "k8sTagClusterId": cluster.name,
            # The driver reads them from one flag, as key=value.
            "extraVolumeTags": {key: value for key, value in tags.items() if "=" not in key},
            **on_masters(),
        },
        "node": {"metadataSources": "kubernetes", "enableWindows": False, **_reserved_attachments(cluster)},
        "storageClasses": [
            {
                "name": STORAGE_CLASS,
                "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
                "allowVolumeExpansion": True,
                "reclaimPolicy": "Delete",
                "volumeBindingMode": "WaitForFirstConsumer",
                "parameters": {"type": "gp3", "encrypted": "true"},
            }
        ],
        "helmTester": {"enabled": False},
    }
    return release_of_chart(
        pinned_chart(cluster, "aws-ebs-csi-driver"),
        "aws-ebs-csi-driver",
        NAMESPACE,
        values,
        patches=(host_network_patch(NAMESPACE, "ebs-csi-controller"),),
    )


def _reserved_attachments(cluster: Cluster) -> JsonObject:
    """Return how many volume attachments a node reserves if pods have addresses of further network interfaces.

    The driver takes this number or the user's own limit, never both.
    """
    node = cluster.addons.aws_ebs_csi_driver.values.get("node")
    has_own_limit = isinstance(node, dict) and node.get("volumeAttachLimit") is not None
    return (
        {"reservedVolumeAttachments": RESERVED_ATTACHMENTS}
        if network_plugin(cluster).interfaces and not has_own_limit
        else {}
    )
