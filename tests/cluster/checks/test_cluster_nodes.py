"""What is put onto instances: what cannot work is refused with the reason, at the key that says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args, get_origin

import pytest
import yaml

from cfngen.cluster.load import Loaded, load
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import EVERY_ITEM, FREE_FORM_SECTIONS, is_free_form
from cfngen.cluster.paths import Path as Key
from cfngen.cluster.problems import ClusterFileError


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def loaded(text: str) -> Loaded:
    Path("cluster.yaml").write_text(text, encoding="utf-8")
    return load(Path("cluster.yaml"), environ={}, overrides=())


def group(**more: Any) -> str:
    return yaml.safe_dump({"nodeGroups": [{"name": "n", **more}]}, sort_keys=False)


def refusal(text: str) -> str:
    with pytest.raises(ClusterFileError) as caught:
        loaded(text)
    return str(caught.value)


@pytest.mark.parametrize(
    "key",
    ["team", "example.com/role", "node.kubernetes.io/pool", "kubelet.kubernetes.io/x", "sub.node.kubernetes.io/x"],
)
def test_labels_that_a_kubelet_may_set(key: str) -> None:
    assert loaded(group(labels={key: "a"})).cluster.node_groups[0].labels == {key: "a"}


@pytest.mark.parametrize(
    ("key", "reason"),
    [
        ("node-role.kubernetes.io/worker", "the API server rejects a node that gives itself a label of kubernetes.io"),
        ("kubernetes.io/role", "the API server rejects"),
        ("k8s.io/pool", "the API server rejects"),
        ("x.k8s.io/pool", "the API server rejects"),
        (
            "node-restriction.kubernetes.io/team",
            "nodes are not allowed to set labels of node-restriction.kubernetes.io",
        ),
        (
            "a.node-restriction.kubernetes.io/team",
            "nodes are not allowed to set labels of node-restriction.kubernetes.io",
        ),
        ("kubernetes.io/hostname", "Kubernetes sets this label itself; remove it"),
        ("topology.kubernetes.io/zone", "Kubernetes sets this label itself; remove it"),
        ("a" * 75 + ".example.com/b", "the key is too long for cluster-autoscaler's tag"),
    ],
)
def test_labels_that_a_node_would_be_refused_for(key: str, reason: str) -> None:
    text = refusal(group(labels={key: "a"}))
    assert text.startswith("cluster.yaml:4: nodeGroups[0].labels.")
    assert reason in text


def test_taint_that_stands_twice() -> None:
    taint = {"key": "gpu", "effect": "NoSchedule"}
    assert "gpu with the effect NoSchedule appears twice" in refusal(group(taints=[taint, {**taint, "value": "x"}]))
    assert loaded(group(taints=[taint, {**taint, "effect": "NoExecute"}])).cluster.node_groups[0].taints


def test_more_labels_than_an_auto_scaling_group_has_tags() -> None:
    assert "45 tags of the Auto Scaling group, but only 44" in refusal(group(labels={f"l{n}": "" for n in range(45)}))


@pytest.mark.parametrize(
    "path",
    [
        "/opt/cfngen/config.json",
        "/etc/kubernetes/admin.conf",
        "/etc/containerd/config.toml",
        "/etc/systemd/system/kubelet.service",
        "/etc/systemd/system/cfngen-boot.service",
        "/usr/local/bin/kubelet",
        "/etc/hosts",
    ],
)
def test_files_that_are_cfngens(path: str) -> None:
    where = "cluster.yaml:4: nodeGroups[0].files[0].path"
    reason = f"{path} belongs to cfngen or to software that it installs; choose another path"
    assert refusal(group(files=[{"path": path, "content": ""}])) == f"{where}: {reason}"


def test_units_that_are_cfngens() -> None:
    assert "nodeGroups[0].units[0].name" in refusal(group(units=[{"name": "containerd.service", "content": ""}]))


def test_files_that_collide_with_each_other() -> None:
    file = {"path": "/etc/systemd/system/agent.service", "content": ""}
    unit = {"name": "agent.service", "content": ""}
    assert "appears twice; remove one" in refusal(group(files=[file, file]))
    assert "appears twice; remove one" in refusal(group(files=[file], units=[unit]))


def test_file_of_a_registry_that_has_mirrors() -> None:
    file = {"path": "/etc/containerd/certs.d/docker.io/hosts.toml", "content": ""}
    mirrors = {"registryMirrors": {"docker.io": ["https://mirror.example.com"]}}
    assert "containerd.registryMirrors also creates" in refusal(group(files=[file], containerd=mirrors))
    assert loaded(group(files=[file])).cluster.node_groups[0].files


def test_path_that_leads_elsewhere() -> None:
    assert "contains `..`" in refusal(group(files=[{"path": "/srv/../etc/hosts", "content": ""}]))


def test_other_files_are_welcome_and_settings_beside_cfngens_units_too() -> None:
    paths = ["/etc/motd", "/etc/systemd/system/kubelet.service.d/10-own.conf", "/usr/local/bin/agent"]
    found = loaded(group(files=[{"path": path, "content": ""} for path in paths]))
    assert [file.path for file in found.cluster.node_groups[0].files] == paths


def test_what_cfngen_sets_of_the_kubelet_is_refused_for_each_group_too() -> None:
    assert "use network.dnsServiceIp" in refusal(group(kubeletConfiguration={"clusterDNS": ["10.0.0.10"]}))
    masters = yaml.safe_dump({"controlPlane": {"kubeletConfiguration": {"providerID": "x"}}})
    assert "controlPlane.kubeletConfiguration.providerID: cfngen sets this key itself" in refusal(masters)


@pytest.mark.parametrize(
    ("configuration", "instead"),
    [
        ({"version": 2}, "remove it, the version is 4"),
        ({"plugins": {"io.containerd.cri.v1.images": {"snapshotter": "zfs"}}}, "use containerd.snapshotter"),
        ({"plugins": {"io.containerd.cri.v1.images": {"registry": {}}}}, "use containerd.registryMirrors"),
        ({"oom_score": None}, "containerd's configuration has no null"),
    ],
)
def test_what_cfngen_sets_of_containerd_is_refused(configuration: dict[str, Any], instead: str) -> None:
    assert instead in refusal(group(containerd={"configuration": configuration}))


def test_time_that_cloudformation_does_not_wait_for_is_warned_of() -> None:
    [warning] = loaded(group(creationTimeout=40, drainTimeout=20)).warnings
    assert "CloudFormation waits an hour at most while it replaces an instance" in warning
    assert loaded(group(creationTimeout=40, drainTimeout=10)).warnings == ()


def free_fields(model: Any, path: Key = ()) -> list[Key]:
    """Return the paths of a model's fields that take anything."""
    found: list[Key] = []
    for field in model.model_fields.values():
        inner: Key = (*path, field.alias or "")
        kind = field.annotation
        if kind == dict[str, Any]:
            found.append(inner)
            continue
        inners = [kind, *get_args(kind), *(argument for part in get_args(kind) for argument in get_args(part))]
        for each in inners:
            if hasattr(each, "model_fields"):
                listed = get_origin(kind) is tuple or str(kind).startswith("tuple")
                found += free_fields(each, (*inner, *([0] if listed else [])))
    return found


def test_every_field_that_takes_anything_is_known_as_such() -> None:
    paths = free_fields(Cluster)
    assert len(paths) >= len([path for path in FREE_FORM_SECTIONS if EVERY_ITEM not in path])
    assert [path for path in paths if not is_free_form(path)] == []


def test_numbers_and_empty_values_of_free_sections_stay_what_they_are() -> None:
    text = "nodeGroups:\n- name: n\n  kubeletConfiguration:\n    memoryThrottlingFactor: 1.5\n    x: null\n"
    given = loaded(text).cluster.node_groups[0].kubelet_configuration
    assert given == {"memoryThrottlingFactor": 1.5, "x": None}
