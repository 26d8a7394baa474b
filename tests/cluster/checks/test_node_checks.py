"""Every row of what may not be put onto instances, and the ends of what an Auto Scaling group and a tag hold."""

from __future__ import annotations

from typing import Any

import pytest

from cfngen.cluster.checks import warnings
from cfngen.cluster.load import parse
from cfngen.cluster.problems import ClusterFileError


def refusals(configuration: dict[str, Any]) -> list[str]:
    try:
        parse(configuration)
    except ClusterFileError as error:
        return str(error).splitlines()
    return []


def second(**more: Any) -> dict[str, Any]:
    """A cluster of which the second node group has something."""
    return {"nodeGroups": [{"name": "first"}, {"name": "second", **more}]}


# pkg/kubelet/apis/well_known_labels.go of Kubernetes, and the AWS cloud provider's labels.
@pytest.mark.parametrize(
    "key",
    [
        "kubernetes.io/arch",
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
    ],
)
def test_a_label_that_kubernetes_sets(key: str) -> None:
    where = f"nodeGroups[1].labels.{key}"
    assert refusals(second(labels={key: "a"})) == [f"{where}: Kubernetes sets this label itself; remove it"]


@pytest.mark.parametrize("key", ["xkubernetes.io/a", "xk8s.io/a", "kubernetes.io.example.com/a", "k8s.iox/a"])
def test_a_label_of_a_name_that_only_resembles_kubernetes(key: str) -> None:
    assert refusals(second(labels={key: "a"})) == []


# A tag's key has 128 characters (CreateOrUpdateTags, Auto Scaling API Reference), of which
# `k8s.io/cluster-autoscaler/node-template/label/` takes 46.
def test_how_long_a_label_or_a_taint_may_be() -> None:
    longest = "p" * 41 + "/" + "n" * 40
    reason = "the key is too long for cluster-autoscaler's tag; use at most 82 characters"
    assert refusals(second(labels={longest: ""})) == []
    assert refusals(second(labels={"p" + longest: ""})) == [f"nodeGroups[1].labels.p{longest}: {reason}"]
    taint = {"key": longest, "effect": "NoSchedule"}
    assert refusals(second(taints=[taint])) == []
    assert refusals(second(taints=[{**taint, "key": "a"}, {**taint, "key": "p" + longest}])) == [
        f"nodeGroups[1].taints[1].key: {reason}"
    ]


def test_a_taint_stands_once_for_each_effect() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    assert refusals(second(taints=[taint, {**taint, "key": "other"}, {**taint, "value": "x"}])) == [
        "nodeGroups[1].taints[2]: gpu with the effect NoSchedule appears twice; remove one"
    ]


# "Tag Auto Scaling groups", Auto Scaling User Guide: 50 tags, six of which are cfngen's.
def test_how_many_labels_taints_and_tags_a_group_has() -> None:
    def of(labels: int) -> list[str]:
        taints = [{"key": "gpu", "effect": "NoSchedule"}, {"key": "gpu", "effect": "NoExecute"}]
        more = second(labels={f"l{number}": "" for number in range(labels)}, taints=taints)
        return refusals({**more, "tags": {"team": "a", "stage": "b"}})

    assert of(41) == []
    assert of(42) == [
        (
            "nodeGroups[1].labels: labels, taints and tags need 45 tags of the Auto Scaling group, but only 44 are "
            "possible; remove some"
        )
    ]


# What cfngen, containerd's and Kubernetes' packages and the kubelet write on an instance.
OWN = [
    "/etc/cni/net.d/10-kubenet.conf",
    "/etc/containerd/config.toml",
    "/etc/containerd/cni.template",
    "/etc/fstab",
    "/etc/hosts",
    "/etc/kubernetes/manifests/etcd.yaml",
    "/etc/systemd/system/cfngen-boot.service",
    "/etc/systemd/system/cfngen-boot.service.d/10-own.conf",
    "/etc/systemd/system/containerd.service",
    "/etc/systemd/system/kubelet.service",
    "/etc/sysctl.d/90-cfngen.conf",
    "/etc/modules-load.d/cfngen",
    "/mnt/instance-storage/kubelet",
    "/mnt/master/etcd",
    "/opt/cfngen/boot.py",
    "/opt/cni/bin/bridge",
    "/usr/local/bin/containerd",
    "/usr/local/bin/containerd-shim-runc-v2",
    "/usr/local/bin/ctr",
    "/usr/local/bin/ecr-credential-provider",
    "/usr/local/bin/etcdctl",
    "/usr/local/bin/etcdutl",
    "/usr/local/bin/helm",
    "/usr/local/bin/kubeadm",
    "/usr/local/bin/kubectl",
    "/usr/local/bin/kubelet",
    "/usr/local/sbin/runc",
    "/var/lib/kubelet/config.yaml",
    "/var/lib/kubelet/kubeadm-flags.env",
    "/var/lib/kubelet/pki/kubelet.crt",
]
OTHERS = [
    "/etc/cni/net-d/own.conf",
    "/etc/containerd/own.toml",
    "/etc/containerd/configxtoml",
    "/etc/fstab.own",
    "/etc/hosts.allow",
    "/etc/kubernetes",
    "/etc/kubernetes-own/a",
    "/etc/systemd/system/own.service",
    "/etc/systemd/system/own.service.d/10-own.conf",
    "/srv/cfngen-own.conf",
    "/mnt/data/own",
    "/opt/own/cfngen",
    "/opt/cni/own/bridge",
    "/usr/local/bin/own",
    "/usr/local/bin/kubelets",
    "/usr/local/sbin/own",
    "/usr/bin/kubelet",
    "/var/lib/kubelet/own.yaml",
    "/var/lib/kubelet/pki",
]


def placed(paths: list[str]) -> list[str]:
    """What is said of files at these paths."""
    return refusals(second(files=[{"path": path, "content": ""} for path in paths]))


def test_a_file_that_is_written_already() -> None:
    reason = "belongs to cfngen or to software that it installs; choose another path"
    assert placed(OWN) == [f"nodeGroups[1].files[{index}].path: {path} {reason}" for index, path in enumerate(OWN)]


def test_the_paths_beside_them_are_free() -> None:
    assert placed(OTHERS) == []


# Folders of the Filesystem Hierarchy Standard, systemd's file-hierarchy(7), the distributions' packages and cfngen.
TREES = (
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/root", "/run", "/sbin",
    "/snap", "/sys", "/tmp", "/usr", "/var/cache", "/var/lock", "/var/log/journal", "/var/run", "/var/snap",
    "/var/tmp", "/var/lib/amazon", "/var/lib/apt", "/var/lib/cfngen", "/var/lib/cloud", "/var/lib/dbus",
    "/var/lib/dnf", "/var/lib/dpkg", "/var/lib/rpm", "/var/lib/snapd", "/var/lib/systemd", "/mnt/instance-storage",
    "/opt/cfngen", "/opt/cni",
)  # fmt: skip
FOLDERS = ("/home", "/mnt", "/opt", "/var", "/var/lib", "/var/log", "/var/spool")
WHOLE = ("/var/lib/containerd", "/var/lib/kubelet")


def mounted(*folders: str) -> list[str]:
    """What is said of volumes that are mounted there, each in a group of its own."""
    groups = [
        {"name": f"n{index}", "volumes": [{"size": 10, "mountPath": folder}]} for index, folder in enumerate(folders)
    ]
    return [said.partition(".mountPath: ")[2] for said in refusals({"nodeGroups": groups})]


def test_nothing_is_mounted_over_what_the_image_has() -> None:
    reason = "belongs to the operating system or to cfngen; mount the volume elsewhere, e.g. at /data"
    assert mounted(*TREES) == [f"{tree} {reason}" for tree in TREES]
    assert mounted(*(f"{tree}/a" for tree in TREES)) == [f"{tree} {reason}" for tree in TREES]
    assert mounted(*FOLDERS) == [
        f"an empty volume would hide what the image has in {folder}; mount it at a folder below, or at /data"
        for folder in FOLDERS
    ]
    assert mounted(*(f"{folder}/a" for folder in WHOLE)) == [
        f"{folder} must be on one volume; mount the volume at {folder} itself, or elsewhere" for folder in WHOLE
    ]


def test_volumes_may_be_mounted_beside_it() -> None:
    assert mounted("/data", *WHOLE, *(f"{folder}/own" for folder in FOLDERS), *(f"{tree}-own" for tree in TREES)) == []


def test_a_folder_on_an_instances_own_disks_is_mounted_once() -> None:
    def of(storage: str) -> list[str]:
        volumes = [{"size": 10, "mountPath": folder} for folder in (*WHOLE, "/var/log/pods", "/data")]
        return refusals(second(instanceType="m6id.large", instanceStorage=storage, volumes=volumes))

    assert [
        said.partition(" has disks of its own, on which instanceStorage: raid0 puts ")[::2] for said in of("raid0")
    ] == [
        (
            f"nodeGroups[1].volumes[{index}].mountPath: m6id.large",
            f"{folder}; set instanceStorage: none, or mount the volume elsewhere",
        )
        for index, folder in enumerate((*WHOLE, "/var/log/pods"))
    ]
    assert of("none") == []


@pytest.mark.parametrize("folder", ["/data/../etc", "/data/./a", "/data/.."])
def test_a_mount_path_with_dots(folder: str) -> None:
    assert mounted(folder) == [f"{folder} has a part . or ..; write the path without it"]


def test_what_is_said_of_files_and_units_that_collide() -> None:
    file, unit = {"path": "/etc/a", "content": ""}, {"name": "a.service", "content": ""}
    assert placed(["/etc/a", "/etc/b", "/etc/a"]) == ["nodeGroups[1].files[2].path: /etc/a appears twice; remove one"]
    assert refusals(second(files=[file], units=[unit, unit])) == [
        "nodeGroups[1].units[1].name: /etc/systemd/system/a.service appears twice; remove one"
    ]
    assert refusals(second(units=[{**unit, "name": "kubelet.service"}])) == [
        (
            "nodeGroups[1].units[0].name: /etc/systemd/system/kubelet.service belongs to cfngen or to software that "
            "it installs; choose another path"
        )
    ]
    assert placed(["/srv/../etc/a"]) == [
        "nodeGroups[1].files[0].path: /srv/../etc/a contains `..`; write the path without it"
    ]
    assert placed(["/srv/..a/b..", "/srv/./a"]) == []


def test_a_registrys_hosts_are_written_by_one_of_two() -> None:
    file = {"path": "/etc/containerd/certs.d/docker.io/hosts.toml", "content": ""}
    mirrors = {"registryMirrors": {"docker.io": ["https://mirror.example.com"]}}
    assert refusals(second(files=[file], containerd=mirrors)) == [
        f"nodeGroups[1].files[0].path: containerd.registryMirrors also creates {file['path']}; remove one of them"
    ]
    for path in (
        "/etc/containerd/certs.d/quay.io/hosts.toml",
        "/etc/containerd/certs.d/docker.io/ca.crt",
        "/etc/containerd/certs.d/docker.io/x/hosts.toml",
    ):
        assert refusals(second(files=[{**file, "path": path}], containerd=mirrors)) == [], path


IMAGES = "io.containerd.cri.v1.images"


@pytest.mark.parametrize(
    ("configuration", "key", "instead"),
    [
        ({"version": 4}, "version", "remove it, the version is 4"),
        ({"plugins": {IMAGES: {"registry": {}}}}, f"plugins.{IMAGES}.registry", "use containerd.registryMirrors"),
        ({"plugins": {IMAGES: {"snapshotter": "zfs"}}}, f"plugins.{IMAGES}.snapshotter", "use containerd.snapshotter"),
        (
            {"plugins": {IMAGES: {"pinned_images": {"sandbox": "x"}}}},
            f"plugins.{IMAGES}.pinned_images.sandbox",
            "remove it",
        ),
    ],
)
def test_what_cfngen_sets_of_containerd(configuration: dict[str, Any], key: str, instead: str) -> None:
    said = f"containerd.configuration.{key}: cfngen sets this key itself; {instead}"
    assert refusals(second(containerd={"configuration": configuration})) == [f"nodeGroups[1].{said}"]
    assert refusals({"controlPlane": {"containerd": {"configuration": configuration}}}) == [f"controlPlane.{said}"]


@pytest.mark.parametrize(
    ("configuration", "key"),
    [
        ({"oom_score": None}, "oom_score"),
        ({"a": 0, "b": {"c": "", "d": None}, "e": None}, "b.d"),
        ({"a": [1, None]}, "a[1]"),
        ({"a": [{"b": 1}, {"b": None}]}, "a[1].b"),
    ],
)
def test_a_value_that_containerd_cannot_have(configuration: dict[str, Any], key: str) -> None:
    assert refusals(second(containerd={"configuration": configuration})) == [
        (
            f"nodeGroups[1].containerd.configuration.{key}: containerd's configuration has no null; enter a value, "
            "or remove the key"
        )
    ]


def test_values_that_only_look_empty_are_containerds() -> None:
    configuration = {"a": 0, "b": "", "c": False, "d": [], "e": {}, "plugins": {IMAGES: "x"}}
    assert refusals(second(containerd={"configuration": configuration})) == []


def test_how_long_an_update_waits_for_a_node() -> None:
    """An hour at most (PauseTime of UpdatePolicy), of which ten minutes are for the termination."""

    def said(creation: int, drain: int) -> list[str]:
        return list(map(str, warnings(parse(second(creationTimeout=creation, drainTimeout=drain)))))

    assert said(45, 5) == []
    assert said(45, 6) == [
        (
            "nodeGroups[1].drainTimeout: CloudFormation waits an hour at most while it replaces an instance, and "
            "creationTimeout (45) and drainTimeout (6) make more than 50 minutes: a healthy update may time out and "
            "be rolled back"
        )
    ]
