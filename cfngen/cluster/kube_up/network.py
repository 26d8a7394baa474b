"""Cluster network, add-ons and control plane of kube-up."""

from __future__ import annotations

from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    flag_setting,
    path_of,
    set_true_for,
    unsupported_variable,
    variable_for_keys,
    variable_without_effect,
)

_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_OPENCONTRAIL = "OpenContrail is not supported; choose another plug-in with network.plugin and unset it"
_AUTOSCALER = "addons.clusterAutoscaler"
# `network.plugin` by the value of NETWORK_PROVIDER.
_PLUGINS = {"kubenet": "vpc-routes", "flannel": "flannel", "cni": "none"}
_SCALE_DOWN_THRESHOLD = f"{_AUTOSCALER}.values.extraArgs.scale-down-utilization-threshold"


def _convert_runtime_config(value: str) -> Sequence[Setting]:
    return [flag_setting(component="apiServer", name="runtime-config", value=value)]


def _convert_network_provider(value: str) -> Sequence[Setting]:
    if value == "none":
        return []
    if value not in _PLUGINS:
        raise ValueError(f"must be none or {', '.join(_PLUGINS)}, not {value!r}; set network.plugin instead")
    return [Setting(path_of("network.plugin"), _PLUGINS[value])]


def _convert_policy_provider(value: str) -> Sequence[Setting]:
    if value not in ("none", "calico"):
        raise ValueError(f"must be none or calico, not {value!r}; network.plugin: cilium supports network policies too")
    return [Setting(path_of("network.plugin"), "calico")] if value == "calico" else []


VARIABLES: tuple[Variable, ...] = (
    variable_for_keys("NON_MASQUERADE_CIDR", "network.nonMasqueradeCidr"),
    variable_for_keys("SERVICE_CLUSTER_IP_RANGE", "network.serviceCidr"),
    variable_for_keys("CLUSTER_IP_RANGE", "network.podCidr"),
    unsupported_variable(
        "MASTER_IP_RANGE", "the master is a node like the others and gets a /24 of network.podCidr (CLUSTER_IP_RANGE)"
    ),
    variable_for_keys(
        "DNS_SERVER_IP", "network.dnsServiceIp", explanation="It must be the tenth address of the service range."
    ),
    variable_without_effect(
        "KUBE_ENABLE_CLUSTER_DNS", "true", "kubeadm always installs CoreDNS; remove it from the running cluster"
    ),
    variable_without_effect(
        "KUBE_ENABLE_DNS_HORIZONTAL_AUTOSCALER",
        "false",
        "list the chart of cluster-proportional-autoscaler in addons.charts",
    ),
    variable_for_keys(
        "NETWORK_PROVIDER",
        "network.plugin",
        convert=_convert_network_provider,
        explanation="`kubenet` becomes `vpc-routes`; `cni` becomes `none` (you install a plug-in); `none` sets "
        "nothing.",
    ),
    variable_for_keys(
        "NETWORK_POLICY_PROVIDER",
        "network.plugin",
        convert=_convert_policy_provider,
        explanation="`calico`, or `none`.",
    ),
    unsupported_variable("OPENCONTRAIL_TAG", _OPENCONTRAIL),
    unsupported_variable("OPENCONTRAIL_KUBERNETES_TAG", _OPENCONTRAIL),
    unsupported_variable("OPENCONTRAIL_PUBLIC_SUBNET", _OPENCONTRAIL),
    variable_for_keys(
        "KUBE_ENABLE_CLUSTER_MONITORING",
        "addons.prometheus.enabled",
        convert=set_true_for(
            "addons.prometheus.enabled", values=("influxdb", "google", "googleinfluxdb", "standalone")
        ),
        explanation="Heapster no longer exists: each of these values enables Prometheus instead.",
    ),
    *(
        variable_for_keys(
            name,
            "addons.fluentBit.enabled",
            convert=set_true_for("addons.fluentBit.enabled", values=("true",)),
            explanation="`addons.fluentBit.values` says where the logs go.",
        )
        for name in ("KUBE_ENABLE_NODE_LOGGING", "KUBE_ENABLE_CLUSTER_LOGGING")
    ),
    unsupported_variable("KUBE_LOGGING_DESTINATION", "set Fluent Bit's outputs in addons.fluentBit.values"),
    variable_for_keys(
        "KUBE_ENABLE_CLUSTER_UI",
        "addons.headlamp.enabled",
        convert=set_true_for("addons.headlamp.enabled", values=("true",)),
    ),
    *(
        variable_for_keys(
            name, f"{_AUTOSCALER}.enabled", convert=set_true_for(f"{_AUTOSCALER}.enabled", values=("true",))
        )
        for name in ("KUBE_ENABLE_CLUSTER_AUTOSCALER", "KUBE_ENABLE_NODE_AUTOSCALER")
    ),
    unsupported_variable("KUBE_AUTOSCALER_MIN_NODES", "set nodeGroups[].minSize"),
    unsupported_variable("KUBE_AUTOSCALER_MAX_NODES", "set nodeGroups[].maxSize"),
    variable_for_keys("KUBE_TARGET_NODE_UTILIZATION", _SCALE_DOWN_THRESHOLD),
    variable_without_effect(
        "ENABLE_DEFAULT_STORAGE_CLASS",
        "true",
        "the EBS CSI driver comes with a default StorageClass; addons.awsEbsCsiDriver switches both off",
    ),
    variable_for_keys(
        "KUBE_RUNTIME_CONFIG", _API_FLAGS, convert=_convert_runtime_config, explanation="As the flag `runtime-config`."
    ),
    variable_without_effect(
        "KUBE_E2E_STORAGE_TEST_ENVIRONMENT", "false", "it prepared Kubernetes' own tests, so unset it"
    ),
)
