"""The variables of kube-up by name, as its scripts spelt them, and what becomes of each.

Names and values are those of cluster/kube-up.sh, cluster/aws/config-default.sh, cluster/aws/util.sh and
cluster/common.sh of Kubernetes 1.0 to 1.5.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cfngen.cluster import kube_up
from cfngen.cluster.load import load
from cfngen.cluster.paths import dotted, leaves, lookup
from cfngen.cluster.problems import ClusterFileError

# The values that describe what happens anyway.
ACCEPTED = {
    "KUBERNETES_PROVIDER": "aws",
    "MASTER_RESERVED_IP": "auto",
    "KUBE_USE_EXISTING_MASTER": "false",
    "MULTIZONE": "true",
    "KUBE_ENABLE_INSECURE_REGISTRY": "false",
    "AWS_DEFAULT_PROFILE": "prod",
    "KUBE_CONTAINER_RUNTIME": "containerd",
    "KUBE_ENABLE_CLUSTER_DNS": "true",
    "KUBE_ENABLE_DNS_HORIZONTAL_AUTOSCALER": "false",
    "ENABLE_DEFAULT_STORAGE_CLASS": "true",
    "KUBE_E2E_STORAGE_TEST_ENVIRONMENT": "false",
    "KUBE_LOGGING_DESTINATION": "elasticsearch",
    "ENABLE_L7_LOADBALANCING": "none",
    "ENABLE_NODE_PROBLEM_DETECTOR": "false",
    "ENABLE_RESCHEDULER": "false",
    "ENABLE_CLUSTER_REGISTRY": "false",
    "ENABLE_CUSTOM_METRICS": "false",
    "ENABLE_GARBAGE_COLLECTOR": "true",
    "ENABLE_MANIFEST_URL": "false",
    "SOFTLOCKUP_PANIC": "false",
    "PREPULL_E2E_IMAGES": "false",
    "KUBELET_PORT": "10250",
    "STORAGE_BACKEND": "etcd3",
    "ETCD_QUORUM_READ": "true",
    "REGISTER_MASTER_KUBELET": "true",
    "FEDERATION": "false",
}
# Those that mean nothing any more, with a word of what stands in for them.
REFUSED = {
    "EXTRA_DOCKER_OPTS": "containerd",
    "AWS_IMAGE_NAME": "image.id",
    "AWS_SSH_KEY": "ssh.publicKey",
    "AWS_S3_BUCKET": "assets.mirror",
    "AWS_S3_REGION": "assets.mirror",
    "COREOS_CHANNEL": "image.distribution",
    "KUBE_RKT_VERSION": "containerd",
    "MASTER_IP_RANGE": "network.podCidr",
    "OPENCONTRAIL_TAG": "network.plugin",
    "OPENCONTRAIL_KUBERNETES_TAG": "network.plugin",
    "OPENCONTRAIL_PUBLIC_SUBNET": "network.plugin",
    "KUBE_AUTOSCALER_MIN_NODES": "nodeGroups[].minSize",
    "KUBE_AUTOSCALER_MAX_NODES": "nodeGroups[].maxSize",
    "CLUSTER_REGISTRY_DISK": "ECR",
    "CLUSTER_REGISTRY_DISK_SIZE": "ECR",
    "MANIFEST_URL": "staticPodURL",
    "MANIFEST_URL_HEADER": "staticPodURLHeader",
    "ETCD_IMAGE": "etcd.local.imageRepository",
    "ETCD_VERSION": "etcd.local.imageTag",
    "INITIAL_ETCD_CLUSTER": "controlPlane.count",
    "INITIAL_ETCD_CLUSTER_STATE": "controlPlane.count",
    "ETCD_CA_KEY_BASE64": "kubeadm creates etcd's certificates",
    "ETCD_CA_CERT_BASE64": "kubeadm creates etcd's certificates",
    "ETCD_PEER_KEY_BASE64": "kubeadm creates etcd's certificates",
    "ETCD_PEER_CERT_BASE64": "kubeadm creates etcd's certificates",
    "KUBELET_APISERVER": "API endpoint",
    "MASTER_ADVERTISE_ADDRESS": "controlPlane.addresses",
    "SCHEDULING_ALGORITHM_PROVIDER": "scheduler profiles",
    "KUBE_IMAGE_TAG": "kubernetesVersion",
    "KUBE_DOCKER_REGISTRY": "imageRepository",
    "KUBE_ADDON_REGISTRY": "imageRepository",
    "FEDERATION_NAME": "federation, which no longer exists",
    "NODE_TAGS": "additionalSecurityGroups",
}
# Those of one row, by its patterns.
REFUSED_ALIKE = (
    "FEDERATIONS_DOMAIN_MAP",
    "DNS_ZONE_NAME",
    "APISERVER_TEST_ARGS",
    "APISERVER_TEST_LOG_LEVEL",
    "CONTROLLER_MANAGER_TEST_ARGS",
    "CONTROLLER_MANAGER_TEST_LOG_LEVEL",
    "SCHEDULER_TEST_ARGS",
    "SCHEDULER_TEST_LOG_LEVEL",
    "KUBELET_TEST_ARGS",
    "KUBELET_TEST_LOG_LEVEL",
    "KUBEPROXY_TEST_ARGS",
    "KUBEPROXY_TEST_LOG_LEVEL",
)
# A value that each of the others takes.
LOGGING = ("KUBE_ENABLE_NODE_LOGGING", "KUBE_ENABLE_CLUSTER_LOGGING")
HONOURED = {
    **dict.fromkeys(LOGGING, "true"),
    "KUBE_AWS_ZONE": "eu-west-1b",
    "KUBE_AWS_INSTANCE_PREFIX": "k8s",
    "VPC_NAME": "shared",
    "VPC_ID": "vpc-01234567",
    "SUBNET_ID": "subnet-01234567",
    "KUBE_VPC_CIDR_BASE": "172.21",
    "KUBE_SUBNET_CIDR": "172.20.1.0/24",
    "MASTER_INTERNAL_IP": "172.20.0.77",
    "DHCP_OPTION_SET_ID": "dopt-01234567",
    "SSH_CIDR": "203.0.113.0/24",
    "HTTP_API_CIDR": "203.0.113.0/24",
    "KUBE_ENABLE_NODE_PUBLIC_IP": "false",
    "NUM_NODES": "7",
    "MASTER_SIZE": "m5.large",
    "NODE_SIZE": "m5.large",
    "MASTER_DISK_TYPE": "gp2",
    "MASTER_DISK_SIZE": "64",
    "MASTER_ROOT_DISK_TYPE": "gp2",
    "MASTER_ROOT_DISK_SIZE": "9",
    "NODE_ROOT_DISK_TYPE": "gp2",
    "NODE_ROOT_DISK_SIZE": "100",
    "NODE_SPOT_PRICE": "0.05",
    "KUBE_AWS_STORAGE": "ebs",
    "DOCKER_STORAGE": "overlay",
    "DOCKER_REGISTRY_MIRROR_URL": "https://mirror.example.com",
    "KUBE_OS_DISTRIBUTION": "debian",
    "AWS_IMAGE": "ami-01234567",
    "KUBE_NODE_IMAGE": "ami-01234567",
    "NON_MASQUERADE_CIDR": "172.20.0.0/16",
    "SERVICE_CLUSTER_IP_RANGE": "10.96.0.0/16",
    "CLUSTER_IP_RANGE": "10.200.0.0/16",
    "DNS_SERVER_IP": "10.0.0.10",
    "NETWORK_PROVIDER": "flannel",
    "NETWORK_POLICY_PROVIDER": "calico",
    "KUBE_ENABLE_CLUSTER_MONITORING": "influxdb",
    "KUBE_ENABLE_CLUSTER_UI": "true",
    "KUBE_ENABLE_CLUSTER_AUTOSCALER": "true",
    "KUBE_ENABLE_NODE_AUTOSCALER": "true",
    "KUBE_TARGET_NODE_UTILIZATION": "0.7",
    "KUBE_RUNTIME_CONFIG": "api/all=true",
    "ENABLE_APISERVER_BASIC_AUDIT": "false",
    "FEATURE_GATES": "A=true",
    "EVICTION_HARD": "memory.available<250Mi",
    "NODE_LABELS": "team=web",
    "HAIRPIN_MODE": "hairpin-veth",
    "KUBE_APISERVER_REQUEST_TIMEOUT": "300",
    "TERMINATED_POD_GC_THRESHOLD": "100",
}
# The spelling of Kubernetes 1.0 and 1.1.
OLD = {
    "NUM_MINIONS": "NUM_NODES",
    "MINION_SIZE": "NODE_SIZE",
    "MINION_ROOT_DISK_TYPE": "NODE_ROOT_DISK_TYPE",
    "MINION_ROOT_DISK_SIZE": "NODE_ROOT_DISK_SIZE",
    "KUBE_MINION_IMAGE": "KUBE_NODE_IMAGE",
    "KUBE_ENABLE_MINION_PUBLIC_IP": "KUBE_ENABLE_NODE_PUBLIC_IP",
}
EXISTING = {
    "VPC_ID": "vpc-01234567",
    "KUBE_VPC_CIDR_BASE": "172.20",
    "SUBNET_ID": "subnet-01234567",
    "KUBE_SUBNET_CIDR": "172.20.0.0/24",
}


def effective(environ: dict[str, str]) -> dict[str, Any]:
    cluster = load(None, environ=environ).cluster
    return {dotted(path): value for path, value in leaves(cluster.model_dump(mode="json", by_alias=True))}


def refusal(environ: dict[str, str]) -> str:
    with pytest.raises(ClusterFileError) as raised:
        load(None, environ=environ)
    return str(raised.value)


def test_every_variable_of_kube_up_is_known_and_no_other() -> None:
    fates = {"honoured": set(HONOURED), "accepted": set(ACCEPTED), "refused": set(REFUSED)}
    for fate, names in fates.items():
        assert {variable.name for variable in kube_up.VARIABLES.values() if variable.handling == fate} == names
    old = {name: variable.name for variable in kube_up.VARIABLES.values() for name in variable.old_names}
    assert old == OLD


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_variable_that_describes_what_happens_anyway(name: str) -> None:
    assert effective({name: ACCEPTED[name]}) == effective({})


@pytest.mark.parametrize("name", REFUSED)
def test_a_variable_that_means_nothing_any_more(name: str) -> None:
    said = refusal({name: "x"})
    assert said.startswith(f"environment variable {name}: ")
    assert REFUSED[name] in said


@pytest.mark.parametrize("name", REFUSED_ALIKE)
def test_a_variable_of_tests_or_federation(name: str) -> None:
    said = refusal({name: "x", "FEDERATION_NAME": "x"})
    for refused in (name, "FEDERATION_NAME"):
        assert f"environment variable {refused}: it served Kubernetes' own tests or its federation" in said
    assert effective({name: " "}) == effective({f"MY_{name}": "x"}) == effective({})


@pytest.mark.parametrize("name", [*HONOURED, *OLD])
def test_a_variable_sets_the_keys_that_its_page_names(name: str) -> None:
    """Whatever it sets is said, and whatever is said it sets."""
    value = HONOURED[OLD.get(name, name)]
    needs = EXISTING if name.endswith("_PUBLIC_IP") or name in EXISTING else {}
    if name in ("KUBE_VPC_CIDR_BASE", "KUBE_SUBNET_CIDR"):
        needs = {}
    environ = {**needs, name: value}
    origins = load(None, environ=environ).origins
    found = {re.sub(r"\[\d+\]", "[]", key) for key, origin in origins.items() if origin.where == name}
    variable = next(variable for variable in kube_up.VARIABLES.values() if name in (variable.name, *variable.old_names))
    shown = {key.replace("[0]", "[]") for key in variable.keys}
    assert {key for key in shown if not any(each.startswith(key) for each in found)} == set()
    assert {key for key in found if not key.startswith(tuple(shown))} == set()


@pytest.mark.parametrize(
    ("value", "distribution"),
    [
        ("ubuntu-24.04", "ubuntu-24.04"),
        ("ubuntu-22.04", "ubuntu-22.04"),
        ("debian-12", "debian-12"),
        ("debian-13", "debian-13"),
        ("amazon-linux-2023", "amazon-linux-2023"),
        ("ubuntu", "ubuntu-24.04"),
        ("debian", "debian-13"),
    ],
)
def test_a_distribution_by_its_name(value: str, distribution: str) -> None:
    assert effective({"KUBE_OS_DISTRIBUTION": value})["image.distribution"] == distribution


@pytest.mark.parametrize("value", ["jessie", "wheezy", "wily", "vivid", "trusty", "coreos"])
def test_a_distribution_of_kube_ups_time(value: str) -> None:
    assert f"KUBE_OS_DISTRIBUTION: {value} cannot be used: " in refusal({"KUBE_OS_DISTRIBUTION": value})


@pytest.mark.parametrize(("value", "snapshotter"), [("overlay", "overlayfs"), ("overlay2", "overlayfs")])
def test_dockers_storage_is_a_snapshotter(value: str, snapshotter: str) -> None:
    settings = effective({"DOCKER_STORAGE": value})
    assert {settings[f"{instances}.containerd.snapshotter"] for instances in ("controlPlane", "nodeGroups[0]")} == {
        snapshotter
    }


@pytest.mark.parametrize(
    ("value", "plugin"), [("none", "vpc-routes"), ("kubenet", "vpc-routes"), ("flannel", "flannel"), ("cni", "none")]
)
def test_a_network_provider_is_a_plugin(value: str, plugin: str) -> None:
    assert effective({"NETWORK_PROVIDER": value})["network.plugin"] == plugin


def test_no_policies_are_the_plugins_own() -> None:
    assert effective({"NETWORK_POLICY_PROVIDER": "none"}) == effective({})


@pytest.mark.parametrize("value", ["influxdb", "google", "googleinfluxdb", "standalone"])
def test_each_kind_of_monitoring_is_prometheus(value: str) -> None:
    assert effective({"KUBE_ENABLE_CLUSTER_MONITORING": value})["addons.prometheus.enabled"] is True


@pytest.mark.parametrize("name", LOGGING)
def test_logs_go_where_kube_ups_went_unless_the_file_says_otherwise(name: str, tmp_path: Path) -> None:
    key = "addons.fluentBit.values.config.outputs"
    loaded = load(None, environ={name: "true", "KUBE_LOGGING_DESTINATION": "elasticsearch"})
    outputs = lookup(loaded.cluster.addons.fluent_bit.values, ("config", "outputs"))
    assert "Host elasticsearch-logging.kube-system\n" in str(outputs)
    assert [f"{key}: is kube-up's" in str(warning) for warning in loaded.warnings if key in str(warning)] == [True]
    (tmp_path / "cluster.yaml").write_text("addons: {fluentBit: {values: {config: {outputs: '[OUTPUT]'}}}}")
    own = load(tmp_path / "cluster.yaml", environ={name: "true"})
    assert lookup(own.cluster.addons.fluent_bit.values, ("config", "outputs")) == "[OUTPUT]"
    assert not [warning for warning in own.warnings if key in str(warning)]
    assert effective({name: "none"}) == effective({})


def test_logs_do_not_go_to_googles_service() -> None:
    assert "'gcp' is not accepted, only elasticsearch; set Fluent Bit's outputs" in refusal(
        {"KUBE_LOGGING_DESTINATION": "gcp"}
    )


@pytest.mark.parametrize("value", ["", "a.b", "1.2.3", "1234.5", "1."])
def test_half_an_address_is_two_numbers(value: str) -> None:
    if value:
        assert "must be the first two numbers" in refusal({"KUBE_VPC_CIDR_BASE": value})
    else:
        assert effective({"KUBE_VPC_CIDR_BASE": value}) == effective({})


@pytest.mark.parametrize(("value", "good"), [("0", True), ("999999999", True), ("1000000000", False), ("1.5", False)])
def test_a_whole_number_has_nine_digits_at_most(value: str, good: bool) -> None:
    said = [] if value == "0" else refusal({"NUM_NODES": value}).splitlines()
    assert any("must be a whole number, not" in text for text in said) is not good


@pytest.mark.parametrize("value", ["1.2.3.4", "52.10.20.30"])
def test_an_address_of_ones_own_needs_its_allocation(value: str) -> None:
    assert "set both, api.elasticIp.allocationId and" in refusal({"MASTER_RESERVED_IP": value})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("FEATURE_GATES", "A=yes"),
        ("FEATURE_GATES", "1A=true"),
        ("FEATURE_GATES", "A=true,,B=true"),
        ("EVICTION_HARD", "<100Mi"),
        ("EVICTION_HARD", "memory.available<"),
        ("EVICTION_HARD", "memory.available"),
        ("NODE_LABELS", "=web"),
        ("NODE_LABELS", "team=web,ssd"),
        ("ENABLE_APISERVER_BASIC_AUDIT", "True"),
        ("KUBE_ENABLE_CLUSTER_UI", "1"),
    ],
)
def test_a_value_of_another_form(name: str, value: str) -> None:
    assert refusal({name: value}).startswith(f"environment variable {name}: must be ")
