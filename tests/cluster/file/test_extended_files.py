"""Values that several cluster files have in common: which of two files counts, and what is said of a wrong one."""

from __future__ import annotations

from pathlib import Path

import pytest

from cfngen.cluster.load import Loaded, load
from cfngen.cluster.problems import ClusterFileError

COMMON = """\
name: everybody
kubernetesVersion: 1.35
api:
  allowedCidrs: [203.0.113.0/24]
  port: 6443
nodeGroups:
  - {name: first, minSize: 2, maxSize: 5}
  - {name: second}
kubernetes:
  kubeletConfiguration: {maxPods: 50, podPidsLimit: 100}
"""
OWN = """\
extends: ../common.yaml
name: blue
api:
  port: 443
ssh:
nodeGroups: [{name: only, minSize: 1}]
kubernetes:
  kubeletConfiguration: {maxPods: 60, podPidsLimit: null}
"""


@pytest.fixture(autouse=True)
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("clusters").mkdir()
    Path("common.yaml").write_text(COMMON)
    Path("clusters/blue.yaml").write_text(OWN)


def blue(*overrides: str) -> Loaded:
    return load(Path("clusters/blue.yaml"), environ={}, overrides=overrides)


def test_sections_are_merged_and_all_else_is_replaced() -> None:
    cluster = blue().cluster
    assert (cluster.name, cluster.api.port) == ("blue", 443)
    assert [str(cidr) for cidr in cluster.api.allowed_cidrs] == ["203.0.113.0/24"]
    assert [(group.name, group.min_size, group.max_size) for group in cluster.node_groups] == [("only", 1, 1)]
    assert cluster.kubernetes.kubelet_configuration == {"maxPods": 60, "podPidsLimit": None}
    assert blue("api.port=8443").cluster.api.port == 8443


@pytest.mark.parametrize(
    ("key", "where"),
    [
        ("name", "clusters/blue.yaml:2"),
        ("api.port", "clusters/blue.yaml:4"),
        ("api.allowedCidrs[0]", "clusters/../common.yaml:4"),
        ("nodeGroups[0].minSize", "clusters/blue.yaml:6"),
        ("kubernetes.kubeletConfiguration.maxPods", "clusters/blue.yaml:8"),
    ],
)
def test_each_value_has_the_file_where_it_stands(key: str, where: str) -> None:
    assert blue().origins[key].where == where
    assert blue().origins["nodeGroups[0].maxSize"].kind == "derived"


def test_a_problem_is_reported_where_it_stands() -> None:
    Path("common.yaml").write_text("api: {port: 99999}\ncolour: red\n")
    Path("clusters/blue.yaml").write_text("extends: ../common.yaml\nssh: {port: 1}\n")
    with pytest.raises(ClusterFileError) as refused:
        blue()
    places = sorted(str(problem).partition(": ")[0] for problem in refused.value.problems)
    assert places == ["clusters/../common.yaml:1", "clusters/../common.yaml:2", "clusters/blue.yaml:2"]


def test_a_change_of_the_common_file_is_a_change() -> None:
    assert [path.name for path in blue().digests] == ["blue.yaml", "common.yaml"]


@pytest.mark.parametrize(
    ("own", "common", "message"),
    [
        ("extends: missing.yaml", COMMON, "clusters/blue.yaml:1: extends: there is no file clusters/missing.yaml"),
        ("name: a\nextends: ..", COMMON, "clusters/blue.yaml:2: extends: there is no file clusters/.."),
        ("extends: [a]", COMMON, "clusters/blue.yaml:1: extends: must be the path of a file"),
        (
            "extends: ../common.yaml",
            "extends: other.yaml",
            "clusters/../common.yaml:1: extends: clusters/blue.yaml ext",
        ),
        ("extends: ../common.yaml", "[a]", "clusters/../common.yaml:1: the file holds a list"),
    ],
)
def test_what_cannot_be_extended_is_refused(own: str, common: str, message: str) -> None:
    Path("clusters/blue.yaml").write_text(own)
    Path("common.yaml").write_text(common)
    with pytest.raises(ClusterFileError) as refused:
        blue()
    assert message in str(refused.value)
