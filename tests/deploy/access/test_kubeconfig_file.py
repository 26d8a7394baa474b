"""The file that kubectl reads: changed as a whole or not at all, and readable by its owner only."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from cfngen.deploy.access.kubeconfig import KubeconfigError
from cfngen.deploy.access.kubeconfig_file import edit_file, find_path


def appended(text: str) -> str:
    return text + "more\n"


def test_the_first_file_of_the_variable_is_changed(tmp_path):
    assert find_path({"KUBECONFIG": ":/a/first:/a/second"}, tmp_path) == Path("/a/first")


@pytest.mark.parametrize("environ", [{}, {"KUBECONFIG": ""}, {"KUBECONFIG": "::"}])
def test_without_the_variable_it_is_that_of_the_home_directory(environ, tmp_path):
    assert find_path(environ, tmp_path) == tmp_path / ".kube" / "config"


def test_a_new_file_and_its_directory_are_for_the_owner_only(tmp_path):
    path = tmp_path / ".kube" / "config"
    assert edit_file(path, appended)
    assert path.read_text() == "more\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [each.name for each in path.parent.iterdir()] == ["config"]


def test_a_readable_file_is_closed_to_others(tmp_path):
    path = tmp_path / "config"
    path.write_text("old\n")
    path.chmod(0o644)
    edit_file(path, appended)
    assert path.read_text() == "old\nmore\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_symbolic_link_stays_one(tmp_path):
    real, link = tmp_path / "dotfiles" / "kube", tmp_path / "config"
    real.parent.mkdir()
    real.write_text("old\n")
    link.symlink_to(Path("dotfiles") / "kube")
    edit_file(link, appended)
    assert link.is_symlink()
    assert real.read_text() == "old\nmore\n"
    assert [path.name for path in real.parent.iterdir()] == ["kube"]


def test_a_link_to_a_file_that_is_not_there_yet_is_followed(tmp_path):
    link = tmp_path / "config"
    link.symlink_to(tmp_path / "elsewhere" / "kube")
    edit_file(link, appended)
    assert (tmp_path / "elsewhere" / "kube").read_text() == "more\n"


def test_a_refused_change_leaves_the_file_and_nothing_else(tmp_path):
    path = tmp_path / "config"
    path.write_text("old\n")
    path.chmod(0o644)

    def refuse(text: str) -> str:
        raise KubeconfigError("no")

    with pytest.raises(KubeconfigError, match="no"):
        edit_file(path, refuse)
    assert path.read_text() == "old\n"
    assert stat.S_IMODE(path.stat().st_mode) == 0o644
    assert [path.name for path in tmp_path.iterdir()] == ["config"]


def test_no_change_writes_nothing(tmp_path):
    path = tmp_path / "nowhere" / "config"
    assert not edit_file(path, lambda text: text)
    assert not path.parent.exists()


def test_two_writers_do_not_write_at_once(tmp_path):
    path = tmp_path / "config"
    path.write_text("old\n")
    (tmp_path / "config.lock").touch()  # what kubectl leaves there while it writes
    with pytest.raises(KubeconfigError, match="another program is writing"):
        edit_file(path, appended)
    assert path.read_text() == "old\n"
    assert (tmp_path / "config.lock").exists()


@pytest.mark.parametrize("kind", ["directory", "text"])
def test_what_is_no_kubeconfig_file_is_left_alone(kind, tmp_path):
    path = tmp_path / "config"
    if kind == "directory":
        path.mkdir()
    else:
        path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(KubeconfigError):
        edit_file(path, appended)
    assert path.is_dir() if kind == "directory" else path.read_bytes() == b"\xff\xfe\x00"


def test_a_place_that_cannot_be_written_is_named(tmp_path):
    blocked = tmp_path / "file"
    blocked.touch()
    with pytest.raises(KubeconfigError, match="file"):
        edit_file(blocked / "config", appended)
