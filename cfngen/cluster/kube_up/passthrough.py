"""Variables whose values kube-up passed on to the instances unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    boolean,
    flag_setting,
    path_of,
    unsupported_variable,
    variable_for_keys,
    variable_without_effect,
    whole_number,
)

# Keys of the cluster file.
_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_MANAGER_FLAGS = "kubernetes.clusterConfiguration.controllerManager.extraArgs"
_SCHEDULER_FLAGS = "kubernetes.clusterConfiguration.scheduler.extraArgs"
_KUBELET_CONFIGURATION = "kubernetes.kubeletConfiguration"
_AUDIT_LOG_ENABLED = "controlPlane.auditLog.enabled"
# Explanations that several variables have in common.
_NO_REGISTRY = "no registry is installed in the cluster; use Amazon ECR, for which every node has the credentials"
_MANIFEST_ADVICE = f"set {_KUBELET_CONFIGURATION}.staticPodURL and staticPodURLHeader"
_ETCD_MEMBERS = "etcd's members are the masters (controlPlane.count), which find each other by kubeadm; unset it"
_ETCD_TLS = "kubeadm creates etcd's certificates on the master; unset it"
# As the names of variables call them.
_COMPONENTS = ("APISERVER", "CONTROLLER_MANAGER", "SCHEDULER", "KUBELET", "KUBEPROXY")


def _convert_feature_gates(value: str) -> Sequence[Setting]:
    gates: dict[str, bool] = {}
    for item in value.split(","):
        match = re.fullmatch(r"\s*([A-Za-z][A-Za-z0-9]*)=(true|false)\s*", item)
        if not match:
            raise ValueError(f"must be gates such as `SomeGate=true,Other=false`, not {value!r}")
        gates[match[1]] = match[2] == "true"
    flag_value = ",".join(f"{gate}={str(is_enabled).lower()}" for gate, is_enabled in gates.items())
    settings = [
        flag_setting(component=component, name="feature-gates", value=flag_value)
        for component in ("apiServer", "controllerManager", "scheduler")
    ]
    return [*settings, Setting(path_of(f"{_KUBELET_CONFIGURATION}.featureGates"), gates)]


def _convert_hard_eviction(value: str) -> Sequence[Setting]:
    thresholds: dict[str, str] = {}
    for item in value.split(","):
        signal, comparison, threshold = item.strip().partition("<")
        if not (signal and comparison and threshold):
            raise ValueError(f"must be thresholds such as `memory.available<100Mi,nodefs.available<10%`, not {value!r}")
        thresholds[signal] = threshold
    return [Setting(path_of(f"{_KUBELET_CONFIGURATION}.evictionHard"), thresholds)]


def _convert_node_labels(value: str) -> Sequence[Setting]:
    labels: dict[str, str] = {}
    for item in value.split(","):
        label_key, equals, label_value = item.strip().partition("=")
        if not (label_key and equals):
            raise ValueError(
                f"must be labels such as `team=web,disk=ssd`, not {value!r}; was it Jenkins? Then use --no-env"
            )
        labels[label_key] = label_value
    return [Setting(path_of("nodeGroups[].labels"), labels)]


def _number_flag(component: str, name: str, value: str) -> Sequence[Setting]:
    return [flag_setting(component=component, name=name, value=str(whole_number(value)))]


VARIABLES: tuple[Variable, ...] = (
    variable_without_effect("ENABLE_L7_LOADBALANCING", "none", "enable addons.awsLoadBalancerController"),
    variable_without_effect(
        "ENABLE_NODE_PROBLEM_DETECTOR", "false", "list node-problem-detector's chart in addons.charts"
    ),
    variable_without_effect("ENABLE_RESCHEDULER", "false", "the rescheduler no longer exists; use pod priorities"),
    variable_without_effect("ENABLE_CLUSTER_REGISTRY", "false", _NO_REGISTRY),
    unsupported_variable("CLUSTER_REGISTRY_DISK", _NO_REGISTRY),
    unsupported_variable("CLUSTER_REGISTRY_DISK_SIZE", _NO_REGISTRY),
    variable_for_keys("ENABLE_APISERVER_BASIC_AUDIT", _AUDIT_LOG_ENABLED, parse=boolean),
    variable_without_effect(
        "ENABLE_CUSTOM_METRICS",
        "false",
        "metrics-server is installed; for others list an adapter's chart in addons.charts",
    ),
    variable_without_effect(
        "ENABLE_GARBAGE_COLLECTOR", "true", f"switch it off by the flag enable-garbage-collector in {_MANAGER_FLAGS}"
    ),
    variable_without_effect("ENABLE_MANIFEST_URL", "false", _MANIFEST_ADVICE),
    unsupported_variable("MANIFEST_URL", _MANIFEST_ADVICE),
    unsupported_variable("MANIFEST_URL_HEADER", _MANIFEST_ADVICE),
    variable_for_keys(
        "FEATURE_GATES",
        (f"{_KUBELET_CONFIGURATION}.featureGates", _API_FLAGS, _MANAGER_FLAGS, _SCHEDULER_FLAGS),
        convert=_convert_feature_gates,
        explanation="In the control plane as the flag `feature-gates`.",
    ),
    variable_for_keys("EVICTION_HARD", f"{_KUBELET_CONFIGURATION}.evictionHard", convert=_convert_hard_eviction),
    variable_for_keys(
        "NODE_LABELS",
        "nodeGroups[].labels",
        convert=_convert_node_labels,
        explanation="Jenkins sets this variable too: there, use --no-env.",
    ),
    variable_for_keys("HAIRPIN_MODE", f"{_KUBELET_CONFIGURATION}.hairpinMode"),
    variable_without_effect(
        "SOFTLOCKUP_PANIC", "false", "put kernel.softlockup_panic into a file in /etc/sysctl.d (files)"
    ),
    variable_without_effect("PREPULL_E2E_IMAGES", "false", "it served Kubernetes' own tests; unset it"),
    variable_without_effect(
        "KUBELET_PORT", "10250", "the security groups open the kubelet's own port 10250, so unset it"
    ),
    variable_for_keys(
        "KUBE_APISERVER_REQUEST_TIMEOUT",
        _API_FLAGS,
        convert=lambda value: _number_flag("apiServer", "min-request-timeout", value),
        explanation="In seconds, as the flag `min-request-timeout`.",
    ),
    variable_for_keys(
        "TERMINATED_POD_GC_THRESHOLD",
        _MANAGER_FLAGS,
        convert=lambda value: _number_flag("controllerManager", "terminated-pod-gc-threshold", value),
        explanation="As the flag `terminated-pod-gc-threshold`.",
    ),
    variable_without_effect("STORAGE_BACKEND", "etcd3", "etcd 3 is Kubernetes' only store, so unset it"),
    unsupported_variable("ETCD_IMAGE", "set kubernetes.clusterConfiguration.etcd.local.imageRepository and imageTag"),
    unsupported_variable("ETCD_VERSION", "set kubernetes.clusterConfiguration.etcd.local.imageTag"),
    variable_without_effect("ETCD_QUORUM_READ", "true", "reads from etcd 3 are always by quorum, so unset it"),
    unsupported_variable("INITIAL_ETCD_CLUSTER", _ETCD_MEMBERS),
    unsupported_variable("INITIAL_ETCD_CLUSTER_STATE", _ETCD_MEMBERS),
    unsupported_variable("ETCD_CA_KEY_BASE64", _ETCD_TLS),
    unsupported_variable("ETCD_CA_CERT_BASE64", _ETCD_TLS),
    unsupported_variable("ETCD_PEER_KEY_BASE64", _ETCD_TLS),
    unsupported_variable("ETCD_PEER_CERT_BASE64", _ETCD_TLS),
    variable_without_effect(
        "REGISTER_MASTER_KUBELET", "true", "masters are always nodes, tainted against ordinary pods; unset it"
    ),
    unsupported_variable("KUBELET_APISERVER", "kubelets use the API endpoint of the cluster; unset it"),
    unsupported_variable(
        "MASTER_ADVERTISE_ADDRESS", "the API server advertises the master's fixed address, controlPlane.addresses"
    ),
    unsupported_variable(
        "SCHEDULING_ALGORITHM_PROVIDER",
        f"the flag no longer exists; configure scheduler profiles by a file named in {_SCHEDULER_FLAGS}",
    ),
    unsupported_variable("KUBE_IMAGE_TAG", "the version of all images follows kubernetesVersion"),
    unsupported_variable("KUBE_DOCKER_REGISTRY", "set kubernetes.clusterConfiguration.imageRepository"),
    unsupported_variable("KUBE_ADDON_REGISTRY", "set kubernetes.clusterConfiguration.imageRepository"),
    variable_without_effect("FEDERATION", "false", "Kubernetes' federation no longer exists; unset it"),
    unsupported_variable(
        "NODE_TAGS", "it named firewall tags of Google's cloud; use nodeGroups[].additionalSecurityGroups"
    ),
    unsupported_variable(
        "FEDERATION_NAME",
        patterns=("FEDERATIONS_DOMAIN_MAP", "DNS_ZONE_NAME", *(f"{component}_TEST_*" for component in _COMPONENTS)),
        explanation="it served Kubernetes' own tests or its federation, which no longer exists; unset it, and set "
        "flags in kubernetes.clusterConfiguration and kubernetes.kubeletConfiguration",
    ),
)
