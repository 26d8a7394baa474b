"""Seeing what the cluster does: metrics, logs, a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cfngen.cluster.model import Cluster
from cfngen.userdata import kubeadm
from cfngen.userdata.addons.release import Release, known, of_chart

if TYPE_CHECKING:
    from cfngen.boot.contract import JsonObject


def metrics_server(cluster: Cluster) -> Release:
    """Return metrics-server; it verifies the kubelets' certificates where the cluster's authority signs them."""
    signed = kubeadm.kubelet(cluster)["serverTLSBootstrap"]
    values: JsonObject = {"args": [] if signed else ["--kubelet-insecure-tls"]}
    return of_chart(known(cluster, "metrics-server"), "metrics-server", "kube-system", values)


def headlamp(cluster: Cluster) -> Release:
    """Return Headlamp; nobody outside reaches it, and who logs in may do what their own token may.

    Its chart would bind the pod's own account to cluster-admin.
    """
    values = {
        "fullnameOverride": "headlamp",
        "clusterRoleBinding": {"create": False},
        "config": {"unsafeUseServiceAccountToken": False},
    }
    return of_chart(known(cluster, "headlamp"), "headlamp", "headlamp", values)


def fluent_bit(cluster: Cluster) -> Release:
    """Return fluent-bit on every instance; where logs go is the user's to say (`values.config.outputs`)."""
    return of_chart(known(cluster, "fluent-bit"), "fluent-bit", "logging", {"tolerations": [{"operator": "Exists"}]})


def prometheus(cluster: Cluster) -> Release:
    """Return the Prometheus operator with Prometheus, Alertmanager and Grafana.

    Prometheus keeps its data on a volume where there is a class for one. Under kubeadm etcd, the scheduler, the
    controller manager and kube-proxy show metrics on the loopback address only: asking for them would be a standing
    alert.
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
    return of_chart(known(cluster, "kube-prometheus-stack"), "prometheus", "monitoring", values)
