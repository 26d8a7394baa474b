"""Variables whose values kube-up passed on to the instances unchanged."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    accepted_only,
    as_boolean,
    flag,
    path_of,
    refused,
    sets_keys,
    whole_number,
)

_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_MANAGER_FLAGS = "kubernetes.clusterConfiguration.controllerManager.extraArgs"
_SCHEDULER_FLAGS = "kubernetes.clusterConfiguration.scheduler.extraArgs"
_KUBELET = "kubernetes.kubeletConfiguration"
_AUDIT = "controlPlane.auditLog.enabled"
_REGISTRY = "no registry is installed in the cluster; use Amazon ECR, for which every node has the credentials"
_MANIFEST = f"set {_KUBELET}.staticPodURL and staticPodURLHeader"
_ETCD_MEMBERS = "etcd's members are the masters (controlPlane.count), which find each other by kubeadm; unset it"
_ETCD_TLS = "kubeadm creates etcd's certificates on the master; unset it"
_FEDERATION = "Kubernetes' federation no longer exists; unset it"
_TESTS = "it served Kubernetes' own tests"


def _feature_gates(value: str) -> Sequence[Setting]:
    gates: dict[str, bool] = {}
    for item in value.split(","):
        match = re.fullmatch(r"\s*([A-Za-z][A-Za-z0-9]*)=(true|false)\s*", item)
        if not match:
            raise ValueError(f"must be gates such as `SomeGate=true,Other=false`, not {value!r}")
        gates[match[1]] = match[2] == "true"
    text = ",".join(f"{gate}={str(on).lower()}" for gate, on in gates.items())
    settings = [flag(component, "feature-gates", text) for component in ("apiServer", "controllerManager", "scheduler")]
    return [*settings, (path_of(f"{_KUBELET}.featureGates"), gates)]


def _eviction(value: str) -> Sequence[Setting]:
    thresholds: dict[str, str] = {}
    for item in value.split(","):
        signal, comparison, threshold = item.strip().partition("<")
        if not (signal and comparison and threshold):
            raise ValueError(f"must be thresholds such as `memory.available<100Mi,nodefs.available<10%`, not {value!r}")
        thresholds[signal] = threshold
    return [(path_of(f"{_KUBELET}.evictionHard"), thresholds)]


def _labels(value: str) -> Sequence[Setting]:
    pairs = [item.strip().partition("=") for item in value.split(",")]
    if not all(key and sign for key, sign, _ in pairs):
        raise ValueError(
            f"must be labels such as `team=web,disk=ssd`, not {value!r}; was it Jenkins? Then use --no-env"
        )
    return [(path_of("nodeGroups[].labels"), {key: text for key, _, text in pairs})]


def _number_flag(component: str, name: str, value: str) -> Sequence[Setting]:
    return [flag(component, name, str(whole_number(value)))]


VARIABLES: tuple[Variable, ...] = (
    accepted_only("ENABLE_L7_LOADBALANCING", "none", "enable addons.awsLoadBalancerController"),
    accepted_only("ENABLE_NODE_PROBLEM_DETECTOR", "false", "list node-problem-detector's chart in addons.charts"),
    accepted_only("ENABLE_RESCHEDULER", "false", "the rescheduler no longer exists; use pod priorities"),
    accepted_only("ENABLE_CLUSTER_REGISTRY", "false", _REGISTRY),
    refused("CLUSTER_REGISTRY_DISK", _REGISTRY),
    refused("CLUSTER_REGISTRY_DISK_SIZE", _REGISTRY),
    sets_keys("ENABLE_APISERVER_BASIC_AUDIT", _AUDIT, as_boolean(_AUDIT)),
    accepted_only(
        "ENABLE_CUSTOM_METRICS",
        "false",
        "metrics-server is installed; for others list an adapter's chart in addons.charts",
    ),
    accepted_only(
        "ENABLE_GARBAGE_COLLECTOR", "true", f"switch it off by the flag enable-garbage-collector in {_MANAGER_FLAGS}"
    ),
    accepted_only("ENABLE_MANIFEST_URL", "false", _MANIFEST),
    refused("MANIFEST_URL", _MANIFEST),
    refused("MANIFEST_URL_HEADER", _MANIFEST),
    sets_keys(
        "FEATURE_GATES",
        (f"{_KUBELET}.featureGates", _API_FLAGS, _MANAGER_FLAGS, _SCHEDULER_FLAGS),
        _feature_gates,
        "In the control plane as the flag `feature-gates`.",
    ),
    sets_keys("EVICTION_HARD", f"{_KUBELET}.evictionHard", _eviction),
    sets_keys("NODE_LABELS", "nodeGroups[].labels", _labels, "Jenkins sets this variable too: there, use --no-env."),
    sets_keys("HAIRPIN_MODE", f"{_KUBELET}.hairpinMode"),
    accepted_only("SOFTLOCKUP_PANIC", "false", "put kernel.softlockup_panic into a file in /etc/sysctl.d (files)"),
    accepted_only("PREPULL_E2E_IMAGES", "false", f"{_TESTS}; unset it"),
    accepted_only("KUBELET_PORT", "10250", "the security groups open the kubelet's own port 10250, so unset it"),
    sets_keys(
        "KUBE_APISERVER_REQUEST_TIMEOUT",
        _API_FLAGS,
        lambda value: _number_flag("apiServer", "min-request-timeout", value),
        "In seconds, as the flag `min-request-timeout`.",
    ),
    sets_keys(
        "TERMINATED_POD_GC_THRESHOLD",
        _MANAGER_FLAGS,
        lambda value: _number_flag("controllerManager", "terminated-pod-gc-threshold", value),
        "As the flag `terminated-pod-gc-threshold`.",
    ),
    accepted_only("STORAGE_BACKEND", "etcd3", "etcd 3 is Kubernetes' only store, so unset it"),
    refused("ETCD_IMAGE", "set kubernetes.clusterConfiguration.etcd.local.imageRepository and imageTag"),
    refused("ETCD_VERSION", "set kubernetes.clusterConfiguration.etcd.local.imageTag"),
    accepted_only("ETCD_QUORUM_READ", "true", "reads from etcd 3 are always by quorum, so unset it"),
    refused("INITIAL_ETCD_CLUSTER", _ETCD_MEMBERS),
    refused("INITIAL_ETCD_CLUSTER_STATE", _ETCD_MEMBERS),
    refused("ETCD_CA_KEY_BASE64", _ETCD_TLS),
    refused("ETCD_CA_CERT_BASE64", _ETCD_TLS),
    refused("ETCD_PEER_KEY_BASE64", _ETCD_TLS),
    refused("ETCD_PEER_CERT_BASE64", _ETCD_TLS),
    accepted_only(
        "REGISTER_MASTER_KUBELET", "true", "masters are always nodes, tainted against ordinary pods; unset it"
    ),
    refused("KUBELET_APISERVER", "kubelets use the API endpoint of the cluster; unset it"),
    refused("MASTER_ADVERTISE_ADDRESS", "the API server advertises the master's fixed address, controlPlane.addresses"),
    refused(
        "SCHEDULING_ALGORITHM_PROVIDER",
        f"the flag no longer exists; configure scheduler profiles by a file named in {_SCHEDULER_FLAGS}",
    ),
    refused("KUBE_IMAGE_TAG", "the version of all images follows kubernetesVersion"),
    refused("KUBE_DOCKER_REGISTRY", "set kubernetes.clusterConfiguration.imageRepository"),
    refused("KUBE_ADDON_REGISTRY", "set kubernetes.clusterConfiguration.imageRepository"),
    accepted_only("FEDERATION", "false", _FEDERATION),
    refused("FEDERATION_NAME", _FEDERATION),
    refused("FEDERATIONS_DOMAIN_MAP", _FEDERATION),
    refused("DNS_ZONE_NAME", _FEDERATION),
    refused("NODE_TAGS", "it named firewall tags of Google's cloud; use nodeGroups[].additionalSecurityGroups"),
    refused("APISERVER_TEST_ARGS", f"{_TESTS}; set flags in {_API_FLAGS}"),
    refused("APISERVER_TEST_LOG_LEVEL", f"{_TESTS}; set the flag v in {_API_FLAGS}"),
    refused("CONTROLLER_MANAGER_TEST_ARGS", f"{_TESTS}; set flags in {_MANAGER_FLAGS}"),
    refused("CONTROLLER_MANAGER_TEST_LOG_LEVEL", f"{_TESTS}; set the flag v in {_MANAGER_FLAGS}"),
    refused("SCHEDULER_TEST_ARGS", f"{_TESTS}; set flags in {_SCHEDULER_FLAGS}"),
    refused("SCHEDULER_TEST_LOG_LEVEL", f"{_TESTS}; set the flag v in {_SCHEDULER_FLAGS}"),
    refused("KUBELET_TEST_ARGS", f"{_TESTS}; set fields of {_KUBELET}"),
    refused("KUBELET_TEST_LOG_LEVEL", f"{_TESTS}; set {_KUBELET}.logging.verbosity"),
    refused("KUBEPROXY_TEST_ARGS", f"{_TESTS}; change kube-proxy's ConfigMap in the running cluster"),
    refused("KUBEPROXY_TEST_LOG_LEVEL", f"{_TESTS}; change kube-proxy's ConfigMap in the running cluster"),
)
