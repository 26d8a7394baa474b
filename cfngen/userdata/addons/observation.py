"""Add-ons for observation: metrics, logs, a dashboard."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.userdata import kubeadm
from cfngen.userdata.addons.release import Release, release_of_chart

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject


def metrics_server(cluster: Cluster) -> Release:
    """Return metrics-server, which verifies the kubelets' certificates if the cluster's authority has signed them."""
    has_signed_certificates = kubeadm.kubelet_configuration(cluster)["serverTLSBootstrap"]
    values: JsonObject = {"args": [] if has_signed_certificates else ["--kubelet-insecure-tls"]}
    return release_of_chart(cluster, "metrics-server", values)


def headlamp(cluster: Cluster) -> Release:
    """Return the dashboard Headlamp, which is not exposed outside the cluster; users log in with their own token.

    The role binding is disabled, as the chart's default would bind the pod's service account to cluster-admin.
    """
    values = {
        "fullnameOverride": "headlamp",
        "clusterRoleBinding": {"create": False},
        "config": {"unsafeUseServiceAccountToken": False},
    }
    return release_of_chart(cluster, "headlamp", values, namespace="headlamp")


def fluent_bit(cluster: Cluster) -> Release:
    """Return fluent-bit on every instance; the user configures where logs go (`values.config.outputs`)."""
    values: JsonObject = {"tolerations": [{"operator": "Exists"}]}
    return release_of_chart(cluster, "fluent-bit", values, namespace="logging")


def prometheus(cluster: Cluster) -> Release:
    """Return the Prometheus operator with Prometheus, Alertmanager and Grafana.

    Prometheus stores its data on a volume if the EBS CSI driver is enabled. It does not scrape etcd, the scheduler, the
    controller manager and kube-proxy: kubeadm lets them serve metrics on the loopback address only, so scraping would
    always fail and raise alerts.
    """
    claim = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "20Gi"}}}}
    storage = {"storageSpec": {"volumeClaimTemplate": claim}} if cluster.addons.aws_ebs_csi_driver.enabled else {}
    values: JsonObject = {
        "fullnameOverride": "prometheus",
        "prometheus": {"prometheusSpec": {"retention": "10d", **storage}},
        **{
            component: {"enabled": False}
            for component in ("kubeEtcd", "kubeScheduler", "kubeControllerManager", "kubeProxy")
        },
    }
    return release_of_chart(
        cluster,
        "kube-prometheus-stack",
        values,
        name="prometheus",
        namespace="monitoring",
        # The Job `prometheus-admission-create` makes the certificate of the operator's webhook.
        has_pods_as_hooks=True,
    )
