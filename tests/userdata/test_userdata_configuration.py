"""What each role's configuration and files say, for the whole range of clusters."""

from __future__ import annotations

import json
import re
import tomllib
from importlib import import_module
from typing import Any

import pytest

from cfngen import releases
from cfngen.boot.master import join_information
from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, roles

UNITS = "files/etc/systemd/system/"


def cluster(**data: Any) -> Cluster:
    return Cluster.model_validate(data)


def of(role: str, **data: Any) -> UserData:
    return {found.role: found for found in roles(cluster(**data))}[role]


def config(found: UserData) -> dict[str, Any]:
    return {**json.loads(found.files["config.json"]), **json.loads(found.files["role.json"])}


def test_there_is_a_role_for_the_master_and_for_each_node_group() -> None:
    groups = [{"name": "small"}, {"name": "large", "instanceType": "m7i.large"}]
    found = roles(cluster(nodeGroups=groups))
    assert [each.role for each in found] == ["master", "nodes-small", "nodes-large"]


@pytest.mark.parametrize("version", ["1.34", "1.35", "1.36"])
@pytest.mark.parametrize(("instance_type", "architecture"), [("t3.medium", "amd64"), ("t4g.medium", "arm64")])
def test_every_file_is_pinned_and_of_the_instances_architecture(
    version: str, instance_type: str, architecture: str
) -> None:
    found = of("nodes-nodes", kubernetesVersion=version, nodeGroups=[{"instanceType": instance_type}])
    assets = config(found)["assets"]
    places = {each.get("file") or each["folder"] for each in assets}
    assert places == {
        "/usr/local/bin/kubelet",
        "/usr/local/bin/kubeadm",
        "/usr/local/bin/kubectl",
        "/usr/local",
        "/usr/local/sbin/runc",
        "/opt/cni/bin",
        "/usr/local/bin/ecr-credential-provider",
    }
    catalogue = {asset.url: asset.sha256 for asset in releases.release(version, architecture).assets}
    assert {each["url"]: each["sha256"] for each in assets} == catalogue
    assert all(re.fullmatch("[0-9a-f]{64}", each["sha256"]) and architecture in each["url"] for each in assets)


def test_mirror_holds_the_files_by_host_and_path_of_their_origin() -> None:
    found = of("master", assets={"mirror": "https://mirror.example.com/k8s/"})
    urls = [each["url"] for each in config(found)["assets"]]
    assert all(url.startswith("https://mirror.example.com/k8s/") for url in urls)
    assert "https://mirror.example.com/k8s/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet" in urls


def test_containerd_configuration() -> None:
    found = tomllib.loads(of("master").files["files/etc/containerd/config.toml"])
    assert found["version"] == 4
    runtime = found["plugins"]["io.containerd.cri.v1.runtime"]
    runc = runtime["containerd"]["runtimes"]["runc"]
    assert runc == {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    assert runtime["cni"] == {
        "conf_dir": "/etc/cni/net.d",
        "conf_template": "/etc/containerd/cni.template",
    }
    images = found["plugins"]["io.containerd.cri.v1.images"]
    assert images["pinned_images"] == {"sandbox": "registry.k8s.io/pause:3.10.1"}
    assert images["registry"] == {"config_path": "/etc/containerd/certs.d"}


def test_pod_network_template_takes_the_nodes_range() -> None:
    template = of("nodes-nodes").files["files/etc/containerd/cni.template"]
    found = json.loads(template.replace("{{.PodCIDR}}", "10.244.3.0/24"))
    ptp, portmap = found["plugins"]
    assert ptp == {
        "type": "ptp",
        "ipam": {
            "type": "host-local",
            "ranges": [[{"subnet": "10.244.3.0/24"}]],
            "routes": [{"dst": "0.0.0.0/0"}],
        },
    }
    assert portmap == {"type": "portmap", "capabilities": {"portMappings": True}}


@pytest.mark.parametrize(
    ("network", "kept"),
    [
        ({}, ["10.244.0.0/16"]),
        ({"podCidr": "100.64.0.0/14"}, ["100.64.0.0/14"]),
        ({"nonMasqueradeCidr": "10.0.0.0/8"}, ["10.0.0.0/8"]),
        ({"nonMasqueradeCidr": "172.16.0.0/12"}, ["172.16.0.0/12", "10.244.0.0/16"]),
    ],
)
def test_pods_keep_their_address_towards_other_pods_and_the_given_range(
    network: dict[str, str], kept: list[str]
) -> None:
    unit = of("nodes-nodes", network=network).files[UNITS + "cfngen-masquerade.service"]
    assert re.findall(r"-A CFNGEN-MASQUERADE -d (\S+) -j RETURN", unit) == kept
    pods = network.get("podCidr", "10.244.0.0/16")
    assert f"-A POSTROUTING -s {pods} -m addrtype ! --dst-type LOCAL -j CFNGEN-MASQUERADE" in unit
    commands = [line for line in unit.splitlines() if "-A CFNGEN-MASQUERADE" in line]
    assert commands[-1].endswith("-A CFNGEN-MASQUERADE -j MASQUERADE")
    # Amazon's resolver answers addresses of the VPC only.
    assert ("-d 172.20.0.2 -j MASQUERADE" in commands[0]) is (network.get("nonMasqueradeCidr") == "172.16.0.0/12")


def test_masters_kubelet_never_runs_without_its_volume_and_a_nodes_needs_none() -> None:
    unit = of("master").files[UNITS + "kubelet.service"]
    assert "RequiresMountsFor=/mnt/master\nAssertPathIsMountPoint=/mnt/master\n" in unit
    assert "/mnt/master" not in of("nodes-nodes").files[UNITS + "kubelet.service"]


def test_join_information_is_renewed_several_times_in_a_tokens_life() -> None:
    files = of("master").files
    assert "OnCalendar=*-*-* 0/6:00\n" in files[UNITS + "cfngen-join.timer"]
    assert "ExecStart=/usr/bin/python3 -m boot join\n" in files[UNITS + "cfngen-join.service"]


def test_passwords_of_ecr_registries_come_from_the_role() -> None:
    found = json.loads(of("nodes-nodes").files["files/etc/kubernetes/credential-providers.json"])
    (provider,) = found["providers"]
    assert provider["name"] == "ecr-credential-provider"
    assert provider["matchImages"] == [
        "*.dkr.ecr.*.amazonaws.com",
        "*.dkr.ecr.*.amazonaws.com.cn",
        "*.dkr.ecr-fips.*.amazonaws.com",
        "*.dkr.ecr-fips.*.amazonaws.com.cn",
        "*.dkr-ecr.*.on.aws",
        "*.dkr-ecr.*.on.amazonwebservices.com.cn",
        "*.dkr-ecr-fips.*.on.aws",
        "*.dkr-ecr-fips.*.on.amazonwebservices.com.cn",
    ]


def manifests(**data: Any) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in config(of("master", **data))["manifests"]}


def test_node_runs_a_pod_of_the_pinned_pause_image_before_it_reports_success() -> None:
    found = config(of("nodes-nodes"))
    steps = list(found["steps"].values())
    assert steps.index("node.membership.ready") < steps.index("node.first_pod.run")
    assert found["pause"] == releases.PAUSE_IMAGE


def test_nodes_that_are_drained_may_list_nodes_and_nothing_else() -> None:
    def granted(**data: Any) -> list[dict[str, Any]]:
        found = config(of("master", **data))["manifests"]
        return [manifest for manifest in found if manifest["metadata"]["name"] == "cfngen:list-nodes"]

    role, binding = granted(nodeGroups=[{"name": "a", "drainTimeout": 0}, {"name": "b"}])
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["list"]}]
    assert [subject["name"] for subject in binding["subjects"]] == ["system:nodes"]
    assert granted(nodeGroups=[{"name": "a", "drainTimeout": 0}]) == []


def test_tokens_of_masters_let_nodes_join_and_nothing_approves_their_certificates_automatically() -> None:
    found = config(of("master"))
    init, _ = found["kubeadm"]
    # BootstrapGroupPattern in Kubernetes' cluster-bootstrap.
    assert re.fullmatch(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", join_information.TOKEN_GROUP)
    assert [token["groups"] for token in init["bootstrapTokens"]] == [[join_information.TOKEN_GROUP]]
    given = {
        (each["kind"], each["metadata"].get("namespace"), each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in found["manifests"]
        for subject in each.get("subjects", [])
        if (subject["kind"], subject["name"]) == ("Group", join_information.TOKEN_GROUP)
    }
    assert given == {
        ("ClusterRoleBinding", None, "ClusterRole", "system:node-bootstrapper"),
        ("ClusterRoleBinding", None, "ClusterRole", "kubeadm:get-nodes"),
        ("RoleBinding", "kube-system", "Role", "kubeadm:nodes-kubeadm-config"),
        ("RoleBinding", "kube-system", "Role", "kubeadm:kubelet-config"),
        ("RoleBinding", "kube-system", "Role", "kube-proxy"),
    }
    order = list(found["steps"].values())
    assert order.index("master.addons.essentials") < order.index("master.join_information.publish")


def test_certificates_of_nodes_are_approved_while_the_masters_boot_goes_on() -> None:
    """Commands at its end may wait for nodes, and a unit that is ordered after the boot would wait for them."""
    unit = of("master").files[UNITS + "cfngen-approve.service"]
    assert "cfngen-boot.service" not in unit
    assert "OnCalendar=minutely\n" in of("master").files[UNITS + "cfngen-approve.timer"]


def test_cloud_controller_manager_makes_the_pods_routes() -> None:
    found = manifests(name="prod", network={"podCidr": "10.96.0.0/14"}, api={"port": 6443})
    pod = found["DaemonSet"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["image"] == releases.CLOUD_CONTROLLER_MANAGER_IMAGE
    assert container["args"] == [
        "--cloud-provider=aws",
        "--cloud-config=/etc/kubernetes/cloud.config",
        "--cluster-name=prod",
        "--cluster-cidr=10.96.0.0/14",
        "--allocate-node-cidrs=true",
        "--configure-cloud-routes=true",
        "--use-service-account-credentials=true",
        "--leader-elect=true",
        "--v=2",
    ]
    assert {each["name"]: each["value"] for each in container["env"]} == {
        "KUBERNETES_SERVICE_HOST": "127.0.0.1",
        "KUBERNETES_SERVICE_PORT": "6443",
    }
    assert pod["hostNetwork"] is True
    assert pod["tolerations"] == [{"operator": "Exists"}]
    assert pod["nodeSelector"] == {"node-role.kubernetes.io/control-plane": ""}
    selector = found["DaemonSet"]["spec"]["selector"]["matchLabels"]
    assert selector == found["DaemonSet"]["spec"]["template"]["metadata"]["labels"]
    assert pod["volumes"][0]["hostPath"]["path"] == container["volumeMounts"][0]["mountPath"]


def test_rights_of_the_cloud_controller_manager_are_named_one_by_one() -> None:
    found = manifests()
    rules = found["ClusterRole"]["rules"]
    assert not [rule for rule in rules if "*" in rule["resources"] + rule["apiGroups"]]
    assert [rule["resources"] for rule in rules if "*" in rule["verbs"]] == [["nodes"]]
    account = {"kind": "ServiceAccount", "name": "cloud-controller-manager", "namespace": "kube-system"}
    assert found["ClusterRoleBinding"]["subjects"] == found["RoleBinding"]["subjects"] == [account]
    assert found["ClusterRoleBinding"]["roleRef"]["name"] == found["ClusterRole"]["metadata"]["name"]


def test_cloud_configuration_names_cluster_and_route_table() -> None:
    assert of("master", name="prod").files["files/etc/kubernetes/cloud.config"] == (
        "[Global]\nKubernetesClusterTag = prod\nRouteTableID = ${routeTableId}\n"
    )


# What modules that both roles have ask for on masters alone.
OF_MASTERS = {"apiHost", "masters"}


@pytest.mark.parametrize(("role", "elsewhere"), [("master", set()), ("nodes-nodes", OF_MASTERS)])
def test_configuration_has_what_the_program_asks_for_and_nothing_else(role: str, elsewhere: set[str]) -> None:
    found = of(role)
    program = "".join(text for path, text in found.files.items() if path.startswith("boot/"))
    made = set(re.findall(r'config\["(\w+)"\] = ', program)) | {"facts"}
    asked = set(re.findall(r'config\["(\w+)"\]', program)) - made
    assert asked - set(config(found)) == elsewhere
    # By the contents two user data are told apart; what an instance does with them is nothing.
    unused = {key for key in config(found) if not re.search(rf"[\"']{key}[\"']", program)}
    assert unused - {"podNetwork"} == {"contents"}


def test_every_step_is_a_function_of_the_boot_program() -> None:
    for role in roles(Cluster()):
        found = config(role)
        for name in [*found["steps"].values(), *(step for task in found["tasks"].values() for step in task.values())]:
            module, _, function = name.rpartition(".")
            assert callable(getattr(import_module(f"cfngen.boot.{module}"), function))


def test_time_out_is_the_groups_own() -> None:
    found = roles(cluster(controlPlane={"creationTimeout": 30}, nodeGroups=[{"creationTimeout": 45}]))
    assert [config(each)["timeout"] for each in found] == [30, 45]


@pytest.mark.parametrize("role", ["master", "nodes-nodes"])
def test_nothing_secret_is_in_user_data(role: str) -> None:
    text = "".join(of(role).files.values())
    assert "PRIVATE KEY" not in text
    assert not re.search(r"\b[a-z0-9]{6}\.[a-z0-9]{16}\b", text)
