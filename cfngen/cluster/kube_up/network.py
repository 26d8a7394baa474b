"""Cluster network, add-ons and control plane of kube-up."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import Setting, Variable, accepted, flag, honoured, path_of, refused, switches_on

_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_OPENCONTRAIL = "OpenContrail is not offered; choose another one with network.plugin and unset it"
_AUTOSCALER = "addons.clusterAutoscaler"
_PLUGINS = {"kubenet": "vpc-routes", "flannel": "flannel", "cni": "none"}
_UTILIZATION = f"{_AUTOSCALER}.values.extraArgs.scale-down-utilization-threshold"


def _runtime_config(value: str) -> Sequence[Setting]:
    return [flag("apiServer", "runtime-config", value)]


def _plugin(value: str) -> Sequence[Setting]:
    if value == "none":
        return []
    if value not in _PLUGINS:
        raise ValueError(f"must be none or {', '.join(_PLUGINS)}, not {value!r}; set network.plugin instead")
    return [(path_of("network.plugin"), _PLUGINS[value])]


def _policies(value: str) -> Sequence[Setting]:
    if value not in ("none", "calico"):
        raise ValueError(f"must be none or calico, not {value!r}; network.plugin: cilium knows network policies too")
    return [(path_of("network.plugin"), "calico")] if value == "calico" else []


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
        "list the chart of cluster-proportional-autoscaler in addons.charts",
    ),
    honoured(
        "NETWORK_PROVIDER",
        "network.plugin",
        _plugin,
        "`kubenet` is `vpc-routes`, `cni` is `none`: you install one; `none` leaves the plugin as it is.",
    ),
    honoured("NETWORK_POLICY_PROVIDER", "network.plugin", _policies, "`calico`, or `none`."),
    refused("OPENCONTRAIL_TAG", _OPENCONTRAIL),
    refused("OPENCONTRAIL_KUBERNETES_TAG", _OPENCONTRAIL),
    refused("OPENCONTRAIL_PUBLIC_SUBNET", _OPENCONTRAIL),
    honoured(
        "KUBE_ENABLE_CLUSTER_MONITORING",
        "addons.prometheus.enabled",
        switches_on("addons.prometheus.enabled", "influxdb", "google", "googleinfluxdb", "standalone"),
        "Heapster no longer exists: Prometheus stands for each of its kinds.",
    ),
    *(
        honoured(
            name,
            "addons.fluentBit.enabled",
            switches_on("addons.fluentBit.enabled", "true"),
            "Where the logs go say `addons.fluentBit.values`.",
        )
        for name in ("KUBE_ENABLE_NODE_LOGGING", "KUBE_ENABLE_CLUSTER_LOGGING")
    ),
    refused("KUBE_LOGGING_DESTINATION", "set Fluent Bit's outputs in addons.fluentBit.values"),
    honoured(
        "KUBE_ENABLE_CLUSTER_UI",
        "addons.headlamp.enabled",
        switches_on("addons.headlamp.enabled", "true"),
    ),
    *(
        honoured(name, f"{_AUTOSCALER}.enabled", switches_on(f"{_AUTOSCALER}.enabled", "true"))
        for name in ("KUBE_ENABLE_CLUSTER_AUTOSCALER", "KUBE_ENABLE_NODE_AUTOSCALER")
    ),
    refused("KUBE_AUTOSCALER_MIN_NODES", "set nodeGroups[].minSize"),
    refused("KUBE_AUTOSCALER_MAX_NODES", "set nodeGroups[].maxSize"),
    honoured("KUBE_TARGET_NODE_UTILIZATION", _UTILIZATION),
    accepted(
        "ENABLE_DEFAULT_STORAGE_CLASS",
        "true",
        "the EBS CSI driver comes with a default StorageClass; addons.awsEbsCsiDriver switches both off",
    ),
    honoured("KUBE_RUNTIME_CONFIG", _API_FLAGS, _runtime_config, "As the flag `runtime-config`."),
    accepted("KUBE_E2E_STORAGE_TEST_ENVIRONMENT", "false", "it prepared Kubernetes' own tests, so unset it"),
)
