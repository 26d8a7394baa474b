"""The lab's own parts, on data of their own: they need neither root nor a Kubernetes."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lab_metadata
import lab_mirror
import lab_real
import lab_registry
import pytest
import yaml
from lab_file import cluster_file
from lab_leftovers import groups, remove_groups
from stand_ins import helm

from cfngen.cluster.load import parse

PAUSE, TAG = "registry.k8s.io/pause:3.10.1", "3.10.1"


def identity(instance_id: str, address: str) -> lab_metadata.Identity:
    """What a metadata service says of a Spot Instance."""
    names = dict.fromkeys(("mac", "image", "role", "access_key", "secret_key", "interface", "subnet_id", "vpc_id"), "x")
    ranges = {"subnet": "127.0.0.0/8", "vpc": "127.0.0.0/8"}
    about = {"zone": "us-west-2a", "instance_type": "t2.medium", "user_data": b"", "life_cycle": "spot"}
    return lab_metadata.Identity(instance_id=instance_id, address=address, **names, **ranges, **about)


def test_an_instance_hears_of_its_own_interruption_alone() -> None:
    sock = socket.create_server(("127.0.0.1", 0))
    service = lab_metadata.Metadata(sock)
    for number in (2, 3):
        service.identities[f"127.0.0.{number}"] = identity(f"i-{number}", f"127.0.0.{number}")
    service.recommend_rebalance("i-2")
    service.interrupt("i-2")

    def told(number: int, path: str) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*sock.getsockname(), source_address=(f"127.0.0.{number}", 0))
        connection.request("PUT", "/latest/api/token", headers={lab_metadata.TTL: "60"})
        token = connection.getresponse().read().decode()
        connection.request("GET", f"/latest/meta-data/{path}", headers={lab_metadata.TOKEN: token})
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        return answer.status, text

    try:
        assert told(2, "instance-life-cycle") == (200, b"spot")
        assert "noticeTime" in json.loads(told(2, "events/recommendations/rebalance")[1])
        assert json.loads(told(2, "spot/instance-action")[1])["action"] == "terminate"
        for path in ("events/recommendations/rebalance", "spot/instance-action"):
            assert told(3, path)[0] == 404
    finally:
        service.server.close()


def put(layout: Path, content: bytes) -> str:
    """Put a blob into a layout; return its digest."""
    digest = hashlib.sha256(content).hexdigest()
    (layout / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
    (layout / "blobs" / "sha256" / digest).write_bytes(content)
    return f"sha256:{digest}"


def image(layout: Path, content: bytes) -> dict[str, Any]:
    """Put an image of one layer into a layout; return its descriptor."""
    config, layer = put(layout, b"{}"), put(layout, content)
    manifest = {
        "schemaVersion": 2,
        "mediaType": lab_registry.MANIFEST,
        "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": config, "size": 2},
        "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer, "size": len(content)}],
    }
    text = json.dumps(manifest).encode()
    return {"mediaType": lab_registry.MANIFEST, "digest": put(layout, text), "size": len(text)}


def described(layout: Path, *images: dict[str, Any]) -> Path:
    layout.mkdir(exist_ok=True)
    (layout / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
    (layout / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": images}))
    return layout


def named(name: str, descriptor: dict[str, Any]) -> dict[str, Any]:
    return {**descriptor, "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": TAG}}


@pytest.fixture
def layout(tmp_path: Path) -> Path:
    """Two images of one name in two registries; the second is an index with a part that was left out."""
    folder = tmp_path / "images"
    own = image(folder, b"of Kubernetes")
    missing = {"digest": f"sha256:{'0' * 64}", "size": 1, "mediaType": lab_registry.MANIFEST}
    text = json.dumps({"schemaVersion": 2, "manifests": [image(folder, b"of others"), missing]}).encode()
    other = {"mediaType": lab_registry.INDEX, "digest": put(folder, text), "size": len(text)}
    return described(folder, named(PAUSE, own), named("quay.io/pause:3.10.1", other))


@pytest.fixture
def registry(layout: Path) -> Iterator[str]:
    sock = socket.create_server(("127.0.0.1", 0))
    server = lab_registry.serve(sock, lab_registry.Layout(layout), [])
    yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    server.close()


def fetched(url: str, method: str = "GET") -> tuple[int, dict[str, str], bytes]:
    # Straight to the loopback address, whatever proxy the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(urllib.request.Request(url, method=method), timeout=10) as answer:
            return answer.status, dict(answer.headers), answer.read()
    except urllib.error.HTTPError as error:
        return error.code, dict(error.headers), error.read()


def test_an_image_is_pulled_as_containerd_pulls_it(registry: str) -> None:
    assert fetched(f"{registry}/v2/")[0] == 200
    url = f"{registry}/v2/pause/manifests/{TAG}?ns=registry.k8s.io"
    status, head, nothing = fetched(url, "HEAD")
    assert (status, nothing) == (200, b"")
    assert head["Content-Type"] == lab_registry.MANIFEST
    status, _, text = fetched(f"{registry}/v2/pause/manifests/{head['Docker-Content-Digest']}?ns=registry.k8s.io")
    assert int(head["Content-Length"]) == len(text)
    assert "sha256:" + hashlib.sha256(text).hexdigest() == head["Docker-Content-Digest"]
    [layer] = json.loads(text)["layers"]
    status, head, content = fetched(f"{registry}/v2/pause/blobs/{layer['digest']}?ns=registry.k8s.io")
    assert (status, content) == (200, b"of Kubernetes")
    assert head["Content-Type"] == "application/octet-stream"


def test_registries_of_one_lab_are_told_apart(registry: str) -> None:
    _, head, text = fetched(f"{registry}/v2/pause/manifests/{TAG}?ns=quay.io")
    assert head["Content-Type"] == lab_registry.INDEX
    kept, left_out = json.loads(text)["manifests"]
    assert fetched(f"{registry}/v2/pause/manifests/{kept['digest']}?ns=quay.io")[0] == 200
    assert fetched(f"{registry}/v2/pause/manifests/{left_out['digest']}?ns=quay.io")[0] == 404
    # Without a registry the name means either.
    assert fetched(f"{registry}/v2/pause/manifests/{TAG}")[0] == 404


@pytest.mark.parametrize(
    "path",
    [
        f"/v2/pause/manifests/{TAG}?ns=docker.io",
        "/v2/pause/manifests/latest?ns=registry.k8s.io",
        "/v2/pause/blobs/sha256:../../index.json",
        f"/v2/pause/blobs/sha256:{'0' * 64}",
        "/v2/_catalog",
        "/",
    ],
)
def test_what_the_registry_does_not_hold_is_an_error_with_a_code(registry: str, path: str) -> None:
    status, _, text = fetched(registry + path)
    assert status == 404
    assert json.loads(text)["errors"][0]["code"].endswith("_UNKNOWN")


def test_nothing_is_taken_in(registry: str) -> None:
    assert fetched(f"{registry}/v2/pause/blobs/uploads/", "POST")[0] == 501


@pytest.mark.parametrize("fault", ["no layout", "no name", "no manifest", "another manifest"])
def test_a_layout_that_cannot_be_served_is_refused(tmp_path: Path, fault: str) -> None:
    folder = tmp_path / "images"
    descriptor = named(PAUSE, image(folder, b"x"))
    blob = folder / "blobs" / "sha256" / descriptor["digest"].partition(":")[2]
    described(folder, {**descriptor, "annotations": {}} if fault == "no name" else descriptor)
    if fault == "no layout":
        (folder / "oci-layout").unlink()
    elif fault == "no manifest":
        blob.unlink()
    elif fault == "another manifest":
        blob.write_text("{}")
    with pytest.raises(lab_registry.LayoutError):
        lab_registry.Layout(folder)


def test_real_programs_are_found_by_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert lab_real.program("v1.36.3", "kubelet") is None
    for version in ("v1.36.2", "v1.36.3"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "kubelet").write_text(version)
    monkeypatch.setenv(lab_real.BINARIES, str(tmp_path))
    mirror = lab_mirror.Mirror()
    mirror.fill()
    served = {path: content for path, content in mirror.files.items() if path.endswith("/kubelet")}
    assert served["/dl.k8s.io/release/v1.36.2/bin/linux/amd64/kubelet"] == b"v1.36.2"
    assert served["/dl.k8s.io/release/v1.36.3/bin/linux/amd64/kubelet"] == b"v1.36.3"
    # Of the others there are stand-ins.
    assert b"stand_ins" in served["/dl.k8s.io/release/v1.35.7/bin/linux/amd64/kubelet"]


def test_settings_for_real_containers_fit_a_cluster_file(layout: Path) -> None:
    content = {"nodeGroups": [{"name": "a", "minSize": 1, "maxSize": 2}, {"name": "b", "minSize": 0, "maxSize": 2}]}
    more = lab_real.settings(lab_registry.Layout(layout), old=True)
    cluster = parse(lab_real.merged(content, more))
    assert [each.min_size for each in cluster.node_groups] == [1, 0]
    for each in (cluster.control_plane, *cluster.node_groups):
        assert set(each.containerd.registry_mirrors) == {"registry.k8s.io", "quay.io"}
        runtime = each.containerd.configuration["plugins"]["io.containerd.cri.v1.runtime"]
        assert runtime["containerd"]["runtimes"]["runc"]["options"] == {"SystemdCgroup": False}
    assert cluster.kubernetes.kubelet_configuration == {"failCgroupV1": False, "cgroupDriver": "cgroupfs"}
    assert cluster.kubernetes.cluster_configuration == {"dns": {"disabled": True}}
    # On a machine with control groups of version 2 only the images' way is another.
    plain = parse(lab_real.merged(content, lab_real.settings(lab_registry.Layout(layout), old=False)))
    assert plain.kubernetes.kubelet_configuration == {}
    assert plain.control_plane.containerd.configuration == {}


def test_kubeadm_is_told_of_old_control_groups_only_where_it_asks(tmp_path: Path) -> None:
    real = tmp_path / "kubeadm"
    real.write_text('#!/bin/sh\necho "$@"\n')
    real.chmod(0o755)
    file = tmp_path / "wrapper"
    file.write_bytes(
        lab_real.wrapped("v1.36.3").replace(f"{lab_real.PROGRAMS}/v1.36.3".encode(), str(tmp_path).encode())
    )

    def given(*words: str) -> str:
        return subprocess.run(["sh", str(file), *words], capture_output=True, text=True, check=True).stdout.strip()

    ignored = "--ignore-preflight-errors=SystemVerification"
    assert given("join", "--config", "/x") == f"join --config /x {ignored}"
    assert given("init", "phase", "preflight", "--config", "/x").endswith(ignored)
    assert given("init", "phase", "certs", "all") == "init phase certs all"


def test_what_a_container_needs_of_the_machine_is_a_script_and_a_unit() -> None:
    found = lab_real.files()
    script, mode = found[lab_real.SCRIPT]
    assert mode == 0o755
    assert subprocess.run(["sh", "-n"], input=script, text=True, check=False).returncode == 0
    assert f"ExecStart={lab_real.SCRIPT}" in found[lab_real.UNIT][0]


def test_helms_stand_in_makes_what_an_api_server_takes() -> None:
    spec = helm.deployment({"name": "demo", "namespace": "shop"})["spec"]
    assert spec["selector"]["matchLabels"].items() <= spec["template"]["metadata"]["labels"].items()
    assert all(each["name"] and each["image"] for each in spec["template"]["spec"]["containers"])


def test_removing_control_groups_bears_that_others_vanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in ("cpu/bootlab-1/inner/most", "memory/a/bootlab-1", "memory/bootlab-2/inner"):
        (tmp_path / path).mkdir(parents=True)
    scandir = os.scandir

    def vanishing(path: Any = ".") -> Any:
        if Path(os.fsdecode(path)).name == "bootlab-2":
            raise FileNotFoundError(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    assert sorted(groups("bootlab-1", tmp_path)) == [tmp_path / "cpu/bootlab-1", tmp_path / "memory/a/bootlab-1"]
    remove_groups("bootlab-1", tmp_path)
    assert groups("bootlab-1", tmp_path) == []
    assert (tmp_path / "memory/bootlab-2").is_dir()


def test_cluster_files_of_the_lab_know_the_images(
    layout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(lab_real.BINARIES, str(layout.parent))
    monkeypatch.setattr(lab_real, "old_groups", lambda: False)
    written = yaml.safe_load(cluster_file(tmp_path, 1, 1).read_text())
    assert written["controlPlane"]["count"] == 1
    assert written["controlPlane"]["containerd"]["registryMirrors"]["registry.k8s.io"] == ["http://198.18.0.1:5001"]
