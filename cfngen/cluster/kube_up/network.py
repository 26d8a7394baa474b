"""Cluster network, add-ons and control plane of kube-up."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import Setting, Variable, accepted, flag, honoured, refused

_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_CNI = "pods have VPC routes as with kubenet; other network plugins are not offered, so unset it"
_OPENCONTRAIL = "OpenContrail is not offered, pods have VPC routes as with kubenet; unset it"
_LOGGING = "no logging is installed; install one into the running cluster, e.g. Fluent Bit by its Helm chart"
_AUTOSCALER = "no autoscaler is installed; give the group a larger maxSize and install Cluster Autoscaler or another"


def _runtime_config(value: str) -> Sequence[Setting]:
    return [flag("apiServer", "runtime-config", value)]


VARIABLES: tuple[Variable, ...] = (
    honoured("NON_MASQUERADE_CIDR", "network.nonMasqueradeCidr"),
    honoured("SERVICE_CLUSTER_IP_RANGE", "network.serviceCidr"),
    honoured("CLUSTER_IP_RANGE", "network.podCidr"),
    refused(
        "MASTER_IP_RANGE", "the master is a node like the others and takes a /24 of network.podCidr (CLUSTER_IP_RANGE)"
    ),
    honoured("DNS_SERVER_IP", "network.dnsServiceIp", sentence="It must be the tenth address of the service range."),
    accepted("KUBE_ENABLE_CLUSTER_DNS", "true", "kubeadm always installs CoreDNS; remove it from the running cluster"),
    accepted(
        "KUBE_ENABLE_DNS_HORIZONTAL_AUTOSCALER",
        "false",
        "install cluster-proportional-autoscaler into the running cluster",
    ),
    accepted("NETWORK_PROVIDER", ("kubenet", "none"), _CNI),
    accepted(
        "NETWORK_POLICY_PROVIDER", "none", "VPC routes know no network policies; install Calico in policy-only mode"
    ),
    refused("OPENCONTRAIL_TAG", _OPENCONTRAIL),
    refused("OPENCONTRAIL_KUBERNETES_TAG", _OPENCONTRAIL),
    refused("OPENCONTRAIL_PUBLIC_SUBNET", _OPENCONTRAIL),
    accepted(
        "KUBE_ENABLE_CLUSTER_MONITORING",
        "none",
        "Heapster is no more; install metrics-server or Prometheus into the running cluster",
    ),
    accepted("KUBE_ENABLE_NODE_LOGGING", "false", _LOGGING),
    refused("KUBE_LOGGING_DESTINATION", _LOGGING),
    accepted("KUBE_ENABLE_CLUSTER_LOGGING", "false", _LOGGING),
    accepted("KUBE_ENABLE_CLUSTER_UI", "false", "no dashboard is installed; install one into the running cluster"),
    accepted("KUBE_ENABLE_CLUSTER_AUTOSCALER", "false", _AUTOSCALER),
    accepted("KUBE_ENABLE_NODE_AUTOSCALER", "false", _AUTOSCALER),
    refused("KUBE_AUTOSCALER_MIN_NODES", "set nodeGroups[].minSize"),
    refused("KUBE_AUTOSCALER_MAX_NODES", "set nodeGroups[].maxSize"),
    refused("KUBE_TARGET_NODE_UTILIZATION", _AUTOSCALER),
    accepted(
        "ENABLE_DEFAULT_STORAGE_CLASS",
        "false",
        "EBS volumes for pods need the EBS CSI driver; install it and a StorageClass into the running cluster",
    ),
    honoured("KUBE_RUNTIME_CONFIG", _API_FLAGS, _runtime_config, "As the flag `runtime-config`."),
    accepted("KUBE_E2E_STORAGE_TEST_ENVIRONMENT", "false", "it prepared Kubernetes' own tests, so unset it"),
)
