"""Add-ons for scaling and for the termination of nodes."""

from __future__ import annotations

from cfngen.cluster.model import Cluster
from cfngen.userdata import proxy
from cfngen.userdata.addons.release import (
    DELETE_OLD_POD_FIRST,
    Release,
    on_masters,
    pinned_chart,
    release_of_chart,
    replica_count,
)

NAMESPACE = "kube-system"


def cluster_autoscaler(cluster: Cluster) -> Release:
    """Return cluster-autoscaler, which finds the node groups by the tags that `cfngen.templates.tagging` adds."""
    pinned = pinned_chart(cluster, "cluster-autoscaler")
    values = {
        "fullnameOverride": "cluster-autoscaler",
        "cloudProvider": "aws",
        "awsRegion": cluster.region,
        "autoDiscovery": {"clusterName": cluster.name},
        # cluster-autoscaler contains the scheduler of one minor version of Kubernetes, so its version must match the
        # cluster's; the chart's default image has another version.
        "image": {"tag": f"v{pinned.app_version}"},
        "replicaCount": replica_count(cluster),
        "hostNetwork": True,
        "dnsPolicy": "Default",
        "updateStrategy": DELETE_OLD_POD_FIRST,
        "extraArgs": {"balance-similar-node-groups": True},
        **proxy.as_map(cluster, "extraEnv"),
        **on_masters(),
    }
    return release_of_chart(pinned, name="cluster-autoscaler", namespace=NAMESPACE, values=values)


def node_termination_handler(cluster: Cluster) -> Release:
    """Return the AWS node termination handler, which runs on every node and polls the instance's own metadata.

    In this mode it calls no AWS API and needs no queue. It does not handle terminations by an Auto Scaling group: that
    is done by cfngen's own drain service.
    """
    pinned = pinned_chart(cluster, "aws-node-termination-handler")
    values = {
        "fullnameOverride": "aws-node-termination-handler",
        "image": {"tag": f"v{pinned.app_version}"},
        "rbac": {"pspEnabled": False},
        "enableSpotInterruptionDraining": True,
        "enableScheduledEventDraining": True,
        "extraEnv": [{"name": "ENABLE_ASG_LIFECYCLE_DRAINING", "value": "false"}],
    }
    return release_of_chart(pinned, name="aws-node-termination-handler", namespace=NAMESPACE, values=values)
