"""containerd's configuration: what is written is what was meant, read back by a TOML parser."""

from __future__ import annotations

import string
import tomllib
from typing import Any

import pytest

from cfngen.cluster.model import Cluster
from cfngen.userdata import UserData, containerd, roles

IMAGES, RUNTIME = "io.containerd.cri.v1.images", "io.containerd.cri.v1.runtime"


def node(**group: Any) -> UserData:
    return roles(Cluster.model_validate({"nodeGroups": [{"name": "n", **group}]}))[1]


def configuration(**given: Any) -> dict[str, Any]:
    found: dict[str, Any] = tomllib.loads(node(containerd=given).files["files/etc/containerd/config.toml"])
    return found


AWKWARD = [
    "",
    "plain",
    'quote " and \\ backslash',
    "line\nbreak\ttab\rreturn",
    "\x00\x01\x1f\x7f",
    "ü 漢字 🙂",
    string.printable,
    "'''",
    '"""',
    "# no comment",
    "C:\\Users\\n",
]


@pytest.mark.parametrize("text", AWKWARD)
def test_any_text_survives_as_a_value_and_as_a_key(text: str) -> None:
    data = {"key": text, "list": [text], "table": {"a.b": text, "in": {"deep": text}}}
    assert tomllib.loads(containerd.toml(data)) == data
    if text:
        assert tomllib.loads(containerd.toml({text: 1, "t": {text: {"x": 1}}})) == {text: 1, "t": {text: {"x": 1}}}


@pytest.mark.parametrize(
    "data",
    [
        {},
        {"a": {}},
        {"a": {"b": {}}, "c": 1},
        {"n": -3, "f": 1.5, "e": 1e30, "yes": True, "no": False},
        {"list": [1, "a", [True, []], {"x": 1, "y": {"z": "w"}}]},
        {"tables": [{"name": "a"}, {"name": "b", "more": {"deep": [1]}}]},
        {"b": {"x": 1}, "a": 2, "c": {"y": {"z": 3}, "w": 4}},
    ],
)
def test_any_structure_survives(data: dict[str, Any]) -> None:
    assert tomllib.loads(containerd.toml(data)) == data


@pytest.mark.parametrize("value", [None, [None], {"deep": [{"x": None}]}])
def test_what_toml_lacks_is_refused_and_not_guessed(value: Any) -> None:
    with pytest.raises(ValueError, match="TOML has no None"):
        containerd.toml({"key": value})


def test_images_pass_through_the_kubelets_cgroups_and_the_pinned_sandbox() -> None:
    found = configuration()
    assert found["version"] == 4
    runc = found["plugins"][RUNTIME]["containerd"]["runtimes"]["runc"]
    assert runc == {"runtime_type": "io.containerd.runc.v2", "options": {"SystemdCgroup": True}}
    assert found["plugins"][IMAGES]["pinned_images"]["sandbox"].startswith("registry.k8s.io/pause:")


@pytest.mark.parametrize("snapshotter", ["overlayfs", "native", "btrfs", "zfs"])
def test_snapshotter(snapshotter: str) -> None:
    assert configuration(snapshotter=snapshotter)["plugins"][IMAGES]["snapshotter"] == snapshotter


TRANSFER = "io.containerd.transfer.v1.local"


def test_images_are_unpacked_for_the_snapshotter_and_the_processor() -> None:
    """containerd 2.1 and newer: "unable to initialize unpacker: no unpack platforms defined" without it."""
    found = configuration(snapshotter="native")
    assert found["plugins"][TRANSFER]["unpack_config"] == [{"platform": "linux/amd64", "snapshotter": "native"}]
    arm = node(instanceType="t4g.medium", containerd={"snapshotter": "btrfs"})
    plugins = tomllib.loads(arm.files["files/etc/containerd/config.toml"])["plugins"]
    assert plugins[TRANSFER]["unpack_config"] == [{"platform": "linux/arm64", "snapshotter": "btrfs"}]


def test_containerds_own_snapshotter_needs_no_settings() -> None:
    assert TRANSFER not in configuration()["plugins"]


@pytest.mark.parametrize(
    "plugins",
    [
        {RUNTIME: {"containerd": {"runtimes": {"kata": {"snapshotter": "devmapper"}}}}},
        {IMAGES: {"runtime_platforms": {"kata": {"snapshotter": "devmapper", "platform": "linux/amd64"}}}},
    ],
    ids=["runtime", "platform of a runtime"],
)
def test_snapshotter_of_one_runtime_is_unpacked_for_beside_the_others(plugins: dict[str, Any]) -> None:
    found = configuration(configuration={"plugins": plugins})["plugins"][TRANSFER]["unpack_config"]
    assert [entry["snapshotter"] for entry in found] == ["devmapper", "overlayfs"]


def test_snapshotter_may_come_with_the_users_fields_and_so_may_the_unpacking() -> None:
    images = {IMAGES: {"snapshotter": "zfs"}}
    found = configuration(configuration={"plugins": images})["plugins"]
    assert [entry["snapshotter"] for entry in found[TRANSFER]["unpack_config"]] == ["zfs"]
    own = [{"platform": "linux/amd64", "snapshotter": "zfs", "differ": "mine"}]
    found = configuration(configuration={"plugins": {**images, TRANSFER: {"unpack_config": own}}})["plugins"]
    assert found[TRANSFER]["unpack_config"] == own


def test_users_fields_lie_over_cfngens_field_by_field() -> None:
    nvidia = {"runtime_type": "io.containerd.runc.v2", "options": {"BinaryName": "/usr/bin/nvidia-container-runtime"}}
    runtimes = {"nvidia": nvidia, "runc": {"options": {"NoPivotRoot": True}}}
    found = configuration(
        configuration={
            "imports": ["/etc/containerd/conf.d/*.toml"],
            "plugins": {RUNTIME: {"containerd": {"default_runtime_name": "nvidia", "runtimes": runtimes}}},
        }
    )
    assert found["imports"] == ["/etc/containerd/conf.d/*.toml"]
    runtime = found["plugins"][RUNTIME]["containerd"]
    assert runtime["default_runtime_name"] == "nvidia"
    assert runtime["runtimes"]["nvidia"] == nvidia
    assert runtime["runtimes"]["runc"]["options"] == {"SystemdCgroup": True, "NoPivotRoot": True}
    assert found["plugins"][RUNTIME]["cni"]["conf_dir"] == "/etc/cni/net.d"


def test_mirrors_are_asked_in_order_before_the_registry() -> None:
    mirrors = ["https://mirror.example.com", "http://10.0.0.7:5000"]
    found = node(containerd={"registryMirrors": {"docker.io": mirrors}})
    text = found.files["files/etc/containerd/certs.d/docker.io/hosts.toml"]
    hosts = tomllib.loads(text)
    assert list(hosts["host"]) == mirrors
    assert hosts["host"][mirrors[0]] == {"capabilities": ["pull", "resolve"]}
    config = tomllib.loads(found.files["files/etc/containerd/config.toml"])
    assert config["plugins"][IMAGES]["registry"] == {"config_path": "/etc/containerd/certs.d"}


@pytest.mark.parametrize(
    ("url", "own_path"),
    [
        ("https://mirror.example.com", False),
        ("https://mirror.example.com/docker", False),
        ("https://mirror.example.com/v2/docker", True),
        ("https://mirror.example.com/cache/v2", True),
        ("https://v2.example.com/docker", False),
    ],
)
def test_mirror_with_the_api_in_the_middle_of_its_address_is_taken_at_its_word(url: str, own_path: bool) -> None:
    found = node(containerd={"registryMirrors": {"ghcr.io": [url]}})
    host = tomllib.loads(found.files["files/etc/containerd/certs.d/ghcr.io/hosts.toml"])["host"][url]
    assert host.get("override_path", False) is own_path


def test_masters_have_a_runtime_of_their_own_settings() -> None:
    given = {"controlPlane": {"containerd": {"snapshotter": "native"}}, "nodeGroups": [{"name": "n"}]}
    master, group = roles(Cluster.model_validate(given))
    found = [tomllib.loads(each.files["files/etc/containerd/config.toml"]) for each in (master, group)]
    assert [each["plugins"][IMAGES]["snapshotter"] for each in found] == ["native", "overlayfs"]


def test_gpu_nodes_run_pods_with_nvidias_runtime_and_others_with_runc() -> None:
    role = node(instanceType="g6.xlarge", gpu="nvidia")
    runtime = tomllib.loads(role.files["files/etc/containerd/config.toml"])["plugins"][RUNTIME]["containerd"]
    assert runtime["default_runtime_name"] == "nvidia"
    options = {"SystemdCgroup": True, "BinaryName": "/usr/bin/nvidia-container-runtime"}
    assert runtime["runtimes"]["nvidia"] == {"runtime_type": "io.containerd.runc.v2", "options": options}
    assert runtime["runtimes"]["runc"]["options"] == {"SystemdCgroup": True}
    assert "default_runtime_name" not in configuration()["plugins"][RUNTIME]["containerd"]


@pytest.mark.parametrize(
    ("reference", "pulled"),
    [
        ("docker.io/library/nginx:1.29", "docker.io/library/nginx:1.29"),
        (f"quay.io/a/b@sha256:{'0' * 64}", f"quay.io/a/b@sha256:{'0' * 64}"),
        (f"quay.io/a/b:1@sha256:{'0' * 64}", f"quay.io/a/b@sha256:{'0' * 64}"),
        (f"localhost:5000/a:1@sha256:{'0' * 64}", f"localhost:5000/a@sha256:{'0' * 64}"),
    ],
)
def test_images_are_pulled_under_the_name_by_which_the_kubelet_finds_them(reference: str, pulled: str) -> None:
    assert containerd.pulled_reference(reference) == pulled
