"""`cfngen templates` again: the same output, and nothing is made, unless something that it is made from has changed."""

from __future__ import annotations

import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from pathlib import Path

import pytest
import yaml

from cfngen.cli import earlier_runs, pipeline

CASES = Path(__file__).parents[1] / "golden" / "cases"
FIRST = ("default", "kube-up-environment", "private-no-way-out", "references-terraform", "several-groups")
SOME_FIRST = [
    path.name if path.name in FIRST else pytest.param(path.name, marks=pytest.mark.drill)
    for path in sorted(CASES.iterdir())
]


@pytest.fixture(autouse=True)
def cache(directory, monkeypatch, tmp_path_factory):
    """A cache of the test's own; lint finds nothing."""
    earlier_runs._program.cache_clear()
    monkeypatch.setattr("cfngen.lint.lint", lambda *_, **__: ())
    monkeypatch.setattr("cfngen.lint.lint_process", lambda **_: nullcontext())
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    return Path(os.environ["XDG_CACHE_HOME"], "cfngen", "runs")


@pytest.fixture
def made(cache, monkeypatch):
    """The names of the clusters of which templates were made."""
    names = []

    def generate(loaded, generate=pipeline._generate):
        names.append(loaded.cluster.name)
        return generate(loaded)

    monkeypatch.setattr(pipeline, "_generate", generate)
    return names


@pytest.fixture
def case(directory):
    """Copies a golden case into the current directory; returns its environment variables."""

    def copy(name):
        shutil.copytree(CASES / name, directory, dirs_exist_ok=True)
        environment = directory / "environment.yaml"
        return yaml.safe_load(environment.read_text()) if environment.exists() else {}

    return copy


@pytest.fixture
def run(cfngen, directory, tree):
    """Runs `cfngen templates` where there is no output yet; returns what it prints, its exit code and the files."""

    def run_and_look(*arguments, **environ):
        shutil.rmtree(directory / "output", ignore_errors=True)
        return cfngen("templates", *arguments, **environ), tree()

    return run_and_look


@pytest.mark.parametrize("name", SOME_FIRST)
def test_the_second_time_nothing_is_made_and_all_is_the_same(case, made, name, run):
    environ = case(name)
    first = run(**environ)
    made.clear()
    assert run(**environ) == first
    assert made == []
    assert run("--no-cache", **environ) == first
    assert len(made) == 1


@pytest.mark.parametrize(
    "options", [("--output", "yaml"), ("--only", "master"), ("--only", "unknown"), ("--check",), ("-d", "elsewhere")]
)
def test_with_other_options_it_is_the_same(cfngen, directory, made, options, run):
    first = run("--no-cache", *options)
    shutil.rmtree(directory / "elsewhere", ignore_errors=True)
    cfngen("templates", *options[: 2 * ("yaml" in options)])
    made.clear()
    assert run(*options) == first
    assert made == []


def test_warnings_are_shown_again(cfngen, directory, made):
    (directory / "cluster.yaml").write_text("nodeGroups: [{name: nodes, minSize: 3, maxSize: 3}]\n")
    first = cfngen("templates", "--check", NUM_NODES="7")
    assert "warning: " in first.err
    assert cfngen("templates", "--check", NUM_NODES="7") == first
    assert len(made) == 1


def change_cluster(directory):
    (directory / "cluster.yaml").write_text((directory / "cluster.yaml").read_text() + "kubernetesVersion: '1.35'\n")


def change_terraform(directory):
    (directory / "network.json").write_text((directory / "network.json").read_text().replace("rtb-0", "rtb-1"))


def change_source(directory):
    (directory / "package" / "module.py").write_text("changed = True\n")


def change_packages(directory):
    (directory / "packages" / "troposphere-99.0.dist-info").mkdir()


@pytest.mark.parametrize(
    ("change", "options", "environ"),
    [
        (change_cluster, (), {}),
        (change_terraform, (), {}),
        (change_source, (), {}),
        (change_packages, (), {}),
        (None, ("--set", "kubernetesVersion=1.35"), {}),
        (None, ("--output", "yaml"), {}),
        (None, ("-f", "cluster.yaml"), {}),
        (None, ("--defaults",), {}),
        (None, (), {"NUM_NODES": "7"}),
    ],
)
def test_whatever_is_changed_they_are_made_again(case, change, directory, environ, made, monkeypatch, options, run):
    case("references-terraform")
    for folder in ("package", "packages"):
        (directory / folder).mkdir()
    monkeypatch.setattr(earlier_runs, "PACKAGE", directory / "package")
    monkeypatch.syspath_prepend(directory / "packages")
    earlier_runs._program.cache_clear()
    run()
    if change:
        change(directory)
        earlier_runs._program.cache_clear()
    made.clear()
    again = run(*options, **environ)
    assert len(made) == 1
    assert again == run("--no-cache", *options, **environ)


def test_cfn_lint_is_loaded_ahead_unless_it_has_judged_this_cluster(cfngen, monkeypatch):
    needed = []
    monkeypatch.setattr("cfngen.lint.lint_process", lambda *, is_needed: nullcontext(needed.append(is_needed)))
    for options in ([], ["--output", "yaml"], ["--no-env"], ["--output", "yaml", "--no-cache"]):
        cfngen("templates", *options)
    cfngen("lint")
    assert needed == [True, False, True, True, False]


def test_a_variable_that_is_refused_is_refused_again(case, run):
    case("default")
    assert run()[0].code == 0
    assert "KUBELET_TEST_ARGS" in run(KUBELET_TEST_ARGS="--v=9")[0].err


def test_other_variables_do_not_matter(case, made, run):
    case("default")
    assert run() == run(SHLVL="2", _="/usr/bin/cfngen")
    assert len(made) == 1


def damage(cache):
    for path in cache.iterdir():
        path.write_bytes(path.read_bytes()[:-1000] + bytes(1000))


def empty(cache):
    for path in cache.iterdir():
        path.write_bytes(b"")


def put_file_in_the_way(cache):
    shutil.rmtree(cache)
    cache.write_text("in the way")


@pytest.mark.parametrize("spoil", [damage, empty, put_file_in_the_way, shutil.rmtree])
def test_a_cache_that_cannot_be_read_does_not_matter(cache, case, made, spoil, run):
    case("default")
    first = run()
    spoil(cache)
    assert run() == first
    assert len(made) == 2


def test_findings_are_found_again(cfngen, monkeypatch):
    from cfngen.lint import LintFinding

    finding = LintFinding("E3012", "error", "is wrong", ("Resources",), "vpc", "cfngen.templates.vpc")
    with monkeypatch.context() as patch:
        patch.setattr("cfngen.lint.lint", lambda *_, **__: (finding,))
        first = cfngen("templates")
        assert first.code == 1
        assert cfngen("templates") == first


def test_a_pipe_is_read_each_time(cfngen, directory):
    os.mkfifo(directory / "pipe")
    for name in ("one", "other"):
        with ThreadPoolExecutor() as pool:
            pool.submit((directory / "pipe").write_text, f"name: {name}\n")
            assert f"Cluster {name} in us-west-2" in cfngen("templates", "-f", "pipe").out
