"""Placement, naming and network of kube-up on AWS; the cluster's network, add-ons and control plane."""

from __future__ import annotations

import re
from collections.abc import Sequence

from cfngen.cluster.checks.addons import KUBE_UP_OUTPUTS
from cfngen.cluster.kube_up.variable import (
    Setting,
    Variable,
    boolean,
    flag_setting,
    path_of,
    set_true_for,
    unsupported_variable,
    variable_for_keys,
    variable_without_effect,
    whole_number,
)
from cfngen.cluster.naming.zones import zone_region

_SIZE_KEYS = ("nodeGroups[].minSize", "nodeGroups[].maxSize", "nodeGroups[].desiredSize")
_API_FLAGS = "kubernetes.clusterConfiguration.apiServer.extraArgs"
_OPENCONTRAIL = "OpenContrail is not supported; choose another plug-in with network.plugin and unset it"
_AUTOSCALER = "addons.clusterAutoscaler"
# `network.plugin` by the value of NETWORK_PROVIDER.
_PLUGINS = {"kubenet": "vpc-routes", "flannel": "flannel", "cni": "none"}
_SCALE_DOWN_THRESHOLD = f"{_AUTOSCALER}.values.extraArgs.scale-down-utilization-threshold"


def _convert_zone(value: str) -> Sequence[Setting]:
    region = zone_region(value)
    if region is None:
        raise ValueError(f"must be an Availability Zone such as us-west-2a, not {value!r}")
    return [Setting(path_of("network.subnets[0].zone"), value), Setting(path_of("region"), region)]


def _convert_vpc_cidr_base(value: str) -> Sequence[Setting]:
    if not re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", value):
        raise ValueError(f"must be the first two numbers of the VPC's addresses such as 172.20, not {value!r}")
    return [Setting(path_of("network.vpc.cidr"), f"{value}.0.0/16")]


def _convert_node_count(value: str) -> Sequence[Setting]:
    count = whole_number(value)
    return [Setting(path_of(key), max(count, 1) if key.endswith("maxSize") else count) for key in _SIZE_KEYS]


def _convert_reserved_ip(value: str) -> Sequence[Setting]:
    if re.fullmatch(r"[0-9]+(\.[0-9]+){3}", value):
        raise ValueError(
            "CloudFormation needs the allocation id beside the address; set both, api.elasticIp.allocationId and "
            "api.elasticIp.address"
        )
    return []


VARIABLES: tuple[Variable, ...] = (
    variable_without_effect("KUBERNETES_PROVIDER", "aws", "cfngen builds clusters on AWS only, so unset it"),
    variable_for_keys(
        "KUBE_AWS_ZONE",
        ("network.subnets[0].zone", "region"),
        convert=_convert_zone,
        explanation="The region is the zone's.",
    ),
    variable_for_keys("KUBE_AWS_INSTANCE_PREFIX", "name"),
    variable_for_keys(
        "VPC_NAME",
        "network.vpc.name",
        explanation="For a VPC that cfngen creates; existing ones are not looked up by name.",
    ),
    variable_for_keys("VPC_ID", "network.vpc.id"),
    variable_for_keys("SUBNET_ID", "network.subnets[0].id"),
    variable_for_keys(
        "KUBE_VPC_CIDR_BASE",
        "network.vpc.cidr",
        convert=_convert_vpc_cidr_base,
        explanation="`172.20` becomes 172.20.0.0/16.",
    ),
    variable_for_keys("KUBE_SUBNET_CIDR", "network.subnets[0].cidr"),
    variable_for_keys(
        "MASTER_INTERNAL_IP",
        "controlPlane.addresses",
        parse=lambda address: [address],
        explanation="Only for a single master; for several (`controlPlane.count`), list the addresses in the cluster "
        "file.",
    ),
    variable_for_keys("DHCP_OPTION_SET_ID", "network.dhcpOptions"),
    variable_for_keys("SSH_CIDR", "ssh.allowedCidrs", parse=lambda cidr: [cidr], explanation="Unset, SSH is closed."),
    variable_for_keys(
        "HTTP_API_CIDR",
        "api.allowedCidrs",
        parse=lambda cidr: [cidr],
        explanation="If unset, the range is a stack parameter without a default.",
    ),
    Variable(
        name="MASTER_RESERVED_IP",
        handling="accepted",
        explanation="`auto` allocates an Elastic IP, as cfngen does anyway; an address of your own goes into "
        "`api.elasticIp`, "
        "together with its allocation id. Several masters (`controlPlane.count`) have a load balancer instead.",
        convert=_convert_reserved_ip,
        accepted_values=("auto",),
    ),
    variable_for_keys(
        "KUBE_ENABLE_NODE_PUBLIC_IP",
        "nodeGroups[].publicIp",
        parse=boolean,
        old_names=("KUBE_ENABLE_MINION_PUBLIC_IP",),
    ),
    variable_without_effect(
        "KUBE_USE_EXISTING_MASTER",
        "false",
        "add a node group, and a subnet in its zone, to the cluster file instead: a cluster can span several zones",
    ),
    variable_without_effect(
        "MULTIZONE", "*", "It had no effect on AWS; give several `network.subnets`, one for each zone."
    ),
    variable_for_keys(
        "NUM_NODES",
        _SIZE_KEYS,
        convert=_convert_node_count,
        explanation="Sets all three sizes of every group; 0 leaves room for one node.",
        old_names=("NUM_MINIONS",),
    ),
)


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


def _convert_logging(value: str) -> Sequence[Setting]:
    enabled = set_true_for("addons.fluentBit.enabled", values=("true",))(value)
    outputs = Setting(path_of("addons.fluentBit.values.config.outputs"), KUBE_UP_OUTPUTS, is_default=True)
    return [*enabled, outputs] if enabled else []


CLUSTER_VARIABLES: tuple[Variable, ...] = (
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
            ("addons.fluentBit.enabled", "addons.fluentBit.values.config.outputs"),
            convert=_convert_logging,
            explanation="Unless the file says where logs go, they go to Elasticsearch at `elasticsearch-logging` in "
            "kube-system, as kube-up's did; you install it.",
        )
        for name in ("KUBE_ENABLE_NODE_LOGGING", "KUBE_ENABLE_CLUSTER_LOGGING")
    ),
    variable_without_effect(
        "KUBE_LOGGING_DESTINATION", "elasticsearch", "set Fluent Bit's outputs in addons.fluentBit.values"
    ),
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
        "KUBE_RUNTIME_CONFIG",
        _API_FLAGS,
        convert=lambda value: [flag_setting(component="apiServer", name="runtime-config", value=value)],
        explanation="As the flag `runtime-config`.",
    ),
    variable_without_effect(
        "KUBE_E2E_STORAGE_TEST_ENVIRONMENT", "false", "it prepared Kubernetes' own tests, so unset it"
    ),
)
