"""The two tables of configurations: a readable specification of the cluster file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from cfngen.cluster.load import Loaded, load
from cfngen.cluster.paths import dotted, leaves
from cfngen.cluster.problems import ClusterFileError

HERE = Path(__file__).parent


def cases(name: str) -> list[Any]:
    table = yaml.load((HERE / name).read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return [pytest.param(case, id=case["purpose"]) for case in table]


def loaded(case: dict[str, Any]) -> Loaded:
    Path("cluster.yaml").write_bytes(case["file"].encode())
    return load(Path("cluster.yaml"), environ=case.get("environ", {}), overrides=case.get("set", ()))


@pytest.fixture(autouse=True)
def in_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("case", cases("valid.yaml"))
def test_accepted(case: dict[str, Any]) -> None:
    found = loaded(case)
    effective = {dotted(path): value for path, value in leaves(found.cluster.model_dump(mode="json", by_alias=True))}
    assert {key: effective.get(key, "no such key") for key in case["expect"]} == case["expect"]
    assert list(found.warnings) == case.get("warnings", [])


@pytest.mark.parametrize("case", cases("valid.yaml"))
def test_the_file_that_a_stack_keeps_is_the_same_cluster(case: dict[str, Any]) -> None:
    deployed = loaded(case)
    Path("kept.yaml").write_bytes(deployed.kept_file.content)
    assert load(Path("kept.yaml"), environ={}).cluster == deployed.cluster


@pytest.mark.parametrize("case", cases("invalid.yaml"))
def test_refused(case: dict[str, Any]) -> None:
    with pytest.raises(ClusterFileError) as refusal:
        loaded(case)
    assert str(refusal.value).splitlines() == case["message"]


def test_tables_are_large_enough_to_specify_the_file() -> None:
    assert len(cases("valid.yaml")) >= 60
    assert len(cases("invalid.yaml")) >= 60
