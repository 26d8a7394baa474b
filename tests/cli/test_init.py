"""`cfngen init`."""

from __future__ import annotations

import json

import pytest

from cfngen.cli.commands.init import FileExistsAlreadyError, write_new


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
    assert "cluster.yaml exists already and is left as it is" in ran.err
    assert "choose another name" in ran.err
    assert (directory / "cluster.yaml").read_text() == "name: mine\n"


def test_it_does_not_follow_a_dangling_link(cfngen, directory):
    (directory / "cluster.yaml").symlink_to(directory / "elsewhere.yaml")
    assert cfngen("init").code == 1
    assert not (directory / "elsewhere.yaml").exists()


def test_a_directory_that_does_not_exist_is_named(cfngen, directory):
    ran = cfngen("init", "nowhere/cluster.yaml")
    assert ran.code == 1
    assert ran.err.startswith("error: nowhere/cluster.yaml: No such file or directory")


def test_nothing_is_left_when_writing_fails(directory):
    with pytest.raises(UnicodeEncodeError):
        write_new(directory / "cluster.yaml", "name: \udcff\n")
    assert list(directory.iterdir()) == []


def test_two_at_once_cannot_both_win(directory):
    write_new(directory / "cluster.yaml", "name: first\n")
    with pytest.raises(FileExistsAlreadyError):
        write_new(directory / "cluster.yaml", "name: second\n")
    assert (directory / "cluster.yaml").read_text() == "name: first\n"
