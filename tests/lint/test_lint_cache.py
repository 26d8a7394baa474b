"""The cache of verdicts: what makes a verdict known, and that nothing about the directory can spoil a lint."""

from __future__ import annotations

import copy
import json
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from cfngen.lint import cache as verdicts
from cfngen.lint import cache_directory, lint, process
from cfngen.lint.views import View
from cfngen.templates.document import Document

DAY = 24 * 60 * 60
FACT = {
    "rule": "E1",
    "severity": "error",
    "message": "is wrong",
    "path": ["Resources", 0],
    "further": "x",
    "line": 3,
    "column": 1,
}


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the documents that had to be judged; every verdict is `FACT`."""
    names: list[str] = []

    def judge(todo: Sequence[View], region: str) -> list[verdicts.Verdict]:
        names.extend(f"{view.document}{'*' if view.nested else ''}" for view in todo)
        return [[copy.deepcopy(FACT)] for _ in todo]

    monkeypatch.setattr(process, "judge", judge)
    return names


def documents() -> list[Document]:
    stack = {"Type": "AWS::CloudFormation::Stack", "Properties": {"TemplateURL": "https://host/vpc.json"}}
    return [
        Document("vpc", {"Resources": {"Vpc": {"Type": "AWS::EC2::VPC"}}, "Outputs": {"Id": {"Value": "x"}}}, "m.vpc"),
        Document("iam", {"Resources": {"Role": {"Type": "AWS::IAM::Role"}}}, "m.iam"),
        Document("cluster", {"Resources": {"VpcStack": stack}}, "m.root", ("vpc",)),
    ]


def test_the_second_time_nothing_is_judged(judged: list[str], tmp_path: Path) -> None:
    first = lint(documents(), region="us-west-2", cache=tmp_path)
    assert judged == ["vpc", "iam", "cluster", "cluster*"]
    judged.clear()
    assert lint(documents(), region="us-west-2", cache=tmp_path) == first
    assert judged == []
    assert [(finding.document, finding.module, finding.path) for finding in first] == [
        ("vpc", "m.vpc", ("Resources", 0)),
        ("iam", "m.iam", ("Resources", 0)),
        ("cluster", "m.root", ("Resources", 0)),
    ]


def test_without_a_cache_everything_is_judged(judged: list[str]) -> None:
    lint(documents(), region="us-west-2", cache=None)
    lint(documents(), region="us-west-2", cache=None)
    assert len(judged) == 8


def change_template(docs: list[Document]) -> None:
    docs[1].body["Description"] = "changed"


def change_output_of_child(docs: list[Document]) -> None:
    docs[0].body["Outputs"]["More"] = {"Value": "x"}


def change_resource_of_child(docs: list[Document]) -> None:
    docs[0].body["Resources"]["Vpc"]["Properties"] = {}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (change_template, ["iam"]),
        (change_output_of_child, ["vpc", "cluster*"]),
        (change_resource_of_child, ["vpc"]),
    ],
)
def test_only_what_changed_is_judged_again(judged: list[str], tmp_path: Path, change: Any, expected: list[str]) -> None:
    lint(documents(), region="us-west-2", cache=tmp_path)
    judged.clear()
    changed = documents()
    change(changed)
    lint(changed, region="us-west-2", cache=tmp_path)
    assert judged == expected


def test_another_region_is_another_verdict(judged: list[str], tmp_path: Path) -> None:
    lint(documents(), region="us-west-2", cache=tmp_path)
    lint(documents(), region="eu-north-1", cache=tmp_path)
    assert len(judged) == 8


def test_another_cfn_lint_is_another_verdict(
    judged: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lint(documents(), region="us-west-2", cache=tmp_path / "cache")
    version = tmp_path / "version.py"
    version.write_text('__version__ = "99.0"')
    monkeypatch.setattr(verdicts, "_cfn_lint_files", lambda: [version])
    lint(documents(), region="us-west-2", cache=tmp_path / "cache")
    assert len(judged) == 8


def test_the_version_of_cfn_lint_is_found() -> None:
    assert [path.name for path in verdicts._cfn_lint_files()] == ["version.py", "version.json"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff\xfe",
        b"not json",
        b"[]",
        b"{}",
        b'{"key": "another", "findings": []}',
        b'{"findings": [{"rule": "E1"}]}',
        b"[" * 100_000,
    ],
)
def test_a_damaged_verdict_counts_as_missing(judged: list[str], tmp_path: Path, content: bytes) -> None:
    clean = lint(documents(), region="us-west-2", cache=tmp_path)
    for path in tmp_path.iterdir():
        path.write_bytes(content)
    judged.clear()
    assert lint(documents(), region="us-west-2", cache=tmp_path) == clean
    assert len(judged) == 4
    lint(documents(), region="us-west-2", cache=tmp_path)
    assert len(judged) == 4, "the damaged verdicts were replaced"


def test_a_verdict_of_the_wrong_shape_counts_as_missing(tmp_path: Path) -> None:
    cache = verdicts.Cache(tmp_path)
    cache.put({"a": [FACT], "b": [{**FACT, "path": "Resources"}], "c": [{**FACT, "more": 1}]})
    assert cache.get("a") == [FACT]
    assert cache.get("b") is None
    assert cache.get("c") is None


def test_a_directory_that_cannot_be_used_is_no_cache(judged: list[str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    lint(documents(), region="us-west-2", cache=tmp_path / "file" / "cache")
    lint(documents(), region="us-west-2", cache=tmp_path / "file")
    assert len(judged) == 8
    assert (tmp_path / "file").read_text() == "in the way"


def test_the_directory_may_be_deleted(judged: list[str], tmp_path: Path) -> None:
    cache = tmp_path / "a" / "b"
    lint(documents(), region="us-west-2", cache=cache)
    for path in cache.iterdir():
        path.unlink()
    cache.rmdir()
    lint(documents(), region="us-west-2", cache=cache)
    assert len(judged) == 8


def test_verdicts_that_are_not_used_go_after_a_month(tmp_path: Path) -> None:
    cache = verdicts.Cache(tmp_path)
    cache.put({"used": [], "unused": []})
    for name in ("used", "unused"):
        old = time.time() - 31 * DAY
        os.utime(tmp_path / f"{name}.verdict.json", (old, old))
    (tmp_path / "not-ours.txt").write_text("x")
    os.utime(tmp_path / "not-ours.txt", (0, 0))
    assert cache.get("used") == []
    cache.put({"new": []})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.verdict.json", "not-ours.txt", "used.verdict.json"]


def test_many_may_write_at_once(tmp_path: Path) -> None:
    cache = verdicts.Cache(tmp_path)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: cache.put({str(number % 5): [FACT] * 50}), range(200)))
    assert all(cache.get(str(number)) == [FACT] * 50 for number in range(5))
    assert len(list(tmp_path.iterdir())) == 5


def test_a_full_disk_leaves_no_half_written_verdict(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    verdicts.Cache(tmp_path).put({"a": [FACT]})
    assert list(tmp_path.iterdir()) == []


def test_stored_verdicts_are_readable_json(judged: list[str], tmp_path: Path) -> None:
    lint(documents()[:1], region="us-west-2", cache=tmp_path)
    (path,) = tmp_path.iterdir()
    assert json.loads(path.read_text()) == {"key": path.name.partition(".")[0], "findings": [FACT]}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({"XDG_CACHE_HOME": "/cache", "HOME": "/home/me"}, Path("/cache/cfngen/lint")),
        ({"HOME": "/home/me"}, Path("/home/me/.cache/cfngen/lint")),
        ({"XDG_CACHE_HOME": "", "HOME": "/home/me"}, Path("/home/me/.cache/cfngen/lint")),
        ({"XDG_CACHE_HOME": "relative", "HOME": "/home/me"}, Path("/home/me/.cache/cfngen/lint")),
        ({}, Path("/dev/null/.cache/cfngen/lint")),
    ],
)
def test_cache_directory(environ: dict[str, str], expected: Path) -> None:
    assert cache_directory(environ) == expected
