"""Cluster network, add-ons and control plane of kube-up."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import Setting, Variable, accepted_only, flag, path_of, refused, sets_keys, true_if

_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_OPENCONTRAIL = "OpenContrail is not supported; choose another plug-in with network.plugin and unset it"
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
        raise ValueError(f"must be none or calico, not {value!r}; network.plugin: cilium supports network policies too")
    return [(path_of("network.plugin"), "calico")] if value == "calico" else []


VARIABLES: tuple[Variable, ...] = (
    sets_keys("NON_MASQUERADE_CIDR", "network.nonMasqueradeCidr"),
    sets_keys("SERVICE_CLUSTER_IP_RANGE", "network.serviceCidr"),
    sets_keys("CLUSTER_IP_RANGE", "network.podCidr"),
    refused(
        "MASTER_IP_RANGE", "the master is a node like the others and gets a /24 of network.podCidr (CLUSTER_IP_RANGE)"
    ),
    sets_keys(
        "DNS_SERVER_IP", "network.dnsServiceIp", explanation="It must be the tenth address of the service range."
    ),
    accepted_only(
        "KUBE_ENABLE_CLUSTER_DNS", "true", "kubeadm always installs CoreDNS; remove it from the running cluster"
    ),
    accepted_only(
        "KUBE_ENABLE_DNS_HORIZONTAL_AUTOSCALER",
        "false",
        "list the chart of cluster-proportional-autoscaler in addons.charts",
    ),
    sets_keys(
        "NETWORK_PROVIDER",
        "network.plugin",
        _plugin,
        "`kubenet` becomes `vpc-routes`; `cni` becomes `none` (you install a plug-in); `none` sets nothing.",
    ),
    sets_keys("NETWORK_POLICY_PROVIDER", "network.plugin", _policies, "`calico`, or `none`."),
    refused("OPENCONTRAIL_TAG", _OPENCONTRAIL),
    refused("OPENCONTRAIL_KUBERNETES_TAG", _OPENCONTRAIL),
    refused("OPENCONTRAIL_PUBLIC_SUBNET", _OPENCONTRAIL),
    sets_keys(
        "KUBE_ENABLE_CLUSTER_MONITORING",
        "addons.prometheus.enabled",
        true_if("addons.prometheus.enabled", "influxdb", "google", "googleinfluxdb", "standalone"),
        "Heapster no longer exists: each of these values enables Prometheus instead.",
    ),
    *(
        sets_keys(
            name,
            "addons.fluentBit.enabled",
            true_if("addons.fluentBit.enabled", "true"),
            "`addons.fluentBit.values` says where the logs go.",
        )
        for name in ("KUBE_ENABLE_NODE_LOGGING", "KUBE_ENABLE_CLUSTER_LOGGING")
    ),
    refused("KUBE_LOGGING_DESTINATION", "set Fluent Bit's outputs in addons.fluentBit.values"),
    sets_keys(
        "KUBE_ENABLE_CLUSTER_UI",
        "addons.headlamp.enabled",
        true_if("addons.headlamp.enabled", "true"),
    ),
    *(
        sets_keys(name, f"{_AUTOSCALER}.enabled", true_if(f"{_AUTOSCALER}.enabled", "true"))
        for name in ("KUBE_ENABLE_CLUSTER_AUTOSCALER", "KUBE_ENABLE_NODE_AUTOSCALER")
    ),
    refused("KUBE_AUTOSCALER_MIN_NODES", "set nodeGroups[].minSize"),
    refused("KUBE_AUTOSCALER_MAX_NODES", "set nodeGroups[].maxSize"),
    sets_keys("KUBE_TARGET_NODE_UTILIZATION", _UTILIZATION),
    accepted_only(
        "ENABLE_DEFAULT_STORAGE_CLASS",
        "true",
        "the EBS CSI driver comes with a default StorageClass; addons.awsEbsCsiDriver switches both off",
    ),
    sets_keys("KUBE_RUNTIME_CONFIG", _API_FLAGS, _runtime_config, "As the flag `runtime-config`."),
    accepted_only("KUBE_E2E_STORAGE_TEST_ENVIRONMENT", "false", "it prepared Kubernetes' own tests, so unset it"),
)
