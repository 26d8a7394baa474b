"""`.ci/add-release`: a Kubernetes version is added to the catalogue, all of it or nothing."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
RELEASES = ROOT / "cfngen" / "releases"
FILES = [(arch, name) for arch in ("amd64", "arm64") for name in ("kubeadm", "kubectl", "kubelet")]
NEXT_PATCH, NEXT_MINOR = "1.36.4", "1.37.0"


class Ran(NamedTuple):
    """What a run left behind."""

    code: int
    out: str
    err: str


def digest(arch: str, name: str) -> str:
    return hashlib.sha256(f"{arch} {name}".encode()).hexdigest()


@pytest.fixture
def releases(tmp_path: Path) -> Path:
    """A copy of the catalogue."""
    folder = tmp_path / "releases"
    folder.mkdir()
    for file in RELEASES.glob("*.json"):
        shutil.copy(file, folder)
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The published digests as files in a folder."""
    made = tmp_path / "digests"
    for arch, name in FILES:
        (made / arch).mkdir(parents=True, exist_ok=True)
        (made / arch / f"{name}.sha256").write_text(digest(arch, name))
    return made


def add(version: str, digests: Path, releases: Path) -> Ran:
    command = [sys.executable, ROOT / ".ci" / "add-release", version, "--digests", digests, "--releases", releases]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    return Ran(ran.returncode, ran.stdout, ran.stderr)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


def kubernetes(releases: Path) -> dict[str, dict[str, dict[str, str]]]:
    found: dict[str, dict[str, dict[str, str]]] = json.loads((releases / "catalogue.json").read_text())["components"]
    return found["kubernetes"]


def test_a_version_is_added_in_its_place(releases: Path, folder: Path) -> None:
    before = kubernetes(releases)["versions"]
    ran = add("v1.35.8", folder, releases)
    assert (ran.code, ran.err) == (0, "")
    after = kubernetes(releases)["versions"]
    assert list(after)[list(after).index("v1.35.7") + 1] == "v1.35.8"
    assert after.pop("v1.35.8") == {f"v1.35.8/bin/linux/{arch}/{name}": digest(arch, name) for arch, name in FILES}
    assert after == before


def test_nothing_else_of_the_catalogue_changes(releases: Path, folder: Path) -> None:
    before = contents(releases)
    assert add(NEXT_PATCH, folder, releases).code == 0
    after = contents(releases)
    assert after.keys() == before.keys()
    assert after["charts.json"] == before["charts.json"]
    for name in ("catalogue.json", "sources.json"):
        lost = set(before[name].splitlines()) - set(after[name].splitlines())
        assert lost <= {b'   "sources": ["kops", "kubespray"],'}, name
        assert after[name].count(b"\n") - before[name].count(b"\n") in (8, 4)


def test_the_source_of_the_digests_is_named(releases: Path, folder: Path) -> None:
    assert add(NEXT_PATCH, folder, releases).code == 0
    assert "dl.k8s.io" in kubernetes(releases)["sources"]
    source = json.loads((releases / "sources.json").read_text())["sources"]["dl.k8s.io"]
    assert source["kind"] == "publisher"
    assert "https://dl.k8s.io/release/" in source["where"]


def test_two_versions_one_after_the_other(releases: Path, folder: Path, tmp_path: Path) -> None:
    assert add(NEXT_PATCH, folder, releases).code == 0
    other = tmp_path / "sums"
    other.write_text("".join(f"{digest(arch, name)[::-1]}  {arch}/{name}\n" for arch, name in FILES))
    assert add(NEXT_MINOR, other, releases).code == 0
    assert list(kubernetes(releases)["versions"])[-2:] == [f"v{NEXT_PATCH}", f"v{NEXT_MINOR}"]
    assert kubernetes(releases)["sources"].count("dl.k8s.io") == 1


@pytest.mark.parametrize(
    "path",
    [
        "https://dl.k8s.io/release/v1.36.4/bin/linux/{arch}/{name}",
        "v1.36.4/bin/linux/{arch}/{name}.sha256",
        "*{name}-{arch}",
        "{name}-v1.36.4-linux-{arch}",
    ],
)
def test_digests_may_be_lines_of_one_file(releases: Path, tmp_path: Path, path: str) -> None:
    sums = tmp_path / "SHA256SUMS"
    lines = [f"{digest(arch, name)}  {path.format(arch=arch, name=name)}\n" for arch, name in FILES]
    sums.write_text("".join(["# digests\n", "\n", *lines, f"{digest('amd64', 'kube-proxy')}  amd64/kube-proxy\n"]))
    assert add(NEXT_PATCH, sums, releases).code == 0
    assert set(kubernetes(releases)["versions"][f"v{NEXT_PATCH}"].values()) == {digest(*file) for file in FILES}


def test_a_folder_may_be_a_copy_of_the_publishers(releases: Path, folder: Path, tmp_path: Path) -> None:
    mirror = tmp_path / "mirror"
    for arch, name in FILES:
        file = mirror / f"dl.k8s.io/release/v1.36.4/bin/linux/{arch}/{name}.sha256"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"{digest(arch, name)}  {name}\n")
    assert add(NEXT_PATCH, mirror, releases).code == 0


@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("1.36.3", "Kubernetes 1.36.3 is in the catalogue already"),
        ("v1.36.3", "Kubernetes 1.36.3 is in the catalogue already"),
        ("1.36", "'1.36' is no release of Kubernetes, such as 1.36.4"),
        ("1.37.0-rc.1", "'1.37.0-rc.1' is no release"),
        ("latest", "'latest' is no release"),
        ("1.33.9", "is of no minor that can be added: those are 1.34 to 1.37"),
        ("1.38.0", "is of no minor that can be added: those are 1.34 to 1.37"),
        ("2.36.4", "is of no minor that can be added"),
    ],
)
def test_versions_are_refused(releases: Path, folder: Path, version: str, reason: str) -> None:
    before = contents(releases)
    ran = add(version, folder, releases)
    assert ran.code == 1
    assert ran.out == ""
    assert ran.err.startswith("error: ")
    assert reason in ran.err
    assert contents(releases) == before


@pytest.mark.parametrize(
    ("file", "text", "reason"),
    [
        ("amd64/kubelet.sha256", None, "lacks the digests of kubelet for amd64"),
        ("amd64/kubelet.sha256", "", "kubelet.sha256 holds no SHA-256 digest: ''"),
        ("amd64/kubelet.sha256", "<html>404</html>", "holds no SHA-256 digest: '<html>404</html>'"),
        ("amd64/kubelet.sha256", digest("arm64", "kubelet").upper(), "holds no SHA-256 digest"),
        ("arm64/kubelet.sha256", digest("amd64", "kubelet"), "arm64 kubelet has the digest of amd64 kubelet"),
        ("v1.36.2/bin/linux/amd64/kubelet.sha256", digest("a", "b"), "is of Kubernetes 1.36.2, and not of 1.36.4"),
        ("v1.36.4-rc.0/bin/linux/amd64/kubelet.sha256", digest("a", "b"), "is of Kubernetes 1.36.4-rc.0"),
        ("more/amd64-kubelet.sha256", digest("a", "b"), "is another digest of amd64 kubelet than one before it"),
    ],
)
def test_digests_are_refused(releases: Path, folder: Path, file: str, text: str | None, reason: str) -> None:
    before = contents(releases)
    changed = folder / file
    changed.parent.mkdir(parents=True, exist_ok=True)
    changed.unlink() if text is None else changed.write_text(text)
    ran = add(NEXT_PATCH, folder, releases)
    assert ran.code == 1
    assert reason in ran.err
    assert contents(releases) == before


def test_a_digest_of_another_version_is_refused(releases: Path, folder: Path) -> None:
    path, known = next(iter(kubernetes(releases)["versions"]["v1.36.3"].items()))
    (folder / "amd64" / "kubeadm.sha256").write_text(known)
    ran = add(NEXT_PATCH, folder, releases)
    assert ran.code == 1
    assert f"amd64 kubeadm has the digest of {path}" in ran.err


def test_digests_that_are_not_there(releases: Path, tmp_path: Path) -> None:
    ran = add(NEXT_PATCH, tmp_path / "nowhere", releases)
    assert ran.code == 1
    assert "No such file" in ran.err
    assert "Traceback" not in ran.err


def test_a_catalogue_without_its_sources_stays_as_it_was(releases: Path, folder: Path) -> None:
    before = (releases / "catalogue.json").read_bytes()
    (releases / "sources.json").rename(releases / "elsewhere.json")
    ran = add(NEXT_PATCH, folder, releases)
    assert ran.code == 1
    assert (releases / "catalogue.json").read_bytes() == before
    assert not list(releases.glob(".*"))


def test_after_a_patch_little_is_left_to_do(releases: Path, folder: Path) -> None:
    out = add(NEXT_PATCH, folder, releases).out
    assert "Kubernetes 1.36.4 added, with 6 digests." in out
    assert "git grep -n -F 1.36.3" in out
    assert "CHANGELOG.md" in out
    assert "CNI_PLUGINS" not in out
    assert "1.35.7" in add("1.35.8", second(folder), releases).out


def second(folder: Path) -> Path:
    """Other digests in the same folder."""
    for file in folder.rglob("*.sha256"):
        file.write_text(file.read_text()[::-1])
    return folder


def test_after_a_minor_the_files_to_touch_are_named_and_exist(releases: Path, folder: Path) -> None:
    out = add(NEXT_MINOR, folder, releases).out
    files = set(re.findall(r"\b(?:cfngen|tests)/[\w/]+\.\w+", out))
    assert {"cfngen/releases/charts.json", "cfngen/releases/__init__.py", "cfngen/cluster/model.py"} <= files
    assert [name for name in files if not (ROOT / name).exists()] == []
    assert "cluster-autoscaler" in out
    assert "CNI_PLUGINS" in out


def test_the_help_says_where_digests_come_from() -> None:
    command = [sys.executable, ROOT / ".ci" / "add-release", "--help"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert "https://dl.k8s.io/release/" in out
    assert ".ci/add-release $version --digests digests" in out
