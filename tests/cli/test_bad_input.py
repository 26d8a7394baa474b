"""Cluster files that are none, and directories that cannot be written: a clear message, a code, no changed file."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import click
import pytest

from cfngen.cli.application import application

BAD_FILES = {
    "empty": (b"", "the file is empty"),
    "only comments": (b"# nothing\n", "nothing but comments"),
    "bad YAML": (b"name: [a\n", "cluster.yaml:"),
    "a list": (b"- name: a\n", "the file holds a list"),
    "wrong type": (b"name: staging\nnodeGroups: 3\n", "cluster.yaml:2: nodeGroups"),
    "unknown key": (b"nodeGroop: []\n", "nodeGroups"),
    "duplicate key": (b"name: a\nname: b\n", "cluster.yaml:2: name: the key appears twice, first in line 1"),
    "tab": (b"api:\n\tport: 443\n", "cluster.yaml:2: there is a tab here, and YAML allows only spaces"),
    "not UTF-8": (b"name: caf\xe9\n", "cluster.yaml:1: byte 0xe9 is not UTF-8"),
    "binary": (b"\x00\x01\x02", "control character"),
    "two documents": (b"name: a\n---\nname: b\n", "a second document begins here"),
}


@pytest.mark.parametrize("kind", BAD_FILES)
def test_a_bad_cluster_file_is_refused_and_changes_nothing(cfngen, directory, tree, kind):
    content, message = BAD_FILES[kind]
    (directory / "cluster.yaml").write_bytes(content)
    (directory / "output").mkdir()
    (directory / "output" / "vpc.json").write_text("{}")
    before = tree()
    ran = cfngen("templates")
    assert (ran.code, ran.out) == (1, "")
    assert message in ran.err
    assert "Traceback" not in ran.err
    assert tree() == before


def test_every_problem_is_named_at_once(cfngen, directory):
    (directory / "cluster.yaml").write_text("name: Bad_Name\nregion: mars\napi: {port: 0}\n")
    ran = cfngen("lint")
    assert ran.code == 1
    starts = [":1: name: ", ":2: region: ", ":3: api.port: "]
    for line, start in zip(ran.err.splitlines(), starts, strict=True):
        assert line.startswith(f"error: cluster.yaml{start}")


def test_a_missing_file_says_how_to_make_one(cfngen):
    ran = cfngen("templates", "-f", "absent.yaml")
    assert ran.code == 1
    assert "absent.yaml: there is no such file; `cfngen init` writes one" in ran.err


def test_a_directory_is_not_a_cluster_file(cfngen, directory):
    (directory / "cluster.yaml").mkdir()
    ran = cfngen("templates")
    assert ran.code == 1
    assert "cluster.yaml: this is a directory" in ran.err


def test_a_dangling_link_is_not_taken_for_no_file(cfngen, directory):
    (directory / "cluster.yaml").symlink_to("absent.yaml")
    ran = cfngen("config")
    assert ran.code == 1
    assert "there is no such file" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_a_file_that_may_not_be_read(cfngen, directory):
    (directory / "cluster.yaml").write_text("name: secret\n")
    (directory / "cluster.yaml").chmod(0)
    ran = cfngen("config")
    assert ran.code == 1
    assert "cluster.yaml: the file cannot be read; give yourself permission" in ran.err


def test_a_file_without_permission_is_a_failure_and_not_a_wrong_command_line(cfngen, directory, monkeypatch):
    """The permission is asked for by opening, which root always may: click's question before it must not be asked."""
    (directory / "own.yaml").write_text("name: own\n")
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert cfngen("config", "-f", "own.yaml").code == 0

    def refuse(path, *_, **__):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "open", refuse)
    ran = cfngen("config", "-f", "own.yaml")
    assert ran.code == 1
    assert ran.err == "error: own.yaml: the file cannot be read; give yourself permission to read it\n"


@pytest.mark.parametrize("error", [errno.EACCES, errno.EIO])
def test_an_output_directory_that_may_not_be_read(cfngen, directory, monkeypatch, error):
    (directory / "output").mkdir()

    def refuse(path):
        raise OSError(error, os.strerror(error), str(path))

    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    monkeypatch.setattr(Path, "iterdir", refuse)
    ran = cfngen("templates", "--defaults")
    assert ran.code == 1
    assert ran.err.startswith("error: output: cannot be read: ")
    assert "nothing was changed\nhint: " in ran.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("templates", "-d", ""), "--output-dir is empty; give a directory, or . for the current one"),
        (("config", "-f", ""), "--cluster is empty; give a file name, or - for standard input"),
        (("lint", ""), "a file's name is empty"),
        (("init", ""), "a file's name is empty"),
    ],
)
def test_an_empty_path_is_not_the_current_directory(cfngen, directory, arguments, message):
    ran = cfngen(*arguments)
    assert ran.code == 64
    assert f"\nerror: {message}" in ran.err
    assert list(directory.iterdir()) == []


def test_a_bad_value_of_a_flag_or_a_variable_is_named_as_such(cfngen):
    ran = cfngen("config", "--set", "api.prot=1", NUM_NODES="many")
    assert ran.code == 1
    assert "--set api.prot=1" in ran.err
    assert "NUM_NODES" in ran.err


def test_an_override_without_a_value(cfngen):
    ran = cfngen("config", "--set", "name")
    assert ran.code == 1
    assert "--set name" in ran.err


def test_a_variable_that_means_nothing_any_more_says_what_replaced_it(cfngen):
    ran = cfngen("config", EXTRA_DOCKER_OPTS="--debug")
    assert ran.code == 1
    assert "EXTRA_DOCKER_OPTS" in ran.err
    assert cfngen("config", "--no-env", EXTRA_DOCKER_OPTS="--debug").code == 0


def test_an_output_directory_that_is_a_file(cfngen, directory):
    (directory / "output").write_text("mine")
    ran = cfngen("templates", "--defaults")
    assert ran.code == 1
    assert "output: is not a directory" in ran.err
    assert (directory / "output").read_text() == "mine"


def test_an_output_directory_below_a_file(cfngen, directory):
    (directory / "file").write_text("mine")
    ran = cfngen("templates", "--defaults", "--output-dir", "file/output")
    assert ran.code == 1
    assert "nothing was changed" in ran.err


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write to every directory")
def test_an_output_directory_that_may_not_be_written(cfngen, directory):
    (directory / "output").mkdir(mode=0o555)
    ran = cfngen("templates", "--defaults")
    assert ran.code == 1
    assert "output" in ran.err
    assert list((directory / "output").iterdir()) == []


def test_a_file_of_somebody_else_is_not_replaced(cfngen, directory, tree):
    (directory / "output").mkdir()
    (directory / "output" / "vpc.json").write_text('{"mine": true}')
    ran = cfngen("templates", "--defaults")
    assert ran.code == 1
    assert "was not written by cfngen" in ran.err
    assert tree() == {"output/vpc.json": b'{"mine": true}'}


HOSTILE_FILES = {
    "brackets": b"[" * 100_000,
    "objects": b'{"a":' * 100_000,
    "deep template": b'{"Resources": {"A": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_002,
    "deep outputs": b'{"vpc": {"value": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    "deep YAML": b"- " * 100_000,
    "deep by aliases": b"a: &a0 [x]\n" + b"".join(b"b%d: &a%d [*a%d]\n" % (n + 1, n + 1, n) for n in range(3000)),
    "many by aliases": b"a: &a0 [x]\n"
    + b"".join(b"b%d: &a%d [%s]\n" % (n + 1, n + 1, b", ".join([b"*a%d" % n] * 9)) for n in range(30)),
    "controls in JSON": b'{"\\u001b[2J\\u202e\\u007f\\u0000\\ud800": "\\u001b]0;x\\u0007\\u009b"}',
    "controls": "\x1b[2J\x7f\u202e\u2066\x9b: [".encode(),
    "NUL": b"a: \x00\x01\n",
}
"""Content that no parser, and no terminal, should meet as it is."""
FILE_OPTIONS = {
    "--cluster": ("config", "-f", "FILE"),
    "lint files": ("lint", "FILE"),
    "graph --templates": ("graph", "--templates", "FILE"),
    "terraform": ("config", "--defaults", "--set", "network.vpc.id=terraform:FILE#vpc"),
    "--parameter-file": ("plan", "--defaults", "--parameter-file", "FILE"),
    "--prices": ("plan", "--sandbox", "--defaults", "--prices", "FILE"),
    "rehearse --offline-report": ("rehearse", "--offline-report", "FILE"),
    "permissions --diff": ("permissions", "--defaults", "--diff", "FILE"),
    "deploy --canary": ("deploy", "--sandbox", "-f", "FILE", "-f", "FILE", "--canary", "FILE"),
    "templates --output-dir": ("templates", "--defaults", "-d", "."),
}
"""A command line for each option that names a file which is read and understood."""
WRITTEN_FILES = {
    "init file", "kind directory", "graph --output-file", "userdata --unpack", "plan --graph", "rehearse --report",
}  # fmt: skip
"""Options that name files which are written, and not read before."""
ELSEWHERE = {"kubeconfig --file", "delete --authorities-file"}
"""Options that need a deployed cluster: the tests of these commands have them."""


def test_every_option_that_names_a_file_is_known_here():
    def options(command, name):
        if isinstance(command, click.Group):
            context = click.Context(command)
            for child in command.list_commands(context):
                yield from options(command.get_command(context, child), f"{name} {child}".strip())
        for parameter in command.params:
            if isinstance(parameter.type, (click.Path, click.File)):
                long_name = max(parameter.opts, key=len)
                yield {f"{name} {long_name}", long_name}

    known = FILE_OPTIONS.keys() | WRITTEN_FILES | ELSEWHERE
    assert [names for names in options(application, "") if not names & known] == []


def assert_refused_politely(ran):
    assert ran.code in (1, 64), ran.err[:2000]
    assert [character for character in ran.out + ran.err if not (character.isprintable() or character in "\n\t")] == []


@pytest.mark.parametrize("kind", HOSTILE_FILES)
@pytest.mark.parametrize("option", [option for option in FILE_OPTIONS if option != "templates --output-dir"])
def test_a_hostile_file_is_refused_politely(cfngen, directory, monkeypatch, option, kind):
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    (directory / "hostile.json").write_bytes(HOSTILE_FILES[kind])
    assert_refused_politely(cfngen(*(word.replace("FILE", "hostile.json") for word in FILE_OPTIONS[option])))


@pytest.mark.parametrize("option", [option for option in FILE_OPTIONS if option != "templates --output-dir"])
def test_a_device_without_end_is_not_read_to_its_end(cfngen, directory, monkeypatch, option):
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    (directory / "zeros.json").symlink_to("/dev/zero")
    ran = cfngen(*(word.replace("FILE", "zeros.json") for word in FILE_OPTIONS[option]))
    assert_refused_politely(ran)
    assert "more than" in ran.err


@pytest.mark.parametrize("option", [option for option in FILE_OPTIONS if option != "templates --output-dir"])
def test_a_name_is_printed_without_its_control_characters(cfngen, monkeypatch, option):
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    arguments = [word.replace("FILE", "no\x1b[2J\u202e\x7f\rfile.json") for word in FILE_OPTIONS[option]]
    assert_refused_politely(cfngen(*arguments))
    assert_refused_politely(cfngen(*arguments, "--nonsense\x1b[2J\x7f"))


@pytest.mark.parametrize("kind", HOSTILE_FILES)
def test_hostile_files_in_the_directory_that_is_written_stay(cfngen, directory, monkeypatch, kind):
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    for name in ("own.json", "own.yaml", "cluster.schema.json"):
        (directory / name).write_bytes(HOSTILE_FILES[kind] + b" cfngen Resources")
    assert cfngen(*FILE_OPTIONS["templates --output-dir"]).code == 0
    assert cfngen("init").code in (0, 1)
    assert (directory / "own.json").read_bytes() == HOSTILE_FILES[kind] + b" cfngen Resources"
