"""Every environment variable of kube-up: what it sets, or the sentence that refuses it."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster import kube_up
from cfngen.cluster.load import load
from cfngen.cluster.paths import dotted, leaves
from cfngen.cluster.problems import ClusterFileError

API = "kubernetes.clusterConfiguration.apiServer.extraArgs"
MANAGER = "kubernetes.clusterConfiguration.controllerManager.extraArgs"
SCHEDULER = "kubernetes.clusterConfiguration.scheduler.extraArgs"
KUBELET = "kubernetes.kubeletConfiguration"


def effective(environ: dict[str, str]) -> dict[str, Any]:
    cluster = load(None, environ=environ).cluster
    return {dotted(path): value for path, value in leaves(cluster.model_dump(mode="json", by_alias=True))}


def refusal(environ: dict[str, str]) -> list[str]:
    with pytest.raises(ClusterFileError) as error:
        load(None, environ=environ)
    return str(error.value).splitlines()


HONOURED: list[tuple[str, str, dict[str, Any]]] = [
    ("KUBE_AWS_ZONE", "eu-west-1b", {"region": "eu-west-1", "network.subnets[0].zone": "eu-west-1b"}),
    ("KUBE_AWS_INSTANCE_PREFIX", "k8s", {"name": "k8s", "network.vpc.name": "k8s-vpc"}),
    ("VPC_NAME", "shared", {"network.vpc.name": "shared"}),
    ("KUBE_VPC_CIDR_BASE", "172.21", {"network.vpc.cidr": "172.21.0.0/16", "controlPlane.addresses[0]": "172.21.0.9"}),
    ("KUBE_SUBNET_CIDR", "172.20.1.0/24", {"network.subnets[0].cidr": "172.20.1.0/24"}),
    ("MASTER_INTERNAL_IP", "172.20.0.77", {"controlPlane.addresses[0]": "172.20.0.77"}),
    ("DHCP_OPTION_SET_ID", "dopt-01234567", {"network.dhcpOptions": "dopt-01234567"}),
    ("SSH_CIDR", "203.0.113.0/24", {"ssh.allowedCidrs[0]": "203.0.113.0/24"}),
    ("HTTP_API_CIDR", "203.0.113.0/24", {"api.allowedCidrs[0]": "203.0.113.0/24"}),
    ("KUBE_ENABLE_NODE_PUBLIC_IP", "false", {"nodeGroups[0].publicIp": False}),
    ("KUBE_ENABLE_MINION_PUBLIC_IP", "false", {"nodeGroups[0].publicIp": False}),
    (
        "NUM_NODES",
        "7",
        {"nodeGroups[0].minSize": 7, "nodeGroups[0].maxSize": 7, "nodeGroups[0].desiredSize": 7},
    ),
    ("NUM_NODES", "0", {"nodeGroups[0].minSize": 0, "nodeGroups[0].maxSize": 1, "nodeGroups[0].desiredSize": 0}),
    ("NUM_MINIONS", "3", {"nodeGroups[0].minSize": 3, "nodeGroups[0].maxSize": 3}),
    ("MASTER_SIZE", "m5.large", {"controlPlane.instanceType": "m5.large"}),
    (
        "NODE_SIZE",
        "t4g.large",
        {"nodeGroups[0].instanceType": "t4g.large", "nodeGroups[0].image.architecture": "arm64"},
    ),
    ("MINION_SIZE", "m5.large", {"nodeGroups[0].instanceType": "m5.large"}),
    ("MASTER_DISK_TYPE", "gp2", {"controlPlane.volume.type": "gp2"}),
    ("MASTER_DISK_SIZE", "64", {"controlPlane.volume.size": 64}),
    ("MASTER_ROOT_DISK_TYPE", "gp2", {"controlPlane.rootVolume.type": "gp2"}),
    ("MASTER_ROOT_DISK_SIZE", "8", {"controlPlane.rootVolume.size": 8}),
    ("NODE_ROOT_DISK_TYPE", "gp2", {"nodeGroups[0].rootVolume.type": "gp2", "nodeGroups[0].rootVolume.size": 32}),
    ("NODE_ROOT_DISK_SIZE", "100", {"nodeGroups[0].rootVolume.size": 100}),
    ("MINION_ROOT_DISK_TYPE", "gp2", {"nodeGroups[0].rootVolume.type": "gp2"}),
    ("MINION_ROOT_DISK_SIZE", "100", {"nodeGroups[0].rootVolume.size": 100}),
    ("NODE_SPOT_PRICE", "0.05", {"nodeGroups[0].spotPrice": "0.05"}),
    ("KUBE_OS_DISTRIBUTION", "ubuntu", {"nodeGroups[0].image.distribution": "ubuntu-24.04"}),
    ("KUBE_OS_DISTRIBUTION", "debian", {"controlPlane.image.distribution": "debian-13"}),
    ("KUBE_OS_DISTRIBUTION", "amazon-linux-2023", {"controlPlane.image.distribution": "amazon-linux-2023"}),
    ("AWS_IMAGE", "ami-01234567", {"controlPlane.image.id": "ami-01234567", "nodeGroups[0].image.id": "ami-01234567"}),
    ("KUBE_NODE_IMAGE", "ami-01234567", {"controlPlane.image.id": None, "nodeGroups[0].image.id": "ami-01234567"}),
    ("KUBE_MINION_IMAGE", "ami-01234567", {"nodeGroups[0].image.id": "ami-01234567"}),
    ("NON_MASQUERADE_CIDR", "10.0.0.0/7", {"network.nonMasqueradeCidr": "10.0.0.0/7"}),
    (
        "SERVICE_CLUSTER_IP_RANGE",
        "10.96.0.0/16",
        {"network.serviceCidr": "10.96.0.0/16", "network.dnsServiceIp": "10.96.0.10"},
    ),
    ("CLUSTER_IP_RANGE", "10.200.0.0/16", {"network.podCidr": "10.200.0.0/16"}),
    ("DNS_SERVER_IP", "10.0.0.10", {"network.dnsServiceIp": "10.0.0.10"}),
    ("KUBE_RUNTIME_CONFIG", "api/all=true", {f"{API}[0].name": "runtime-config", f"{API}[0].value": "api/all=true"}),
    (
        "FEATURE_GATES",
        "A=true, B=false",
        {
            f"{API}[0].name": "feature-gates",
            f"{API}[0].value": "A=true,B=false",
            f"{MANAGER}[0].value": "A=true,B=false",
            f"{SCHEDULER}[0].value": "A=true,B=false",
            f"{KUBELET}.featureGates.A": True,
            f"{KUBELET}.featureGates.B": False,
        },
    ),
    (
        "EVICTION_HARD",
        "memory.available<250Mi,nodefs.available<10%",
        {f"{KUBELET}.evictionHard.memory.available": "250Mi", f"{KUBELET}.evictionHard.nodefs.available": "10%"},
    ),
    ("HAIRPIN_MODE", "hairpin-veth", {f"{KUBELET}.hairpinMode": "hairpin-veth"}),
    ("KUBE_APISERVER_REQUEST_TIMEOUT", "300", {f"{API}[0].name": "min-request-timeout", f"{API}[0].value": "300"}),
    (
        "TERMINATED_POD_GC_THRESHOLD",
        "100",
        {f"{MANAGER}[0].name": "terminated-pod-gc-threshold", f"{MANAGER}[0].value": "100"},
    ),
    ("KUBE_ENABLE_CLUSTER_MONITORING", "influxdb", {"addons.prometheus.enabled": True}),
    ("KUBE_ENABLE_CLUSTER_MONITORING", "none", {"addons.prometheus.enabled": False}),
    ("KUBE_ENABLE_NODE_LOGGING", "false", {"addons.fluentBit.enabled": False}),
    ("KUBE_ENABLE_CLUSTER_LOGGING", "false", {"addons.fluentBit.enabled": False}),
    ("KUBE_ENABLE_CLUSTER_UI", "true", {"addons.headlamp.enabled": True}),
    ("KUBE_ENABLE_CLUSTER_AUTOSCALER", "true", {"addons.clusterAutoscaler.enabled": True}),
    ("KUBE_ENABLE_NODE_AUTOSCALER", "true", {"addons.clusterAutoscaler.enabled": True}),
    (
        "KUBE_TARGET_NODE_UTILIZATION",
        "0.7",
        {"addons.clusterAutoscaler.values.extraArgs.scale-down-utilization-threshold": "0.7"},
    ),
    ("NETWORK_PROVIDER", "flannel", {"network.plugin": "flannel"}),
    ("NETWORK_PROVIDER", "kubenet", {"network.plugin": "vpc-routes"}),
    ("NETWORK_POLICY_PROVIDER", "calico", {"network.plugin": "calico"}),
    (
        "KUBE_AWS_STORAGE",
        "ebs",
        {"controlPlane.instanceStorage": "none", "nodeGroups[0].instanceStorage": "none"},
    ),
    (
        "DOCKER_STORAGE",
        "overlay2",
        {"controlPlane.containerd.snapshotter": "overlayfs", "nodeGroups[0].containerd.snapshotter": "overlayfs"},
    ),
    (
        "DOCKER_REGISTRY_MIRROR_URL",
        "https://mirror.example.com",
        {"nodeGroups[0].containerd.registryMirrors.docker.io[0]": "https://mirror.example.com"},
    ),
    ("ENABLE_APISERVER_BASIC_AUDIT", "false", {"controlPlane.auditLog.enabled": False}),
    ("NODE_LABELS", "team=web,disk=ssd", {"nodeGroups[0].labels.team": "web", "nodeGroups[0].labels.disk": "ssd"}),
]


EXISTING = {
    "VPC_ID": "vpc-01234567",
    "KUBE_VPC_CIDR_BASE": "172.20",
    "SUBNET_ID": "subnet-01234567",
    "KUBE_SUBNET_CIDR": "172.20.0.0/24",
}


@pytest.mark.parametrize(("name", "value", "expected"), HONOURED)
def test_a_variable_sets_its_keys(name: str, value: str, expected: dict[str, Any]) -> None:
    # Without public addresses nodes need subnets that exist, and a NAT gateway in them.
    settings = effective({name: value, **(EXISTING if name.endswith("_PUBLIC_IP") else {})})
    assert {key: settings[key] for key in expected} == expected


def test_an_existing_vpc_and_subnet_come_from_the_environment_alone() -> None:
    environ = {
        "VPC_ID": "vpc-01234567",
        "SUBNET_ID": "subnet-01234567",
        "KUBE_VPC_CIDR_BASE": "10.9",
        "KUBE_SUBNET_CIDR": "10.9.4.0/24",
    }
    settings = effective(environ)
    assert settings["network.vpc.id"] == "vpc-01234567"
    assert settings["network.subnets[0].id"] == "subnet-01234567"
    assert settings["controlPlane.addresses[0]"] == "10.9.4.9"


ACCEPTED = [(each.name, value) for each in kube_up.VARIABLES.values() for value in each.accepted_values]


@pytest.mark.parametrize(("name", "value"), ACCEPTED)
def test_a_value_that_describes_what_happens_anyway_changes_nothing(name: str, value: str) -> None:
    assert effective({name: "anything" if value == "*" else value}) == effective({})


PICKY = [
    each
    for each in kube_up.VARIABLES.values()
    if each.handling == "accepted" and not {"*", "auto"} & set(each.accepted_values)
]


@pytest.mark.parametrize("variable", PICKY, ids=lambda each: each.name)
def test_any_other_value_is_refused_with_what_replaced_it(variable: kube_up.Variable) -> None:
    allowed = " or ".join(variable.accepted_values)
    assert refusal({variable.name: "other"}) == [
        f"environment variable {variable.name}: 'other' is not accepted, only {allowed}; {variable.explanation}"
    ]


REFUSED = [each for each in kube_up.VARIABLES.values() if each.handling == "refused"]


@pytest.mark.parametrize("variable", REFUSED, ids=lambda each: each.name)
def test_a_variable_without_meaning_is_refused_with_one_sentence(variable: kube_up.Variable) -> None:
    assert refusal({variable.name: "x"}) == [f"environment variable {variable.name}: {variable.explanation}"]


BAD = [
    ("KUBE_AWS_ZONE", "us-west-2", "must be an Availability Zone such as us-west-2a, not 'us-west-2'"),
    (
        "KUBE_VPC_CIDR_BASE",
        "172.20.0.0/16",
        "must be the first two numbers of the VPC's addresses such as 172.20, not '172.20.0.0/16'",
    ),
    ("KUBE_VPC_CIDR_BASE", "172.300", "network.vpc.cidr: '172.300.0.0/16' is not an IPv4 CIDR such as 172.20.0.0/16"),
    ("NUM_NODES", "four", "must be a whole number, not 'four'"),
    ("NUM_NODES", "-1", "must be a whole number, not '-1'"),
    ("MASTER_DISK_SIZE", "20G", "must be a whole number, not '20G'"),
    ("KUBE_ENABLE_NODE_PUBLIC_IP", "yes", "must be true or false, not 'yes'"),
    (
        "MASTER_RESERVED_IP",
        "52.1.2.3",
        (
            "CloudFormation needs the allocation id beside the address; set both, api.elasticIp.allocationId and "
            "api.elasticIp.address"
        ),
    ),
    (
        "KUBE_OS_DISTRIBUTION",
        "jessie",
        (
            "jessie cannot be used: Debian 8 has had no updates since 2020; choose one of ubuntu-24.04, "
            "ubuntu-22.04, debian-12, debian-13, amazon-linux-2023, ubuntu, debian"
        ),
    ),
    (
        "KUBE_OS_DISTRIBUTION",
        "centos",
        (
            "'centos' is not a distribution that cfngen supports; choose one of ubuntu-24.04, ubuntu-22.04, debian-12, "
            "debian-13, amazon-linux-2023, ubuntu, debian"
        ),
    ),
    (
        "NODE_LABELS",
        "linux docker",
        "must be labels such as `team=web,disk=ssd`, not 'linux docker'; was it Jenkins? Then use --no-env",
    ),
    (
        "NETWORK_PROVIDER",
        "nonsense",
        "must be none or kubenet, flannel, cni, not 'nonsense'; set network.plugin instead",
    ),
    (
        "NETWORK_POLICY_PROVIDER",
        "nonsense",
        "must be none or calico, not 'nonsense'; network.plugin: cilium supports network policies too",
    ),
    ("KUBE_AWS_STORAGE", "local", "must be ebs, not 'local'; unset it to use the disks of the instance type"),
    ("DOCKER_STORAGE", "aufs", "must be overlay or overlay2, not 'aufs'"),
    (
        "DOCKER_STORAGE",
        "btrfs",
        (
            "the disk with the images is not btrfs; unset it, or mount a btrfs file system on /var/lib/containerd by "
            "preBootCommands and write `containerd: {snapshotter: btrfs}` beside them"
        ),
    ),
    ("KUBE_ENABLE_CLUSTER_UI", "yes", "must be true, or false or none; not 'yes'"),
    ("FEATURE_GATES", "A", "must be gates such as `SomeGate=true,Other=false`, not 'A'"),
    (
        "EVICTION_HARD",
        "100Mi",
        "must be thresholds such as `memory.available<100Mi,nodefs.available<10%`, not '100Mi'",
    ),
    ("TERMINATED_POD_GC_THRESHOLD", "many", "must be a whole number, not 'many'"),
    (
        "DNS_SERVER_IP",
        "10.0.0.11",
        (
            "network.dnsServiceIp: kubeadm always uses the tenth address of 10.0.0.0/16 for the cluster DNS, "
            "10.0.0.10; remove the key"
        ),
    ),
]


@pytest.mark.parametrize(("name", "value", "message"), BAD)
def test_a_bad_value_is_refused_under_the_variables_name(name: str, value: str, message: str) -> None:
    assert refusal({name: value}) == [f"environment variable {name}: {message}"]


@pytest.mark.parametrize("name", ["trusty", "wily", "vivid", "wheezy", "coreos"])
def test_distributions_of_kube_ups_time_are_refused_with_the_reason(name: str) -> None:
    (message,) = refusal({"KUBE_OS_DISTRIBUTION": name})
    assert message.startswith(f"environment variable KUBE_OS_DISTRIBUTION: {name} cannot be used: ")


def test_both_spellings_may_say_the_same() -> None:
    assert effective({"NUM_NODES": "3", "NUM_MINIONS": "3"})["nodeGroups[0].minSize"] == 3


def test_two_spellings_that_disagree_are_refused() -> None:
    assert refusal({"NODE_SIZE": "t3.large", "MINION_SIZE": "m5.large"}) == [
        (
            "environment variable MINION_SIZE: it is the old name of NODE_SIZE, which has a different value "
            "('t3.large'); unset one of them"
        )
    ]


def test_empty_variables_and_foreign_ones_mean_nothing() -> None:
    environ = dict.fromkeys(kube_up.VARIABLES, "") | {"KUBECONFIG": "/root/.kube/config", "HOME": "/root", "CI": "true"}
    assert effective(environ) == effective({})


def test_an_error_of_the_environment_says_how_to_do_without() -> None:
    with pytest.raises(ClusterFileError) as error:
        load(None, environ={"AWS_S3_BUCKET": "mine"})
    assert "--no-env" in error.value.hint


def test_the_variables_of_the_blog_posts_are_known_by_both_names() -> None:
    old = {name for variable in kube_up.VARIABLES.values() for name in variable.old_names}
    assert {"MINION_SIZE", "NUM_MINIONS", "KUBE_MINION_IMAGE"} <= old


def test_every_variable_is_tried_above() -> None:
    tried = {name for name, *_ in HONOURED} | {"VPC_ID", "SUBNET_ID"} | {name for name, *_ in BAD}
    honoured = [variable for variable in kube_up.VARIABLES.values() if variable.handling == "honoured"]
    assert {name for each in honoured for name in (each.name, *each.old_names)} <= tried
    assert {variable.name for variable in kube_up.VARIABLES.values()} - {
        each.name for each in (*PICKY, *REFUSED, *honoured)
    } == {
        "MASTER_RESERVED_IP",
        "MULTIZONE",
        "AWS_DEFAULT_PROFILE",
    }
