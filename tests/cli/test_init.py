"""`cfngen init`."""

from __future__ import annotations

import errno
import io
import json
import os
from pathlib import Path

import pytest

from cfngen.cli.commands.init import FileExistsAlreadyError, write_new_file


def test_it_writes_a_cluster_file_that_is_the_default_cluster(cfngen, directory):
    ran = cfngen("init")
    assert ran.code == 0
    assert "Wrote cluster.yaml" in ran.out
    assert "cfngen templates" in ran.out
    written = json.loads(cfngen("config", "--output", "json").out)["cluster"]
    default = json.loads(cfngen("config", "--defaults", "--output", "json").out)["cluster"]
    assert written == default


def test_it_writes_to_another_name_and_says_how_to_use_it(cfngen, directory):
    ran = cfngen("init", "staging.yaml")
    assert ran.code == 0
    assert (directory / "staging.yaml").exists()
    assert "cfngen templates -f staging.yaml" in ran.out


def test_it_never_overwrites(cfngen, directory):
    (directory / "cluster.yaml").write_text("name: mine\n")
    ran = cfngen("init")
    assert ran.code == 1
    assert "cluster.yaml already exists and was not changed" in ran.err
    assert "choose another name" in ran.err
    assert (directory / "cluster.yaml").read_text() == "name: mine\n"


def test_it_does_not_follow_a_dangling_link(cfngen, directory):
    (directory / "cluster.yaml").symlink_to(directory / "elsewhere.yaml")
    assert cfngen("init").code == 1
    assert not (directory / "elsewhere.yaml").exists()


def test_a_directory_that_does_not_exist_is_named(cfngen, directory):
    ran = cfngen("init", "nowhere/cluster.yaml")
    assert ran.code == 1
    assert ran.err == (
        "error: nowhere/cluster.yaml cannot be written: there is no directory nowhere\n"
        "hint: create it first: `mkdir -p nowhere`.\n"
    )


def test_a_directory_below_a_file(cfngen, directory):
    (directory / "file").write_text("mine")
    ran = cfngen("init", "file/cluster.yaml")
    assert ran.code == 1
    assert "a part of file is a file\nhint: choose another directory" in ran.err


def test_a_directory_that_may_not_be_written(cfngen, directory, monkeypatch):
    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        ran = cfngen("init")
    assert ran.code == 1
    assert ran.err.startswith(
        "error: cluster.yaml cannot be written: you have no permission to write to this directory\nhint: "
    )


def test_a_full_disk_leaves_nothing(cfngen, directory, monkeypatch):
    class Full(io.StringIO):
        def write(self, text):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def made(path, *_, **__):
        path.touch()
        return Full()

    with monkeypatch.context() as patch:
        patch.setattr(Path, "open", made)
        ran = cfngen("init")
    assert ran.code == 1
    assert ran.err.startswith("error: cluster.yaml cannot be written: no space left on device\nhint: ")
    assert list(directory.iterdir()) == []


def test_nothing_is_left_when_writing_fails(directory):
    with pytest.raises(UnicodeEncodeError):
        write_new_file(directory / "cluster.yaml", "name: \udcff\n")
    assert list(directory.iterdir()) == []


def test_two_at_once_cannot_both_win(directory):
    write_new_file(directory / "cluster.yaml", "name: first\n")
    with pytest.raises(FileExistsAlreadyError):
        write_new_file(directory / "cluster.yaml", "name: second\n")
    assert (directory / "cluster.yaml").read_text() == "name: first\n"
