"""The kind cluster: its configuration is kind's, its contents are the cluster's."""

from __future__ import annotations

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner

from cfngen import kind, output, releases, templates
from cfngen.cli.commands.kind import command
from cfngen.cluster.load import load, parse
from cfngen.userdata import addons

EXAMPLES = Path(__file__).parents[2] / "examples"
# The fields of pkg/apis/config/v1alpha4/types.go of kubernetes-sigs/kind v0.33.0 that a configuration of ours can have:
# the type of each value, the fields of an object, or those of each object of a list.
MOUNT = {"containerPath": str, "hostPath": str, "readOnly": bool}
NODE = {"role": str, "image": str, "labels": dict, "extraMounts": [MOUNT], "kubeadmConfigPatches": list}
CLUSTER: dict[str, Any] = {
    "kind": str,
    "apiVersion": str,
    "name": str,
    "nodes": [NODE],
    "networking": {"podSubnet": str, "serviceSubnet": str, "disableDefaultCNI": bool},
    "kubeadmConfigPatches": list,
}
NEEDS_AWS = {
    "aws-ebs-csi-driver",
    "aws-vpc-cni",
    "cluster-autoscaler",
    "aws-node-termination-handler",
    "aws-load-balancer-controller",
    "external-dns",
    "nvidia-device-plugin",
}


def check_type(value: Any, expected: Any, path: str = "") -> None:
    if isinstance(expected, dict):
        assert value.keys() <= expected.keys(), path
        for key, item in value.items():
            check_type(item, expected[key], f"{path}.{key}")
    elif isinstance(expected, list):
        for item in value:
            check_type(item, expected[0], path)
    else:
        assert isinstance(value, expected), path


def files_of(**fields: Any) -> dict[str, Any]:
    return kind.folder_files(parse(fields))


def patch(configuration: dict[str, Any], name: str) -> dict[str, Any]:
    documents = map(yaml.safe_load, configuration["kubeadmConfigPatches"])
    return next(document for document in documents if document["kind"] == name)


@pytest.mark.parametrize("example", sorted(path.name for path in EXAMPLES.glob("*.yaml")))
def test_every_cluster_has_one(example: str) -> None:
    cluster = load(EXAMPLES / example, environ={}).cluster
    files = kind.folder_files(cluster)
    configuration = files["kind.yaml"]
    assert isinstance(configuration, dict)
    check_type(configuration, CLUSTER)
    minor = releases.exact_version(cluster.kubernetes_version).rpartition(".")[0]
    control_plane, *workers = configuration["nodes"]
    assert {node["image"].partition("@")[0].rpartition(".")[0] for node in configuration["nodes"]} == {
        f"kindest/node:v{minor}"
    }
    assert control_plane["role"] == "control-plane"
    assert [worker["role"] for worker in workers] == ["worker"] * len(cluster.node_groups)
    # What is mounted is written, and each chart has values.
    assert {mount["hostPath"] for mount in control_plane.get("extraMounts", [])} <= files.keys()
    script = str(files["create.sh"])
    for release in addons.releases(cluster):
        is_installed = f" {release['name']} " in script
        assert is_installed == (release["name"] not in NEEDS_AWS)
        assert is_installed == (f"values/{release['name']}.yaml" in files)
        if is_installed:
            assert f"{release['chart']['url']} {release['chart']['sha256']}" in script


def test_every_minor_version_has_an_image() -> None:
    for minor in releases.patches_by_minor():
        assert releases.kind_image(minor).kubernetes_version.startswith(f"{minor}.")


@pytest.mark.parametrize(("version", "api", "flags"), [("1.35", "v1beta3", dict), ("1.36", "v1beta4", list)])
def test_patches_are_in_the_version_that_kind_writes(version: str, api: str, flags: type) -> None:
    configuration = files_of(
        kubernetesVersion=version,
        nodeGroups=[{"taints": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}], "labels": {"team": "a"}}],
    )["kind.yaml"]
    cluster_patch = patch(configuration, "ClusterConfiguration")
    worker = configuration["nodes"][1]
    (join,) = map(yaml.safe_load, worker["kubeadmConfigPatches"])
    assert cluster_patch["apiVersion"] == join["apiVersion"] == f"kubeadm.k8s.io/{api}"
    assert isinstance(cluster_patch["apiServer"]["extraArgs"], flags)
    assert join["nodeRegistration"]["taints"] == [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    assert worker["labels"]["team"] == "a"
    assert worker["labels"]["topology.kubernetes.io/zone"] == "us-west-2a"


def test_networks_are_the_clusters() -> None:
    network = {"podCidr": "10.200.0.0/16", "serviceCidr": "10.99.0.0/16", "dnsDomain": "shop.internal"}
    default = files_of(network=network)["kind.yaml"]
    assert default["networking"] == {"podSubnet": "10.200.0.0/16", "serviceSubnet": "10.99.0.0/16"}
    assert patch(default, "ClusterConfiguration")["networking"] == {"dnsDomain": "shop.internal"}
    cilium = files_of(name="shop", network={**network, "plugin": "cilium"})
    assert cilium["kind.yaml"]["networking"]["disableDefaultCNI"] is True
    values = cilium["values/cilium.yaml"]
    assert (values["k8sServiceHost"], values["k8sServicePort"]) == ("shop-control-plane", 6443)
    # Pods' addresses of the VPC come from no range.
    amazon = files_of(network={"plugin": "amazon-vpc"})["kind.yaml"]
    assert amazon["networking"] == {"serviceSubnet": "10.0.0.0/16"}


def test_settings_of_the_api_server_come_along_with_the_files_that_they_name() -> None:
    folder = "/etc/admission"
    arguments = {
        "admission-control-config-file": f"{folder}/config.yaml",
        "feature-gates": "Some=true",
        "tracing-config-file": "/etc/tracing/config.yaml",
    }
    volumes = {"admission": folder, "tracing": "/etc/tracing"}
    files = files_of(
        controlPlane={"files": [{"path": f"{folder}/config.yaml", "content": "plugins: []\n"}]},
        kubernetes={
            "clusterConfiguration": {
                "apiServer": {
                    "extraArgs": [{"name": name, "value": value} for name, value in arguments.items()],
                    "extraVolumes": [
                        {"name": name, "hostPath": path, "mountPath": path, "readOnly": True}
                        for name, path in volumes.items()
                    ],
                }
            },
            "kubeletConfiguration": {"maxPods": 60, "systemReserved": {"cpu": "1"}},
        },
    )
    configuration = files["kind.yaml"]
    api_server = patch(configuration, "ClusterConfiguration")["apiServer"]
    flags = {argument["name"]: argument["value"] for argument in api_server["extraArgs"]}
    assert flags["admission-control-config-file"] == f"{folder}/config.yaml"
    assert flags["feature-gates"] == "Some=true"
    assert flags["audit-policy-file"] == "/etc/kubernetes/audit-policy.json"
    # Nothing of the cluster file is there for it, nor for the keys that masters make.
    assert not flags.keys() & {"tracing-config-file", "encryption-provider-config", "cloud-provider"}
    assert {volume["name"] for volume in api_server["extraVolumes"]} == {"admission", "audit-policy", "audit-log"}
    assert files[f"files{folder}/config.yaml"] == "plugins: []\n"
    assert {mount["containerPath"] for mount in configuration["nodes"][0]["extraMounts"]} == {
        f"{folder}/config.yaml",
        "/etc/kubernetes/audit-policy.json",
    }
    kubelet = patch(configuration, "KubeletConfiguration")
    assert kubelet["maxPods"] == 60
    assert "systemReserved" not in kubelet
    for setting in ("kubeletConfiguration.systemReserved", "apiServer.extraArgs (tracing-config-file)"):
        assert setting in files["README.md"]


def test_storage_classes_have_the_clusters_names() -> None:
    mine = {"name": "mine", "parameters": {"type": "io2"}, "reclaimPolicy": "Retain"}
    for values, names in (({}, {"default"}), ({"storageClasses": [mine]}, {"default", "mine"})):
        classes = files_of(addons={"awsEbsCsiDriver": {"values": values}})["storage-classes.yaml"]["items"]
        assert {storage_class["metadata"]["name"] for storage_class in classes} == names
        assert {storage_class["provisioner"] for storage_class in classes} == {"rancher.io/local-path"}
    assert classes[1]["reclaimPolicy"] == "Retain"
    without = files_of(addons={"awsEbsCsiDriver": {"enabled": False}})
    assert "storage-classes.yaml" not in without
    assert "storage-classes.yaml" not in without["create.sh"]


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, str]:
    """Stand-ins for the programs that the script calls: each writes what it is asked to a file."""
    folder = tmp_path / "bin"
    folder.mkdir()
    answers = {
        "kind": 'case "$1" in version) echo "${KIND_VERSION:-0.33.0}" ;; get) echo "$KIND_CLUSTERS" ;; esac',
        "kubectl": "",
        "helm": "",
        "curl": 'while [ "$1" != -o ]; do shift; done; printf chart > "$2"',
    }
    for name, answer in answers.items():
        (folder / name).write_text(f'#!/bin/sh\necho "{name} $*" >> "{tmp_path}/calls"\n{answer}\n')
        (folder / name).chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def run_script(tmp_path: Path, programs: dict[str, str], **fields: Any) -> tuple[subprocess.CompletedProcess[str], str]:
    for path, content in files_of(**fields).items():
        file = tmp_path / "local" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content if isinstance(content, str) else json.dumps(content))
    finished = subprocess.run(
        ["/bin/sh", tmp_path / "local" / "create.sh"], env=programs, text=True, capture_output=True, check=False
    )
    calls = tmp_path / "calls"
    return finished, calls.read_text() if calls.exists() else ""


def test_the_script_creates_the_cluster_and_installs_the_charts(tmp_path: Path, programs: dict[str, str]) -> None:
    chart = {
        "name": "shop",
        "namespace": "web",
        "url": "https://charts.example.com/shop-1.0.0.tgz",
        "sha256": hashlib.sha256(b"chart").hexdigest(),
    }
    fields = {"name": "shop", "addons": {"metricsServer": {"enabled": False}, "charts": [chart]}}
    finished, calls = run_script(tmp_path, programs, **fields)
    assert finished.returncode == 0, finished.stderr
    create, install = calls.index("kind create cluster --config kind.yaml"), calls.index("helm upgrade --install shop")
    assert create < calls.index("apply -f storage-classes.yaml") < install
    assert "--kube-context kind-shop --namespace web --create-namespace --values values/shop.yaml" in calls[install:]
    # Run again, it completes what is there.
    (tmp_path / "calls").unlink()
    finished, calls = run_script(tmp_path, {**programs, "KIND_CLUSTERS": "shop"}, **fields)
    assert finished.returncode == 0
    assert "kind create" not in calls
    assert "helm upgrade --install shop" in calls


def test_the_script_refuses_another_chart_and_an_old_kind(tmp_path: Path, programs: dict[str, str]) -> None:
    finished, calls = run_script(tmp_path, programs)
    assert finished.returncode == 1
    assert "metrics-server" in finished.stderr
    assert "was expected; it was removed" in finished.stderr
    assert "helm upgrade" not in calls
    assert not list((tmp_path / "local" / "charts").iterdir())
    (tmp_path / "calls").unlink()
    finished, calls = run_script(tmp_path, {**programs, "KIND_VERSION": "0.32.0"})
    assert finished.returncode == 1
    assert "kind 0.32.0 may not start these nodes: install kind 0.33.0 or newer" in finished.stderr
    assert "create" not in calls


def test_the_command_writes_the_folder_and_removes_what_is_stale(tmp_path: Path) -> None:
    folder = tmp_path / "local"
    first = CliRunner().invoke(command, [str(folder), "--defaults", "--set", "addons.certManager.enabled=true"])
    assert first.exit_code == 0, first.output
    assert (folder / "values" / "cert-manager.yaml").exists()
    assert yaml.safe_load((folder / "kind.yaml").read_text())["name"] == "kubernetes"
    second = CliRunner().invoke(command, [str(folder), "--defaults"])
    assert second.exit_code == 0
    assert not (folder / "values" / "cert-manager.yaml").exists()
    assert f"To create the cluster: sh {folder}/create.sh" in " ".join(second.output.split())


def test_templates_and_the_folder_do_not_replace_each_other(tmp_path: Path) -> None:
    output.write(tmp_path, output.render(templates.generate(parse({}))))
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(output.OutputError, match="holds other files of cfngen"):
        output.write(tmp_path, {output.README: output.marked("# A cluster on this machine, with kind\n", [])})
    assert sorted(tmp_path.rglob("*")) == before
