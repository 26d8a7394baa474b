"""Every configuration document of every golden case, field by field against Kubernetes' own types."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen.boot.state import fill
from cfngen.cluster.checks import kubeadm_v1beta4, kubelet_v1beta1, upstream_fields
from cfngen.cluster.load import load
from cfngen.cluster.model import Cluster
from cfngen.cluster.paths import dotted
from cfngen.releases import exact_version, patches_by_minor
from cfngen.userdata import roles

CASES = Path(__file__).parents[1] / "golden" / "cases"
NAMES = sorted(each.name for each in CASES.iterdir())
TABLES = {version: module.TYPES for module in (kubeadm_v1beta4, kubelet_v1beta1) for version in module.VERSIONS}
FACTS = {
    "instanceId": "i-0123456789abcdef0",
    "address": "172.20.0.9",
    "privateAddress": "172.20.0.9",
    "publicAddress": "203.0.113.7",
    "zone": "us-west-2a",
    "providerId": "aws:///us-west-2a/i-0123456789abcdef0",
}


def faults(document: dict[str, Any], table: upstream_fields.Table) -> list[str]:
    fields = {key: value for key, value in document.items() if key not in ("apiVersion", "kind")}
    found = upstream_fields.faults(fields, document["kind"], table, any_field=False)
    return [f"{dotted(path)} {fault}" for path, fault in found]


@cache
def cluster(case: str) -> Cluster:
    environment = CASES / case / "environment.yaml"
    environ = yaml.safe_load(environment.read_text()) if environment.exists() else {}
    return load(CASES / case / "cluster.yaml", environ=environ).cluster


def documents(value: Any) -> Iterator[dict[str, Any]]:
    """Every mapping with one of the tables' versions, at any depth."""
    if isinstance(value, dict):
        if value.get("apiVersion") in TABLES and "kind" in value:
            yield value
            return
        for item in value.values():
            yield from documents(item)
    elif isinstance(value, list):
        for item in value:
            yield from documents(item)


def rendered(case: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The documents of each role, and the kubelet's settings, which the instance makes documents of."""
    for role in roles(cluster(case)):
        config = json.loads(role.files["role.json"])
        for found in documents(config):
            yield role.role, found
        for key in ("kubelet", "kubeletPatch"):
            if key in config:
                yield (
                    role.role,
                    {"apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration"} | (config[key]),
                )
        for path, text in role.files.items():
            if path.startswith("files/") and path.endswith(".json"):
                for found in documents(json.loads(text)):
                    yield role.role, found


@pytest.mark.parametrize("case", NAMES)
def test_every_field_exists_and_is_of_its_kind(case: str) -> None:
    found = {
        (role, document["kind"]): faults(document, TABLES[document["apiVersion"]]) for role, document in rendered(case)
    }
    assert {key: wrong for key, wrong in found.items() if wrong} == {}
    kinds = {kind for _, kind in found}
    assert {"InitConfiguration", "ClusterConfiguration", "KubeletConfiguration", "CredentialProviderConfig"} <= kinds
    assert ("JoinConfiguration" in kinds) or not cluster(case).node_groups


@pytest.mark.parametrize("case", NAMES)
def test_older_kubelets_know_the_fields_too(case: str) -> None:
    version = exact_version(cluster(case).kubernetes_version)
    younger = {
        field
        for minor, fields in kubelet_v1beta1.SINCE.items()
        if tuple(map(int, version.split(".")[:2])) < tuple(map(int, minor.split(".")))
        for field in fields
    }
    used = {key for _, document in rendered(case) if document["kind"] == "KubeletConfiguration" for key in document}
    assert not used & younger


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"certificateValidityPeriode": "1h"}, "certificateValidityPeriode is no field of ClusterConfiguration"),
        ({"certificateValidityPeriod": "one day"}, "certificateValidityPeriod must be a duration such as 30s or 1h30m"),
        ({"apiServer": {"extraArgs": {"v": "2"}}}, "apiServer.extraArgs must be a list"),
        (
            {"apiServer": {"extraArgs": [{"name": "v", "value": 2}]}},
            "apiServer.extraArgs[0].value must be text; put it in quotes",
        ),
        ({"etcd": {"local": {"datadir": "/x"}}}, "etcd.local.datadir is no field of LocalEtcd"),
        ({"networking": "10.0.0.0/8"}, "networking must be keys and values"),
        ({"featureGates": {"A": "true"}}, "featureGates.A must be true or false"),
    ],
)
def test_a_wrong_field_is_found(change: dict[str, Any], fault: str) -> None:
    document = {"apiVersion": "kubeadm.k8s.io/v1beta4", "kind": "ClusterConfiguration", **change}
    assert faults(document, kubeadm_v1beta4.TYPES) == [fault]


EVERY_FIELD = yaml.safe_load((Path(__file__).parent / "every_field.yaml").read_text())


@pytest.mark.parametrize(
    ("kind", "table"),
    [("ClusterConfiguration", kubeadm_v1beta4.TYPES), ("KubeletConfiguration", kubelet_v1beta1.TYPES)],
)
def test_every_field_that_may_be_set_is_known_with_its_kind(kind: str, table: upstream_fields.Table) -> None:
    fields: dict[str, Any] = EVERY_FIELD[kind]
    assert faults({"kind": kind, **fields}, table) == []
    # A list of lists is of no field's kind, but for those of other packages.
    accepted = {field for field in fields if not faults({"kind": kind, field: [[]]}, table)}
    assert accepted == ({"logging", "tracing"} if kind == "KubeletConfiguration" else set())


def kubeadm_of(version: str) -> str | None:
    """The kubeadm of a version, or of its minor: another minor's refuses what it no longer or not yet knows."""
    top = os.environ.get("KUBERNETES_BINARIES")
    patches = patches_by_minor()[version.rpartition(".")[0]]
    folders = [f"{top}/v{each}" for each in (version, *reversed(patches))] if top else []
    return next(filter(None, (shutil.which("kubeadm", path=folder) for folder in folders)), None)


def test_kubeadm_is_chosen_by_the_clusters_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_BINARIES", raising=False)
    assert kubeadm_of("1.36.3") is None
    for version in ("v1.34.10", "v1.35.6", "v1.35.7"):
        (tmp_path / version).mkdir()
        (tmp_path / version / "kubeadm").touch(0o755)
    monkeypatch.setenv("KUBERNETES_BINARIES", str(tmp_path))
    chosen = {
        each: Path(kubeadm_of(each) or "/none/x").parent.name for each in ("1.34.9", "1.35.6", "1.35.7", "1.36.3")
    }
    assert chosen == {"1.34.9": "v1.34.10", "1.35.6": "v1.35.6", "1.35.7": "v1.35.7", "1.36.3": "none"}


@pytest.mark.drill
@pytest.mark.skipif(not os.environ.get("KUBERNETES_BINARIES"), reason="KUBERNETES_BINARIES names no folder")
@pytest.mark.parametrize("case", NAMES)
def test_kubeadm_accepts_the_documents(case: str, tmp_path: Path) -> None:
    version = cluster(case).kubernetes_version
    kubeadm = kubeadm_of(version)
    if not kubeadm:
        pytest.skip(f"KUBERNETES_BINARIES holds no kubeadm of Kubernetes {version}")
    for role in roles(cluster(case)):
        config = fill(json.loads(role.files["role.json"]), FACTS)
        given = [each for each in documents(config) if each["apiVersion"] in kubeadm_v1beta4.VERSIONS]
        for each in given:
            if each["kind"] == "JoinConfiguration":
                token = {"apiServerEndpoint": "api.example.internal:443", "token": "abcdef.0123456789abcdef"}
                each["discovery"] = {"bootstrapToken": {**token, "caCertHashes": [f"sha256:{'0' * 64}"]}}
        joins = [[each] for each in given if each["kind"] == "JoinConfiguration"]
        for number, group in enumerate([*joins, [each for each in given if each["kind"] != "JoinConfiguration"]]):
            if not group:
                continue
            file = tmp_path / f"{role.role}-{number}.yaml"
            file.write_text("\n---\n".join(map(json.dumps, group)))
            command = [kubeadm, "config", "validate", "--config", str(file)]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stderr
            assert "unknown field" not in done.stderr, done.stderr
