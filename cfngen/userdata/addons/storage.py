"""The add-on for persistent volumes: the EBS CSI driver."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.iam.service_accounts import EBS_CSI_DRIVER, has_role
from cfngen.cluster.model import Cluster
from cfngen.cluster.network.network_plugins import network_plugin
from cfngen.cluster.network.proxy import environment
from cfngen.userdata import pod_role
from cfngen.userdata.addons.release import (
    Release,
    host_network_patch,
    near_masters,
    on_masters,
    release_of_chart,
    replica_count,
)

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject

STORAGE_CLASS = "default"
# Attachments for the root volume and for the network interfaces with pods' addresses: on most instance types interfaces
# and volumes share one limit. 110 pods, the default of `maxPods`, need at most four interfaces of any instance type.
RESERVED_ATTACHMENTS = 1 + 3
_DEFAULT_STORAGE_CLASS = {
    "name": STORAGE_CLASS,
    "annotations": {"storageclass.kubernetes.io/is-default-class": "true"},
    "allowVolumeExpansion": True,
    "reclaimPolicy": "Delete",
    "volumeBindingMode": "WaitForFirstConsumer",
    "parameters": {"type": "gp3", "encrypted": "true"},
}


def aws_ebs_csi_driver(cluster: Cluster) -> Release:
    """Return the EBS CSI driver, with a default storage class of encrypted gp3 volumes.

    The chart has no value for the host's network, so a patch sets it for the controller, unless it has a role of its
    own. The controller needs no metadata, since it is told the region (docs/install.md of the driver, "Metadata"). The
    driver on the nodes needs no AWS call: it takes zone and instance type from the Node's labels. The labels do not say
    how many network interfaces an instance has, so the driver counts one (there, "Kubernetes Metadata").
    """
    tags = {**cluster.tags, "KubernetesCluster": cluster.name}
    has_own_role = has_role(cluster, EBS_CSI_DRIVER)
    controller = "ebs-csi-controller"
    values = {
        "controller": {
            "replicaCount": replica_count(cluster),
            "region": cluster.region,
            # The driver tags volumes with kubernetes.io/cluster/<name>, too; IAM conditions check KubernetesCluster.
            "k8sTagClusterId": cluster.name,
            # The driver reads these tags from one flag, as key=value, so a key cannot contain an equals sign.
            "extraVolumeTags": {key: value for key, value in tags.items() if "=" not in key},
            **(near_masters() if has_own_role else on_masters()),
        },
        "node": {"metadataSources": "kubernetes", "enableWindows": False, **_reserved_attachments(cluster)},
        "storageClasses": [_DEFAULT_STORAGE_CLASS],
        "helmTester": {"enabled": False},
        **_proxy(cluster),
    }
    return release_of_chart(
        cluster,
        "aws-ebs-csi-driver",
        values,
        # Of the controller's containers only the driver itself calls AWS; the others call it and the API server.
        patches=(
            pod_role.patches(cluster, EBS_CSI_DRIVER, name=controller, container="ebs-plugin")
            if has_own_role
            else (host_network_patch("kube-system", controller),)
        ),
    )


def _proxy(cluster: Cluster) -> JsonObject:
    """Return the chart's values for the proxy; the chart uses its one URL for HTTP and HTTPS (`_helpers.tpl`)."""
    variables = environment(cluster)
    if not variables:
        return {}
    return {"proxy": {"http_proxy": variables["HTTPS_PROXY"], "no_proxy": variables["NO_PROXY"]}}


def _reserved_attachments(cluster: Cluster) -> JsonObject:
    """Return the chart's value for the attachments that a node does not use for volumes, as `node` field.

    It is set only if pods have addresses of further network interfaces. It is not set if the user sets a limit, as the
    driver accepts only one of the two.
    """
    user_values = cluster.addons.aws_ebs_csi_driver.values.get("node")
    has_own_limit = isinstance(user_values, dict) and user_values.get("volumeAttachLimit") is not None
    if has_own_limit or not network_plugin(cluster).gives_pods_vpc_addresses:
        return {}
    return {"reservedVolumeAttachments": RESERVED_ATTACHMENTS}
