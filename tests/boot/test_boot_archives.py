"""Archives of which an instance wants a few programs only, unpacked by the real tar."""

from __future__ import annotations

import hashlib
import io
import tarfile
from pathlib import Path

import pytest

from cfngen.boot import machine as seam
from cfngen.boot.host import system
from cfngen.boot.machine import BootError, Machine


@pytest.fixture
def archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An archive as those of etcd: one folder with programs, texts and folders."""
    monkeypatch.setattr(system, "HOME", str(tmp_path / "home"))
    monkeypatch.setattr(seam, "LOG", str(tmp_path / "log"))
    path = tmp_path / "etcd-v3.6.14-linux-amd64.tar.gz"
    with tarfile.open(path, "w:gz") as file:
        for name in ("etcd", "etcdctl", "etcdutl", "README.md", "Documentation/etcdctl.md"):
            entry = tarfile.TarInfo(f"etcd-v3.6.14-linux-amd64/{name}")
            entry.mode, entry.size = 0o755, len(name)
            file.addfile(entry, io.BytesIO(name.encode()))
    return path


def asset(archive: Path, folder: Path, *members: str) -> dict[str, object]:
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    return {"url": archive.as_uri(), "sha256": digest, "folder": str(folder), "members": list(members)}


def test_only_the_wanted_programs_are_unpacked_and_they_can_be_run(archive: Path, tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    assert system.provide_asset(Machine(), asset(archive, folder, "*/etcdctl", "*/etcdutl"), 0)
    assert {path.name for path in folder.iterdir()} == {"etcdctl", "etcdutl"}
    assert all(path.stat().st_mode & 0o111 for path in folder.iterdir())


def test_what_was_unpacked_is_not_fetched_again(archive: Path, tmp_path: Path) -> None:
    wanted = asset(archive, tmp_path / "bin", "*/etcdctl")
    system.provide_asset(Machine(), wanted, 0)
    archive.unlink()
    assert not system.provide_asset(Machine(), wanted, 0)


def test_program_that_the_archive_lacks_is_an_error(archive: Path, tmp_path: Path) -> None:
    with pytest.raises(BootError, match="Not found in archive"):
        system.provide_asset(Machine(), asset(archive, tmp_path / "bin", "*/helm"), 0)
