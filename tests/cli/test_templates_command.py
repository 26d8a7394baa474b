"""`cfngen templates`: what it writes, what it says, and when it does not."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import random
import re
import signal
import subprocess
import time

import pytest

from cfngen.lint import LintFinding
from cfngen.userdata import source

STACKS = ("vpc", "security-groups", "secrets", "iam", "master", "nodes-nodes", "cluster", "standalone")


@pytest.fixture
def written(cfngen, directory):
    """The default cluster, written to output/."""
    assert cfngen("templates", "--defaults").code == 0
    return directory / "output"


@pytest.fixture
def nothing_found(monkeypatch):
    """Lint finds nothing, and takes no time for clusters that are no other test's."""
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())


def test_it_writes_every_stack_and_says_what_it_did(cfngen, directory):
    ran = cfngen("templates")
    assert (ran.code, ran.err) == (0, "")
    for stack in STACKS:
        template = json.loads((directory / "output" / f"{stack}.json").read_text())
        row = next(line.split() for line in ran.out.splitlines() if line.startswith(f"  {stack}.json "))
        size = (directory / "output" / f"{stack}.json").stat().st_size
        assert row == [f"{stack}.json", str(len(template["Resources"])), f"{size:,}", "written"]
    assert (directory / "output" / "README.md").exists()
    assert (directory / "output" / "userdata" / "master" / "config.json").exists()
    assert "the built-in default cluster; there is no cluster.yaml here" in ran.out
    assert "UserData" not in ran.out
    assert "8 templates linted, nothing found." in ran.out
    assert "upload output/standalone.json in the CloudFormation console" in ran.out


def test_a_broken_boot_program_is_never_written(cfngen, directory, monkeypatch):
    """A Python whose tokens are others than expected once lost the text of f-strings."""
    strip = source.strip_source
    source.stripped_source.cache_clear()
    monkeypatch.setattr(source, "strip_source", lambda text, tree: strip(text, tree).replace('HOME="', 'HOME "'))
    ran = cfngen("templates")
    source.stripped_source.cache_clear()
    assert ran.code == 1
    assert "the boot program's module machine is not valid for Python 3.9, which instances may have" in ran.err
    assert list(directory.iterdir()) == []


def test_a_second_run_writes_nothing(cfngen, written):
    before = {path: path.stat().st_mtime_ns for path in written.rglob("*")}
    ran = cfngen("templates", "--defaults")
    assert "0 files written" in ran.out
    assert " written\n" not in ran.out
    assert {path: path.stat().st_mtime_ns for path in written.rglob("*")} == before


@pytest.mark.usefixtures("nothing_found")
def test_the_size_of_user_data_is_told_when_it_comes_near_the_limit(cfngen):
    incompressible = base64.b64encode(random.Random(1).randbytes(4500)).decode()
    ran = cfngen("templates", "--set", f"nodeGroups=[{{preBootCommands: [{incompressible}]}}]")
    assert ran.code == 0
    assert re.findall(r"UserData of (\S+) +1[45],\d{3} of 16,384 bytes", ran.out) == ["nodes-nodes"]


@pytest.mark.usefixtures("nothing_found")
def test_the_environment_is_named_when_it_had_a_part(cfngen):
    ran = cfngen("templates", "--only", "vpc", VPC_NAME="main")
    assert "with VPC_NAME from the environment" in ran.out


@pytest.mark.usefixtures("nothing_found")
def test_a_plug_in_that_nobody_chose_is_named_with_the_reason(cfngen):
    options = ("--set", "network.topology=private", "--set", "network.subnets=[{zone: us-west-2a}, {zone: us-west-2b}]")
    ran = cfngen("templates", "--only", "vpc", *options)
    assert "network.plugin is cilium (private subnets in several zones), for as long as the cluster exists; " in ran.out
    assert "network.plugin" not in cfngen("templates", "--only", "vpc", *options, "--set", "network.plugin=cilium").out


def test_only_writes_one_stack_and_removes_nothing(cfngen, written, tree):
    before = tree()
    (written / "iam.json").unlink()
    (written / "vpc.json").unlink()
    ran = cfngen("templates", "--defaults", "--only", "iam")
    assert ran.code == 0
    assert tree() == {path: content for path, content in before.items() if path != "output/vpc.json"}


def test_only_with_an_unknown_stack_lists_the_stacks(cfngen, directory):
    ran = cfngen("templates", "--defaults", "--only", "nodes")
    assert ran.code == 64
    assert "no stack 'nodes' in this cluster; the stacks are vpc, " in ran.err
    assert not (directory / "output").exists()


def test_yaml_replaces_json(cfngen, written):
    ran = cfngen("templates", "--defaults", "--format", "yaml")
    assert ran.code == 0
    names = {path.name for path in written.iterdir() if path.is_file()}
    assert names == {*(f"{stack}.yaml" for stack in STACKS), "README.md"}


def test_another_directory(cfngen, directory):
    assert cfngen("templates", "--defaults", "--output-dir", "deep/down").code == 0
    assert (directory / "deep" / "down" / "cluster.json").exists()
    assert not (directory / "output").exists()


def test_files_of_the_user_stay(cfngen, written):
    (written / "notes.txt").write_text("mine")
    cfngen("templates", "--defaults", "--format", "yaml")
    assert (written / "notes.txt").read_text() == "mine"


def test_check_says_when_all_is_well(cfngen, written, tree):
    before = tree()
    ran = cfngen("templates", "--defaults", "--check")
    assert (ran.code, ran.err) == (0, "")
    assert "output is up to date" in ran.out
    assert tree() == before


def test_check_shows_what_differs_and_changes_nothing(cfngen, written, tree):
    (written / "vpc.json").write_text((written / "vpc.json").read_text().replace("172.20.0.0/16", "172.99.0.0/16"))
    (written / "iam.json").unlink()
    before = tree()
    ran = cfngen("templates", "--defaults", "--check")
    assert ran.code == 3
    assert "iam.json: is missing" in ran.out
    assert "vpc.json: differs" in ran.out
    assert '-   "Default": "172.99.0.0/16"' in ran.out
    assert '+   "Default": "172.20.0.0/16"' in ran.out
    assert "output is not up to date: 2 files would change. Nothing was written." in ran.out
    assert tree() == before


def test_check_without_any_output(cfngen, directory):
    assert cfngen("templates", "--defaults", "--check").code == 3
    assert list(directory.iterdir()) == []


def test_check_of_one_stack(cfngen, written):
    (written / "vpc.json").unlink()
    assert cfngen("templates", "--defaults", "--check", "--only", "iam").code == 0
    assert cfngen("templates", "--defaults", "--check", "--only", "vpc").code == 3


def test_nothing_is_written_when_lint_finds_something(cfngen, directory, monkeypatch):
    finding = LintFinding(
        rule="E3012",
        severity="error",
        message="'many' is not of type 'integer'",
        path=("Resources", "Vpc", "Properties"),
        document="vpc",
        module="cfngen.templates.vpc",
        further="https://example.com/E3012",
    )
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: (finding,))
    ran = cfngen("templates", "--defaults")
    assert (ran.code, ran.out) == (1, "")
    for fact in ("E3012", "Resources.Vpc.Properties", "cfngen.templates.vpc", "https://example.com/E3012"):
        assert fact in ran.err
    assert "Nothing was written" in ran.err
    assert list(directory.iterdir()) == []


@pytest.fixture
def large(directory, nothing_found):
    """A cluster file with more node groups than one template can hold."""
    groups = ", ".join(f"{{name: group-{number}, minSize: 0, maxSize: 1}}" for number in range(100))
    (directory / "cluster.yaml").write_text(f"nodeGroups: [{groups}]\n")


TOO_LARGE = (
    "standalone is not generated: the cluster exceeds the limits of one template (1 MB, 500 resources){}"
    "deploy the nested stacks with cluster.json"
)


@pytest.mark.drill
def test_a_cluster_too_large_for_one_template_is_said_to_be(cfngen, directory, large):
    ran = cfngen("templates")
    assert ran.code == 0
    assert f"warning: {TOO_LARGE.format('; ')}\n" in ran.err
    assert cfngen("templates").err == ran.err
    assert not (directory / "output" / "standalone.json").exists()
    assert "standalone" not in ran.out
    following = ran.out.partition("Next: ")[2]
    assert following.index("cfngen plan") < following.index("cfngen deploy") < following.index("cluster.json")
    assert "cluster.json" in following
    assert "docs/deploy/console.md" in following
    text = (directory / "output" / "README.md").read_text()
    assert "There is no `standalone.json`: the cluster exceeds the limits of one template (1 MB, 500" in text


def test_the_template_that_is_not_made_cannot_be_asked_for(cfngen, directory, large):
    ran = cfngen("templates", "--only", "standalone")
    assert ran.code == 1
    assert f"error: {TOO_LARGE.format(chr(10) + 'hint: ')}\n" in ran.err
    assert not (directory / "output").exists()


def test_interrupted_while_linting_it_leaves_nothing(cfngen, directory, monkeypatch):
    def interrupt(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("cfngen.lint.lint", interrupt)
    assert cfngen("templates", "--defaults").code == 130
    assert list(directory.iterdir()) == []


def test_interrupted_while_reading_it_leaves_nothing(process, directory):
    os.mkfifo(directory / "cluster.yaml")
    started = process("templates")
    writer = None
    deadline = time.monotonic() + started.PATIENCE
    while writer is None and started.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(OSError):  # until the process has opened the other end
            writer = os.open(directory / "cluster.yaml", os.O_WRONLY | os.O_NONBLOCK)
        with contextlib.suppress(subprocess.TimeoutExpired):
            started.wait(0.02)
    assert writer is not None, "the process does not read its cluster file"
    try:
        started.send_signal(signal.SIGINT)
    finally:
        # A signal that comes just before the read begins does not end it; the end of the file does, and Python then
        # sees the signal first.
        os.close(writer)
    out, err = started.communicate()
    assert (started.returncode, out, err.strip()) == (130, "", "error: interrupted; nothing is left half-written")
    assert [path.name for path in directory.iterdir()] == ["cluster.yaml"]
